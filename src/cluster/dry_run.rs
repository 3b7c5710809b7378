//! A cluster that is read and never written: what would be written is said once, and remembered as if it had been, so that joiner goes on as it
//! would.
//!
//! NodeClaims that joiner creates live in here, and status of NodePools and NodeClasses, annotations and the like are laid over what the API
//! server has. Nodes and pods are as they are: machines that are not made bring no Nodes, so a dry run ends at the launch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;

use crate::core::facts::{Claim, ClaimDraft, DeviceSlice, Fact, Kind, Node, NodeClass, Pod, Pool, VolumeAttachment};
use crate::core::ids::{ClaimName, ClaimUid, ClassRef, NodeName, NodeUid, ObjectKey, PodUid, PoolName, ProviderId};
use crate::core::labels::Labels;

use super::{
    Announcement, BufferStatusPatch, ClaimPatch, ClaimStatusPatch, ClassPatch, ClassStatusPatch, Cluster, Error, Lease,
    NodePatch, OverlayStatusPatch, PoolPatch, PoolStatusPatch, RecordNow, Regarding,
};

/// Sentences that are remembered, so that none is said twice.
const REMEMBERED: usize = 10_000;

/// The cluster of a dry run.
pub struct DryRun {
    inner: Arc<dyn Cluster>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// NodeClaims that would be there.
    own: BTreeMap<ClaimName, Arc<Claim>>,
    /// What is there, with what would be written laid over it.
    claims: BTreeMap<ClaimName, Arc<Claim>>,
    pools: BTreeMap<PoolName, Arc<Pool>>,
    classes: BTreeMap<ClassRef, Arc<NodeClass>>,
    readers: Vec<mpsc::UnboundedSender<Fact>>,
    writes: u64,
    said: BTreeSet<String>,
}

impl State {
    /// Takes note of what the API server has.
    fn saw(&mut self, fact: &Fact) {
        match fact {
            // What is not seen again is gone.
            Fact::Relisting(Kind::NodeClaim) => self.claims.clear(),
            Fact::ClaimSeen(claim) => drop(self.claims.insert(claim.name.clone(), Arc::clone(claim))),
            Fact::ClaimGone(name, _) => drop(self.claims.remove(name)),
            Fact::PoolSeen(pool) => drop(self.pools.insert(pool.name.clone(), Arc::clone(pool))),
            Fact::PoolGone(name) => drop(self.pools.remove(name)),
            Fact::ClassSeen(class) => drop(self.classes.insert(class.reference.clone(), Arc::clone(class))),
            Fact::ClassGone(reference) => drop(self.classes.remove(reference)),
            _ => {}
        }
    }

    fn emit(&mut self, fact: &Fact) {
        self.readers.retain(|reader| reader.unbounded_send(fact.clone()).is_ok());
    }

    fn version(&mut self) -> Arc<str> {
        self.writes += 1;
        format!("dry-run-{}", self.writes).into()
    }

    /// Says what would be done, once.
    fn say(&mut self, what: &str, object: &dyn Display) {
        let sentence = format!("{what} {object}");
        if self.said.len() < REMEMBERED && self.said.insert(sentence) {
            tracing::info!(object = %object, "dry run: would {what}");
        }
    }

    /// Puts a changed NodeClaim: one of the dry run's own, or what would lie over a real one.
    fn put(&mut self, mut claim: Claim) -> Arc<Claim> {
        claim.version = self.version();
        let claim = Arc::new(claim);
        let own = self.own.contains_key(&claim.name);
        if claim.deleting.is_some() && claim.finalizers.is_empty() && own {
            self.own.remove(&claim.name);
            self.emit(&Fact::ClaimGone(claim.name.clone(), claim.uid.clone()));
            return claim;
        }
        let shelf = if own { &mut self.own } else { &mut self.claims };
        shelf.insert(claim.name.clone(), Arc::clone(&claim));
        self.emit(&Fact::ClaimSeen(Arc::clone(&claim)));
        claim
    }

    fn claim(&self, name: &ClaimName) -> Result<Claim, Error> {
        let found = self.own.get(name).or_else(|| self.claims.get(name));
        found.map(|claim| (**claim).clone()).ok_or_else(|| Error::NotFound(format!("NodeClaim {name}")))
    }
}

impl DryRun {
    /// The same cluster, only to look at.
    pub fn new(inner: Arc<dyn Cluster>, now: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self { inner, now, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write that leaves no trace in here.
    fn only_said<'a>(&'a self, what: &str, object: &dyn Display) -> BoxFuture<'a, Result<(), Error>> {
        self.state().say(what, object);
        async { Ok(()) }.boxed()
    }
}

