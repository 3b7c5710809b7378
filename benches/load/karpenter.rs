//! Karpenter in joiner's place, so that both are measured within one run: its binary with the KWOK provider, built by whoever compares (`go build ./kwok`).

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::controlplane::eventually;
use crate::common::joiner::http_get;

const LIMIT: Duration = Duration::from_mins(1);

/// A Karpenter that runs with all rights; it is killed when this is dropped.
pub(crate) struct Karpenter {
    child: Child,
    log: PathBuf,
    port: u16,
}

impl Karpenter {
    /// Starts it, and waits until it is ready. Its log goes into `folder`.
    pub(crate) fn start(program: &Path, kubeconfig: &Path, folder: &Path, client: &[(&str, &str)]) -> Self {
        let (log, [port, probes]) = (folder.join("karpenter.log"), free_ports());
        let file = std::fs::File::create(&log).expect("the folder of the control plane is there");
        let mut command = Command::new(program);
        command.env_clear().env("KUBECONFIG", kubeconfig).env("SYSTEM_NAMESPACE", "kube-system");
        command.env("DISABLE_LEADER_ELECTION", "true").env("METRICS_PORT", port.to_string());
        command.env("HEALTH_PROBE_PORT", probes.to_string()).envs(client.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).spawn();
        let child = child.expect("the program that KARPENTER names can be started");
        let karpenter = Self { child, log, port };
        eventually("Karpenter is ready", LIMIT, || {
            http_get(probes, "/readyz").ok().filter(|(head, _)| head.contains(" 200 "))
        });
        karpenter
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// What its `/metrics` shows.
    pub(crate) fn metrics(&self) -> String {
        http_get(self.port, "/metrics").expect("it serves").1
    }

    /// The lines of its log with this message.
    pub(crate) fn said(&self, message: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).expect("it was created");
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["message"] == message).collect()
    }
}

impl Drop for Karpenter {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there are free ports"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}
