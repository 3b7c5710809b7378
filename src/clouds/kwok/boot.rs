//! Machines that are still booting: launched, but without a Node yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use tokio::task::AbortHandle;

use crate::core::facts::Machine;
use crate::core::ids::ProviderId;

/// How often a machine tries to announce its Node before it is given up; the auditor sees that it is gone.
const ATTEMPTS: u32 = 5;
/// How long it waits after the first failure; twice as long after each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The machines that are booting. Those who still do when it is dropped never appear.
#[derive(Default, Debug)]
pub(super) struct Boots(Arc<Mutex<BTreeMap<ProviderId, Boot>>>);

#[derive(Debug)]
struct Boot {
    machine: Machine,
    task: AbortHandle,
}

impl Boots {
    /// Starts a machine whose Node appears after a delay; a machine that is booting already goes on.
    pub(super) fn start(&self, machine: Machine, node: Node, delay: Duration, nodes: Api<Node>) -> Machine {
        let mut boots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(boot) = boots.get(&machine.id) {
            return boot.machine.clone();
        }
        let all = Arc::clone(&self.0);
        let id = machine.id.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            announce(&node, &nodes).await;
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
        boots.insert(machine.id.clone(), Boot { machine: machine.clone(), task: task.abort_handle() });
        machine
    }

    /// The machine with this identity, while it boots.
    pub(super) fn get(&self, id: &ProviderId) -> Option<Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).map(|boot| boot.machine.clone())
    }

    /// All that boot.
    pub(super) fn all(&self) -> Vec<Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(|boot| boot.machine.clone()).collect()
    }

    /// Stops a machine that boots. Its Node may have been sent at this very moment, so look for it afterwards.
    pub(super) fn stop(&self, id: &ProviderId) {
        if let Some(boot) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id) {
            boot.task.abort();
        }
    }
}

impl Drop for Boots {
    fn drop(&mut self) {
        for boot in self.0.lock().unwrap_or_else(PoisonError::into_inner).values() {
            boot.task.abort();
        }
    }
}

/// Creates the Node. A machine has nobody to tell of failures; what it can do is try again.
async fn announce(node: &Node, nodes: &Api<Node>) {
    for attempt in 0..ATTEMPTS {
        match nodes.create(&PostParams::default(), node).await {
            Err(kube::Error::Api(status)) if status.code != 409 && status.code != 422 => {}
            Err(kube::Error::Service(_) | kube::Error::HyperError(_)) => {}
            _ => return,
        }
        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(attempt)).await;
    }
}
