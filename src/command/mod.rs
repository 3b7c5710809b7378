//! What the subcommands of the binary do: they wire the other rooms together, and decide nothing.

mod embedded;
mod fake;
mod health;
mod live;
mod load;
mod outscale;
mod plan;
mod rehearsal;
mod run;
mod simulate;
mod speech;
mod stopwatch;
mod trial;
mod trouble;
mod why;

pub use fake::fake;
pub use load::mixed;
pub use plan::{explain, plan};
pub use rehearsal::{Rehearsal, default_pool, scenario_of, with_features};
pub use run::run;
pub use simulate::{rehearse, simulate};
pub use stopwatch::peak_memory;
pub use trial::{Broken, History, Shortest, Told, Trial, Verdict, shrink, trial};
pub use why::explainer;
