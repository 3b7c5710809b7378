//! Who acts, and when: the supervision tree.

pub mod runtime;
