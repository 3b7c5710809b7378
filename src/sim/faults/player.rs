//! What goes wrong by itself: machines die, nodes fall silent, users change and delete things, joiner is killed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::kind::Fault;
use super::mishaps::{Mishaps, Order};
use super::plan::Mishap;
use crate::clouds::simulated::Simulated;
use crate::cluster::ClaimPatch;
use crate::core::facts::{
    Claim, Condition, Count, Effect, Node, Owner, Pod, PodBudget, Pool, Selector, Status, Taint, VolumeAttachment,
};
use crate::core::ids::{ClaimName, NodeName, ObjectKey, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;
use crate::sim::SimCluster;
use crate::sim::agenda::Agenda;
use crate::sim::invariants::Invariants;
use crate::sim::store::Store;

/// The faults that need no occasion but an object that is there.
const BY_THEMSELVES: [Fault; 25] = [
    Fault::MachineDies,
    Fault::RegistersTwice,
    Fault::NodeNotReady,
    Fault::KubeletSilent,
    Fault::Partition,
    Fault::PodStuck,
    Fault::AttachmentStuck,
    Fault::BudgetBlocks,
    Fault::JoinerKilled,
    Fault::ActorPanics,
    Fault::ActorStalls,
    Fault::ClockJumps,
    Fault::LeaseLost,
    Fault::UserDeletesClaim,
    Fault::UserDeletesNode,
    Fault::UserStripsFinalizers,
    Fault::UserEditsClaim,
    Fault::UserEditsProviderId,
    Fault::UserEditsStatus,
    Fault::UserEditsNode,
    Fault::ForeignFinalizer,
    Fault::UserEditsPool,
    Fault::UserDeletesPool,
    Fault::UserRebootsNode,
    Fault::UserRemakesClaim,
];

/// Taints of nodes that are not ready, and of those whose kubelet is silent.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// A finalizer of somebody else.
const FOREIGN: &str = "example.com/hold";
/// For so long is a second Node, which somebody has deleted, held by that.
const HELD: Duration = Duration::from_mins(10);
/// A node that is younger is not swept away.
const SETTLING_IN: Duration = Duration::from_mins(15);
/// So often does a user try to make anew what is not gone yet.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Does what happens by itself.
pub struct Player {
    cluster: SimCluster,
    cloud: Simulated,
    mishaps: Mishaps,
    invariants: Invariants,
    agenda: Agenda<Todo>,
}

enum Todo {
    Befall(Mishap),
    Sweep,
    Recover(Vec<ProviderId>),
    DeleteBudget(ObjectKey),
    /// Looks whether what was laid under a name has held anything back.
    Reckon(Fault, String),
    DeleteTwin(NodeName),
    LetTwinGo(NodeName),
    RestorePool(Box<Pool>),
    LetGo(ClaimName),
    Remake(Box<Claim>),
    SetClock,
}

impl Player {
    /// A player of all that happens by itself, and of operators who sweep empty nodes away at some moments.
    pub fn new(invariants: Invariants, cloud: Simulated, mishaps: Mishaps, sweeps: &[Duration]) -> Self {
        let mut agenda = Agenda::new();
        for mishap in mishaps.take(&BY_THEMSELVES) {
            agenda.at(mishaps.start() + mishap.at, Todo::Befall(mishap));
        }
        for at in sweeps {
            agenda.at(mishaps.start() + *at, Todo::Sweep);
        }
        Self { cluster: invariants.cluster().clone(), cloud, mishaps, invariants, agenda }
    }

    /// Plays for as long as it is polled.
    pub async fn run(mut self) {
        loop {
            let todo = self.agenda.next().await;
            self.play(todo);
        }
    }

    fn play(&mut self, todo: Todo) {
        let cluster = self.cluster.clone();
        let mut store = cluster.store();
        match todo {
            Todo::Befall(mishap) => {
                if let Some(object) = self.befall(&mut store, mishap) {
                    self.mishaps.struck(mishap.fault, &object);
                }
            }
            Todo::Sweep => sweep(&mut store),
            Todo::SetClock => self.mishaps.order(Order::Clock(0)),
            Todo::Recover(ids) => ids.iter().for_each(|id| self.recover(&mut store, id)),
            Todo::DeleteBudget(key) => drop(store.delete_budget(&key)),
            Todo::Reckon(fault, name) => {
                if store.bitten.remove(&name) {
                    self.mishaps.bitten(fault);
                }
            }
            Todo::DeleteTwin(name) => {
                // Somebody may have been faster.
                drop(store.delete_node(&name, None));
                self.agenda.after(HELD, Todo::LetTwinGo(name));
            }
            Todo::LetTwinGo(name) => {
                store.update_node(&name, |node| node.finalizers.retain(|held| &**held != FOREIGN));
            }
            Todo::RestorePool(pool) => drop(store.apply_pool(*pool)),
            Todo::Remake(claim) => self.remake(&mut store, claim),
            Todo::LetGo(name) => {
                set_finalizers(&mut store, &name, |finalizers| finalizers.retain(|held| &**held != FOREIGN));
            }
        }
    }

    /// Lets something happen; says to what, or nothing when there is nothing that it could happen to, or it only lies in wait.
    fn befall(&mut self, store: &mut Store, mishap: Mishap) -> Option<String> {
        let (pick, lasting) = (mishap.pick, mishap.lasting);
        match mishap.fault {
            Fault::MachineDies => {
                let machines = self.cloud.machines();
                let living: Vec<_> = machines.iter().filter(|machine| machine.gone_at.is_none()).collect();
                let id = one_of(&living, pick)?.machine.id.clone();
                self.cloud.vanish(&id);
                Some(id.to_string())
            }
            Fault::RegistersTwice => {
                let node = one_of(&nodes(store, Node::is_ready), pick)?;
                let name = NodeName::from(format!("{}-twin", node.name));
                store.create_node(twin(&node, &name, (pick >> 8).is_multiple_of(2))).ok()?;
                self.agenda.after(lasting, Todo::DeleteTwin(name.clone()));
                Some(name.to_string())
            }
            Fault::NodeNotReady | Fault::KubeletSilent => {
                let node = one_of(&nodes(store, Node::is_ready), pick)?;
                silence(store, &node.name, mishap.fault == Fault::KubeletSilent);
                self.agenda.after(lasting, Todo::Recover(node.provider_id.clone().into_iter().collect()));
                Some(node.name.to_string())
            }
            Fault::Partition => {
                let all = nodes(store, Node::is_ready);
                for node in &all {
                    silence(store, &node.name, true);
                }
                self.agenda
                    .after(lasting, Todo::Recover(all.iter().filter_map(|node| node.provider_id.clone()).collect()));
                Some(String::new())
            }
            Fault::PodStuck => {
                // Best of all one that should go.
                let all = |wanted: &dyn Fn(&Pod) -> bool| -> Vec<Arc<Pod>> {
                    store
                        .pods
                        .values()
                        .map(|record| &record.pod)
                        .filter(|pod| pod.node.is_some() && wanted(pod))
                        .cloned()
                        .collect()
                };
                let pod =
                    one_of(&all(&|pod| pod.deleting.is_some()), pick).or_else(|| one_of(&all(&|_| true), pick))?;
                store.stuck.insert(pod.uid.clone(), Instant::now() + lasting);
                self.lay(mishap, pod.uid.to_string(), &pod.key.to_string())
            }
            Fault::AttachmentStuck => {
                // Best of all one whose node is to go.
                let all = |wanted: &dyn Fn(&Node) -> bool| -> Vec<Arc<str>> {
                    let there = store.volumes.attachments.values();
                    let of = |one: &&Arc<VolumeAttachment>| store.nodes.get(&one.node).is_some_and(|node| wanted(node));
                    there.filter(of).map(|one| Arc::clone(&one.name)).collect()
                };
                let name =
                    one_of(&all(&|node| node.deleting.is_some()), pick).or_else(|| one_of(&all(&|_| true), pick))?;
                store.volumes.stuck.insert(Arc::clone(&name), Instant::now() + lasting);
                self.lay(mishap, name.to_string(), &name)
            }
            Fault::BudgetBlocks => self.block(store, mishap),
            Fault::JoinerKilled | Fault::ActorPanics | Fault::ActorStalls => {
                self.mishaps.order(match mishap.fault {
                    Fault::JoinerKilled => Order::Kill(lasting),
                    Fault::ActorPanics => Order::Panic(pick),
                    _ => Order::Stall(pick, lasting),
                });
                Some(String::new())
            }
            Fault::ClockJumps => {
                self.mishaps.order(Order::Clock(jump(pick)));
                self.agenda.after(lasting, Todo::SetClock);
                Some(String::new())
            }
            Fault::LeaseLost => {
                // On most days nobody holds one.
                store.lease.as_ref()?;
                store.lease = Some(("rival".to_owned(), Instant::now() + lasting));
                Some(String::new())
            }
            _ => self.user(store, mishap),
        }
    }

    /// What users do.
    fn user(&mut self, store: &mut Store, mishap: Mishap) -> Option<String> {
        let (pick, lasting) = (mishap.pick, mishap.lasting);
        match mishap.fault {
            Fault::UserDeletesNode => {
                let node = one_of(&nodes(store, |node| node.deleting.is_none()), pick)?;
                store.delete_node(&node.name, None).ok()?;
                return Some(node.name.to_string());
            }
            Fault::UserEditsNode => {
                let node = one_of(&nodes(store, |_| true), pick)?;
                store.update_node(&node.name, |node| disfigure(node, pick >> 8));
                return Some(node.name.to_string());
            }
            Fault::UserEditsPool | Fault::UserDeletesPool => {
                let pool = one_of(&store.pools.values().cloned().collect::<Vec<_>>(), pick)?;
                if mishap.fault == Fault::UserDeletesPool {
                    store.delete_pool(&pool.name).ok()?;
                    self.agenda.after(lasting, Todo::RestorePool(Box::new(as_written(&pool))));
                } else {
                    let mut edited = as_written(&pool);
                    edited.template.labels.insert("example.com/edition".into(), format!("{}", pick % 1_000).into());
                    store.apply_pool(edited);
                }
                return Some(pool.name.to_string());
            }
            _ => {}
        }
        let living = victims(store, mishap);
        let claim = one_of(&living, pick)?;
        match mishap.fault {
            Fault::UserDeletesClaim => store.delete_claim(&claim.name).ok()?,
            Fault::UserStripsFinalizers => {
                let is_kept = (pick >> 8).is_multiple_of(2);
                if is_kept {
                    set_finalizers(store, &claim.name, |finalizers| finalizers.push(FOREIGN.into()));
                    self.agenda.after(lasting, Todo::LetGo(claim.name.clone()));
                }
                store.delete_claim(&claim.name).ok()?;
                self.strip(store, &claim.name, is_kept);
            }
            Fault::UserRemakesClaim => {
                store.delete_claim(&claim.name).ok()?;
                if (pick >> 8).is_multiple_of(2) {
                    self.strip(store, &claim.name, false);
                }
                self.mishaps.laid(mishap.fault, claim.name.as_str());
                self.agenda.after(lasting, Todo::Remake(Box::new(as_applied(&claim, pick >> 16))));
                return None;
            }
            Fault::UserEditsClaim => {
                let field = [labels::TERMINATION_TIMESTAMP, labels::TERMINATION_TIMESTAMP, labels::REBOOT_GRACE];
                let field = field[usize::try_from((pick >> 16) % 3).unwrap_or(0)];
                let annotations = Labels::from([(field.into(), nonsense(pick >> 8))]);
                drop(store.patch_claim(&claim.name, &ClaimPatch { annotations, ..ClaimPatch::default() }).ok()?);
            }
            Fault::UserEditsProviderId => {
                let launched: Vec<_> = living.iter().filter(|claim| claim.provider_id.is_some()).cloned().collect();
                let claim = one_of(&launched, pick)?;
                let other = one_of(&launched, pick >> 16)?.provider_id.clone();
                store.update_claim(&claim.name, |claim| claim.provider_id = misread(pick >> 8, other));
                return Some(claim.name.to_string());
            }
            Fault::UserEditsStatus => {
                let now = store.now();
                store.update_claim(&claim.name, |claim| match (pick >> 8) % 7 {
                    0 => claim.conditions.clear(),
                    1 => claim.conditions.retain(|condition| &*condition.kind != "Launched"),
                    2 => claim.conditions.retain(|condition| &*condition.kind != "Registered"),
                    3 => claim.node = None,
                    4 => claim.node = Some(NodeName::from("no-such-node")),
                    5 => claim.conditions.iter_mut().for_each(|condition| condition.status = Status::Unknown),
                    _ => pretend_drained(claim, pick >> 16, now),
                });
            }
            Fault::UserRebootsNode => {
                let serving: Vec<_> = living.iter().filter(|claim| claim.is("Initialized")).cloned().collect();
                let claim = one_of(&serving, pick)?;
                let now = store.now();
                store.update_claim(&claim.name, |claim| ask_for_reboot(claim, pick >> 8, now));
                return Some(claim.name.to_string());
            }
            Fault::ForeignFinalizer => {
                set_finalizers(store, &claim.name, |finalizers| finalizers.push(FOREIGN.into()));
                self.agenda.after(lasting, Todo::LetGo(claim.name.clone()));
            }
            _ => return None,
        }
        Some(claim.name.to_string())
    }

    /// Takes all finalizers off a NodeClaim, or all but the user's own.
    fn strip(&self, store: &mut Store, name: &ClaimName, but_own: bool) {
        self.invariants.finalizers_stripped(name);
        set_finalizers(store, name, |finalizers| finalizers.retain(|one| but_own && **one == *FOREIGN));
    }

    /// Makes a NodeClaim anew as soon as its predecessor is gone, which may take its time.
    fn remake(&mut self, store: &mut Store, claim: Box<Claim>) {
        if self.mishaps.are_over() {
            return;
        }
        if store.claims.contains_key(&claim.name) {
            return self.agenda.after(TRY_AGAIN, Todo::Remake(claim));
        }
        store.apply_claim(*claim);
        self.mishaps.bitten(Fault::UserRemakesClaim);
    }

    /// Puts a budget that allows nothing over the pods of one app.
    fn block(&mut self, store: &mut Store, mishap: Mishap) -> Option<String> {
        let mut pods = store.pods.values().map(|record| &record.pod).filter(|pod| pod.node.is_some());
        let bound: Vec<_> = pods.by_ref().filter(|pod| pod.shape.owner != Owner::DaemonSet).cloned().collect();
        let pod = one_of(&bound, mishap.pick)?;
        let key = ObjectKey::new(pod.key.namespace.clone(), format!("block-{}", mishap.pick % 100_000));
        let selector = Selector { labels: pod.shape.labels.clone(), ..Selector::default() };
        store.apply_budget(PodBudget {
            key: key.clone(),
            selector: Some(selector),
            min_available: None,
            max_unavailable: Some(Count::Pods(0)),
            spares_unready: false,
        });
        self.agenda.after(mishap.lasting, Todo::DeleteBudget(key.clone()));
        self.lay(mishap, key.to_string(), &pod.key.to_string())
    }

    /// Something lies in wait under a name from now on. It has struck only if it has held something back when it is over.
    fn lay(&mut self, mishap: Mishap, name: String, object: &str) -> Option<String> {
        self.mishaps.laid(mishap.fault, object);
        self.agenda.after(mishap.lasting, Todo::Reckon(mishap.fault, name));
        None
    }

    /// A kubelet is heard again, if its machine is still there.
    fn recover(&self, store: &mut Store, id: &ProviderId) {
        let machines = self.cloud.machines();
        if !machines.iter().any(|machine| machine.machine.id == *id && machine.gone_at.is_none()) {
            return;
        }
        let now = store.now();
        for node in nodes(store, |node| node.provider_id.as_ref() == Some(id)) {
            store.update_node(&node.name, |node| {
                for ready in node.conditions.iter_mut().filter(|c| &*c.kind == "Ready" && c.status != Status::True) {
                    ready.status = Status::True;
                    ready.since = now;
                    ready.reason = "KubeletReady".into();
                }
                node.taints.retain(|taint| &*taint.key != NOT_READY && &*taint.key != UNREACHABLE);
            });
        }
    }
}

/// What stands where a NodeClaim's provider ID was: nothing, a machine that is nowhere, nonsense, or the ID of another.
fn misread(pick: u64, other: Option<ProviderId>) -> Option<ProviderId> {
    match pick % 6 {
        0 => None,
        1 => Some(ProviderId::from("sim://nowhere/m-0")),
        // The API server admits any text. An empty one is read as none.
        2 => Some(ProviderId::from(nonsense(pick >> 16))).filter(|id| !id.as_str().is_empty()),
        _ => other,
    }
}

/// By how many milliseconds a clock jumps: seconds as often as minutes as often as hours, up to six of them, forwards as often as backwards.
fn jump(pick: u64) -> i64 {
    let most = [10_000, 600_000, 21_600_000][(pick % 3) as usize];
    let by = i64::try_from((pick >> 8) % most).unwrap_or_default() + 1_000;
    if (pick >> 4).is_multiple_of(2) { by } else { -by }
}

/// What users write where a time, a duration or an ID belongs: words, nothing, numbers, a truth, days that no calendar has, and far too much.
fn nonsense(pick: u64) -> Arc<str> {
    const SHORT: [&str; 7] =
        ["tomorrow at noon", "", "-1", "0", "true", "2026-02-30T12:00:00Z", "+99999-01-01T00:00:00Z"];
    let at = usize::try_from(pick % 8).unwrap_or(0);
    SHORT.get(at).map_or_else(|| "9".repeat(4_096).into(), |text| Arc::from(*text))
}

fn one_of<T: Clone>(all: &[T], pick: u64) -> Option<T> {
    let at = pick.checked_rem(all.len() as u64)?;
    all.get(usize::try_from(at).ok()?).cloned()
}

fn nodes(store: &Store, wanted: impl Fn(&Node) -> bool) -> Vec<Arc<Node>> {
    store.nodes.values().filter(|node| wanted(node)).cloned().collect()
}

fn silence(store: &mut Store, name: &NodeName, wholly: bool) {
    let now = store.now();
    let (status, reason, taint) = if wholly {
        (Status::Unknown, "NodeStatusUnknown", UNREACHABLE)
    } else {
        (Status::False, "KubeletNotReady", NOT_READY)
    };
    store.update_node(name, |node| {
        for ready in node.conditions.iter_mut().filter(|condition| &*condition.kind == "Ready") {
            ready.status = status;
            ready.since = now;
            ready.reason = reason.into();
        }
        for effect in [Effect::NoSchedule, Effect::NoExecute] {
            let taint = Taint::new(taint, effect);
            if !node.taints.iter().any(|there| there.matches(&taint)) {
                node.taints.push(taint);
            }
        }
    });
}

/// A second Node as the same kubelet would register it under another name, perhaps held by somebody else.
fn twin(node: &Node, name: &NodeName, is_held: bool) -> Node {
    let finalizers = is_held.then(|| FOREIGN.into()).into_iter().collect();
    let mut twin = Node { name: name.clone(), finalizers, owner_claims: Vec::new(), ..node.clone() };
    for label in [labels::REGISTERED, labels::INITIALIZED] {
        twin.labels.remove(label);
    }
    twin.labels.insert(labels::HOSTNAME.into(), name.as_str().into());
    twin.taints = vec![Taint::new(labels::UNREGISTERED_TAINT, Effect::NoExecute)];
    twin
}

fn disfigure(node: &mut Node, pick: u64) {
    match pick % 4 {
        0 => drop(node.labels.remove(labels::REGISTERED)),
        1 => node.taints.clear(),
        2 => node.owner_claims.clear(),
        _ => node.finalizers.clear(),
    }
}

/// The NodeClaims of which one is meant: living ones. What can befall those that are being deleted meets them as often, where there are some: the worst
/// moment is a drain.
fn victims(store: &Store, mishap: Mishap) -> Vec<Arc<Claim>> {
    let meets_ending = matches!(
        mishap.fault,
        Fault::UserEditsClaim
            | Fault::UserEditsProviderId
            | Fault::UserEditsStatus
            | Fault::UserStripsFinalizers
            | Fault::UserRemakesClaim
    );
    let all = |ending: bool| store.claims.values().filter(move |claim| claim.deleting.is_some() == ending).cloned();
    let ending: Vec<_> = all(true).filter(|_| meets_ending && (mishap.pick >> 32).is_multiple_of(2)).collect();
    if ending.is_empty() { all(false).collect() } else { ending }
}

/// Says of a NodeClaim how far its drain is, though it lives or its pods and volumes are still there.
fn pretend_drained(claim: &mut Claim, pick: u64, now: Timestamp) {
    let kinds = ["Drained", "VolumesDetached", "InstanceTerminating"];
    let said: Vec<&str> = match pick % 4 {
        3 => kinds.to_vec(),
        one => kinds.into_iter().skip(usize::try_from(one).unwrap_or(0)).take(1).collect(),
    };
    for kind in said {
        claim.conditions.retain(|condition| &*condition.kind != kind);
        claim.conditions.push(Condition {
            kind: kind.into(),
            status: Status::True,
            reason: kind.into(),
            message: "".into(),
            since: now,
            generation: claim.generation,
        });
    }
}

/// Asks for a reboot: with the pods on the node, with two minutes for them to leave, or with all the time that they take.
fn ask_for_reboot(claim: &mut Claim, pick: u64, now: Timestamp) {
    claim.conditions.retain(|condition| &*condition.kind != "Rebooting");
    claim.conditions.push(Condition {
        kind: "Rebooting".into(),
        status: Status::True,
        reason: "RebootRequested".into(),
        message: "".into(),
        since: now,
        generation: claim.generation,
    });
    match pick % 3 {
        0 => drop(claim.annotations.insert(labels::REBOOT_GRACE.into(), "0s".into())),
        1 => drop(claim.annotations.insert(labels::REBOOT_GRACE.into(), "2m".into())),
        _ => drop(claim.annotations.remove(labels::REBOOT_GRACE)),
    }
}

/// A NodeClaim as a user applies it who has kept its manifest: without its status, with the annotations and finalizers that it had, or without.
fn as_applied(claim: &Claim, pick: u64) -> Claim {
    let keeps = |bit: u32| (pick >> bit).is_multiple_of(2);
    // What somebody else holds it with is not the user's.
    let finalizers = claim.finalizers.iter().filter(|one| keeps(1) && ***one != *FOREIGN).cloned().collect();
    Claim {
        annotations: if keeps(0) { claim.annotations.clone() } else { Labels::new() },
        finalizers,
        deleting: None,
        provider_id: None,
        node: None,
        image: None,
        capacity: Resources::default(),
        allocatable: Resources::default(),
        last_pod_event: None,
        conditions: Vec::new(),
        ..claim.clone()
    }
}

/// A NodePool without what the API server and joiner added to it.
fn as_written(pool: &Pool) -> Pool {
    Pool {
        annotations: Labels::new(),
        status_nodes: None,
        class_generation: None,
        conditions: Vec::new(),
        deleting: None,
        ..pool.clone()
    }
}

fn set_finalizers(store: &mut Store, name: &ClaimName, change: impl FnOnce(&mut Vec<Arc<str>>)) {
    let Some(claim) = store.claims.get(name) else { return };
    let mut finalizers = claim.finalizers.clone();
    change(&mut finalizers);
    let version = Some(claim.version.clone());
    // A finalizer cannot be added to what is being deleted; then it is not.
    drop(store.patch_claim(name, &ClaimPatch { version, finalizers: Some(finalizers), ..ClaimPatch::default() }));
}

/// Operators delete the NodeClaims whose nodes serve nobody.
fn sweep(store: &mut Store) {
    let now = store.now();
    let idle = |claim: &&Arc<Claim>| {
        let settled = Duration::try_from(now.duration_since(claim.created)).is_ok_and(|age| age > SETTLING_IN);
        let pods = claim.node.iter().flat_map(|node| store.pods_on(node));
        let mut serving = pods.filter(|pod| !pod.is_terminal());
        settled
            && claim.deleting.is_none()
            && claim.is("Initialized")
            && !serving.any(|pod| pod.shape.owner != Owner::DaemonSet)
    };
    let idle: Vec<_> = store.claims.values().filter(idle).map(|claim| claim.name.clone()).collect();
    for name in idle {
        // It was there a line above.
        drop(store.delete_claim(&name));
    }
}
