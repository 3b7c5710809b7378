//! Evening out: where one node holds many pods that spread over zones and another of the same zone few, some change places with pods of the other
//! that may go anywhere and request as much together, as far as both nodes have room.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::core::facts::{Catalog, InstanceType, Pod};
use crate::core::ids::{InstanceTypeName, PoolName};
use crate::core::resources::{ResourceName, Resources};

use super::super::plan::{Plan, PlannedClaim};
use super::super::problem::Problem;
use super::kind::{Minded, Table, is_plain, tables};

/// Most exchanges that are weighed for one plan: some tenths of a second.
const EFFORT: usize = 4_000_000;

/// Amounts of the resources that are looked at, in their order.
type Amounts = Vec<i64>;

/// A planned node that pods of a table are on, or could be.
struct Node {
    claim: usize,
    /// Its pods of the table.
    spread: Vec<Arc<Pod>>,
    /// Its pods that may go anywhere, by what they request.
    plain: BTreeMap<Amounts, Vec<Arc<Pod>>>,
    rest: Vec<Arc<Pod>>,
    /// What each of its instance types has left at least.
    room: Amounts,
}

/// So many spread pods of one node against so many plain ones of another.
struct Exchange {
    spread: i64,
    plain: Vec<(Amounts, i64)>,
}

/// The plan evened out; nothing when nothing was to be moved.
pub(super) fn evened(plan: &Plan, problem: &Problem<'_>, minded: &Minded<'_>) -> Option<Plan> {
    let mut tables = tables(plan, minded);
    if tables.is_empty() {
        return None;
    }
    let (mut plan, mut changed) = (plan.clone(), false);
    let (mut rooms, mut effort) = (Rooms::new(problem.catalog), EFFORT);
    for at in 0..tables.len() {
        if even(&mut plan, &tables[at], minded, &mut rooms, &mut effort) {
            changed = true;
            // The same tables in the same order, but their pods are elsewhere in the lists.
            tables = super::kind::tables(&plan, minded);
        }
    }
    changed.then_some(plan)
}

/// What instance types can hold. NodeClaims share their lists of types: each list is looked up once.
struct Rooms<'a> {
    types: BTreeMap<(&'a PoolName, &'a InstanceTypeName), Vec<&'a InstanceType>>,
    least: FxHashMap<(PoolName, *const InstanceTypeName), Option<Resources>>,
}

impl<'a> Rooms<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        let mut types: BTreeMap<_, Vec<&'a InstanceType>> = BTreeMap::new();
        for (pool, kind) in catalog.pools.iter().flat_map(|(pool, types)| types.iter().map(move |kind| (pool, kind))) {
            types.entry((pool, &kind.name)).or_default().push(kind);
        }
        Self { types, least: FxHashMap::default() }
    }

    /// What each of the instance types of a planned node can hold at least.
    fn least(&mut self, planned: &PlannedClaim) -> Option<&Resources> {
        let (pool, names) = (&planned.draft.pool, &planned.instance_types);
        let Self { types, least } = self;
        let find = || {
            let listed = names.iter().filter_map(|name| types.get(&(pool, name))).flatten();
            let listed = listed.map(|kind| kind.allocatable());
            listed.reduce(|one, other| one.lowered(&other))
        };
        least.entry((pool.clone(), names.as_ptr())).or_insert_with(find).as_ref()
    }
}

