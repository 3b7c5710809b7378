//! Pods that were refused though there may be a place: where a few of them go is searched together.
//!
//! A solve places one pod after the other, each where it is best alone. Where NodePools differ, limits are near or pods mind each other, the last can
//! then be left without a place that another order, or another seat for one of the others, would have kept. So for a pod that is refused, those are
//! looked at together that mind it or sit where it could (`circle`), and all ways to seat them are tried (`search`) with the same checks as ever
//! (`sit`), up to a number of steps. The first way that seats all of them is kept, and everybody else is placed after them.
//!
//! Nothing of this happens where nobody is refused.

mod circle;
mod search;
mod seated;
mod sit;
