//! `catalog`: instance types with their prices for every NodePool, less what is sold out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::clouds::{Assortment, SoldOut};
use crate::core::facts::{Catalog as Published, InstanceType, NodeClass, Offering, Snapshot, Verdict};
use crate::core::ids::{ClassRef, PoolName};
use crate::core::overlays;

use super::protocol::{BatcherMsg, Called, CatalogMsg, PoolsMsg};
use super::runtime::{Behaviour, Cx, Kind, Permits, Timer, View};
use super::tree::Wiring;

/// Pause before a failed fetch is repeated.
const RETRY: Duration = Duration::from_secs(10);

/// A list of instance types, shared by all who read it.
type Types = Arc<Vec<Arc<InstanceType>>>;

/// Keeps the catalog.
#[derive(Debug)]
pub(super) struct Catalog {
    wiring: Arc<Wiring>,
    classes: BTreeMap<ClassRef, Class>,
    /// What could not be had, and until when it is not tried again: not by the clock, which can be set.
    sold_out: BTreeMap<SoldOut, Instant>,
    /// When the lists are fetched again, whether or not anything has changed.
    due: Instant,
    refresh: Option<Timer>,
    /// The last judgement of NodeOverlays: what was judged, and what came of it.
    judged: Option<(Judged, Published)>,
}

/// All that a judgement of NodeOverlays depends on: versions of overlays and NodePools, and the lists as the cloud has them.
#[derive(Debug)]
struct Judged {
    overlays: Vec<(Arc<str>, i64)>,
    pools: Vec<(PoolName, i64)>,
    lists: BTreeMap<PoolName, Types>,
}

