//! The machines that the simulated cloud runs, and the news of them for whoever plays their kubelets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use fastrand::Rng;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use tokio::time::Instant;

use super::script::Script;
use crate::core::facts::{Machine, Taint};
use crate::core::ids::{ClaimName, ClaimUid, ProviderId};

/// A machine, with what only the cloud and its kubelet know.
#[derive(Clone, PartialEq, Debug)]
pub struct SimMachine {
    /// As callers see it.
    pub machine: Machine,
    /// Price of its offering in USD per hour.
    pub price: f64,
    /// When it was launched.
    pub launched: Instant,
    /// From when on listings show it.
    pub listed_from: Instant,
    /// When its kubelet reports first; nothing means never.
    pub reports: Option<Instant>,
    /// When it will be gone, once that is decided.
    pub gone_at: Option<Instant>,
    /// Taints that its kubelet was told to register with.
    pub taints: Vec<Taint>,
    /// Generation of the NodeClass that it was made from.
    pub class_generation: i64,
    /// What is wrong with it from birth.
    pub quirk: Option<Quirk>,
}

/// What can be wrong with a machine from birth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quirk {
    /// Its kubelet never reports.
    Silent,
    /// Its Node carries a provider ID that is not its own.
    Stranger,
}

/// News of a machine.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// It was launched.
    Launched(Arc<SimMachine>),
    /// It will be gone at this time, by order or by misfortune.
    Going(ProviderId, Instant),
    /// It restarts, and its kubelet reports again at this time.
    Rebooting(ProviderId, Instant),
}

fn forget(by_token: &mut BTreeMap<ClaimUid, BTreeSet<ProviderId>>, token: &ClaimUid, id: &ProviderId) {
    if let Some(ids) = by_token.get_mut(token) {
        ids.remove(id);
        if ids.is_empty() {
            by_token.remove(token);
        }
    }
}

/// All machines, and who wants to hear of them.
pub(super) struct Machines {
    pub(super) rng: Rng,
    running: BTreeMap<ProviderId, Arc<SimMachine>>,
    /// Those that have ended, which clouds go on showing as ended for a while.
    ended: BTreeSet<ProviderId>,
    by_token: BTreeMap<ClaimUid, BTreeSet<ProviderId>>,
    readers: Vec<UnboundedSender<Change>>,
    /// Reboots that were asked for, so that a repeat is harmless.
    reboots: BTreeSet<(ProviderId, Arc<str>)>,
    made: u64,
    /// How many machines were named after each NodeClaim.
    named: BTreeMap<ClaimName, u32>,
    /// What will be wrong with the next machines, one each.
    pub(super) quirks: VecDeque<Quirk>,
    /// Answers that were laid down beforehand.
    pub(super) script: Script,
}

impl Machines {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            rng,
            running: BTreeMap::new(),
            ended: BTreeSet::new(),
            by_token: BTreeMap::new(),
            readers: Vec::new(),
            reboots: BTreeSet::new(),
            made: 0,
            named: BTreeMap::new(),
            quirks: VecDeque::new(),
            script: Script::new(),
        }
    }

    /// Forgets the machines that are gone by now. Every call begins with it, as nothing runs in between.
    pub(super) fn settle(&mut self) {
        let now = Instant::now();
        let gone = |machine: &SimMachine| machine.gone_at.is_some_and(|at| at <= now);
        for (id, machine) in self.running.extract_if(.., |_, machine| gone(machine)) {
            if let Some(token) = &machine.machine.token {
                forget(&mut self.by_token, token, &id);
            }
            self.ended.insert(id);
        }
    }

    /// Takes the token off a machine; false when there is none.
    pub(super) fn unmark(&mut self, id: &ProviderId) -> bool {
        let Some(machine) = self.running.get_mut(id) else { return false };
        if let Some(token) = Arc::make_mut(machine).machine.token.take() {
            forget(&mut self.by_token, &token, id);
        }
        true
    }

    /// Whether there was such a machine, and it has ended.
    pub(super) fn has_ended(&self, id: &ProviderId) -> bool {
        self.ended.contains(id)
    }

    /// A new name for a machine: a number that rises and a part that does not tell it.
    pub(super) fn next_id(&mut self) -> String {
        self.made += 1;
        format!("m-{:05}-{:08x}", self.made, self.rng.u32(..))
    }

    /// A new name for the machine of a NodeClaim: that of the NodeClaim, with a number if there was one of that name.
    pub(super) fn id_after(&mut self, claim: &ClaimName) -> String {
        let number = self.named.entry(claim.clone()).or_default();
        *number += 1;
        if *number == 1 { claim.to_string() } else { format!("{claim}-{number}") }
    }

    pub(super) fn add(&mut self, machine: SimMachine) -> Machine {
        let machine = Arc::new(machine);
        let id = machine.machine.id.clone();
        if let Some(token) = &machine.machine.token {
            self.by_token.entry(token.clone()).or_default().insert(id.clone());
        }
        self.running.insert(id, Arc::clone(&machine));
        self.tell(&Change::Launched(Arc::clone(&machine)));
        machine.machine.clone()
    }

    pub(super) fn get(&self, id: &ProviderId) -> Option<&Arc<SimMachine>> {
        self.running.get(id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<SimMachine>> {
        self.running.values()
    }

    pub(super) fn count(&self) -> usize {
        self.running.len()
    }

    pub(super) fn with_token(&self, token: &ClaimUid) -> Vec<Machine> {
        let ids = self.by_token.get(token).into_iter().flatten();
        ids.filter_map(|id| self.running.get(id)).map(|machine| machine.machine.clone()).collect()
    }

    /// Decides when a machine will be gone, unless that is decided; false when there is none.
    pub(super) fn end(&mut self, id: &ProviderId, at: Instant) -> bool {
        let Some(machine) = self.running.get_mut(id) else { return false };
        if machine.gone_at.is_none() {
            let machine = Arc::make_mut(machine);
            machine.gone_at = Some(at);
            machine.machine.deleting = true;
            self.tell(&Change::Going(id.clone(), at));
        }
        true
    }

    /// Restarts a machine, once per operation; false when there is none.
    pub(super) fn reboot(&mut self, id: &ProviderId, operation: &str, back: Instant) -> bool {
        let there = self.running.contains_key(id);
        if there && self.reboots.insert((id.clone(), operation.into())) {
            self.tell(&Change::Rebooting(id.clone(), back));
        }
        there
    }

    /// News from now on, the machines that run already first.
    pub(super) fn subscribe(&mut self) -> UnboundedReceiver<Change> {
        let (sender, reader) = unbounded();
        for machine in self.running.values() {
            let news = [Change::Launched(Arc::clone(machine))]
                .into_iter()
                .chain(machine.gone_at.map(|at| Change::Going(machine.machine.id.clone(), at)));
            for change in news {
                // The reader is still here.
                sender.unbounded_send(change).ok();
            }
        }
        self.readers.push(sender);
        reader
    }

    fn tell(&mut self, change: &Change) {
        self.readers.retain(|reader| reader.unbounded_send(change.clone()).is_ok());
    }
}
