//! Improvement: a finished plan against one that is made along the fillings of the cheapest mix of nodes.
//!
//! The greedy solver chooses one node after the other. The covering problem behind the lower bound sees all of them at once, but knows
//! nothing of constraints between pods, limits and labels. So its fillings are taken for a script (`script`; `cast` says which pods play
//! its parts, `rough` where no two are alike): the solver opens their nodes first, with all its rules (`along`), and places what is left as always. The cheaper of the two
//! plans stays (`better`).

mod along;
mod better;
mod cast;
mod rough;
mod script;

pub use better::improved;
