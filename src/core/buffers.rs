//! CapacityBuffers: how many chunks of room each wants, the placeholder pods that stand for them in a plan, and how they fared.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::facts::{
    Buffer, BufferStatus, Condition, Pod, PodPhase, PodShape, ScalableKind, Snapshot, Source, Status,
};
use crate::core::ids::{ClaimName, ObjectKey, PodUid};
use crate::core::resources::{ResourceName, Resources};
use crate::core::scheduling::Plan;
use crate::core::writes::BufferStatusPatch;

/// Whether it is known how large and how many the chunks are.
const READY: &str = "ReadyForProvisioning";
/// Whether there is room for all chunks.
const PROVISIONING: &str = "Provisioning";

/// Most chunks of one buffer: each is a pod to whoever plans, and a slip of the pen is not to take all memory. It is twice the nodes of the largest clusters
/// that Kubernetes supports.
const MOST: i64 = 10_000;

/// What a buffer comes to.
#[derive(Clone, PartialEq, Debug)]
pub enum Resolution {
    /// So many chunks of this size.
    Ready {
        /// What a chunk is to the solver.
        shape: Arc<PodShape>,
        /// How many.
        replicas: i64,
        /// The PodTemplate that says so, and its generation.
        template: Option<(Arc<str>, i64)>,
    },
    /// Not known.
    NotReady {
        /// One word.
        reason: &'static str,
        /// One sentence: what is wrong, and the remedy.
        message: String,
    },
}

/// Looks up what a buffer refers to, and counts.
pub fn resolve(snapshot: &Snapshot, buffer: &Buffer) -> Resolution {
    let not = |reason, message: String| Resolution::NotReady { reason, message };
    if !buffer.errors.is_empty() {
        return not("ResolutionFailed", buffer.errors.join("; "));
    }
    let key = |name: &Arc<str>| ObjectKey::new(Arc::clone(&buffer.key.namespace), Arc::clone(name));
    let (shape, template, scale) = match &buffer.source {
        None => {
            let message = "neither spec.podTemplateRef nor spec.scalableRef is set; set one of them";
            return not("ResolutionFailed", message.to_owned());
        }
        Some(Source::Template(name)) => {
            let Some(found) = snapshot.templates.get(&key(name)) else {
                let message = format!("spec.podTemplateRef: there is no PodTemplate {}; create it", key(name));
                return not("PodTemplateNotFound", message);
            };
            (&found.shape, Some((Arc::clone(name), found.generation)), None)
        }
        Some(Source::Scalable(Err(kind), _)) => {
            let message = format!(
                "spec.scalableRef: {kind} cannot be followed; name a Deployment, a StatefulSet or a ReplicaSet of group apps"
            );
            return not("ResolutionFailed", message);
        }
        Some(Source::Scalable(Ok(kind), name)) => match snapshot.scalables.get(&(*kind, key(name))) {
            Some(found) => (&found.shape, None, Some(found.replicas)),
            None => return not("ScalableRefNotFound", missing(*kind, &key(name))),
        },
    };
    if let Some(problem) = &shape.broken {
        return not("ResolutionFailed", format!("the pod template cannot be used: {problem}"));
    }
    let replicas = replicas(buffer, &shape.requests, scale);
    if replicas > MOST {
        let message = format!(
            "spec.replicas, spec.percentage or spec.limits: they come to {replicas} chunks, more than the {MOST} that one buffer may have; lower them, or make \
             the chunks larger"
        );
        return not("ResolutionFailed", message);
    }
    Resolution::Ready { shape: Arc::clone(shape), replicas, template }
}

fn missing(kind: ScalableKind, key: &ObjectKey) -> String {
    format!("spec.scalableRef: there is no {} {key}; create it", kind.as_str())
}

/// How many chunks: the larger of `replicas` and the share of the workload's replicas, and no more than the limits hold; with limits alone,
/// as many as they hold.
pub fn replicas(buffer: &Buffer, requests: &Resources, scale: Option<i64>) -> i64 {
    let share = scale.zip(buffer.percentage).filter(|(scale, _)| *scale > 0).map(|(scale, percentage)| {
        let part = scale.saturating_mul(percentage);
        // Rounded up; of something there is at least one.
        (part.saturating_add(99).div_euclid(100)).max(i64::from(percentage > 0))
    });
    let wanted = buffer.replicas.into_iter().chain(share).max();
    let most = buffer.limits.as_ref().and_then(|limits| holds(limits, requests));
    match (wanted, most) {
        (Some(wanted), Some(most)) => wanted.min(most),
        (wanted, most) => wanted.or(most).unwrap_or(0),
    }
    .max(0)
}

/// How many chunks fit into limits; nothing when these bound nothing that a chunk asks for.
fn holds(limits: &Resources, requests: &Resources) -> Option<i64> {
    let asked = limits.iter().map(|(name, limit)| (limit, requests.get(name)));
    asked.filter(|(_, asked)| *asked > 0).map(|(limit, asked)| limit.div_euclid(asked)).min()
}

/// What a placeholder made from a pod's shape looks like: it comes after every real pod.
pub fn placeholder_shape(shape: &PodShape) -> PodShape {
    let mut shape = PodShape { priority: i32::MIN, critical: false, scheduler: None, ..shape.clone() };
    shape.requests.set(ResourceName::Pods, 1000);
    shape
}

/// The placeholder pods of all buffers.
#[derive(Clone, Debug, Default)]
pub struct Placeholders {
    /// The pods, by buffer and number.
    pub pods: Vec<Arc<Pod>>,
    /// The buffer of each.
    of: BTreeMap<PodUid, ObjectKey>,
}

