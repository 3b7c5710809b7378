//! joiner on 3DS OUTSCALE, end to end: a process of its own, with the chart's ServiceAccount and nothing more, in a real cluster; the API is a
//! stand-in that is a process of its own as well, and has a bad day.

mod common;

#[path = "outscale/account.rs"]
mod account;
#[path = "outscale/life.rs"]
mod life;
#[path = "outscale/machines.rs"]
mod machines;
#[path = "outscale/plan.rs"]
mod plan;
#[path = "outscale/stage.rs"]
mod stage;