fn even(plan: &mut Plan, table: &Table, minded: &Minded<'_>, rooms: &mut Rooms<'_>, effort: &mut usize) -> bool {
    let Some(first) = table.seats.first().and_then(|(claim, places)| plan.claims[*claim].pods.get(*places.first()?))
    else {
        return false;
    };
    let requests = first.shape.requests.clone();
    let here: Vec<usize> = (0..plan.claims.len()).filter(|at| is_at(&plan.claims[*at], table)).collect();
    let mut names: Vec<ResourceName> = Vec::new();
    for pod in here.iter().flat_map(|at| &plan.claims[*at].pods) {
        for (name, _) in pod.shape.requests.iter() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    let amounts = |of: &Resources| names.iter().map(|name| of.get(name)).collect::<Amounts>();
    let seats: BTreeMap<usize, &[usize]> = table.seats.iter().map(|(at, places)| (*at, places.as_slice())).collect();
    let mut node = |at: &usize| {
        let planned = &plan.claims[*at];
        let seats = seats.get(at).copied().unwrap_or_default();
        Some(Node::new(*at, planned, (seats, minded), rooms.least(planned)?, &amounts))
    };
    let mut nodes: Vec<Node> = here.iter().filter_map(&mut node).collect();
    let each = amounts(&requests);
    let share = nodes.iter().map(|node| node.spread.len()).sum::<usize>().div_ceil(nodes.len().max(1));
    nodes.sort_by_key(|node| (Reverse(node.spread.len()), node.claim));
    let mut changed = false;
    // Of the richest, and the poorest first; who has about its share is left alone.
    let givers = nodes.partition_point(|node| node.spread.len() > share);
    let takers = nodes.partition_point(|node| node.spread.len() >= share);
    for giver in 0..givers {
        for taker in (takers..nodes.len()).rev() {
            *effort = effort.saturating_sub(1);
            if *effort == 0 || nodes[giver].spread.len() <= share {
                break;
            }
            let [from, to] = nodes.get_disjoint_mut([giver, taker]).expect("they are two, and both are there");
            let most = from.spread.len().saturating_sub(share).min(share.saturating_sub(to.spread.len()));
            if most == 0 {
                continue;
            }
            if let Some(exchange) = find(from, to, &each, most, effort) {
                carry_out(from, to, &each, &exchange);
                changed = true;
            }
        }
    }
    if changed {
        for node in nodes {
            node.write(plan);
        }
    }
    changed
}

/// Whether a planned node could hold pods of a table, as far as its NodePool and its labels go.
fn is_at(planned: &PlannedClaim, table: &Table) -> bool {
    planned.draft.pool == table.pool
        && table.domain.iter().all(|(key, wanted)| planned.domain(key).is_some_and(|value| value == *wanted))
}

impl Node {
    /// `seats`: where in its list of pods those of the table are. `room`: what its instance types can hold at least.
    fn new(
        claim: usize,
        planned: &PlannedClaim,
        (seats, minded): (&[usize], &Minded<'_>),
        room: &Resources,
        amounts: &impl Fn(&Resources) -> Amounts,
    ) -> Self {
        let (room, used) = (amounts(room), amounts(&planned.draft.requests));
        let mut node = Self {
            claim,
            spread: Vec::new(),
            plain: BTreeMap::new(),
            rest: Vec::new(),
            room: room.iter().zip(&used).map(|(room, used)| room - used).collect(),
        };
        for (at, pod) in planned.pods.iter().enumerate() {
            if seats.binary_search(&at).is_ok() {
                node.spread.push(Arc::clone(pod));
            } else if is_plain(pod, minded) {
                node.plain.entry(amounts(&pod.shape.requests)).or_default().push(Arc::clone(pod));
            } else {
                node.rest.push(Arc::clone(pod));
            }
        }
        node
    }

    /// Writes its pods into the plan.
    fn write(self, plan: &mut Plan) {
        let planned = &mut plan.claims[self.claim];
        for pod in &planned.pods {
            planned.draft.requests.subtract(&pod.shape.requests);
        }
        planned.pods = self.rest;
        planned.pods.extend(self.plain.into_values().flatten());
        planned.pods.extend(self.spread);
        for pod in &planned.pods {
            planned.draft.requests.add(&pod.shape.requests);
        }
    }
}

/// The exchange that moves most spread pods, at most so many. Plain ones of two sizes at most are weighed against them.
fn find(from: &Node, to: &Node, each: &Amounts, most: usize, effort: &mut usize) -> Option<Exchange> {
    let sizes: Vec<(&Amounts, i64)> = to.plain.iter().map(|(size, pods)| (size, count(pods.len()))).collect();
    for spread in (1..=count(most)).rev() {
        let moved = |at: usize| each[at] * spread;
        let low: Amounts = (0..each.len()).map(|at| moved(at) - to.room[at]).collect();
        let high: Amounts = (0..each.len()).map(|at| moved(at) + from.room[at]).collect();
        for (one, (size, there)) in sizes.iter().enumerate() {
            for many in 0..=*there {
                let low: Amounts = low.iter().zip(*size).map(|(low, size)| low - size * many).collect();
                let high: Amounts = high.iter().zip(*size).map(|(high, size)| high - size * many).collect();
                if high.iter().any(|high| *high < 0) {
                    break;
                }
                for (other, there) in &sizes[one + 1..] {
                    *effort = effort.checked_sub(1)?;
                    if let Some(more) = times(other, *there, &low, &high) {
                        let plain = vec![((*size).clone(), many), ((*other).clone(), more)];
                        return Some(Exchange { spread, plain });
                    }
                }
                if low.iter().all(|low| *low <= 0) {
                    return Some(Exchange { spread, plain: vec![((*size).clone(), many)] });
                }
            }
        }
    }
    None
}

/// How often a size must be taken, at most so often, to come between two amounts of each resource; nothing when it cannot.
fn times(size: &Amounts, most: i64, low: &Amounts, high: &Amounts) -> Option<i64> {
    let (mut least, mut most) = (0, most);
    for ((size, low), high) in size.iter().zip(low).zip(high) {
        if *size > 0 {
            least = least.max((low + size - 1).div_euclid(*size));
            most = most.min(high.div_euclid(*size));
        } else if *low > 0 || *high < 0 {
            return None;
        }
    }
    (least <= most).then_some(least)
}

fn carry_out(from: &mut Node, to: &mut Node, each: &Amounts, exchange: &Exchange) {
    let mut shift = |size: &Amounts, many: i64| {
        for (at, size) in size.iter().enumerate() {
            from.room[at] += size * many;
            to.room[at] -= size * many;
        }
    };
    shift(each, exchange.spread);
    exchange.plain.iter().for_each(|(size, many)| shift(size, -many));
    to.spread.extend(take(&mut from.spread, exchange.spread));
    for (size, many) in &exchange.plain {
        let moved = take(to.plain.entry(size.clone()).or_default(), *many);
        from.plain.entry(size.clone()).or_default().extend(moved);
    }
}

/// Takes the last pods of a list.
fn take(pods: &mut Vec<Arc<Pod>>, many: i64) -> Vec<Arc<Pod>> {
    pods.split_off(pods.len().saturating_sub(usize::try_from(many).unwrap_or(0)))
}

fn count(many: usize) -> i64 {
    i64::try_from(many).unwrap_or(i64::MAX)
}
