//! How we speak: metrics, log lines and Kubernetes events, each with its words on one page.
//!
//! Other rooms call typed functions of this one ([`metrics::claim_created`], [`events::launched`]); label values are enums and ids, so that
//! a typing error cannot make a new time series. What mirrors the state of the cluster is not recorded at all: it is read off the
//! snapshot when somebody asks ([`metrics::Samples`]), so no series can outlive its object.

pub mod conditions;
pub mod dedupe;
pub mod events;
pub mod log;
pub mod metrics;
