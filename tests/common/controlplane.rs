//! A real Kubernetes control plane for one test: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, on free ports of
//! 127.0.0.1 and in a folder of their own. The Go program in `tests/controlplane` does the work; this starts it, talks to it, and ends it.
//!
//! The program ends, with all that it has started, when the pipe to its stdin is closed, which happens at the latest when the
//! test's process is gone. Every method panics, with the reason, when what it was asked for fails; the ends of all logs are then
//! printed.
#![allow(dead_code, reason = "each test uses the part it needs")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// How long a closed control plane may take to kill its children and remove its folder.
const END: Duration = Duration::from_secs(30);
/// The pause between two looks of [`eventually`].
const PAUSE: Duration = Duration::from_millis(100);
/// How many lines of each log are shown when a test fails.
const TAIL: usize = 30;

/// A control plane that runs; it ends when this is dropped.
pub(crate) struct ControlPlane {
    supervisor: Child,
    /// Commands go in, answers come out, one for one.
    dialogue: Mutex<Dialogue>,
    dir: PathBuf,
}

struct Dialogue {
    commands: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl ControlPlane {
    /// Starts everything and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts with flags of `controlplane up`, for instance `--without=kwok`.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        let mut supervisor = Command::new(binary("controlplane"))
            .args(["up", "--commands"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| fail(&format!("cannot start the control plane: {error}")));
        let commands = supervisor.stdin.take();
        let answers = lines_of(supervisor.stdout.take().expect("stdout is piped"));
        let complaints = text_of(supervisor.stderr.take().expect("stderr is piped"));
        // The supervisor has deadlines of its own, so this ends.
        let first = answers.recv().unwrap_or_default();
        let Some(kubeconfig) = first.strip_prefix("export KUBECONFIG=") else {
            drop(supervisor.wait());
            fail(&format!("the control plane did not start: {first} {}", complaints.recv().unwrap_or_default()));
        };
        let dir = Path::new(kubeconfig).parent().expect("a kubeconfig is in a folder").to_owned();
        Self { supervisor, dialogue: Mutex::new(Dialogue { commands, answers }), dir }
    }

    /// The folder of this control plane; it is removed at the end.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The kubeconfig of a user who may do everything.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// Writes a kubeconfig that is good for one day for a `ServiceAccount`, which must exist.
    #[track_caller]
    pub(crate) fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> PathBuf {
        let mut command = Command::new(binary("controlplane"));
        command.arg("kubeconfig").arg("--dir").arg(&self.dir).arg(format!("{namespace}/{name}"));
        let path = run(&mut command, None).unwrap_or_else(|error| fail(&error));
        PathBuf::from(path.trim_end())
    }

    /// A `kube` client for the kubeconfig of [`Self::kubeconfig`] or [`Self::kubeconfig_for_service_account`].
    pub(crate) async fn client(&self, kubeconfig: &Path) -> kube::Client {
        let file = kube::config::Kubeconfig::read_from(kubeconfig)
            .expect("the control plane writes kubeconfigs that can be read");
        let current = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &current).await;
        let config = config.expect("the control plane's kubeconfigs are complete");
        kube::Client::try_from(config).expect("the control plane's kubeconfigs hold valid certificates")
    }

    /// Runs kubectl as the admin and returns what it prints. The line is cut at its blanks, without quoting; where an argument holds
    /// a blank there is [`Self::try_kubectl`].
    #[track_caller]
    pub(crate) fn kubectl(&self, line: &str) -> String {
        let args: Vec<&str> = line.split_whitespace().collect();
        self.try_kubectl(&args, None).unwrap_or_else(|error| fail(&error))
    }

    /// Runs kubectl, with `input` on its stdin, where a failure is of interest too: the error is what kubectl says.
    pub(crate) fn try_kubectl<S: AsRef<OsStr>>(&self, args: &[S], input: Option<&str>) -> Result<String, String> {
        let mut command = Command::new(binary("controlplane"));
        command.arg("kubectl").args(args).env("KUBECONFIG", self.kubeconfig()).env("HOME", &self.dir);
        run(&mut command, input)
    }

    /// Creates or changes the objects of a YAML text.
    #[track_caller]
    pub(crate) fn apply(&self, yaml: &str) -> String {
        let applied = self.try_kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"], Some(yaml));
        applied.unwrap_or_else(|error| fail(&error))
    }

    /// Creates a namespace and waits for its `ServiceAccount` `default`, without which no pod can be created in it.
    #[track_caller]
    pub(crate) fn namespace(&self, name: &str) {
        self.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n"));
        self.kubectl(&format!("wait --for=create serviceaccount/default --namespace {name} --timeout=60s"));
    }

