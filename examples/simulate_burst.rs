//! A rehearsal from a program: a hundred mixed pods, a world, and what came of it.
//!
//! `cargo run --example simulate_burst`

use joiner::actors::Settings;
use joiner::clouds::catalog;
use joiner::command::{mixed, rehearse, scenario_of};
use joiner::sim::progress::{Progress, When};
use joiner::sim::summary;

fn main() -> anyhow::Result<()> {
    let scenario = scenario_of("a hundred mixed pods", &mixed(100))?;
    let settings = Settings { leader_election: false, ..Settings::default() };
    let outcome = rehearse(&scenario, catalog::generated(), 7, settings, Progress::on_stderr(When::Never))?;
    #[expect(clippy::print_stdout, reason = "an example shows what it does")]
    {
        println!("{}", summary::table(&outcome));
    }
    Ok(())
}
