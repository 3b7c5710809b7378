//! The NodeClasses: what only one cloud understands, one file each.

pub mod kwok;