    /// Runs helm as the admin and returns what it prints.
    #[track_caller]
    pub(crate) fn helm<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let mut command = Command::new(binary("helm"));
        command.args(args).env("KUBECONFIG", self.kubeconfig()).env("HOME", &self.dir);
        run(&mut command, None).unwrap_or_else(|error| fail(&error))
    }

    /// Ends kube-apiserver in order. Its address stays its own: clients are refused until [`Self::start_apiserver`].
    #[track_caller]
    pub(crate) fn stop_apiserver(&self) {
        self.tell("stop kube-apiserver");
    }

    /// Starts kube-apiserver again and waits until it is ready.
    #[track_caller]
    pub(crate) fn start_apiserver(&self) {
        self.tell("start kube-apiserver");
    }

    /// Gives the supervisor one of its commands (`controlplane up --help` lists them) and waits until it is done: `start`, `stop`, `kill`,
    /// `freeze` or `thaw`, and the name of a component.
    #[track_caller]
    pub(crate) fn tell(&self, command: &str) {
        let mut dialogue = self.dialogue.lock().expect("nobody panics while holding it");
        let sent = dialogue.commands.as_mut().is_some_and(|commands| writeln!(commands, "{command}").is_ok());
        let answer = if sent { dialogue.answers.recv().ok() } else { None };
        drop(dialogue);
        match answer.as_deref() {
            Some("ok") => {}
            Some(error) => fail(&format!("{command}: {error}")),
            None => fail(&format!("{command}: the control plane has ended")),
        }
    }

    /// Kills the supervisor with SIGKILL, so that it cannot end its children itself.
    pub(crate) fn kill_supervisor(&mut self) {
        self.supervisor.kill().expect("our own child can be killed");
        self.supervisor.wait().expect("our own child can be waited for");
    }

    /// CPU seconds of each component so far.
    pub(crate) fn cpu_seconds(&self) -> BTreeMap<String, f64> {
        let dir = self.dir.to_str().expect("the folder has a plain name");
        let mut all = BTreeMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let mut words = command.split('\0');
            let (program, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if program.ends_with("controlplane") && words.any(|word| word.contains(dir)) {
                all.insert(name.to_owned(), cpu_seconds(&entry.path().join("stat")));
            }
        }
        all
    }

    /// The ends of the logs of all components.
    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.dir.join("logs")).into_iter().flatten().flatten() {
            let log = fs::read_to_string(entry.path()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.iter().skip(lines.len().saturating_sub(TAIL));
            writeln!(text, "--- the end of {}", entry.path().display()).expect("a String takes everything");
            tail.for_each(|line| text.extend([line, "\n"]));
        }
        text
    }
}

impl Drop for ControlPlane {
    #[expect(clippy::print_stderr, reason = "the logs of a test that failed")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.logs());
        }
        let dialogue = self.dialogue.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        drop(dialogue.commands.take());
        let deadline = Instant::now() + END;
        loop {
            match dialogue.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    drop(self.supervisor.kill()); // and the kernel kills its children
                    break;
                }
            }
        }
        drop(self.supervisor.wait());
        drop(fs::remove_dir_all(&self.dir)); // is there only if the supervisor was killed
    }
}

/// CPU seconds of a process so far, from its `/proc/<pid>/stat`; 0 when it is gone.
pub(crate) fn cpu_seconds(stat: &Path) -> f64 {
    let stat = fs::read_to_string(stat).unwrap_or_default();
    // Fields 14 and 15 (user and system time, in ticks of 10 ms) counted from behind the name, which may hold blanks.
    let ticks = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    ticks.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Looks again and again until `look` returns something, and returns that; fails when that takes longer than `limit`.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    eventually_or(what, limit, || look().ok_or_else(String::new))
}

/// The same, where `look` says what is amiss, which is told of the last look.
#[track_caller]
pub(crate) fn eventually_or<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        let amiss = match look() {
            Ok(found) => return found,
            Err(amiss) => amiss,
        };
        if Instant::now() > deadline {
            fail(format!("after {} s still not so: {what}\n{amiss}", limit.as_secs()).trim_end());
        }
        thread::sleep(PAUSE);
    }
}

/// Runs helm without a cluster: what it prints, or why it failed.
pub(crate) fn helm(args: &[&str]) -> Result<String, String> {
    run(Command::new(binary("helm")).args(args), None)
}

/// The path of `controlplane` or `helm`: in the folder `JOINER_CONTROLPLANE`, or else where `tests/controlplane/build` puts it.
fn binary(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("JOINER_CONTROLPLANE") {
            return PathBuf::from(folder);
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/build");
        let built = run(&mut Command::new(script), None).unwrap_or_else(|error| fail(&error));
        PathBuf::from(built.trim_end())
    });
    folder.join(name)
}

/// Runs a command to its end: what it prints, or why it failed.
fn run(command: &mut Command, input: Option<&str>) -> Result<String, String> {
    let name = format!("{} {:?}", command.get_program().display(), command.get_args().collect::<Vec<_>>());
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let started = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("{name}: {error}"))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that ends early has not read everything; its exit code tells.
        drop(stdin.write_all(input.as_bytes()));
    }
    let output = child.wait_with_output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The lines of a pipe; the channel closes at its end.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// All that comes out of a pipe, in one piece, when it is closed.
fn text_of(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, text) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    text
}

/// Fails the test.
#[track_caller]
#[expect(clippy::panic, reason = "this is how a test fails")]
pub(crate) fn fail(message: &str) -> ! {
    panic!("{message}")
}
