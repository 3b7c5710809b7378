//! Settings: every flag and environment variable of joiner, documented once, validated before anything starts.
//!
//! The names, defaults and grammars are those of Karpenter 1.15 where it has the setting, so that a chart or a manifest for it works
//! unchanged. A flag wins over its variable, a variable over the default; an empty variable counts as not set. A number, truth value
//! or duration in a variable that cannot be read falls back to the default, as in Karpenter, but not silently: see
//! [`Settings::warnings`]. Everything else that cannot be read ends the start with one message.
//!
//! `flags` is the list itself; help text and the table in the README are generated from it.

mod fake;
mod flags;
mod gates;
mod parse;
mod settings;
mod spreads;
mod table;
mod values;

pub use fake::{Fake, FakeCloud, Quota, SoldOut};
pub use gates::FeatureGates;
pub use parse::parse;
pub use settings::{
    Cloud, Cluster, Command, Explain, Faults, LeaderElection, LogLevel, LogOutput, MinValuesPolicy, Nominate, Output,
    OutscaleSettings, Plan, PreferencePolicy, Progress, Run, Settings, Signature, Simulate, Subject, Trace,
    TraceFormat, World,
};
pub use table::table;

#[cfg(test)]
mod tests;
