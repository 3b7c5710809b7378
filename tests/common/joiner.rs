//! joiner as a process of its own: started with a kubeconfig and the chart's variables and nothing else, ended by a signal, its log read.
//!
//! A line of level `ERROR` that the test did not expect fails the test, at the latest when the process is ended.
#![allow(dead_code, reason = "each test uses the part it needs")]

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::controlplane::{eventually, fail};
use super::kube_api::{KubeApi, text};

/// How long joiner may take to come up or to go down.
const LIMIT: Duration = Duration::from_secs(30);
/// How many lines are shown when a test fails.
const TAIL: usize = 60;

/// Environment variables of a joiner.
pub(crate) type Variables = BTreeMap<String, String>;

/// The variables that the chart, as it was installed under this name, gives joiner; ports are free ones.
#[track_caller]
pub(crate) fn chart_variables(api: &KubeApi, release: &str) -> Variables {
    let deployment = format!("/apis/apps/v1/namespaces/kube-system/deployments/{release}");
    let deployment = api.get(&deployment).expect("it was installed");
    let listed = deployment.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array);
    let mut variables = Variables::new();
    for variable in listed.expect("the chart sets variables") {
        // The others refer to the pod.
        if let Some(value) = variable["value"].as_str() {
            variables.insert(text(variable, "/name"), value.to_owned());
        }
    }
    assert_eq!(variables["LEADER_ELECTION_NAMESPACE"], "kube-system");
    variables.insert("METRICS_PORT".to_owned(), "0".to_owned());
    variables.insert("HEALTH_PROBE_PORT".to_owned(), "0".to_owned());
    variables
}

/// A joiner that runs; it is killed when this is dropped.
pub(crate) struct Joiner {
    name: String,
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
    expected: Vec<&'static str>,
}

impl Joiner {
    /// Starts a joiner that calls itself `name` in the lease, and waits until it serves its ports.
    #[track_caller]
    pub(crate) fn start(program: &Path, kubeconfig: &Path, name: &str, variables: &Variables) -> Self {
        let mut command = command(program, kubeconfig, name, variables);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("joiner can be started");
        let lines = Arc::<Mutex<Vec<Value>>>::default();
        let (pipe, heard) = (child.stdout.take().expect("stdout is piped"), Arc::clone(&lines));
        let reader = thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // A line that is no JSON is as unexpected as an error.
                let line = serde_json::from_str(&line).unwrap_or_else(
                    |error| serde_json::json!({ "level": "ERROR", "message": line, "why": error.to_string() }),
                );
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let joiner = Self { name: name.to_owned(), child, lines, reader: Some(reader), expected: Vec::new() };
        eventually("joiner serves", LIMIT, || joiner.said("serving").pop());
        joiner
    }

    /// Error lines that hold this text are no failure of the test.
    pub(crate) fn expect_error(&mut self, text: &'static str) {
        self.expected.push(text);
    }

