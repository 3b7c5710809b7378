//! 3DS OUTSCALE: machines by its API (OAPI).

pub mod oapi;
