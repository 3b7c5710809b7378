//! Improvement: a finished plan against one that is made along the fillings of the cheapest mix of nodes.
//!
//! The greedy solver chooses one node after the other. The covering problem behind the lower bound sees all of them at once, but knows
//! nothing of constraints between pods, limits and labels. So its fillings are taken for a script (`script`; `cast` says which pods play
//! its parts, `rough` where no two are alike): the solver opens their nodes first, with all its rules (`along`), and places what is left as always.
//!
//! Fillings say little where few pods wait, or few in each zone. So a few nodes of the plan at a time are packed again (`pack`; `nodes` reads them
//! and writes them, `sharing` says who may meet on one, `sites` what can be bought, `beam` seeks), and so are those of plans that are made afresh in another way (`afresh`): as
//! Karpenter makes it, for none is to be dearer than that, and with the dearest pods first where there is room that costs nothing. The cheapest
//! of all plans that keep to the weights of NodePools (`weights`) stays (`better`).

mod afresh;
mod along;
mod beam;
mod better;
mod cast;
mod nodes;
mod pack;
mod rough;
mod script;
mod sharing;
mod sites;
mod weights;

pub use better::improved;
