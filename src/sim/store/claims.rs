//! NodeClaims in the store: created once per name, changed under optimistic concurrency, gone when the last finalizer is off.

use std::sync::Arc;

use super::objects::{Store, check_guarded, check_version, merge, without};
use crate::cluster::{ClaimPatch, ClaimStatusPatch, Error};
use crate::core::facts::{Claim, ClaimDraft, Fact};
use crate::core::ids::{ClaimName, ClaimUid, PoolUid};

impl Store {
    /// Creates a NodeClaim from a draft. One whose NodePool has gone meanwhile goes with it.
    pub fn create_claim(&mut self, draft: &ClaimDraft) -> Result<Arc<Claim>, Error> {
        if self.claims.contains_key(&draft.name) {
            return Err(Error::Exists(object(&draft.name)));
        }
        let (uid, version) = (ClaimUid::from(self.uid()), self.next_version());
        let claim = draft.claim(uid, version, self.now());
        Ok(self.put_new_claim(claim))
    }

    /// Puts a NodeClaim as a user wrote it; identity, age and status of one that exists already stay. One whose NodePool has gone goes with it.
    pub fn apply_claim(&mut self, mut claim: Claim) -> Arc<Claim> {
        if let Some(there) = self.claims.get(&claim.name) {
            // The spec of a NodeClaim is immutable; a second apply can only bring labels and annotations, and mend what was no spec.
            let mut kept = (**there).clone();
            let mended = kept.broken != claim.broken;
            kept.broken.clone_from(&claim.broken);
            let changed =
                mended | merge(&mut kept.labels, &claim.labels) | merge(&mut kept.annotations, &claim.annotations);
            return if changed { self.save_claim(kept) } else { Arc::clone(there) };
        }
        claim.uid = ClaimUid::from(self.uid());
        claim.created = self.now();
        claim.generation = 1;
        claim.version = self.next_version();
        self.put_new_claim(claim)
    }

    /// Changes metadata of a NodeClaim; with the last finalizer a deleted one goes.
    pub fn patch_claim(&mut self, name: &ClaimName, patch: &ClaimPatch) -> Result<Arc<Claim>, Error> {
        let there = self.claim(name)?;
        check_version(&object(name), patch.version.as_ref(), &there.version)?;
        check_guarded(&object(name), "metadata.finalizers", patch.finalizers.is_none() || patch.version.is_some())?;
        let mut claim = (*there).clone();
        merge(&mut claim.labels, &patch.labels);
        merge(&mut claim.annotations, &patch.annotations);
        without(&mut claim.annotations, &patch.without_annotations);
        if let Some(finalizers) = &patch.finalizers
            && *finalizers != claim.finalizers
        {
            if let Some(new) = finalizers.iter().find(|new| claim.deleting.is_some() && !claim.finalizers.contains(new))
            {
                let message = format!("metadata.finalizers: {new} cannot be added to an object that is being deleted");
                return Err(Error::Invalid { object: object(name), message });
            }
            claim.finalizers.clone_from(finalizers);
        }
        claim.labels.retain(|key, _| !self.stripped.contains(key));
        claim.finalizers.retain(|finalizer| !self.stripped.contains(finalizer));
        Ok(if claim == *there { there } else { self.save_claim(claim) })
    }

    /// Changes the status of a NodeClaim; its generation stays.
    pub fn patch_claim_status(&mut self, name: &ClaimName, patch: &ClaimStatusPatch) -> Result<Arc<Claim>, Error> {
        let there = self.claim(name)?;
        check_version(&object(name), patch.version.as_ref(), &there.version)?;
        let mut claim = (*there).clone();
        let given = patch.clone();
        claim.provider_id = given.provider_id.or(claim.provider_id);
        claim.node = given.node.or(claim.node);
        claim.image = given.image.or(claim.image);
        claim.capacity = given.capacity.unwrap_or(claim.capacity);
        claim.allocatable = given.allocatable.unwrap_or(claim.allocatable);
        claim.last_pod_event = given.last_pod_event.or(claim.last_pod_event);
        claim.conditions = given.conditions.unwrap_or(claim.conditions);
        Ok(if claim == *there { there } else { self.save_claim(claim) })
    }

    /// Lets somebody else change a NodeClaim; false when there is none.
    pub(in crate::sim) fn update_claim(&mut self, name: &ClaimName, change: impl FnOnce(&mut Claim)) -> bool {
        let Some(there) = self.claims.get(name) else { return false };
        let mut claim = (**there).clone();
        change(&mut claim);
        if claim != **there {
            self.save_claim(claim);
        }
        true
    }

    /// Asks for the deletion of a NodeClaim.
    pub fn delete_claim(&mut self, name: &ClaimName) -> Result<(), Error> {
        let there = self.claim(name)?;
        if there.deleting.is_none() {
            let mut claim = (*there).clone();
            claim.deleting = Some(self.now());
            // The API server counts the mark of deletion as a change of what is wanted.
            claim.generation += 1;
            self.save_claim(claim);
        }
        Ok(())
    }

    /// Deletes the NodeClaims that a NodePool owned, as Kubernetes' garbage collector does once the owner is gone.
    pub(super) fn collect_claims_of(&mut self, pool: &PoolUid) {
        let owned = self.claims.values().filter(|claim| claim.owner_pool.as_ref() == Some(pool));
        for name in owned.map(|claim| claim.name.clone()).collect::<Vec<_>>() {
            // Nobody can have taken it away in between: the store is held.
            self.delete_claim(&name).ok();
        }
    }

    /// Puts a NodeClaim that was not there. Kubernetes' garbage collector finds that its owner is gone, if it is.
    fn put_new_claim(&mut self, claim: Claim) -> Arc<Claim> {
        let claim = self.put_claim(claim);
        if let Some(pool) = claim.owner_pool.as_ref().filter(|pool| self.gone_pools.contains(pool)) {
            self.collect_claims_of(pool);
        }
        claim
    }

    fn claim(&self, name: &ClaimName) -> Result<Arc<Claim>, Error> {
        self.claims.get(name).cloned().ok_or_else(|| Error::NotFound(object(name)))
    }

    /// Writes the claim under a new version, or takes it away when nothing holds it any longer.
    fn save_claim(&mut self, mut claim: Claim) -> Arc<Claim> {
        claim.version = self.next_version();
        if claim.deleting.is_some() && claim.finalizers.is_empty() {
            self.claims.remove(&claim.name);
            self.emit(&Fact::ClaimGone(claim.name.clone(), claim.uid.clone()));
            return Arc::new(claim);
        }
        self.put_claim(claim)
    }

    fn put_claim(&mut self, claim: Claim) -> Arc<Claim> {
        let claim = Arc::new(claim);
        self.claims.insert(claim.name.clone(), Arc::clone(&claim));
        self.emit(&Fact::ClaimSeen(Arc::clone(&claim)));
        claim
    }
}

fn object(name: &ClaimName) -> String {
    format!("NodeClaim {name}")
}
