//! What users do at the worst moment: they delete, edit, strip, cordon and make anew.

use std::sync::Arc;

use jiff::Timestamp;

use super::kind::Fault;
use super::plan::Mishap;
use super::player::{FOREIGN, Player, TRY_AGAIN, Todo, attachment, nodes, on_nodes, one_of, worst};
use crate::api::classes::kwok::KwokNodeClass;
use crate::cluster::ClaimPatch;
use crate::core::facts::{Claim, Condition, Count, Node, NodeClass, PodBudget, Pool, Status};
use crate::core::ids::{ClaimName, NodeName, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::resources::Resources;
use crate::sim::store::Store;

impl Player {
    /// What users do; answers as [`Self::befall`] does.
    pub(super) fn user(&mut self, store: &mut Store, mishap: Mishap) -> Option<String> {
        let (pick, lasting) = (mishap.pick, mishap.lasting);
        match mishap.fault {
            Fault::UserDeletesNode => {
                let node = one_of(&nodes(store, |node| node.deleting.is_none()), pick)?;
                store.delete_node(&node.name, None).ok()?;
                Some(node.name.to_string())
            }
            Fault::UserEditsNode => {
                let node = one_of(&nodes(store, |_| true), pick)?;
                store.update_node(&node.name, |node| disfigure(node, pick >> 8));
                Some(node.name.to_string())
            }
            Fault::UserCordonsNode => {
                let node = one_of(&nodes(store, |node| !node.cordoned), pick)?;
                store.update_node(&node.name, |node| node.cordoned = true);
                self.agenda.after(lasting, Todo::Uncordon(node.name.clone()));
                Some(node.name.to_string())
            }
            Fault::UserForcesPod => {
                let pod = worst(&on_nodes(store), |pod| pod.deleting.is_some(), pick)?;
                store.remove_pod(&pod.uid);
                Some(pod.key.to_string())
            }
            Fault::UserDetachesVolume => {
                let name = attachment(store, pick)?;
                store.detach(&name);
                Some(name.to_string())
            }
            Fault::UserEditsBudget => {
                let budgets = store.budgets.values().filter(|budget| !self.edited.contains(&budget.key.to_string()));
                let budget = one_of(&budgets.cloned().collect::<Vec<_>>(), pick)?;
                self.edited.insert(budget.key.to_string());
                store.apply_budget(PodBudget {
                    max_unavailable: Some(other_count(pick >> 8)),
                    min_available: None,
                    ..(*budget).clone()
                });
                self.agenda.after(lasting, Todo::RestoreBudget(Box::new((*budget).clone())));
                Some(budget.key.to_string())
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
                Some(pool.name.to_string())
            }
            Fault::UserEditsClass => {
                let classes = store.classes().filter(|class| !self.edited.contains(&class.reference.to_string()));
                let class = one_of(&classes.cloned().collect::<Vec<_>>(), pick)?;
                store.apply_class(misused(&class, pick >> 8, store.now())?);
                let name = class.reference.to_string();
                self.edited.insert(name.clone());
                self.agenda.after(lasting, Todo::RestoreClass(Box::new(NodeClass::clone(&class))));
                Some(name)
            }
            _ => self.user_of_claims(store, mishap),
        }
    }

    /// What users do to NodeClaims.
    fn user_of_claims(&mut self, store: &mut Store, mishap: Mishap) -> Option<String> {
        let (pick, lasting) = (mishap.pick, mishap.lasting);
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
    pub(super) fn remake(&mut self, store: &mut Store, claim: Box<Claim>) {
        if self.mishaps.are_over() {
            return;
        }
        if store.claims.contains_key(&claim.name) {
            return self.agenda.after(TRY_AGAIN, Todo::Remake(claim));
        }
        store.apply_claim(*claim);
        self.mishaps.bitten(Fault::UserRemakesClaim);
    }
}

/// How many pods a budget lets go that somebody has edited: none, one, or all.
fn other_count(pick: u64) -> Count {
    match pick % 3 {
        0 => Count::Pods(0),
        1 => Count::Pods(1),
        _ => Count::Percent(100),
    }
}

/// A NodeClass as somebody has edited it, if it is one of KWOK's: its nodes register later, or after a time that nobody can read; or it is found not to be
/// ready.
fn misused(class: &NodeClass, pick: u64, now: Timestamp) -> Option<NodeClass> {
    let mut typed = class.body.downcast_ref::<KwokNodeClass>()?.clone();
    let mut edited = class.clone();
    match pick % 3 {
        0 => typed.spec.spec.node_registration_delay = Some(format!("{}s", 1 + (pick >> 8) % 60)),
        1 => typed.spec.spec.node_registration_delay = Some("tomorrow at noon".to_owned()),
        _ => {
            let not_ready = Condition {
                status: Status::False,
                message: "there is no such image".into(),
                ..said("Ready", "ImageNotFound", class.generation, now)
            };
            put(&mut edited.conditions, not_ready);
        }
    }
    edited.body = Arc::new(typed);
    Some(edited)
}

/// A condition that somebody says is true.
fn said(kind: &str, reason: &str, generation: i64, now: Timestamp) -> Condition {
    Condition {
        kind: kind.into(),
        status: Status::True,
        reason: reason.into(),
        message: "".into(),
        since: now,
        generation,
    }
}

/// Puts a condition in the place of the one of its kind.
fn put(conditions: &mut Vec<Condition>, condition: Condition) {
    conditions.retain(|there| there.kind != condition.kind);
    conditions.push(condition);
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

/// What users write where a time, a duration or an ID belongs: words, nothing, numbers, a truth, days that no calendar has, and far too much.
fn nonsense(pick: u64) -> Arc<str> {
    const SHORT: [&str; 7] =
        ["tomorrow at noon", "", "-1", "0", "true", "2026-02-30T12:00:00Z", "+99999-01-01T00:00:00Z"];
    let at = usize::try_from(pick % 8).unwrap_or(0);
    SHORT.get(at).map_or_else(|| "9".repeat(4_096).into(), |text| Arc::from(*text))
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
    let kinds: Vec<&str> = match pick % 4 {
        3 => kinds.to_vec(),
        one => kinds.into_iter().skip(usize::try_from(one).unwrap_or(0)).take(1).collect(),
    };
    for kind in kinds {
        put(&mut claim.conditions, said(kind, kind, claim.generation, now));
    }
}

/// Asks for a reboot: with the pods on the node, with two minutes for them to leave, or with all the time that they take.
fn ask_for_reboot(claim: &mut Claim, pick: u64, now: Timestamp) {
    put(&mut claim.conditions, said("Rebooting", "RebootRequested", claim.generation, now));
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

pub(super) fn set_finalizers(store: &mut Store, name: &ClaimName, change: impl FnOnce(&mut Vec<Arc<str>>)) {
    let Some(claim) = store.claims.get(name) else { return };
    let mut finalizers = claim.finalizers.clone();
    change(&mut finalizers);
    let version = Some(claim.version.clone());
    // A finalizer cannot be added to what is being deleted; then it is not.
    drop(store.patch_claim(name, &ClaimPatch { version, finalizers: Some(finalizers), ..ClaimPatch::default() }));
}
