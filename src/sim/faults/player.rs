//! What goes wrong by itself: machines die, nodes fall silent, joiner is killed, and users do what they do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::kind::Fault;
use super::mishaps::{Mishaps, Order};
use super::plan::Mishap;
use super::users::set_finalizers;
use crate::clouds::simulated::Simulated;
use crate::core::facts::{
    Claim, Count, Effect, Node, NodeClass, Owner, Pod, PodBudget, Pool, Selector, Status, Taint, VolumeAttachment,
};
use crate::core::ids::{ClaimName, NodeName, ObjectKey, ProviderId};
use crate::core::labels;
use crate::sim::SimCluster;
use crate::sim::agenda::Agenda;
use crate::sim::invariants::Invariants;
use crate::sim::store::Store;

/// The faults that need no occasion but an object that is there.
const BY_THEMSELVES: [Fault; 30] = [
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
    Fault::UserCordonsNode,
    Fault::UserForcesPod,
    Fault::UserDetachesVolume,
    Fault::UserEditsBudget,
    Fault::UserEditsClass,
];

/// Taints of nodes that are not ready, and of those whose kubelet is silent.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// A finalizer of somebody else.
pub(super) const FOREIGN: &str = "example.com/hold";
/// For so long is a second Node, which somebody has deleted, held by that.
const HELD: Duration = Duration::from_mins(10);
/// A node that is younger is not swept away.
const SETTLING_IN: Duration = Duration::from_mins(15);
/// So often does a user try to make anew what is not gone yet.
pub(super) const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Does what happens by itself.
pub struct Player {
    cluster: SimCluster,
    cloud: Simulated,
    pub(super) mishaps: Mishaps,
    pub(super) invariants: Invariants,
    pub(super) agenda: Agenda<Todo>,
    /// What users have edited and not put right yet.
    pub(super) edited: BTreeSet<String>,
}

pub(super) enum Todo {
    Befall(Mishap),
    Sweep,
    Recover(Vec<ProviderId>),
    DeleteBudget(ObjectKey),
    /// Looks whether what was laid under a name has held anything back.
    Reckon(Fault, String),
    DeleteTwin(NodeName),
    LetTwinGo(NodeName),
    RestorePool(Box<Pool>),
    RestoreBudget(Box<PodBudget>),
    RestoreClass(Box<NodeClass>),
    Uncordon(NodeName),
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
        let cluster = invariants.cluster().clone();
        Self { cluster, cloud, mishaps, invariants, agenda, edited: BTreeSet::new() }
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
            Todo::RestoreBudget(budget) => {
                self.edited.remove(&budget.key.to_string());
                // Unless it went meanwhile.
                if store.budgets.contains_key(&budget.key) {
                    store.apply_budget(*budget);
                }
            }
            Todo::RestoreClass(class) => {
                self.edited.remove(&class.reference.to_string());
                store.apply_class(*class);
            }
            Todo::Uncordon(name) => {
                store.update_node(&name, |node| node.cordoned = false);
            }
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
                let pod = worst(&on_nodes(store), |pod| pod.deleting.is_some(), pick)?;
                store.stuck.insert(pod.uid.clone(), Instant::now() + lasting);
                self.lay(mishap, pod.uid.to_string(), &pod.key.to_string())
            }
            Fault::AttachmentStuck => {
                let name = attachment(store, pick)?;
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

/// By how many milliseconds a clock jumps: seconds as often as minutes as often as hours, up to six of them, forwards as often as backwards.
fn jump(pick: u64) -> i64 {
    let most = [10_000, 600_000, 21_600_000][(pick % 3) as usize];
    let by = i64::try_from((pick >> 8) % most).unwrap_or_default() + 1_000;
    if (pick >> 4).is_multiple_of(2) { by } else { -by }
}

pub(super) fn one_of<T: Clone>(all: &[T], pick: u64) -> Option<T> {
    let at = pick.checked_rem(all.len() as u64)?;
    all.get(usize::try_from(at).ok()?).cloned()
}

/// One of those that are at the worst moment, or else one of all.
pub(super) fn worst<T>(all: &[Arc<T>], is_worst: impl Fn(&T) -> bool, pick: u64) -> Option<Arc<T>> {
    let those: Vec<_> = all.iter().filter(|one| is_worst(one)).cloned().collect();
    one_of(&those, pick).or_else(|| one_of(all, pick))
}

/// The pods that have a node.
pub(super) fn on_nodes(store: &Store) -> Vec<Arc<Pod>> {
    store.pods.values().map(|record| &record.pod).filter(|pod| pod.node.is_some()).cloned().collect()
}

/// A volume's attachment, to a node that goes above all.
pub(super) fn attachment(store: &Store, pick: u64) -> Option<Arc<str>> {
    let all: Vec<_> = store.volumes.attachments.values().cloned().collect();
    let goes = |one: &VolumeAttachment| store.nodes.get(&one.node).is_none_or(|node| node.deleting.is_some());
    worst(&all, goes, pick).map(|one| Arc::clone(&one.name))
}

pub(super) fn nodes(store: &Store, wanted: impl Fn(&Node) -> bool) -> Vec<Arc<Node>> {
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
