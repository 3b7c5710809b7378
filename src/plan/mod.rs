//! What would be bought: a plan for the pods of manifests or of a cluster, with its price, the least that any plan costs, and reasons.
//!
//! `input` makes of objects what the solver looks at (`pods` knows which pods wait, `expand` gives workloads theirs, `mounts` gives pods their claims), `answer` asks the solver and looks at the
//! outcome (`reach` knows of volumes that nothing can reach); `json` and `table` print it, `report` draws it, `explain` answers single questions (`limits` knows what limits take). Nothing in here writes to a cluster.

mod answer;
mod expand;
mod input;
mod mounts;
mod pods;

mod json;
mod reach;
mod table;

mod explain;
mod limits;
mod report;

pub use answer::{Answer, answer};
pub use explain::{Case, Choice, Explanation, Ground, Unknown, nodeclaim, pod};
pub use input::{Features, Input, from_manifests, from_snapshot};
pub use json::json;
pub use report::{render, write};
pub use table::table;
