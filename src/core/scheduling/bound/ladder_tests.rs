//! The ladder against all combinations of whole pods.

use proptest::prelude::*;

use super::super::effort::Effort;
use super::super::knapsack::{Diligence, branched, cut};
use super::super::relax::{Bin, Want};

/// Cores in tenths and memory in GiB of a bin, and the same of some kinds of pods, with what each is worth and whether one fits at most.
type Question = ((u32, u32), Vec<(u32, u32, u32, bool)>);

fn question() -> impl Strategy<Value = Question> {
    ((10_u32..60, 4_u32..40), prop::collection::vec((1_u32..30, 1_u32..20, 1_u32..50, any::<bool>()), 1..5))
}

/// The most that whole pods in the room can be worth.
fn best(room: (i64, i64), pods: &[(u32, u32, u32, bool)]) -> f64 {
    let Some(((cpu, memory, worth, single), rest)) = pods.split_first() else { return 0.0 };
    let most = if *single { 1 } else { 60 };
    let many = (0..=most).map(|many| (many, room.0 - many * i64::from(*cpu), room.1 - many * i64::from(*memory)));
    many.take_while(|(_, cpu, memory)| *cpu >= 0 && *memory >= 0)
        .map(|(many, cpu, memory)| many as f64 * f64::from(*worth) + best((cpu, memory), rest))
        .fold(0.0, f64::max)
}

fn filled(((cpu, memory), pods): &Question, grains: &[f64], diligence: Diligence) -> (f64, f64) {
    let wants: Vec<Want> = pods
        .iter()
        .map(|(cpu, memory, ..)| Want { need: vec![f64::from(*cpu) / 60.0, f64::from(*memory) / 40.0], count: 9.0 })
        .collect();
    let fit = |(own, (pod_cpu, pod_memory, _, single)): (usize, &(u32, u32, u32, bool))| {
        let many = (cpu / pod_cpu).min(memory / pod_memory);
        (own, f64::from(if *single { many.min(1) } else { many }))
    };
    let takes = pods.iter().enumerate().map(fit).filter(|(_, many)| *many > 0.0).collect();
    let bin = Bin { price: 1.0, room: vec![f64::from(*cpu) / 60.0, f64::from(*memory) / 40.0], takes };
    let worth: Vec<f64> = pods.iter().map(|(_, _, worth, _)| f64::from(*worth)).collect();
    let effort = Effort::of(u64::MAX);
    let cut = cut(&bin, &wants, &worth, true, &effort);
    let filling = branched((&bin, &wants, grains), &worth, &cut, Vec::new(), diligence, &effort);
    (filling.amounts.iter().map(|(want, many)| worth[*want] * many).sum(), filling.at_most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_filling_is_worth_more_than_is_certain_however_early_the_search_ends(
        question in question(), patience in 0_usize..40, steps in 3_usize..100, exact in any::<bool>(),
    ) {
        let most = best((i64::from(question.0.0), i64::from(question.0.1)), &question.1);
        let grains = if exact { [1.0 / 60.0, 1.0 / 40.0] } else { [0.0, 0.0] };
        let (found, at_most) = filled(&question, &grains, Diligence { patience, steps });
        prop_assert!(found <= most + 1e-6 && most <= at_most + 1e-6, "{found} {most} {at_most}");
    }

    #[test]
    fn with_patience_the_best_filling_is_found_and_proved(question in question()) {
        let most = best((i64::from(question.0.0), i64::from(question.0.1)), &question.1);
        let (found, at_most) = filled(&question, &[1.0 / 60.0, 1.0 / 40.0], Diligence { patience: 100_000, steps: 100 });
        prop_assert!((found - most).abs() < 1e-6 && (at_most - most).abs() < 1e-6, "{found} {most} {at_most}");
    }
}

#[test]
fn steps_prove_without_a_branch_what_cutting_leaves_open() {
    // One of 2.2 cores and one of 1.5 are the most that fit into four; a fifth of another would be worth 2.
    let question = ((40, 39), vec![(15, 1, 10, false), (22, 1, 15, false)]);
    let (_, at_most) = filled(&question, &[1.0 / 60.0, 1.0 / 40.0], Diligence { patience: 0, steps: 100 });
    assert!((at_most - 25.0).abs() < 1e-6, "{at_most}");
}
