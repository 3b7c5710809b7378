//! How a request to the API server fails, in the classes on which callers act.

use std::time::Duration;

/// A failed request. Everything but [`Error::Unknown`] is certain: nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// There is no such object, or it has another UID by now.
    #[error("{0} not found")]
    NotFound(String),
    /// There is already an object of that name.
    #[error("{0} exists already")]
    Exists(String),
    /// Somebody else changed the object in between.
    #[error("{0} was changed by somebody else")]
    Conflict(String),
    /// The API server has too much to do or is not there for anybody (429, or 503 with a time), and asks to come back later.
    #[error("too many requests: {message}")]
    TooManyRequests {
        /// When to come back, if it says so.
        retry_after: Option<Duration>,
        /// What it said.
        message: String,
    },
    /// A PodDisruptionBudget forbids an eviction for now, or several protect the pod, which the API server does not handle.
    #[error("{message}")]
    Budget {
        /// The status code: 429, or 500 where several protect the pod.
        code: u16,
        /// Name of the budget, if it says which one.
        budget: Option<String>,
        /// When to come back, if it says so.
        retry_after: Option<Duration>,
        /// What it said: which budget, how many pods that needs, and how many there are.
        message: String,
    },
    /// The account lacks a permission.
    #[error(
        "forbidden: {verb} {resource}; add a rule to joiner's ClusterRole: apiGroups [\"{group}\"], resources [\"{resource}\"], verbs [\"{verb}\"]"
    )]
    Forbidden {
        /// The verb, as RBAC names it.
        verb: &'static str,
        /// API group; empty for the core group.
        group: &'static str,
        /// Plural name, with subresource.
        resource: &'static str,
    },
    /// The object was refused by validation or admission.
    #[error("{object} rejected: {message}")]
    Invalid {
        /// Which object.
        object: String,
        /// What the API server said.
        message: String,
    },
    /// Certainly without effect; worth another try.
    #[error("{0}")]
    Temporary(String),
    /// No answer, or one that leaves open whether the request took effect.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}
