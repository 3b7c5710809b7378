//! Packing: a few of the new nodes of a plan at a time are given up, and their pods are packed again, onto whatever nodes are cheapest.
//!
//! What pods of a domain there are stays as it is, and so does the turn of each. Pods to which it matters with whom they share a node, others than their
//! like, stay where they are; their node may get another size and other company.

use std::collections::{BTreeMap, BTreeSet};

use super::beam::{Bought, Load, cheapest};
use super::nodes::{Node, Nodes};
use crate::core::scheduling::bound::Effort;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::shelf::Amounts;
use crate::core::scheduling::world::World;

/// So many nodes are given up together at most.
const WINDOW: usize = 10;

/// What it takes to sort a node by its value, in units of effort.
const SORTING: usize = 32;

/// A cheaper plan with the same pods in each domain; nothing when none is found before the effort is spent.
pub(super) fn packed(world: &mut World<'_>, plan: &Plan, effort: &Effort) -> Option<Plan> {
    let mut nodes = Nodes::of(world, plan);
    let zero = world.zero();
    let mut has_changed = false;
    let mut tried: BTreeSet<Vec<usize>> = BTreeSet::new();
    while let Some(window) = nodes.windows().into_iter().find(|window| !tried.contains(window)) {
        effort.spend((nodes.all.len() + nodes.kinds.len()) * SORTING);
        if effort.is_spent() {
            break;
        }
        has_changed |= nodes.repack(&window, &zero, effort);
        tried.insert(window);
    }
    if has_changed { nodes.write(world, plan) } else { None }
}

impl Nodes {
    /// Nodes to be given up together: of those that could take each other's pods the ones that are worst value for money first.
    fn windows(&self) -> Vec<Vec<usize>> {
        let group = self.groups();
        let mut by_group: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
        for (at, node) in self.all.iter().enumerate().filter_map(|(at, node)| Some((at, node.as_ref()?))) {
            let held: f64 = node.pods.iter().map(|(kind, pods)| self.kinds[*kind].worth * pods.len() as f64).sum();
            by_group.entry(group[node.site]).or_default().push((node.price - held, at));
        }
        let mut windows = Vec::new();
        for mut group in by_group.into_values() {
            group.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mut from = 0;
            loop {
                let mut window: Vec<usize> = group.iter().skip(from).take(WINDOW).map(|(_, at)| *at).collect();
                window.sort_unstable();
                windows.push(window);
                from += WINDOW / 2;
                if from + WINDOW / 2 >= group.len() {
                    break;
                }
            }
        }
        windows
    }

    /// For each site the first of those that it shares kinds of pods with, directly or by way of others.
    fn groups(&self) -> Vec<usize> {
        let mut group: Vec<usize> = (0..self.sites.len()).collect();
        for kind in &self.kinds {
            let Some(least) = kind.sites.iter().map(|site| group[*site]).min() else { continue };
            let joined: Vec<usize> = kind.sites.iter().map(|site| group[*site]).collect();
            group.iter_mut().filter(|known| joined.contains(known)).for_each(|known| *known = least);
        }
        group
    }

    /// Packs the pods of some nodes again; says whether that made them cheaper.
    fn repack(&mut self, window: &[usize], zero: &Amounts, effort: &Effort) -> bool {
        let old: Vec<Node> = window.iter().filter_map(|at| self.all[*at].clone()).collect();
        let mut waiting: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (kind, pods) in old.iter().flat_map(|node| &node.pods) {
            waiting.entry(*kind).or_default().extend(pods);
        }
        let count = |pods: &Vec<usize>| u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let mut kinds: Vec<_> = waiting.iter().map(|(kind, pods)| (*kind, &self.kinds[*kind], count(pods))).collect();
        kinds.sort_by(|a, b| {
            a.1.sites.len().cmp(&b.1.sites.len()).then_with(|| b.1.worth.total_cmp(&a.1.worth)).then(a.0.cmp(&b.0))
        });
        let seeds: Vec<&Node> = old.iter().filter(|node| !node.fixed.is_empty()).collect();
        let order: Vec<usize> = kinds.iter().map(|(kind, ..)| *kind).collect();
        let load = Load { sites: &self.sites, kinds, seeds, zero, effort };
        let Some(found) = cheapest(&load, old.iter().map(|node| node.price).sum()) else { return false };
        let new: Vec<Node> =
            found.iter().map(|bought| filled(bought, &load.seeds, &order, &mut waiting, zero)).collect();
        for at in window {
            self.all[*at] = None;
        }
        self.all.extend(new.into_iter().map(Some));
        true
    }
}

/// A node that was bought, with pods of those that wait.
fn filled(
    bought: &Bought,
    seeds: &[&Node],
    order: &[usize],
    waiting: &mut BTreeMap<usize, Vec<usize>>,
    zero: &Amounts,
) -> Node {
    let seed = bought.seed.map(|seed| seeds[seed]);
    let mut node = Node::bought(bought.site, bought.price, seed, zero.clone());
    for (kind, many) in order.iter().zip(&bought.taken).filter(|(_, many)| **many > 0) {
        let Some(there) = waiting.get_mut(kind) else { continue };
        let from = there.len().saturating_sub(*many as usize);
        node.pods.insert(*kind, there.split_off(from));
    }
    node
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
