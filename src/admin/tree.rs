//! The tree of live actors in the order in which it is shown.

use std::collections::{BTreeMap, BTreeSet};

use crate::actors::runtime::Observation;

/// One line of the tree.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    /// The actor.
    pub(super) actor: Observation,
    /// How many supervisors stand above it.
    pub(super) depth: usize,
    /// How many actors it supervises itself.
    pub(super) children: usize,
}

/// Parents before their children; among siblings those without children first, so that a parent of ten thousand hides nobody; otherwise
/// in order of birth. With `root`, only that actor and what is below it. What is below an actor in `collapsed` is left out.
pub(super) fn ordered(outline: Vec<Observation>, root: Option<u64>, collapsed: &BTreeSet<u64>) -> Vec<Branch> {
    let alive: BTreeSet<u64> = outline.iter().map(|actor| actor.id).collect();
    let mut below: BTreeMap<Option<u64>, Vec<Observation>> = BTreeMap::new();
    for actor in outline {
        // For a moment, an actor can outlive its parent.
        let parent = actor.parent.filter(|parent| alive.contains(parent));
        below.entry(if Some(actor.id) == root { None } else { parent }).or_default().push(actor);
    }
    let children: BTreeMap<u64, usize> =
        below.iter().filter_map(|(parent, actors)| Some(((*parent)?, actors.len()))).collect();
    let count = |id: u64| children.get(&id).copied().unwrap_or_default();
    let mut stack: Vec<Branch> = Vec::new();
    let mut push = |stack: &mut Vec<Branch>, parent: Option<u64>, depth: usize| {
        let mut siblings = below.remove(&parent).unwrap_or_default();
        siblings.sort_by_key(|actor| (count(actor.id) > 0, actor.id));
        let branches = siblings.into_iter().rev();
        stack.extend(branches.map(|actor| Branch { depth, children: count(actor.id), actor }));
    };
    push(&mut stack, None, 0);
    if let Some(root) = root {
        stack.retain(|branch| branch.actor.id == root);
    }
    let mut lines = Vec::new();
    while let Some(branch) = stack.pop() {
        if !collapsed.contains(&branch.actor.id) {
            push(&mut stack, Some(branch.actor.id), branch.depth + 1);
        }
        lines.push(branch);
    }
    lines
}
