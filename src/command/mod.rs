//! What the subcommands of the binary do: they wire the other rooms together, and decide nothing.

mod live;
mod run;
mod speech;

pub use run::run;
