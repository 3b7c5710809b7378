//! Mingling: pods that spread over zones are dealt evenly over the planned nodes of each zone.
//!
//! The solver fills one node after the other, and the cheapest mix of nodes is one of extremes: all pods of a Deployment that spreads over
//! zones come to lie on one or two nodes of each zone. Only `maxSkew` of them can be nominated to a node at a time (see
//! [`crate::core::nomination`]), and kube-scheduler takes the others where it likes. So they change places: with pods that go anywhere and
//! request as much together (`even`), and with those of other Deployments that request the same (`deal`). Prices, and what is counted by
//! zone, stay as they are.

mod deal;
mod even;
mod kind;
mod steps;

pub use steps::mingled;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
