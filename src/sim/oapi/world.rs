//! All that the fake knows.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use super::account::Account;
use super::conduct::Conduct;
use super::gate::Gate;
use super::load::{Fault, Load};
use super::machines::Machines;
use super::refusal::Refusal;
use crate::clouds::outscale::oapi::wire::{ResourceTag, State};
use crate::core::time::later;

/// All that the fake knows.
pub(super) struct World {
    pub(super) account: Account,
    pub(super) conduct: Conduct,
    pub(super) machines: Machines,
    pub(super) gate: Gate,
    /// Calls of the last second: when, of which action, and whether they were let in.
    recent: VecDeque<(Timestamp, &'static str, bool)>,
    /// Calls of each action so far.
    pub(super) load: BTreeMap<&'static str, Load>,
    pub(super) rng: Rng,
    /// Whether nobody hears the answer to the call that is being answered.
    pub(super) unanswered: bool,
    /// Trouble of the call that is being answered that is no refusal.
    pub(super) aside: Vec<Fault>,
    /// The moment of the call that is being answered.
    pub(super) now: Timestamp,
}

impl World {
    pub(super) fn new(account: Account, rng: Rng) -> Self {
        Self {
            account,
            conduct: Conduct::default(),
            machines: Machines::default(),
            gate: Gate::default(),
            recent: VecDeque::new(),
            load: BTreeMap::new(),
            rng,
            unanswered: false,
            aside: Vec::new(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// The time is now this.
    pub(super) fn at(&mut self, now: Timestamp) {
        self.now = now;
        self.machines.settle(now, &self.conduct);
    }

    /// A moment from now.
    pub(super) fn later(&self, after: std::time::Duration) -> Timestamp {
        later(self.now, after)
    }

    /// Counts a call, and refuses it when too many were let in in the last second.
    pub(super) fn throttle(&mut self, action: &'static str) -> Result<(), Refusal> {
        let second = SignedDuration::from_secs(1);
        while self.recent.front().is_some_and(|(at, ..)| self.now.duration_since(*at) >= second) {
            self.recent.pop_front();
        }
        let count = |of: &dyn Fn(&&(Timestamp, &'static str, bool)) -> bool| {
            u32::try_from(self.recent.iter().filter(of).count()).unwrap_or(u32::MAX)
        };
        let seen = count(&|(_, other, _)| *other == action);
        let (all, same) = (count(&|(.., let_in)| *let_in), count(&|(_, other, let_in)| *let_in && *other == action));
        let load = self.load.entry(action).or_default();
        load.calls += 1;
        load.most_in_a_second = load.most_in_a_second.max(seen + 1);
        let reason = if self.conduct.limit_account.is_some_and(|limit| all >= limit) {
            Some(("24", "ErrorOperationThrottledPerAccount"))
        } else if self.conduct.limit_each.is_some_and(|limit| same >= limit) {
            Some(("25", "ErrorOperationThrottledPerCall"))
        } else {
            None
        };
        self.recent.push_back((self.now, action, reason.is_none()));
        let Some((code, kind)) = reason else { return Ok(()) };
        Err(Refusal::new(429, code, kind, "Request rate exceeded."))
    }

    /// Whether chance has it.
    pub(super) fn chance(&mut self, part: f64) -> bool {
        part > 0.0 && self.rng.f64() < part
    }

    /// The tags of a resource, to be changed.
    pub(super) fn tags_of(&mut self, id: &str) -> Result<&mut Vec<ResourceTag>, Refusal> {
        let prefix = id.split_once('-').map_or("", |(prefix, _)| prefix);
        let (code, found) = match prefix {
            "i" => {
                let there = self.machines.all.get_mut(id).filter(|machine| machine.vm.state != State::Terminated);
                ("5063", there.map(|machine| &mut machine.vm.tags))
            }
            "subnet" => {
                let mut all = self.account.subnets.iter_mut();
                ("5057", all.find(|subnet| subnet.subnet_id == id).map(|subnet| &mut subnet.tags))
            }
            "sg" => {
                let mut all = self.account.security_groups.iter_mut();
                ("5020", all.find(|group| group.security_group_id == id).map(|group| &mut group.tags))
            }
            "ami" => {
                let mut all = self.account.images.iter_mut();
                ("5023", all.find(|image| image.image_id == id).map(|image| &mut image.tags))
            }
            _ => {
                let details = format!("{id} is none of the resources that this fake has");
                return Err(Refusal::new(400, "4104", "InvalidParameterValue", details));
            }
        };
        found.ok_or_else(|| Refusal::missing(code, id))
    }
}
