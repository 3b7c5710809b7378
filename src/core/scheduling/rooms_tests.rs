//! The index answers as a walk over all candidates would.

use proptest::prelude::*;

use super::*;

fn naive(all: &[(u32, Vec<i64>)], from: usize, need: &[i64], kinds: &[u32], gone: &[usize]) -> Option<usize> {
    (from..all.len()).find(|at| {
        let (kind, free) = &all[*at];
        kinds.contains(kind)
            && !gone.contains(at)
            && need.iter().zip(free).all(|(need, free)| *need <= 0 || need <= free)
    })
}

proptest! {
    #[test]
    fn finds_what_a_walk_finds(
        start in prop::collection::vec((0_u32..3, prop::collection::vec(-2_i64..9, 2)), 1..300),
        changes in prop::collection::vec((0_usize..300, 0_u32..3, prop::collection::vec(-2_i64..9, 2)), 0..40),
        asked in prop::collection::vec((0_usize..300, prop::collection::vec(-1_i64..9, 2), 0_u32..3), 1..40),
        gone in prop::collection::vec(0_usize..300, 0..60),
    ) {
        let kind = |n: u32| Kind { taints: n, profile: ProfileId(n), named: true };
        let mut rooms = Rooms::new(2);
        // Kinds are numbered in the order in which they come.
        let mut all: Vec<(u32, Vec<i64>)> = (0..3).map(|n| (n, vec![-1, -1])).collect();
        all.extend(start);
        for (n, free) in &all {
            rooms.push(Some(kind(*n)), free);
        }
        for (at, n, free) in changes.into_iter().filter(|(at, ..)| *at < all.len()).collect::<Vec<_>>() {
            rooms.set_kind(at, kind(n));
            rooms.set_free(at, &free);
            all[at] = (n, free);
        }
        let mut marks = Marks::default();
        for at in &gone {
            marks.set(*at);
        }
        for (from, need, without) in asked {
            let kinds: Vec<u32> = (0..3).filter(|n| *n != without).collect();
            let found = rooms.next(from, Some(&need), &kinds, [&marks, &Marks::default()]);
            prop_assert_eq!(found, naive(&all, from, &need, &kinds, &gone));
        }
    }
}
