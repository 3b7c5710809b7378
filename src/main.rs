//! The `joiner` binary.

fn main() {}
