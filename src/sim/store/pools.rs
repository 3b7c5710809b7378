//! NodePools, NodeClasses, DaemonSets and namespaces in the store: what users apply and delete.

use std::sync::Arc;

use super::objects::{Store, check_version, merge};
use crate::api::classes::kwok::KwokNodeClass;
use crate::api::classes::outscale::OutscaleNodeClass;
use crate::cluster::{ClassPatch, ClassStatusPatch, Error, PoolPatch, PoolStatusPatch};
use crate::core::facts::{DaemonSet, Fact, NodeClass, Pool};
use crate::core::ids::{ClassRef, ObjectKey, PoolName, PoolUid};
use crate::core::labels::Labels;

impl Store {
    /// Puts a NodePool as a user wrote it. Identity, age and status of one that exists stay; its generation rises when what is wanted
    /// has changed.
    pub fn apply_pool(&mut self, mut pool: Pool) -> Arc<Pool> {
        match self.pools.get(&pool.name) {
            None => {
                pool.uid = PoolUid::from(self.uid());
                pool.created = self.now();
                pool.generation = 1;
            }
            Some(there) => {
                let mut kept = (**there).clone();
                merge(&mut kept.annotations, &pool.annotations);
                pool.annotations = kept.annotations;
                pool.uid = kept.uid;
                pool.created = kept.created;
                pool.deleting = kept.deleting;
                pool.version = kept.version;
                pool.status_nodes = kept.status_nodes;
                pool.status_resources = kept.status_resources;
                pool.class_generation = kept.class_generation;
                pool.conditions = kept.conditions;
                pool.generation = kept.generation;
                if pool == **there {
                    return Arc::clone(there);
                }
                pool.generation += i64::from(!same_wish(&pool, there));
            }
        }
        self.save_pool(pool)
    }

    /// Changes annotations of a NodePool.
    pub fn patch_pool(&mut self, name: &PoolName, patch: &PoolPatch) -> Result<(), Error> {
        let mut pool = self.pool(name)?;
        if merge(&mut pool.annotations, &patch.annotations) {
            self.save_pool(pool);
        }
        Ok(())
    }

    /// Lets somebody else change the metadata of a NodePool; false when there is none.
    pub(in crate::sim) fn update_pool(&mut self, name: &PoolName, change: impl FnOnce(&mut Pool)) -> bool {
        let Ok(there) = self.pool(name) else { return false };
        let mut pool = there.clone();
        change(&mut pool);
        if pool != there {
            self.save_pool(pool);
        }
        true
    }

    /// Changes the status of a NodePool; its generation stays.
    pub fn patch_pool_status(&mut self, name: &PoolName, patch: &PoolStatusPatch) -> Result<(), Error> {
        let there = self.pool(name)?;
        check_version(&object(name), patch.version.as_ref(), &there.version)?;
        let mut pool = there.clone();
        let given = patch.clone();
        pool.status_nodes = given.nodes.or(pool.status_nodes);
        pool.status_resources = given.resources_after(&pool.status_resources);
        pool.class_generation = given.class_generation.or(pool.class_generation);
        pool.conditions = given.conditions.unwrap_or(pool.conditions);
        if pool != there {
            self.save_pool(pool);
        }
        Ok(())
    }

    /// Deletes a NodePool and, as the garbage collector does, the NodeClaims that it owned.
    pub fn delete_pool(&mut self, name: &PoolName) -> Result<(), Error> {
        let pool = self.pools.remove(name).ok_or_else(|| Error::NotFound(object(name)))?;
        self.emit(&Fact::PoolGone(name.clone()));
        self.collect_claims_of(&pool.uid);
        self.gone_pools.insert(pool.uid.clone());
        Ok(())
    }

    /// Puts a NodeClass; its generation rises when its spec has changed.
    pub fn apply_class(&mut self, mut class: NodeClass) {
        let there = self.classes.get(&class.reference);
        class.generation = there.map_or(1, |there| there.generation + i64::from(!same_spec(there, &class)));
        if let Some(there) = there {
            class.uid = Arc::clone(&there.uid);
            class.finalizers.clone_from(&there.finalizers);
            class.deleting = there.deleting;
        } else {
            class.uid = format!("uid-of-{}", class.reference.name).into();
        }
        self.save_class(class);
    }

    /// Changes the finalizers of a NodeClass. One that is being deleted goes with the last of them.
    pub fn patch_class(&mut self, reference: &ClassRef, patch: &ClassPatch) -> Result<(), Error> {
        let there = self.classes.get(reference).ok_or_else(|| Error::NotFound(reference.to_string()))?;
        check_version(&reference.to_string(), Some(&patch.version), &there.version)?;
        let mut class = NodeClass::clone(there);
        class.finalizers.clone_from(&patch.finalizers);
        self.save_class(class);
        Ok(())
    }

