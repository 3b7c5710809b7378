//! A solve that follows a script as far as the rules allow.

use rustc_hash::FxHashMap;

use crate::core::ids::PodUid;
use crate::core::scheduling::classes::{Class, Variant};
use crate::core::scheduling::company::Party;
use crate::core::scheduling::plan::Plan;
use crate::core::scheduling::shelf::add;
use crate::core::scheduling::solve::Run;
use crate::core::scheduling::world::World;

/// What pods may give up to be with their group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Yields {
    /// None of their wishes.
    Nothing,
    /// Whatever they can do without.
    Wishes,
}

impl Yields {
    fn variants(self, class: &Class) -> impl Iterator<Item = &Variant> {
        let all = if self == Self::Wishes { class.variants.len() } else { class.with_all_wishes().count() };
        class.variants[..all].iter()
    }
}

/// Solves with a new node for each group of pods; pods that may not go where their group goes are placed as all others are.
pub(super) fn along<'p>(world: World<'p>, groups: &[Vec<PodUid>], yields: Yields) -> (Plan, World<'p>) {
    let mut run = Run::new(world);
    let numbers: FxHashMap<PodUid, usize> =
        run.world.pods.iter().enumerate().map(|(at, pod)| (pod.uid.clone(), at)).collect();
    let mut placed = vec![false; run.world.pods.len()];
    for group in groups {
        let pods: Vec<usize> = group.iter().filter_map(|uid| numbers.get(uid).copied()).collect();
        for pod in run.open_for(&pods, yields) {
            placed[pod] = true;
        }
    }
    let mut waiting = run.in_order();
    waiting.retain(|pod| !placed[*pod]);
    let left = run.place_all(waiting);
    (run.finish(&left), run.world)
}

impl Run<'_> {
    /// Opens a node that is meant for these pods and no others; says which of them it took.
    fn open_for(&mut self, pods: &[usize], yields: Yields) -> Vec<usize> {
        let mut room = self.world.zero();
        for pod in pods {
            add(&mut room, &self.world.class_at(*pod).requests.clone());
        }
        let party = Party::of_room(room);
        let mut taken = Vec::new();
        let mut rest = pods.iter().copied();
        let at = self.drafts.len();
        for pod in rest.by_ref() {
            let opened = self.moving(pod, |run, class| {
                yields.variants(class).any(|variant| {
                    run.wants(class, variant).is_some_and(|wants| run.on_new(pod, class, variant, &wants, Some(&party)))
                })
            });
            if opened {
                taken.push(pod);
                break;
            }
        }
        for pod in rest {
            let joined = self.moving(pod, |run, class| {
                yields.variants(class).any(|variant| {
                    if run.crowds(class, at) || run.host_allows(class, variant, run.host_of_draft(at)).is_err() {
                        return false;
                    }
                    let Some(wants) = run.wants(class, variant) else { return false };
                    let Ok((profile, types)) = run.try_draft(at, class, variant, &wants, true) else { return false };
                    run.put_on_draft(pod, at, class, profile, types);
                    true
                })
            });
            if joined {
                taken.push(pod);
            }
        }
        taken
    }
}