impl Placeholders {
    /// Whether this is one of them.
    pub fn has(&self, pod: &PodUid) -> bool {
        self.of.contains_key(pod)
    }
}

/// The placeholder pods of all buffers that are ready, by the same names and UIDs every time.
pub fn placeholders(snapshot: &Snapshot) -> Placeholders {
    let mut all = Placeholders::default();
    for buffer in snapshot.buffers.values() {
        let Resolution::Ready { shape, replicas, .. } = resolve(snapshot, buffer) else { continue };
        for number in 1..=replicas {
            let uid = PodUid::from(format!("{}-{number}", buffer.uid));
            let name = format!("capacity-buffer-{}-{number}", buffer.key.name);
            all.of.insert(uid.clone(), buffer.key.clone());
            all.pods.push(Arc::new(Pod {
                key: ObjectKey::new(Arc::clone(&buffer.key.namespace), name),
                uid,
                // After every real pod in all that goes by age, too.
                created: Timestamp::MAX,
                shape: Arc::clone(&shape),
                phase: PodPhase::Pending,
                node: None,
                nominated: None,
                unschedulable: true,
                unjudged: false,
                deleting: None,
                started: None,
                scheduled: None,
                ready: None,
                owned_by: None,
                volume_claims: Vec::new(),
            }));
        }
    }
    all
}

/// How the placeholders of one buffer fared in a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    /// There is room for so many on what exists or is under way.
    pub existing: i64,
    /// For so many, nodes are bought.
    pub new: i64,
    /// So many have no place.
    pub refused: i64,
}

/// How the placeholders of all buffers fared in a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rooms {
    /// By buffer.
    pub of: BTreeMap<ObjectKey, Room>,
    /// How many placeholders stand on the node of each NodeClaim: it is not empty though no pod runs there.
    pub on: BTreeMap<ClaimName, usize>,
}

impl Placeholders {
    /// Takes the placeholders out of a plan, and says how they fared. The NodeClaims that were planned for them stay.
    pub fn take_out(&self, plan: &mut Plan) -> Rooms {
        let mut rooms = Rooms::default();
        if self.of.is_empty() {
            return rooms;
        }
        let mut out = |pods: &mut Vec<Arc<Pod>>, count: fn(&mut Room) -> &mut i64| {
            let before = pods.len();
            pods.retain(|pod| {
                let buffer = self.of.get(&pod.uid);
                if let Some(buffer) = buffer {
                    *count(rooms.of.entry(buffer.clone()).or_default()) += 1;
                }
                buffer.is_none()
            });
            before - pods.len()
        };
        for placed in &mut plan.existing {
            let taken = out(&mut placed.pods, |room| &mut room.existing);
            if let Some(claim) = placed.claim.as_ref().filter(|_| taken > 0) {
                rooms.on.insert(claim.clone(), taken);
            }
        }
        plan.existing.retain(|placed| !placed.pods.is_empty());
        for planned in &mut plan.claims {
            out(&mut planned.pods, |room| &mut room.new);
        }
        plan.refused.retain(|refusal| {
            let buffer = self.of.get(&refusal.pod);
            if let Some(buffer) = buffer {
                rooms.of.entry(buffer.clone()).or_default().refused += 1;
            }
            buffer.is_none()
        });
        rooms
    }
}

/// The status that a buffer ought to have, where it has another. `room` is how its placeholders fared last, if they took part in a plan.
pub fn wanted(snapshot: &Snapshot, buffer: &Buffer, room: Option<&Room>, now: Timestamp) -> Option<BufferStatusPatch> {
    let mut status = BufferStatus { strategy: Some(Arc::clone(&buffer.strategy)), ..buffer.status.clone() };
    let mut conditions = buffer.conditions.clone();
    let mut say = |kind, is_true, reason, message: &str| {
        let status = if is_true { Status::True } else { Status::False };
        set(
            &mut conditions,
            &Condition {
                kind: Arc::from(kind),
                status,
                reason: Arc::from(reason),
                message: message.into(),
                since: now,
                generation: buffer.generation,
            },
        );
    };
    match resolve(snapshot, buffer) {
        Resolution::NotReady { reason, message } => {
            say(READY, false, reason, &message);
            say(PROVISIONING, false, "NotReadyForProvisioning", "the buffer is not ReadyForProvisioning");
        }
        Resolution::Ready { replicas, template, .. } => {
            status.replicas = Some(replicas);
            (status.template, status.template_generation) = template.unzip();
            say(READY, true, "Resolved", "");
            match room {
                _ if replicas == 0 => say(PROVISIONING, false, "BufferEmpty", "no replicas are wanted"),
                Some(room) if room.new + room.refused > 0 => {
                    let Room { new, refused, .. } = room;
                    let message = format!("{new} of {replicas} need new nodes, {refused} have no place");
                    say(PROVISIONING, false, "RequiresNewCapacity", &message);
                }
                Some(room) if room.existing == replicas => {
                    say(PROVISIONING, true, "FitsExistingCapacity", &format!("there is room for all {replicas}"));
                }
                // Nothing was planned since it has changed: what was said of it stays.
                _ => {}
            }
        }
    }
    (status != buffer.status || conditions != buffer.conditions).then(|| BufferStatusPatch {
        version: Some(Arc::clone(&buffer.version)),
        status,
        conditions,
    })
}

/// Puts a condition; the transition time moves only with the status.
fn set(conditions: &mut Vec<Condition>, new: &Condition) {
    match conditions.iter_mut().find(|old| old.kind == new.kind) {
        Some(old) => {
            let since = if old.status == new.status { old.since } else { new.since };
            *old = Condition { since, ..new.clone() };
        }
        None => conditions.push(new.clone()),
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
