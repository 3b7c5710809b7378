//! The lower bound: what no plan that places the same pods can cost less than.
//!
//! Constraints between pods, limits and the number of nodes are left out of account; what remains is a covering problem: nodes of every
//! type, offering and pool, each with its price and its room beside daemons, must take all pods, which are many of few kinds (`relax`).
//! A price for each kind of pod is sought such that no node could hold pods worth more than the node costs: then all pods together cost
//! at least what they are worth. Such prices come out of a linear program over fillings of nodes (`covering`), whose columns are found by
//! filling knapsacks (`knapsack`, which `ladder` proves full; `search` is the loop around both, and `effort` its end). Whatever comes out of it is checked once more against every node and scaled down until it holds: the
//! answer is a bound even when the search stopped early (`lower`). Where there are thousands of kinds, a few speak for the others
//! (`spokesmen`).
//!
//! The same program says which mix of nodes would be cheapest (`mix`), for improvement.

mod covering;
mod effort;
mod knapsack;
mod ladder;
mod lower;
mod mix;
mod relax;
mod search;
mod spokesmen;

pub(super) use effort::Effort;
pub use lower::{lower_bound, quick_lower_bound};
pub(super) use mix::{Mix, Share, mix};