impl Judged {
    fn of(snapshot: &Snapshot, catalog: &Published) -> Self {
        Self {
            overlays: snapshot.overlays.values().map(|one| (Arc::clone(&one.uid), one.generation)).collect(),
            pools: snapshot.pools.values().map(|pool| (pool.name.clone(), pool.generation)).collect(),
            lists: catalog.pools.clone(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.overlays == other.overlays
            && self.pools == other.pools
            && self.lists.len() == other.lists.len()
            && self
                .lists
                .iter()
                .all(|(pool, types)| other.lists.get(pool).is_some_and(|there| Arc::ptr_eq(there, types)))
    }
}

#[derive(Debug)]
struct Class {
    /// The class as it was when its types were fetched: one that was edited, or comes to something else, may offer something else.
    seen: Arc<NodeClass>,
    fetching: bool,
    /// Something that they depend on has changed since they began to be fetched.
    outdated: bool,
    failure: Option<String>,
    /// As the cloud has them.
    types: Option<Types>,
    /// Whether something of them may be missing.
    is_partial: bool,
}

impl Catalog {
    /// Fetches what is new or edited, and forgets what is gone.
    fn look(&mut self, cx: &Cx<CatalogMsg>) {
        let snapshot = self.wiring.boards.snapshot();
        self.classes.retain(|reference, _| snapshot.classes.contains_key(reference));
        let works_out = !self.wiring.cloud.class_conditions().is_empty();
        for (reference, class) in &snapshot.classes {
            let known = self.classes.get(reference);
            let differs = |known: &Class| {
                let is_another = (&known.seen.uid, known.seen.generation) != (&class.uid, class.generation);
                is_another || (works_out && !Arc::ptr_eq(&known.seen, class))
            };
            if known.is_none_or(differs) {
                self.outdate(reference, cx);
            }
        }
        self.publish();
    }

    /// Fetches the list of a NodeClass, once more if it is being fetched.
    fn outdate(&mut self, reference: &ClassRef, cx: &Cx<CatalogMsg>) {
        match self.classes.get_mut(reference) {
            Some(class) if class.fetching => class.outdated = true,
            _ => self.fetch(reference, cx),
        }
    }

    fn fetch(&mut self, reference: &ClassRef, cx: &Cx<CatalogMsg>) {
        let Some(class) = self.wiring.boards.snapshot().classes.get(reference).cloned() else { return };
        let known = self.classes.entry(reference.clone()).or_insert(Class {
            seen: Arc::clone(&class),
            fetching: false,
            outdated: false,
            failure: None,
            types: None,
            is_partial: false,
        });
        known.seen = Arc::clone(&class);
        known.fetching = true;
        let (cloud, reference) = (Arc::clone(&self.wiring.cloud), reference.clone());
        let call = async move { cloud.catalog(&class).await };
        cx.start(Permits::ReadCloud, call, move |outcome| CatalogMsg::Fetched(reference, outcome));
    }

    fn fetched(&mut self, reference: &ClassRef, outcome: Called<Assortment>, cx: &Cx<CatalogMsg>) {
        let Some(class) = self.classes.get_mut(reference) else { return };
        class.fetching = false;
        let is_outdated = std::mem::take(&mut class.outdated);
        self.answered(reference, outcome, cx);
        if is_outdated {
            self.fetch(reference, cx);
        }
    }

    fn answered(&mut self, reference: &ClassRef, outcome: Called<Assortment>, cx: &Cx<CatalogMsg>) {
        let Some(class) = self.classes.get_mut(reference) else { return };
        let failure = match outcome.answer() {
            Ok(Assortment { types, lacks }) => {
                class.failure = None;
                let was_partial = std::mem::replace(&mut class.is_partial, lacks.is_some());
                let before = class.types.replace(Arc::clone(&types));
                self.publish();
                // A list for which something could not be read is not the last word.
                if let Some(pause) = lacks {
                    self.fetch_within(pause, cx);
                }
                // What a machine was launched as may no longer be sold: its NodeClaim has drifted.
                let has_changed = before.is_some_and(|before| !Arc::ptr_eq(&before, &types) && before != types);
                if has_changed || was_partial != lacks.is_some() {
                    let snapshot = self.wiring.boards.snapshot();
                    let claims = snapshot.claims.values().filter(|claim| claim.class == *reference);
                    self.wiring.stir(claims.map(|claim| claim.name.clone()));
                }
                return;
            }
            Err(failure) => failure,
        };
        tracing::error!(class = %reference, error = %failure, "instance types not fetched; what was known stays in use");
        class.failure = Some(failure);
        self.fetch_within(RETRY, cx);
    }

    /// Has the lists fetched again after this pause, if they would not be before.
    fn fetch_within(&mut self, pause: Duration, cx: &Cx<CatalogMsg>) {
        self.due = self.due.min(Instant::now() + pause);
        self.arm(cx);
    }

    fn sold_out(&mut self, offerings: Vec<SoldOut>, cx: &Cx<CatalogMsg>) {
        let until = Instant::now() + self.wiring.settings.sold_out_for;
        for offering in offerings {
            self.sold_out.insert(offering, until);
        }
        self.publish();
        self.arm(cx);
    }

    /// Sets the timer for the next thing that happens by itself.
    fn arm(&mut self, cx: &Cx<CatalogMsg>) {
        let next = self.sold_out.values().copied().fold(self.due, Instant::min);
        self.refresh = Some(cx.after(next.saturating_duration_since(Instant::now()), CatalogMsg::Refresh));
    }

    fn refresh(&mut self, cx: &Cx<CatalogMsg>) {
        let (now, before) = (Instant::now(), self.sold_out.len());
        self.sold_out.retain(|_, until| *until > now);
        if self.sold_out.len() != before {
            self.publish();
        }
        // What is sold out again and again must not put this off.
        if self.due <= now {
            self.due = now + self.wiring.settings.catalog_refresh;
            let idle = self.classes.iter().filter(|(_, class)| !class.fetching);
            let idle: Vec<ClassRef> = idle.map(|(reference, _)| reference.clone()).collect();
            for reference in idle {
                self.fetch(&reference, cx);
            }
        }
        self.arm(cx);
    }

    /// The cloud knows its machines better than before: its lists are fetched again, those under way once more when they are here.
    fn learnt(&mut self, cx: &Cx<CatalogMsg>) {
        let classes: Vec<ClassRef> = self.classes.keys().cloned().collect();
        for reference in classes {
            self.outdate(&reference, cx);
        }
    }

    /// Puts NodeOverlays to what the cloud says, anew only when something has changed.
    fn overlay(&mut self, next: Published, snapshot: &Snapshot) -> Published {
        if !self.wiring.settings.features.node_overlay {
            return next;
        }
        let judged = Judged::of(snapshot, &next);
        if let Some((before, known)) = &self.judged
            && before.is(&judged)
        {
            return Published { classes: next.classes, partial: next.partial, ..known.clone() };
        }
        let mut next = next;
        overlays::apply(&mut next, snapshot);
        for (name, judgement) in &next.overlays {
            let known = self.judged.as_ref().and_then(|(_, known)| known.overlays.get(name));
            match &judgement.verdict {
                Verdict::Invalid(why) | Verdict::Conflict(why) if known != Some(judgement) => {
                    tracing::warn!(nodeoverlay = %name, error = %why, "nodeoverlay not applied");
                }
                _ => {}
            }
        }
        self.judged = Some((judged, next.clone()));
        next
    }

    fn publish(&mut self) {
        let snapshot = self.wiring.boards.snapshot();
        let before = self.wiring.boards.catalog();
        let mut next = Published::default();
        for (reference, class) in &self.classes {
            // What a predecessor published is good until the cloud has answered.
            let types = class.types.as_ref().map(|types| less_sold_out(types, reference, &self.sold_out));
            if let Some(types) = types.or_else(|| before.classes.get(reference).cloned()) {
                next.classes.insert(reference.clone(), types);
            }
            let is_partial = if class.types.is_some() { class.is_partial } else { before.partial.contains(reference) };
            if is_partial {
                next.partial.insert(reference.clone());
            }
        }
        for pool in snapshot.pools.values() {
            if let Some(types) = next.classes.get(&pool.template.class) {
                next.pools.insert(pool.name.clone(), Arc::clone(types));
            }
        }
        let mut next = self.overlay(next, &snapshot);
        if same(&before, &next) {
            return;
        }
        next.epoch = before.epoch + 1;
        if before.overlays != next.overlays {
            self.wiring.slots.pools.cast(PoolsMsg::Look);
        }
        self.wiring.boards.catalog.send_replace(Arc::new(next));
        // New offerings are as good as new pods: who waits for one should not wait for the next round.
        if !snapshot.pending.is_empty() {
            self.wiring.slots.batcher.cast(BatcherMsg::PodsPending);
        }
        // NodeClaims that were seen before their class's instance types wait for them.
        let waiting =
            snapshot.claims.values().filter(|claim| claim.provider_id.is_none()).map(|claim| claim.name.clone());
        self.wiring.stir(waiting);
    }
}

/// Whether two catalogs offer the same; their lists are shared, so that comparing addresses nearly always decides.
fn same(a: &Published, b: &Published) -> bool {
    let equal = |(x, y): (&Types, &Types)| Arc::ptr_eq(x, y) || x == y;
    a.pools.keys().eq(b.pools.keys())
        && a.classes.keys().eq(b.classes.keys())
        && a.classes.values().zip(b.classes.values()).all(equal)
        && a.pools.values().zip(b.pools.values()).all(equal)
        && a.partial == b.partial
        && a.overlays == b.overlays
        && a.overlaid == b.overlaid
}

/// The types of a NodeClass with sold-out offerings marked as unavailable; the same list when none is.
fn less_sold_out(types: &Types, class: &ClassRef, sold_out: &BTreeMap<SoldOut, Instant>) -> Types {
    let concerns = |offering: &&SoldOut| offering.class.as_ref().is_none_or(|other| other == class);
    let here: BTreeSet<_> = sold_out
        .keys()
        .filter(concerns)
        .map(|offering| (offering.instance_type.as_str(), offering.zone.as_deref(), &*offering.capacity_type))
        .collect();
    let affected: BTreeSet<&str> = here.iter().map(|(kind, ..)| *kind).collect();
    if !types.iter().any(|kind| affected.contains(kind.name.as_str())) {
        return Arc::clone(types);
    }
    let is_sold_out = |kind: &InstanceType, offering: &Offering| {
        offering.capacity_type().is_some_and(|capacity_type| {
            here.contains(&(kind.name.as_str(), offering.zone().map(|zone| &**zone), &**capacity_type))
        })
    };
    let marked = types.iter().map(|kind| {
        if !affected.contains(kind.name.as_str()) {
            return Arc::clone(kind);
        }
        let mut marked = InstanceType::clone(kind);
        for offering in &mut marked.offerings {
            offering.available &= !is_sold_out(kind, offering);
        }
        Arc::new(marked)
    });
    Arc::new(marked.collect())
}

impl Behaviour for Catalog {
    type Msg = CatalogMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Catalog;

    fn born(wiring: &Self::Args, cx: &Cx<CatalogMsg>) -> Self {
        cx.cast(CatalogMsg::Look);
        let mut catalog = Self {
            wiring: Arc::clone(wiring),
            classes: BTreeMap::new(),
            sold_out: BTreeMap::new(),
            due: Instant::now() + wiring.settings.catalog_refresh,
            refresh: None,
            judged: None,
        };
        catalog.arm(cx);
        catalog
    }

    fn handle(&mut self, message: CatalogMsg, cx: &Cx<CatalogMsg>) {
        match message {
            CatalogMsg::Look => self.look(cx),
            CatalogMsg::Fetched(reference, outcome) => self.fetched(&reference, outcome, cx),
            CatalogMsg::SoldOut(offerings) => self.sold_out(offerings, cx),
            CatalogMsg::Refresh => self.refresh(cx),
            CatalogMsg::Learnt => self.learnt(cx),
        }
    }

    fn observe(&self, now: Timestamp) -> View {
        let fetching = self.classes.values().filter(|class| class.types.is_none()).count();
        let mut details = Vec::new();
        for (reference, class) in &self.classes {
            let text = match (&class.types, &class.failure) {
                (_, Some(failure)) => failure.clone(),
                (Some(types), None) => format!("{} instance types", types.len()),
                (None, None) => "asked the cloud".to_owned(),
            };
            details.push((reference.to_string(), text));
        }
        for (name, judgement) in &self.wiring.boards.catalog().overlays {
            let text = match &judgement.verdict {
                Verdict::Applied => "applied",
                Verdict::Invalid(why) | Verdict::Conflict(why) => why,
            };
            details.push((format!("NodeOverlay {name}"), text.to_owned()));
        }
        for offering in self.sold_out.keys() {
            let zone = offering.zone.as_deref().unwrap_or("anywhere");
            let class = offering.class.as_ref().map(|class| format!(" with {class}")).unwrap_or_default();
            let text = format!("{} {} {zone}{class}", offering.instance_type, offering.capacity_type);
            details.push(("sold out".to_owned(), text));
        }
        View {
            state: if fetching == 0 { "up to date" } else { "fetching" }.to_owned(),
            waits_for: (fetching > 0).then(|| "the cloud to answer".to_owned()),
            deadlines: self
                .sold_out
                .values()
                .min()
                .map(|until| SignedDuration::try_from(until.saturating_duration_since(Instant::now())))
                .and_then(|rest| now.checked_add(rest.ok()?).ok())
                .map(|at| ("sold-out offering is tried again".to_owned(), at))
                .into_iter()
                .collect(),
            details,
            ..View::default()
        }
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