/// Whom an Event is about.
fn named(regarding: &Regarding) -> String {
    match regarding {
        Regarding::Pod(pod, _) => format!("Pod {pod}"),
        Regarding::Node(node, _) => format!("Node {node}"),
        Regarding::Claim(claim, _) => format!("NodeClaim {claim}"),
        Regarding::Pool(pool, _) => format!("NodePool {pool}"),
        Regarding::Class(class, _) => class.to_string(),
        Regarding::Lease(lease, _) => format!("Lease {lease}"),
    }
}

fn merged(into: &mut Labels, more: &Labels) {
    into.extend(more.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))));
}

impl Cluster for DryRun {
    fn facts(&self) -> BoxStream<'static, Fact> {
        let (sender, receiver) = mpsc::unbounded();
        self.state().readers.push(sender);
        let state = Arc::clone(&self.state);
        let real = self.inner.facts().flat_map(move |fact| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.saw(&fact);
            let mut facts = Vec::new();
            // What is not said again when a list is over is gone; what is only in here must be said, too.
            if matches!(fact, Fact::Relisted(Kind::NodeClaim)) {
                facts.extend(state.own.values().cloned().map(Fact::ClaimSeen));
            }
            facts.push(fact);
            stream::iter(facts)
        });
        stream::select(real, receiver).boxed()
    }

    fn only_says(&self) -> bool {
        true
    }

    fn create_claim<'a>(&'a self, draft: &'a ClaimDraft) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        let mut state = self.state();
        state.say("create NodeClaim", &draft.name);
        let uid = format!("dry-run-{}", draft.name).into();
        let claim = draft.claim(uid, state.version(), (self.now)());
        let claim = Arc::new(claim);
        state.own.insert(claim.name.clone(), Arc::clone(&claim));
        state.emit(&Fact::ClaimSeen(Arc::clone(&claim)));
        async { Ok(claim) }.boxed()
    }

    fn patch_claim<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        async move {
            let mut state = self.state();
            let mut claim = state.claim(name)?;
            merged(&mut claim.labels, &patch.labels);
            merged(&mut claim.annotations, &patch.annotations);
            if let Some(finalizers) = &patch.finalizers {
                claim.finalizers.clone_from(finalizers);
            }
            Ok(state.put(claim))
        }
        .boxed()
    }

    fn patch_claim_status<'a>(
        &'a self,
        name: &'a ClaimName,
        patch: &'a ClaimStatusPatch,
    ) -> BoxFuture<'a, Result<Arc<Claim>, Error>> {
        async move {
            let mut state = self.state();
            let mut claim = state.claim(name)?;
            let given = patch.clone();
            claim.provider_id = given.provider_id.or(claim.provider_id);
            claim.node = given.node.or(claim.node);
            claim.image = given.image.or(claim.image);
            claim.capacity = given.capacity.unwrap_or(claim.capacity);
            claim.allocatable = given.allocatable.unwrap_or(claim.allocatable);
            claim.last_pod_event = given.last_pod_event.or(claim.last_pod_event);
            claim.conditions = given.conditions.unwrap_or(claim.conditions);
            Ok(state.put(claim))
        }
        .boxed()
    }

    fn delete_claim<'a>(&'a self, name: &'a ClaimName, uid: &'a ClaimUid) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let mut state = self.state();
            let mut claim = state.claim(name)?;
            if claim.uid != *uid {
                return Err(Error::NotFound(format!("NodeClaim {name} with the UID {uid}")));
            }
            state.say("delete NodeClaim", name);
            if claim.deleting.is_none() && state.own.contains_key(name) {
                claim.deleting = Some((self.now)());
                claim.generation += 1;
                state.put(claim);
            }
            Ok(())
        }
        .boxed()
    }

    fn list_claims(&self) -> BoxFuture<'_, Result<Vec<Arc<Claim>>, Error>> {
        async move {
            let mut all = self.inner.list_claims().await?;
            all.extend(self.state().own.values().cloned());
            Ok(all)
        }
        .boxed()
    }

    fn get_claim<'a>(&'a self, name: &'a ClaimName) -> BoxFuture<'a, Result<Option<Arc<Claim>>, Error>> {
        let own = self.state().own.get(name).cloned();
        if own.is_some() { async { Ok(own) }.boxed() } else { self.inner.get_claim(name) }
    }

    fn get_node<'a>(&'a self, name: &'a NodeName) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.inner.get_node(name)
    }

    fn find_node<'a>(&'a self, id: &'a ProviderId) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.inner.find_node(id)
    }

    fn pods_on<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<Pod>>, Error>> {
        self.inner.pods_on(node)
    }

    fn attached_to<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<VolumeAttachment>>, Error>> {
        self.inner.attached_to(node)
    }

    fn slices_of<'a>(&'a self, node: &'a NodeName) -> BoxFuture<'a, Result<Vec<Arc<DeviceSlice>>, Error>> {
        self.inner.slices_of(node)
    }

    fn patch_node<'a>(
        &'a self,
        name: &'a NodeName,
        _: &'a NodePatch,
    ) -> BoxFuture<'a, Result<Option<Arc<Node>>, Error>> {
        self.state().say("change Node", name);
        async { Ok(None) }.boxed()
    }

    fn delete_node<'a>(&'a self, name: &'a NodeName, _: &'a NodeUid) -> BoxFuture<'a, Result<(), Error>> {
        self.only_said("delete Node", name)
    }

    fn patch_pool<'a>(&'a self, name: &'a PoolName, patch: &'a PoolPatch) -> BoxFuture<'a, Result<(), Error>> {
        let mut state = self.state();
        if let Some(pool) = state.pools.get(name) {
            let mut pool = (**pool).clone();
            merged(&mut pool.annotations, &patch.annotations);
            let pool = Arc::new(pool);
            state.pools.insert(name.clone(), Arc::clone(&pool));
            state.emit(&Fact::PoolSeen(pool));
        }
        async { Ok(()) }.boxed()
    }

    fn patch_pool_status<'a>(
        &'a self,
        name: &'a PoolName,
        patch: &'a PoolStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut state = self.state();
        if let Some(pool) = state.pools.get(name) {
            let (mut pool, given) = ((**pool).clone(), patch.clone());
            pool.status_nodes = given.nodes.or(pool.status_nodes);
            pool.status_resources = given.resources_after(&pool.status_resources);
            pool.class_generation = given.class_generation.or(pool.class_generation);
            pool.conditions = given.conditions.unwrap_or(pool.conditions);
            let pool = Arc::new(pool);
            state.pools.insert(name.clone(), Arc::clone(&pool));
            state.emit(&Fact::PoolSeen(pool));
        }
        async { Ok(()) }.boxed()
    }

    /// What is kept for nobody need not be kept.
    fn patch_class<'a>(&'a self, class: &'a ClassRef, patch: &'a ClassPatch) -> BoxFuture<'a, Result<(), Error>> {
        let mut state = self.state();
        if let Some(there) = state.classes.get(class) {
            let changed = Arc::new(NodeClass { finalizers: patch.finalizers.clone(), ..(**there).clone() });
            state.classes.insert(class.clone(), Arc::clone(&changed));
            state.emit(&Fact::ClassSeen(changed));
        }
        async { Ok(()) }.boxed()
    }

    /// Conditions are laid over the class; the rest of its status is the cloud's, which remembers it in a dry run.
    fn patch_class_status<'a>(
        &'a self,
        class: &'a ClassRef,
        patch: &'a ClassStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut state = self.state();
        if let Some(there) = state.classes.get(class) {
            let mut changed = (**there).clone();
            if let Some(conditions) = &patch.conditions {
                changed.conditions.clone_from(conditions);
            }
            let changed = Arc::new(changed);
            state.classes.insert(class.clone(), Arc::clone(&changed));
            state.emit(&Fact::ClassSeen(changed));
        }
        async { Ok(()) }.boxed()
    }

    fn patch_overlay_status<'a>(
        &'a self,
        name: &'a str,
        _: &'a OverlayStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.only_said("change the status of NodeOverlay", &name)
    }

    fn patch_buffer_status<'a>(
        &'a self,
        key: &'a ObjectKey,
        _: &'a BufferStatusPatch,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.only_said("change the status of CapacityBuffer", key)
    }

    fn nominate<'a>(
        &'a self,
        pod: &'a ObjectKey,
        _: &'a PodUid,
        _: Option<&'a NodeName>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.only_said("nominate Pod", pod)
    }

    fn evict<'a>(&'a self, pod: &'a ObjectKey, _: &'a PodUid) -> BoxFuture<'a, Result<(), Error>> {
        self.only_said("evict Pod", pod)
    }

    fn delete_pod<'a>(&'a self, pod: &'a ObjectKey, _: &'a PodUid, _: i64) -> BoxFuture<'a, Result<(), Error>> {
        self.only_said("delete Pod", pod)
    }

    fn announce<'a>(&'a self, announcement: &'a Announcement) -> BoxFuture<'a, Result<(), Error>> {
        let Announcement { regarding, reason, message, .. } = announcement;
        self.only_said("write Event", &format_args!("{reason} about {}: {message}", named(regarding)))
    }

    fn renew_lease<'a>(&'a self, holder: &'a str, _: RecordNow<'a>) -> BoxFuture<'a, Result<Lease, Error>> {
        // Nobody is kept from acting by somebody who does not act.
        let object = Regarding::Lease(ObjectKey::new("", ""), "".into());
        let (holder, remaining) = (holder.to_owned(), Duration::from_secs(15));
        async move { Ok(Lease { holder, remaining, object, audit: None, record: None }) }.boxed()
    }

    fn release_lease<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_with_whom_it_is_about() {
        let pod = Regarding::Pod(ObjectKey::new("shop", "web-1"), "uid".into());
        assert_eq!(named(&pod), "Pod shop/web-1");
        assert_eq!(named(&Regarding::Claim("default-a".into(), "uid".into())), "NodeClaim default-a");
    }
}