    /// The lines whose message begins with a text, oldest first.
    pub(crate) fn said(&self, message: &str) -> Vec<Value> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let says = |line: &&Value| line["message"].as_str().is_some_and(|said| said.starts_with(message));
        lines.iter().filter(says).cloned().collect()
    }

    /// What the page of actors says of one of them; nothing when there is no such actor (yet).
    #[track_caller]
    pub(crate) fn actor(&self, kind: &str, name: &str) -> Option<Value> {
        let page = self.get(&format!("/actors.json?kind={kind}&name={name}"));
        let page: Value = serde_json::from_str(&page).unwrap_or_else(|error| fail(&format!("{error}: {page}")));
        let mut actors = page["actors"].as_array().into_iter().flatten();
        actors.find(|actor| actor["kind"] == kind && actor["name"] == name).cloned()
    }

    /// Samples of a metric, by their labels as they are written.
    #[track_caller]
    pub(crate) fn metric(&self, metric: &str) -> BTreeMap<String, f64> {
        let page = self.get("/metrics");
        let samples = page.lines().filter_map(|line| line.strip_prefix(metric)?.rsplit_once(' '));
        samples.filter_map(|(labels, value)| Some((labels.to_owned(), value.parse().ok()?))).collect()
    }

    /// The status code of a probe.
    #[track_caller]
    pub(crate) fn probe(&self, path: &str) -> u16 {
        let head = self.ask("probes", path).0;
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| fail(&format!("{path}: {head}")))
    }

    /// A page of its metrics port.
    #[track_caller]
    fn get(&self, path: &str) -> String {
        let (head, body) = self.ask("metrics", path);
        assert!(head.contains(" 200 "), "{path} of {}: {head}: {body}", self.name);
        body
    }

    /// Head and body of what one of its ports answers.
    #[track_caller]
    fn ask(&self, port: &str, path: &str) -> (String, String) {
        let serving = self.said("serving").pop().expect("it has started");
        let port = serving[port].as_str().and_then(|address| address.rsplit(':').next()?.parse().ok());
        let answer = http_get(port.expect("an address ends with its port"), path);
        answer.unwrap_or_else(|error| fail(&format!("{path} of {}: {error}", self.name)))
    }

    /// All lines that say that something is not as it should be, oldest first.
    pub(crate) fn complaints(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line["level"] == "ERROR" || line["level"] == "WARN").cloned().collect()
    }

    /// Whether it said last that it holds the lease.
    pub(crate) fn is_leader(&self) -> bool {
        self.said("lease").iter().rfind(|line| line["holder"].is_string()).is_some_and(|line| line["ours"] == true)
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// What its `/metrics` shows.
    #[track_caller]
    pub(crate) fn metrics(&self) -> String {
        self.get("/metrics")
    }

    /// Kills it with SIGKILL.
    #[track_caller]
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("our own child can be killed");
        self.end();
    }

    /// Ends it with SIGTERM, and says how it ended.
    #[track_caller]
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.terminate();
        eventually("joiner ends on SIGTERM", LIMIT, || self.child.try_wait().expect("our own child can be waited for"));
        self.end()
    }

    /// Sends SIGTERM and waits for nothing.
    #[track_caller]
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Lets it hang: it keeps its connections and does nothing (SIGSTOP), until [`Self::thaw`].
    #[track_caller]
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on (SIGCONT).
    #[track_caller]
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    #[track_caller]
    fn signal(&self, name: &str) {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.child.id())).status();
        assert!(sent.expect("there is a shell").success(), "{} could not be signalled", self.name);
    }

    #[track_caller]
    fn end(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("our own child can be waited for");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader of lines does not panic");
        }
        let errors = self.unexpected();
        assert!(errors.is_empty(), "{} said: {errors:#?}", self.name);
        status
    }

    /// Errors that the test did not expect.
    fn unexpected(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = lines.iter().filter(|line| line["level"] == "ERROR").map(Value::to_string);
        errors.filter(|error| self.expected.iter().all(|text| !error.contains(text))).collect()
    }
}

impl Drop for Joiner {
    #[expect(clippy::print_stderr, reason = "the log of a test that failed")]
    fn drop(&mut self) {
        if self.reader.is_some() {
            drop(self.child.kill());
            if thread::panicking() {
                drop(self.child.wait());
            } else {
                self.end();
            }
        }
        if thread::panicking() {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            eprintln!("--- the last lines of {}", self.name);
            lines.iter().skip(lines.len().saturating_sub(TAIL)).for_each(|line| eprintln!("{line}"));
        }
    }
}

/// Head and body of what a port of this machine answers.
pub(crate) fn http_get(port: u16, path: &str) -> io::Result<(String, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(stream, "GET {path} HTTP/1.0\r\nAccept: application/json\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.to_owned(), body.to_owned()))
}

/// Runs a joiner that is expected to give up at once: its exit code, and what it said on stderr.
#[track_caller]
pub(crate) fn give_up(program: &Path, kubeconfig: &Path, variables: &Variables) -> (Option<i32>, String) {
    let mut command = command(program, kubeconfig, "joiner-0", variables);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("joiner can be started");
    let ended = eventually("joiner gives up", LIMIT, || child.try_wait().expect("our own child can be waited for"));
    let output = child.wait_with_output().expect("our own child can be waited for");
    (ended.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn command(program: &Path, kubeconfig: &Path, name: &str, variables: &Variables) -> Command {
    let mut command = Command::new(program);
    command.arg("run").stdin(Stdio::null()).env_clear().env("METRICS_PORT", "0").env("HEALTH_PROBE_PORT", "0");
    command.env("KUBECONFIG", kubeconfig).env("POD_NAME", name).envs(variables);
    command
}
