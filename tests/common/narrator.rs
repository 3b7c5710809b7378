//! Tells what happens in a world, for people: what changed of every object, what was asked of the cloud and of pods, what was said.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use joiner::cluster::convert::written;
use joiner::core::facts::{Claim, Condition, Fact, Node, Pod, PodPhase, Pool, Taint, VolumeAttachment};
use joiner::core::ids::{ClaimName, NodeName, PodUid, PoolName, ProviderId};
use joiner::core::labels::Labels;
use joiner::core::writes::{Announcement, Regarding};
use joiner::sim::{Narration, Topic};
use tokio::time::Instant;

/// Labels that every machine brings; told once, as what they are.
const OF_THE_MACHINE: [&str; 7] = [
    "kubernetes.io/",
    "karpenter.kwok.sh/",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/",
    "karpenter.sh/capacity-type",
    "sim.joiner.dev/",
    "beta.kubernetes.io/",
];

/// The story so far. Clones are handles to the same one.
#[derive(Clone)]
pub(crate) struct Narrator(Arc<Mutex<Tale>>);

struct Tale {
    began: Instant,
    narration: Narration,
    lines: Vec<Line>,
    /// The last line about each thing that may be asked again and again.
    last: BTreeMap<String, usize>,
    claims: BTreeMap<ClaimName, Arc<Claim>>,
    nodes: BTreeMap<NodeName, Arc<Node>>,
    pods: BTreeMap<PodUid, Arc<Pod>>,
    pools: BTreeMap<PoolName, Arc<Pool>>,
    attachments: BTreeMap<Arc<str>, Arc<VolumeAttachment>>,
}

struct Line {
    at: Duration,
    text: String,
    /// How often the same happened again.
    again: u32,
}

impl Narrator {
    /// Begins a story now.
    pub(crate) fn new(narration: Narration) -> Self {
        let tale = Tale {
            began: Instant::now(),
            narration,
            lines: Vec::new(),
            last: BTreeMap::new(),
            claims: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            pools: BTreeMap::new(),
            attachments: BTreeMap::new(),
        };
        Self(Arc::new(Mutex::new(tale)))
    }

    fn tale(&self) -> MutexGuard<'_, Tale> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody in the timeline does something: always told.
    pub(crate) fn step(&self, what: &str) {
        let mut tale = self.tale();
        tale.last.clear();
        tale.push(format!("-- {what}"));
    }

    /// Something was asked, and answered. The same question with the same answer is counted, and not told again.
    pub(crate) fn asked(&self, topic: Topic, question: &str, answer: &str) {
        let mut tale = self.tale();
        if !tale.tells(topic) {
            return;
        }
        let text = format!("{question}: {answer}");
        let last = tale.last.get(question).copied().filter(|at| tale.lines[*at].text == text);
        if let Some(at) = last {
            tale.lines[at].again += 1;
            return;
        }
        tale.push(text);
        let at = tale.lines.len() - 1;
        tale.last.insert(question.to_owned(), at);
    }

    /// An Event was written. Those that repeat a condition are left out: the condition is told.
    pub(crate) fn event(&self, event: &Announcement) {
        let mut tale = self.tale();
        if !tale.tells(Topic::Event) || event.message.starts_with("Status condition transitioned") {
            return;
        }
        let about = match &event.regarding {
            Regarding::Pod(key, _) => format!("Pod {key}"),
            Regarding::Node(name, _) => format!("Node {name}"),
            Regarding::Claim(name, _) => format!("NodeClaim {name}"),
            Regarding::Pool(name, _) => format!("NodePool {name}"),
            Regarding::Class(class, _) => class.to_string(),
            Regarding::Lease(key, _) => format!("Lease {key}"),
        };
        let kind = if event.warning { "Warning" } else { "Event" };
        tale.push(format!("{about}: {kind} {}: {}", event.reason, event.message));
    }

