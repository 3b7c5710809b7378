//! What the API says when it refuses.

use serde_json::{Value, json};

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) kind: &'static str,
    pub(super) details: String,
}

impl Refusal {
    pub(super) fn new(status: u16, code: &'static str, kind: &'static str, details: impl Into<String>) -> Self {
        Self { status, code, kind, details: details.into() }
    }

    /// Something in the request does not exist. Each kind of thing has a code of its own.
    pub(super) fn missing(code: &'static str, what: &str) -> Self {
        Self::new(400, code, "InvalidResource", format!("{what} does not exist"))
    }

    /// A parameter that the action does not have.
    pub(super) fn unknown_parameter(details: impl Into<String>) -> Self {
        Self::new(400, "3001", "InvalidParameter", details)
    }

    /// A parameter that must be there.
    pub(super) fn required(name: &str) -> Self {
        Self::new(400, "7000", "MissingParameter", format!("{name} is missing"))
    }

    /// A value that cannot be.
    pub(super) fn value(details: impl Into<String>) -> Self {
        Self::new(400, "4047", "InvalidParameterValue", details)
    }

    /// A state that does not allow it.
    pub(super) fn state(details: impl Into<String>) -> Self {
        Self::new(409, "6003", "InvalidState", details)
    }

    /// More than the account may have. Which of the codes from 10000 stands for which quota is not known outside, apart from this name.
    pub(super) fn quota(details: impl Into<String>) -> Self {
        Self::new(400, "10023", "TooManyResources (QuotaExceded)", details)
    }

    /// Nobody can tell why.
    pub(super) fn internal() -> Self {
        Self::new(500, "2000", "InternalError", "an internal error has occurred")
    }

    pub(super) fn body(&self) -> Value {
        json!({ "Errors": [{ "Code": self.code, "Type": self.kind, "Details": self.details }] })
    }
}
