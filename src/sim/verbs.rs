//! What a timeline can say of the cloud and its machines, and what a narration is to tell.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::scenario::Span;
use crate::clouds::simulated::{Call, Refusal, Simulated};
use crate::core::ids::ClaimName;

/// How the next calls to the cloud are answered.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answers {
    create: Option<Refusal>,
    get: Option<Refusal>,
    find: Option<Refusal>,
    list: Option<Refusal>,
    delete: Option<Refusal>,
    reboot: Option<Refusal>,
    hooks: Option<Refusal>,
    /// How many calls of each kind; one, when it is not said.
    times: Option<u32>,
    /// What the cloud says with it.
    message: Option<String>,
}

impl Answers {
    /// The calls that are answered, and how.
    fn named(&self) -> impl Iterator<Item = (Call, Refusal)> {
        let all = [
            (Call::Create, self.create),
            (Call::Get, self.get),
            (Call::Find, self.find),
            (Call::List, self.list),
            (Call::Delete, self.delete),
            (Call::Reboot, self.reboot),
            (Call::Hooks, self.hooks),
        ];
        all.into_iter().filter_map(|(call, answer)| Some((call, answer?)))
    }

    /// What is wrong with it, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        let of_launches = [Refusal::InsufficientCapacity, Refusal::NodeClassNotReady, Refusal::Quota];
        if self.named().next().is_none() {
            return Some("needs at least one of create, get, find, list, delete, reboot and hooks".to_owned());
        }
        if self.named().any(|(call, answer)| call != Call::Reboot && answer == Refusal::Unsupported) {
            return Some(
                "Unsupported is an answer to reboot only; write Throttled, Error, Lost or AnswerLost".to_owned(),
            );
        }
        if self.named().any(|(call, answer)| call != Call::Get && answer == Refusal::Silent) {
            return Some("Silent is an answer to get only; write Throttled, Error, Lost or AnswerLost".to_owned());
        }
        let of_machines = [Call::Get, Call::Find, Call::List, Call::Delete, Call::Reboot];
        if self.named().any(|(call, answer)| answer == Refusal::NoSuchMachine && !of_machines.contains(&call)) {
            return Some(
                "NoSuchMachine is an answer to get, find, list, delete and reboot only; write Throttled, Error, Lost or AnswerLost"
                    .to_owned(),
            );
        }
        let wrong = self.named().find(|(call, answer)| *call != Call::Create && of_launches.contains(answer))?;
        Some(format!("{:?} is an answer to create only; write Throttled, Error, Lost or AnswerLost", wrong.1))
    }

    /// Lays the answers down.
    pub(super) fn perform(&self, cloud: &Simulated) {
        for (call, answer) in self.named() {
            let message = match answer {
                Refusal::InsufficientCapacity => "all requested offerings are sold out",
                Refusal::NodeClassNotReady => "its image is not found",
                Refusal::Quota => "the account may have no more machines",
                Refusal::Throttled | Refusal::Unsupported | Refusal::NoSuchMachine | Refusal::Silent => "",
                Refusal::Error => "internal error of the cloud",
                Refusal::Lost => "no answer",
                Refusal::AnswerLost => "connection lost before the answer",
            };
            cloud.refuse(call, answer, self.message.as_deref().unwrap_or(message), self.times.unwrap_or(1));
        }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cloud will answer")?;
        for (call, answer) in self.named() {
            write!(f, " {call:?} with {answer:?}")?;
        }
        match self.times {
            Some(times) if times > 1 => write!(f, ", {times} times"),
            _ => Ok(()),
        }
    }
}

/// An optional feature, named as its gate or flag is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
pub enum Feature {
    /// Broken nodes are repaired.
    NodeRepair,
    /// They are repaired as before Karpenter 1.15; means nothing without the former.
    LegacyNodeRepair,
    /// NodeOverlays change instance types.
    NodeOverlay,
    /// NodePools with `replicas` hold a fixed number of nodes.
    StaticCapacity,
    /// CapacityBuffers keep room for pods to come.
    CapacityBuffer,
    /// Nodes wait for the drivers that publish their devices.
    DynamicResources,
}

/// What becomes of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fate {
    /// The NodeClaim that it was launched for.
    pub of: String,
    does: Doing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Doing {
    /// The cloud takes it back at once.
    Vanish,
    /// Somebody damages the mark that says whose it is.
    LoseMark,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.does {
            Doing::Vanish => "vanishes",
            Doing::LoseMark => "loses its mark",
        };
        write!(f, "the machine of NodeClaim {} {what}", self.of)
    }
}

impl Fate {
    /// Lets it happen; false when there is no such machine.
    pub(super) fn perform(&self, cloud: &Simulated) -> bool {
        let claim = ClaimName::from(self.of.as_str());
        let all = cloud.machines();
        let mut of_claim = all.iter().filter(|machine| machine.machine.claim.as_ref() == Some(&claim));
        of_claim.next().is_some_and(|machine| match self.does {
            Doing::Vanish => cloud.vanish(&machine.machine.id),
            Doing::LoseMark => cloud.unmark(&machine.machine.id),
        })
    }
}

/// What a narration of a scenario tells.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Narration {
    #[serde(default)]
    from: Span,
    about: Option<BTreeSet<Topic>>,
    /// Metrics that are told at the end, by name.
    #[serde(default)]
    pub metrics: Vec<String>,
}

/// A subject of a narration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
pub enum Topic {
    /// NodePools.
    NodePool,
    /// NodeClaims.
    NodeClaim,
    /// Nodes.
    Node,
    /// Pods, and what is asked of them.
    Pod,
    /// VolumeAttachments.
    VolumeAttachment,
    /// Calls to the cloud.
    Cloud,
    /// Events.
    Event,
}

impl Narration {
    /// From when on it tells.
    pub fn from(&self) -> Duration {
        self.from.0
    }

    /// Whether it tells of something; when nothing is said, of all but NodePools.
    pub fn is_about(&self, topic: Topic) -> bool {
        self.about.as_ref().map_or(topic != Topic::NodePool, |about| about.contains(&topic))
    }
}
