//! Whom no plan serves: who waits for a place that nobody has found, and whether kube-scheduler is still at work.

use jiff::Timestamp;

use crate::actors::protocol::{NominatorMsg, ProvisionerMsg};
use crate::actors::runtime::Cx;
use crate::core::ids::ClaimName;
use crate::core::leaving;
use crate::core::restarts;

use super::Provisioner;
use super::life::{AT_WORK, Doing, LEAVERS};

impl Provisioner {
    /// Whether anybody waits for a place that nobody has found: refused pods, pods that lost the place that was planned for them, and pods
    /// whose planned NodeClaim is not there (word of its failure can get lost while `state` is being restarted).
    pub(super) fn is_anybody_left(&self, now: Timestamp) -> bool {
        if self.refused + self.foreseen.refused() > 0 || self.is_anybody_unforeseen(now) {
            return true;
        }
        let snapshot = self.wiring.boards.snapshot();
        snapshot.pending.keys().any(|uid| match snapshot.planned.get(uid) {
            None => true,
            Some(name) => !snapshot.claims.contains_key(name) && !self.is_coming(name),
        })
    }

    /// Whether there is a pod on a node that goes for which nobody has looked for another place, or whose place is no more.
    pub(super) fn is_anybody_unforeseen(&self, now: Timestamp) -> bool {
        self.foreseen.misses(&self.wiring.boards.snapshot(), now, |name| self.is_coming(name))
    }

    /// Looks again later while there are pods on nodes that go: budgets and annotations that hold them may change.
    pub(super) fn look_after_leavers(&mut self, cx: &Cx<ProvisionerMsg>) {
        if self.foresee.is_none() && leaving::is_anybody_going(&self.wiring.boards.snapshot()) {
            self.foresee = Some(cx.after(LEAVERS, ProvisionerMsg::Foresee));
        }
    }

    /// How many pods kube-scheduler has not come to, and nobody has planned for, while others that were planned for have not been bound: it is busy with
    /// those, and will need nodes for these.
    pub(super) fn overlooked(&self) -> usize {
        let snapshot = self.wiring.boards.snapshot();
        if snapshot.planned.is_empty() {
            return 0;
        }
        snapshot.undecided.keys().filter(|uid| !snapshot.planned.contains_key(*uid)).count()
    }

    /// Plans for pods that came while kube-scheduler was busy with those of an earlier plan, once no more of them come; once for as many. For those
    /// whose node was to come back from a restart that is held up. And for those whose node serves, when kube-scheduler does not bring them in: it is shown
    /// them again, too.
    pub(super) fn watch(&mut self, cx: &Cx<ProvisionerMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        let now = self.overlooked();
        let before = std::mem::replace(&mut self.overlooked, now);
        self.left_over = self.left_over.min(now);
        let many = now > self.left_over && now == before;
        if many {
            self.left_over = now;
        }
        let left_aside = self.doors.are_still(&snapshot);
        if left_aside {
            self.wiring.slots.nominator.cast(NominatorMsg::Wake);
        }
        let refusals = self.wiring.boards.refusals.borrow().clone();
        if many
            || left_aside
            || restarts::is_anybody_held(&snapshot, cx.now(), |uid| refusals.reasons.contains_key(uid))
        {
            self.begin(cx);
        }
        let busy = !snapshot.planned.is_empty();
        self.watching = busy.then(|| cx.after(AT_WORK, ProvisionerMsg::Watch));
    }

    /// Whether a NodeClaim that the snapshot does not show is being written, or has just been.
    pub(super) fn is_coming(&self, name: &ClaimName) -> bool {
        self.awaited.contains_key(name)
            || matches!(&self.doing, Doing::Creating(creating) if creating.left.contains_key(name))
    }
}
