//! The `joiner` binary: reads its arguments, and calls the subcommand.

use std::io::Write;
use std::process::ExitCode;

use cap::Cap;
use joiner::config::{self, Command};
use joiner::{api, command};

/// Counts live bytes, for `go_gc_heap_live_bytes`, which dashboards made for Karpenter read.
#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

fn main() -> ExitCode {
    let parsed = config::parse(std::env::args().skip(1), |name| std::env::var(name).ok());
    let outcome = match parsed {
        Ok(command) => start(command),
        Err(message) => Err(anyhow::anyhow!(message)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            // Whoever started joiner reads this, whether logging was set up or not; when even that fails, the exit code remains.
            let _ = writeln!(std::io::stderr(), "joiner: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(command: Command) -> anyhow::Result<ExitCode> {
    // TLS without a C toolchain. Installed twice only if somebody embeds us, and then the first one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match command {
        Command::Run(run) => command::run(*run, live_bytes),
        Command::Simulate(simulate) => {
            if !command::simulate(&simulate)? {
                // Something happened that must not. Days of trouble are tests, which fail with 1.
                return Ok(ExitCode::from(if simulate.faults.is_some() { 1 } else { 2 }));
            }
            Ok(())
        }
        Command::Plan(plan) if !command::plan(&plan)? => return Ok(ExitCode::FAILURE),
        Command::Plan(_) => Ok(()),
        Command::Explain(explain) => command::explain(&explain),
        Command::Fake(fake) => command::fake(&fake),
        Command::Crds => print(&api::crds::yaml()),
        Command::Version => print(concat!("joiner ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Print(text) => print(&text),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn live_bytes() -> u64 {
    u64::try_from(ALLOCATOR.allocated()).unwrap_or(u64::MAX)
}

fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        // `joiner crds | head` has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
