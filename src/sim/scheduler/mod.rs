//! kube-scheduler's stand-in: takes pending pods by priority and age, and binds each to the node that suits it best.
//!
//! Like the real one it tries the nominated node first, keeps the room of nominated pods from pods of equal or lower priority, looks at a
//! share of the nodes only when there are many, and breaks ties by chance. Unlike it, it does not preempt, and a pod that found no place
//! is tried again as soon as something has changed that it sees, without a backoff. Pods of equal shape are one: what no pod of a shape can do,
//! none can, so ten thousand pods that find no place cost one look at the nodes.
//!
//! Reading order: [`board`] is what is known of nodes, [`groups`] counts pods for topology rules, [`shapes`] is what is known of pods,
//! [`filters`], [`volumes`] and [`score`] judge a node, [`queue`] holds who waits, `run` is the loop.

mod board;
mod groups;
mod shapes;

mod filters;
mod score;
mod volumes;

mod queue;
mod run;

pub use run::{Rhythm, Scheduler};

#[cfg(test)]
mod tests;
