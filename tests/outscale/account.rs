//! `joiner fake outscale` as a process of its own, and a plain eye on the account that it stands in for.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use joiner::actors::runtime::Clock;
use joiner::clouds::outscale::oapi::wire::{ReadVms, Vm};
use joiner::clouds::outscale::oapi::{Access, Client, Limits, Network, Options, Rate};
use tokio::runtime::Runtime;

use crate::common::controlplane::{eventually, fail};

/// How long the fake may take to come up or to go down, and an answer to be heard.
const LIMIT: Duration = Duration::from_secs(30);
/// An answer that has not come by then was lost, and is asked for again.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often each action had what happen to it: `calls`, `answers lost`, ...
pub(crate) type Counts = BTreeMap<String, BTreeMap<String, u64>>;

/// An account behind a fake that runs; it is killed when this is dropped.
pub(crate) struct Account {
    child: Child,
    said: BufReader<ChildStdout>,
    /// What it says that a client needs: `OSC_ENDPOINT_API` and the others.
    pub(crate) variables: BTreeMap<String, String>,
    eye: Eye,
}

/// Reads the account over the API, as a process that is not joiner.
pub(crate) struct Eye {
    runtime: Runtime,
    client: Client,
}

impl Account {
    /// Starts a fake on a free port, with these flags.
    #[track_caller]
    pub(crate) fn open(program: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["fake", "outscale", "--port", "0"]).args(flags).env_clear();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("joiner can be started");
        let mut said = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut variables = BTreeMap::new();
        while !variables.contains_key("OSC_REGION") {
            let mut line = String::new();
            if said.read_line(&mut line).unwrap_or(0) == 0 {
                drop(child.wait());
                fail("the fake ended before it said where it is");
            }
            let told = line.trim_end().strip_prefix("export ").and_then(|line| line.split_once('='));
            variables.extend(told.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        let eye = Eye::new(&variables);
        Self { child, said, variables, eye }
    }

    /// Another eye on it, for another thread.
    pub(crate) fn eye(&self) -> Eye {
        Eye::new(&self.variables)
    }

    /// All VMs that can be read, those included that are gone.
    #[track_caller]
    pub(crate) fn vms(&self) -> Vec<Vm> {
        eventually("the fake answers", LIMIT, || self.eye.vms())
    }

    /// The same for whoever can do without an answer.
    pub(crate) fn glance(&self) -> Vec<Vm> {
        self.eye.vms().unwrap_or_default()
    }

    /// Those of them that are not on their way out.
    #[track_caller]
    pub(crate) fn alive(&self) -> Vec<Vm> {
        self.vms().into_iter().filter(|vm| !vm.state.is_leaving()).collect()
    }

    /// Ends the fake in order: what it counted of each action, in its own words.
    #[track_caller]
    pub(crate) fn close(mut self) -> Counts {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", self.child.id())).status();
        assert!(sent.expect("there is a shell").success(), "the fake could not be signalled");
        let ended = eventually("the fake ends on SIGTERM", LIMIT, || {
            self.child.try_wait().expect("our own child can be waited for")
        });
        assert!(ended.success(), "the fake ended with {ended}");
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("it speaks UTF-8");
        let counts = said.lines().filter_map(|line| {
            let (action, load) = line.strip_prefix("# ")?.split_once(": ")?;
            let count = |part: &str| {
                let (times, what) = part.split_once(' ')?;
                Some((what.to_owned(), times.parse().ok()?))
            };
            Some((action.to_owned(), load.split(", ").map(count).collect::<Option<_>>()?))
        });
        counts.collect()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Eye {
    fn new(variables: &BTreeMap<String, String>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        let no_file = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        let access = Access::read(|name| variables.get(name).cloned(), no_file);
        let access = access.expect("the fake says all that a client needs");
        let network = Network::new(&access).expect("no certificates are needed");
        let clock = Clock::machine();
        let limits = Limits { each: Rate::new(100.0, 100), ..Limits::default() };
        let options = Options { limits, answer_within: PATIENCE, ..Options::new(Arc::new(move || clock.now())) };
        Self { runtime, client: Client::new(access, Arc::new(network), options) }
    }

    /// All VMs that can be read, unless the answer was lost.
    pub(crate) fn vms(&self) -> Option<Vec<Vm>> {
        self.runtime.block_on(self.client.all(&ReadVms::default())).ok()
    }
}
