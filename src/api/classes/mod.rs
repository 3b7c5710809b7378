//! NodeClasses, one file per cloud.

pub mod kwok;
pub mod outscale;