    /// Lets somebody else change something about a NodeClass that nobody looks at: it has another version from then on.
    pub(in crate::sim) fn touch_class(&mut self, name: &str) {
        let named = self.classes.values().find(|class| class.reference.to_string() == name);
        if let Some(class) = named.map(|class| NodeClass::clone(class)) {
            self.save_class(class);
        }
    }

    /// Writes the class under a new version, or takes it away when nothing holds it any longer.
    fn save_class(&mut self, mut class: NodeClass) {
        let reference = class.reference.clone();
        if class.deleting.is_some() && class.finalizers.is_empty() {
            self.classes.remove(&reference);
            return self.emit(&Fact::ClassGone(reference));
        }
        class.version = self.next_version();
        let class = Arc::new(class);
        self.classes.insert(reference, Arc::clone(&class));
        self.emit(&Fact::ClassSeen(class));
    }

    /// Changes the status of a NodeClass; its generation stays.
    pub fn patch_class_status(&mut self, reference: &ClassRef, patch: &ClassStatusPatch) -> Result<(), Error> {
        let there = self.classes.get(reference).ok_or_else(|| Error::NotFound(reference.to_string()))?;
        let mut class = NodeClass::clone(there);
        if let Some(conditions) = &patch.conditions {
            class.conditions.clone_from(conditions);
        }
        if let Some(details) = &patch.details
            && let Some(body) = class.body.downcast_ref::<OutscaleNodeClass>()
        {
            let status = serde_json::from_str(details)
                .map_err(|error| Error::Invalid { object: reference.to_string(), message: error.to_string() })?;
            class.body = Arc::new(OutscaleNodeClass { status: Some(status), ..body.clone() });
        }
        self.save_class(class);
        Ok(())
    }

    /// Asks for the deletion of a NodeClass; finalizers decide when it happens.
    pub fn delete_class(&mut self, reference: &ClassRef) -> Result<(), Error> {
        let there = self.classes.get(reference).ok_or_else(|| Error::NotFound(reference.to_string()))?;
        if there.deleting.is_none() || there.finalizers.is_empty() {
            let class = NodeClass { deleting: Some(self.now()), ..NodeClass::clone(there) };
            self.save_class(class);
        }
        Ok(())
    }

    /// Puts a DaemonSet; its pods are the business of the DaemonSet controller's stand-in.
    pub fn apply_daemon(&mut self, daemon: DaemonSet) {
        let daemon = Arc::new(daemon);
        self.daemons.insert(daemon.key.clone(), Arc::clone(&daemon));
        self.emit(&Fact::DaemonSeen(daemon));
    }

    /// Deletes a DaemonSet.
    pub fn delete_daemon(&mut self, key: &ObjectKey) -> Result<(), Error> {
        self.daemons.remove(key).ok_or_else(|| Error::NotFound(format!("DaemonSet {key}")))?;
        self.emit(&Fact::DaemonGone(key.clone()));
        Ok(())
    }

    /// Puts a namespace, with the label that names it.
    pub fn apply_namespace(&mut self, name: &Arc<str>, mut labels: Labels) {
        labels.insert(crate::core::labels::NAMESPACE_NAME.into(), name.clone());
        let labels = Arc::new(labels);
        if self.namespaces.insert(name.clone(), Arc::clone(&labels)).as_ref() != Some(&labels) {
            self.emit(&Fact::NamespaceSeen(name.clone(), labels));
        }
    }

    fn pool(&self, name: &PoolName) -> Result<Pool, Error> {
        self.pools.get(name).map(|pool| (**pool).clone()).ok_or_else(|| Error::NotFound(object(name)))
    }

    fn save_pool(&mut self, mut pool: Pool) -> Arc<Pool> {
        pool.version = self.next_version();
        let pool = Arc::new(pool);
        self.pools.insert(pool.name.clone(), Arc::clone(&pool));
        self.emit(&Fact::PoolSeen(Arc::clone(&pool)));
        pool
    }
}

/// Whether two versions of a NodePool want the same; metadata does not count.
fn same_wish(one: &Pool, other: &Pool) -> bool {
    one.weight == other.weight
        && one.limits == other.limits
        && one.replicas == other.replicas
        && one.template == other.template
        && one.disruption == other.disruption
}

/// Whether two versions of a NodeClass have the same spec; of a kind that is not known here, none has.
fn same_spec(one: &NodeClass, other: &NodeClass) -> bool {
    let typed = |class: &NodeClass| class.body.downcast_ref::<KwokNodeClass>().map(|class| class.spec.clone());
    typed(one).is_some_and(|spec| typed(other) == Some(spec))
}

fn object(name: &PoolName) -> String {
    format!("NodePool {name}")
}