    /// An object changed.
    pub(crate) fn fact(&self, fact: &Fact) {
        let mut tale = self.tale();
        match fact {
            Fact::ClaimSeen(claim) => {
                let before = tale.claims.insert(claim.name.clone(), Arc::clone(claim));
                let changes = of_claim(before.as_deref(), claim);
                tale.changed(Topic::NodeClaim, &format!("NodeClaim {}", claim.name), &changes);
            }
            Fact::ClaimGone(name, _) => {
                tale.claims.remove(name);
                tale.changed(Topic::NodeClaim, &format!("NodeClaim {name}"), &["gone".to_owned()]);
            }
            Fact::NodeSeen(node) => {
                let before = tale.nodes.insert(node.name.clone(), Arc::clone(node));
                let changes = of_node(before.as_deref(), node);
                tale.changed(Topic::Node, &format!("Node {}", node.name), &changes);
            }
            Fact::NodeGone(name) => {
                tale.nodes.remove(name);
                tale.changed(Topic::Node, &format!("Node {name}"), &["gone".to_owned()]);
            }
            Fact::PodSeen(pod) => {
                let before = tale.pods.insert(pod.uid.clone(), Arc::clone(pod));
                let changes = of_pod(before.as_deref(), pod);
                tale.changed(Topic::Pod, &format!("Pod {}", pod.key.name), &changes);
            }
            Fact::PodGone(uid) => {
                if let Some(pod) = tale.pods.remove(uid) {
                    tale.changed(Topic::Pod, &format!("Pod {}", pod.key.name), &["gone".to_owned()]);
                }
            }
            Fact::PoolSeen(pool) => {
                let before = tale.pools.insert(pool.name.clone(), Arc::clone(pool));
                let changes = of_pool(before.as_deref(), pool);
                tale.changed(Topic::NodePool, &format!("NodePool {}", pool.name), &changes);
            }
            Fact::AttachmentSeen(one) => {
                let known = tale.attachments.insert(Arc::clone(&one.name), Arc::clone(one)).is_some();
                if !known {
                    let volume = one.volume.as_deref().unwrap_or("no volume");
                    let text = format!("attaches {volume} to {}", one.node);
                    tale.changed(Topic::VolumeAttachment, &format!("VolumeAttachment {}", one.name), &[text]);
                }
            }
            Fact::AttachmentGone(name) => {
                tale.attachments.remove(name);
                tale.changed(Topic::VolumeAttachment, &format!("VolumeAttachment {name}"), &["gone".to_owned()]);
            }
            _ => {}
        }
    }

    /// The story as text, `metrics` in Prometheus' format at its end.
    pub(crate) fn text(&self, metrics: &str) -> String {
        let tale = self.tale();
        let (mut text, mut last) = (String::new(), String::new());
        for line in &tale.lines {
            let seconds = line.at.as_secs();
            let time = match seconds / 3600 {
                0 => format!("{}:{:02}", seconds / 60, seconds % 60),
                hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
            };
            let shown = if time == last { "" } else { &time };
            let again = if line.again > 0 { format!(" ({} times more)", line.again) } else { String::new() };
            writeln!(text, "{shown:>7}  {}{again}", line.text).expect("a string takes it");
            last = time;
        }
        let wanted = |line: &&str| tale.narration.metrics.iter().any(|name| line.starts_with(&**name));
        for line in metrics.lines().filter(wanted).collect::<BTreeSet<_>>() {
            writeln!(text, "metric   {line}").expect("a string takes it");
        }
        text
    }
}

impl Tale {
    fn tells(&self, topic: Topic) -> bool {
        self.began.elapsed() >= self.narration.from() && self.narration.is_about(topic)
    }

    fn push(&mut self, text: String) {
        let at = self.began.elapsed();
        self.lines.push(Line { at, text, again: 0 });
    }

    fn changed(&mut self, topic: Topic, object: &str, changes: &[String]) {
        if self.tells(topic) && !changes.is_empty() {
            self.push(format!("{object}: {}", changes.join("; ")));
        }
    }
}

fn of_claim(before: Option<&Claim>, now: &Claim) -> Vec<String> {
    let mut said = Vec::new();
    let Some(before) = before else {
        return vec!["created".to_owned()];
    };
    said.extend(of_names("finalizer", &before.finalizers, &now.finalizers));
    said.extend(of_labels("label", &before.labels, &now.labels));
    said.extend(of_labels("annotation", &before.annotations, &now.annotations));
    if before.provider_id != now.provider_id {
        said.push(format!("providerID {}", now.provider_id.as_ref().map_or("none", ProviderId::as_str)));
    }
    if before.node != now.node {
        said.push(format!("nodeName {}", now.node.as_ref().map_or("none", NodeName::as_str)));
    }
    if before.image != now.image {
        said.push(format!("imageID {}", now.image.as_deref().unwrap_or("none")));
    }
    if let Some(event) = now.last_pod_event.filter(|event| before.last_pod_event != Some(*event)) {
        said.push(format!("lastPodEventTime {}", on_the_clock(event)));
    }
    said.extend(of_conditions(&before.conditions, &now.conditions));
    if before.deleting.is_none() && now.deleting.is_some() {
        said.push("is being deleted".to_owned());
    }
    said
}

fn of_node(before: Option<&Node>, now: &Node) -> Vec<String> {
    let mut said = Vec::new();
    let taint = |taint: &Taint| {
        let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
        format!("{}{value}:{}", taint.key, taint.effect.as_str())
    };
    let owners = |node: &Node| node.owner_claims.iter().map(|owner| owner.name.as_str().into()).collect::<Vec<_>>();
    let taints = |node: &Node| node.taints.iter().map(taint).map(Arc::<str>::from).collect::<Vec<_>>();
    let Some(before) = before else {
        let taints = taints(now).join(", ");
        return vec![format!("created, taints {}", if taints.is_empty() { "none" } else { &taints })];
    };
    said.extend(of_names("finalizer", &before.finalizers, &now.finalizers));
    said.extend(of_names("owner", &owners(before), &owners(now)));
    said.extend(of_names("taint", &taints(before), &taints(now)));
    said.extend(of_labels("label", &before.labels, &now.labels));
    said.extend(of_labels("annotation", &before.annotations, &now.annotations));
    if before.allocatable != now.allocatable {
        let changed = written(&now.allocatable);
        let old = written(&before.allocatable);
        let changed = changed.iter().filter(|(name, amount)| old.get(*name) != Some(amount));
        said.push(format!("allocatable {}", changed.map(|(n, a)| format!("{n} {a}")).collect::<Vec<_>>().join(", ")));
    }
    if before.boot_id != now.boot_id {
        said.push(format!("bootID {}", now.boot_id.as_deref().unwrap_or("none")));
    }
    said.extend(of_conditions(&before.conditions, &now.conditions));
    if before.deleting.is_none() && now.deleting.is_some() {
        said.push("is being deleted".to_owned());
    }
    said
}

fn of_pod(before: Option<&Pod>, now: &Pod) -> Vec<String> {
    let mut said = Vec::new();
    if before.is_none() && now.node.is_none() {
        said.push("created".to_owned());
    }
    let nominated = before.and_then(|before| before.nominated.as_ref());
    if let Some(node) = now.nominated.as_ref().filter(|node| nominated != Some(*node)) {
        said.push(format!("nominated to {node}"));
    }
    if let Some(node) = now.node.as_ref().filter(|_| before.is_none_or(|before| before.node.is_none())) {
        said.push(format!("on {node}"));
    }
    if now.is_terminal() && before.is_none_or(|before| !before.is_terminal()) {
        said.push(if now.phase == PodPhase::Failed { "failed" } else { "succeeded" }.to_owned());
    }
    if let Some(end) = now.deleting.filter(|end| before.is_none_or(|before| before.deleting != Some(*end))) {
        said.push(format!("must have ended by {}", on_the_clock(end)));
    }
    said
}

/// A moment as minutes and seconds: the world's clock begins at 0.
fn on_the_clock(moment: Timestamp) -> String {
    let seconds = moment.as_second();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn of_pool(before: Option<&Pool>, now: &Pool) -> Vec<String> {
    let mut said = Vec::new();
    let Some(before) = before else {
        return vec!["created".to_owned()];
    };
    if before.generation != now.generation {
        said.push(format!("generation {}", now.generation));
    }
    said.extend(of_labels("annotation", &before.annotations, &now.annotations));
    if before.status_nodes != now.status_nodes {
        said.push(format!("status.nodes {}", now.status_nodes.unwrap_or_default()));
    }
    if before.status_resources != now.status_resources {
        let all = written(&now.status_resources);
        said.push(format!(
            "status.resources {}",
            all.iter().map(|(n, a)| format!("{n} {a}")).collect::<Vec<_>>().join(", ")
        ));
    }
    if before.class_generation != now.class_generation {
        said.push(format!("nodeClassObservedGeneration {}", now.class_generation.unwrap_or_default()));
    }
    said.extend(of_conditions(&before.conditions, &now.conditions));
    said
}

fn of_names(what: &str, before: &[Arc<str>], now: &[Arc<str>]) -> Vec<String> {
    let added = now.iter().filter(|name| !before.contains(name)).map(|name| format!("+{what} {name}"));
    let removed = before.iter().filter(|name| !now.contains(name)).map(|name| format!("-{what} {name}"));
    removed.chain(added).collect()
}

fn of_labels(what: &str, before: &Labels, now: &Labels) -> Vec<String> {
    let changed = now.iter().filter(|(key, value)| before.get(*key) != Some(value));
    let is_machines =
        |key: &str| OF_THE_MACHINE.iter().any(|stem| key.starts_with(stem)) && !key.ends_with("nodeclass");
    let (machines, others): (Vec<_>, Vec<_>) = changed.partition(|(key, _)| is_machines(key));
    let mut said: Vec<String> = others.iter().map(|(key, value)| format!("+{what} {key}={value}")).collect();
    if !machines.is_empty() {
        said.insert(0, format!("+{what}s of the machine"));
    }
    said.extend(before.keys().filter(|key| !now.contains_key(*key)).map(|key| format!("-{what} {key}")));
    said
}

fn of_conditions(before: &[Condition], now: &[Condition]) -> Vec<String> {
    let mut said = Vec::new();
    for condition in now {
        let old = before.iter().find(|old| old.kind == condition.kind);
        let same = old.is_some_and(|old| {
            (old.status, &old.reason, &old.message) == (condition.status, &condition.reason, &condition.message)
        });
        if same {
            continue;
        }
        let mut text = format!("{}={}", condition.kind, condition.status.as_str());
        if condition.reason != condition.kind {
            write!(text, " {}", condition.reason).expect("a string takes it");
        }
        if !condition.message.is_empty() {
            write!(text, " ({})", condition.message).expect("a string takes it");
        }
        said.push(text);
    }
    let gone = before.iter().filter(|old| !now.iter().any(|condition| condition.kind == old.kind));
    said.extend(gone.map(|old| format!("-condition {}", old.kind)));
    let generation = |all: &[Condition]| all.iter().map(|condition| condition.generation).min();
    if let Some(generation) = generation(now).filter(|now| generation(before).is_some_and(|before| before < *now)) {
        said.push(format!("all conditions are of generation {generation}"));
    }
    said
}
