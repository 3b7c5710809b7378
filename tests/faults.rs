//! Days of trouble: whatever goes wrong, joiner keeps what it promises; and when a protection is switched off, that is noticed.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use joiner::actors::{Protections, Settings};
use joiner::command::{History, Trial, Verdict, shrink, trial};
use joiner::sim::faults::{Fault, Plan, Profile};
use joiner::sim::invariants::Invariant;

/// Settings of production, but for protections.
fn settings(protections: Protections) -> Settings {
    Settings { protections, ..Settings::default() }
}

fn play(profile: Profile, seeds: RangeInclusive<u64>, protections: Protections) -> Verdict {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    trial(&Trial { profile, seeds, settings: settings(protections), threads }, &|_, _| {})
}

#[test]
fn days_of_mixed_trouble_break_no_promise() {
    let verdict = play(Profile::Mixed, 1..=4, Protections::default());
    println!("{}", verdict.text());
    assert!(verdict.violations.is_empty(), "{}", verdict.text());
    assert!(verdict.simulated >= Duration::from_hours(4 * 24), "each is a whole day");
    assert!(verdict.faults.len() > 25, "most kinds of fault strike: {:?}", verdict.faults);
    assert!(verdict.nodes_peak >= 50);
}

#[test]
fn a_day_in_which_nothing_goes_wrong_breaks_no_promise_and_needs_nobody() {
    let seed = small_days().next().expect("there is one");
    let verdict = play(Profile::None, seed..=seed, Protections::default());
    assert!(verdict.is_well() && verdict.faults.is_empty(), "{}", verdict.text());
    assert_eq!(verdict.interventions, 0, "{}", verdict.text());
}

#[test]
fn one_seed_is_one_history() {
    // The second holds a lease.
    for seed in [3, 8] {
        let history = History::draw(seed, &Profile::Mixed).expect("a day is drawn");
        assert_eq!(history.lease, seed == 8);
        let journal = || history.play(&settings(Protections::default()), true).expect("it is played").journal.lines();
        let (one, other) = (journal(), journal());
        assert!(one.len() > 1_000, "{} lines", one.len());
        assert_eq!(one, other);
    }
}

/// The first seeds whose days are small: what is shown here does not need many nodes.
fn small_days() -> impl Iterator<Item = u64> {
    (1..).filter(|seed| History::draw(*seed, &Profile::None).expect("a day is drawn").day.peak < 75).take(6)
}

/// Without a protection, the invariant that it serves is broken within some seeds; with it, in the same histories, it is not.
fn is_needed(without: Protections, invariant: Invariant, trouble: &'static [(Fault, f64)]) {
    for seed in small_days() {
        let bare = play(Profile::These(trouble.into()), seed..=seed, without);
        if bare.violations.iter().any(|broken| broken.invariant == invariant) {
            let guarded = play(Profile::These(trouble.into()), seed..=seed, Protections::default());
            assert!(guarded.violations.is_empty(), "{}", guarded.text());
            return;
        }
    }
    assert_eq!(None, Some(invariant), "it is broken without a protection: {without:?}");
}

#[test]
fn reboots_amid_trouble_break_no_promise() {
    const TROUBLE: &[(Fault, f64)] = &[
        (Fault::UserRebootsNode, 60.0),
        (Fault::JoinerKilled, 10.0),
        (Fault::CloudError, 40.0),
        (Fault::ApiConflict, 40.0),
        (Fault::UserDeletesClaim, 20.0),
        (Fault::BudgetBlocks, 10.0),
    ];
    let seed = small_days().next().expect("there is one");
    let verdict = play(Profile::These(TROUBLE.into()), seed..=seed, Protections::default());
    assert!(verdict.violations.is_empty(), "{}", verdict.text());
    let missed: Vec<_> = TROUBLE.iter().filter(|(fault, _)| !verdict.faults.contains_key(fault.as_str())).collect();
    assert!(missed.is_empty(), "{missed:?} did not strike: {:?}", verdict.faults);
    let reboots = verdict.faults.get(Fault::UserRebootsNode.as_str()).copied().unwrap_or_default();
    assert!(reboots > 20, "{}", verdict.text());
}

#[test]
fn without_its_token_a_launch_makes_two_machines() {
    let without = Protections { token: false, ..Protections::default() };
    is_needed(without, Invariant::OneMachine, &[(Fault::LaunchLostAfter, 60.0)]);
}

#[test]
fn without_evidence_a_stale_list_costs_machines() {
    let without = Protections { evidence: false, ..Protections::default() };
    is_needed(
        without,
        Invariant::NoClaimedMachineDeleted,
        &[(Fault::ApiStaleList, 400.0), (Fault::UserDeletesClaim, 200.0)],
    );
}

#[test]
fn without_its_breaker_the_auditor_empties_a_cluster_whose_nodeclaims_are_not_shown() {
    let without = Protections { breaker: false, ..Protections::default() };
    is_needed(without, Invariant::NoClaimedMachineDeleted, &[(Fault::ApiAmnesia, 6.0)]);
}

#[test]
fn without_a_fresh_list_a_stale_watch_costs_machines() {
    let without = Protections { fresh_list: false, ..Protections::default() };
    is_needed(
        without,
        Invariant::NoClaimedMachineDeleted,
        &[(Fault::WatchStale, 150.0), (Fault::UserDeletesClaim, 200.0)],
    );
}

#[test]
fn without_a_fresh_list_a_stale_watch_costs_pods_their_machine() {
    let without = Protections { fresh_list: false, ..Protections::default() };
    is_needed(without, Invariant::PodsFirst, &[(Fault::WatchStale, 300.0), (Fault::UserDeletesClaim, 300.0)]);
}

#[test]
fn without_their_time_pods_go_with_an_orphaned_machine() {
    let without = Protections { evacuation: false, ..Protections::default() };
    is_needed(without, Invariant::PodsFirst, &[(Fault::UserStripsFinalizers, 60.0)]);
}

#[test]
fn without_asking_pods_are_taken_past_their_budgets() {
    let without = Protections { budgets: false, ..Protections::default() };
    is_needed(without, Invariant::BudgetsHold, &[(Fault::UserDeletesNode, 60.0), (Fault::BudgetBlocks, 20.0)]);
}

/// What a joiner whose protections are not all there has counted by itself, in the first small day in which it has counted anything.
fn counted(without: Protections, trouble: &'static [(Fault, f64)]) -> BTreeSet<Invariant> {
    let of = |seed| {
        let history = History::draw(seed, &Profile::These(trouble.into())).expect("a day is drawn");
        let told = history.play(&settings(without), false).expect("it is played");
        told.seen.into_iter().map(|broken| broken.promise).collect()
    };
    small_days().map(of).find(|counted: &BTreeSet<_>| !counted.is_empty()).unwrap_or_default()
}

#[test]
fn joiner_counts_by_itself_pods_that_are_taken_past_their_budgets() {
    let without = Protections { budgets: false, ..Protections::default() };
    let counted = counted(without, &[(Fault::UserDeletesClaim, 60.0), (Fault::BudgetBlocks, 20.0)]);
    assert_eq!(counted, [Invariant::BudgetsHold].into());
}

#[test]
fn joiner_counts_by_itself_finalizers_that_go_before_their_machines() {
    let without = Protections { confirmation: false, ..Protections::default() };
    let counted = counted(without, &[(Fault::DeleteSlow, 100.0), (Fault::UserDeletesClaim, 100.0)]);
    assert!(
        counted.contains(&Invariant::FinalizerLast) && counted.contains(&Invariant::NodeFinalizerLast),
        "{counted:?}"
    );
}

#[test]
fn without_waiting_for_volumes_machines_go_with_volumes_attached() {
    let without = Protections { detachment: false, ..Protections::default() };
    is_needed(without, Invariant::VolumesFirst, &[(Fault::AttachmentStuck, 200.0), (Fault::UserDeletesClaim, 200.0)]);
}

/// Somebody writes the provider ID of another machine into a NodeClaim, and deletes it; joiner has forgotten what it knew.
const BORROWED_IDS: &[(Fault, f64)] =
    &[(Fault::UserEditsProviderId, 300.0), (Fault::UserDeletesClaim, 300.0), (Fault::JoinerKilled, 300.0)];

#[test]
fn without_tokens_an_edited_provider_id_costs_somebody_elses_machine() {
    let without = Protections { ownership: false, ..Protections::default() };
    is_needed(without, Invariant::NoClaimedMachineDeleted, BORROWED_IDS);
}

#[test]
fn without_tokens_an_edited_provider_id_costs_somebody_elses_node() {
    let without = Protections { ownership: false, ..Protections::default() };
    is_needed(without, Invariant::NoServingNodeDeleted, BORROWED_IDS);
}

#[test]
fn without_mending_what_a_clock_has_left_nodeclaims_wait_for_hours() {
    let without = Protections { clock: false, ..Protections::default() };
    is_needed(
        without,
        Invariant::Settles,
        &[(Fault::ClockJumps, 120.0), (Fault::UserDeletesClaim, 300.0), (Fault::CloudError, 600.0)],
    );
}

#[test]
fn without_care_a_clock_that_jumps_ahead_expires_nodeclaims() {
    let without = Protections { clock: false, ..Protections::default() };
    is_needed(without, Invariant::NoServingClaimDeleted, &[(Fault::ClockJumps, 120.0)]);
}

#[test]
fn a_panic_that_nobody_intended_breaks_a_promise_though_the_actor_is_started_anew() {
    let seed = small_days().next().expect("there is one");
    let trouble = Profile::These(vec![(Fault::ActorPanics, 20.0)].into());
    let drawn = History::draw(seed, &trouble).expect("a day is drawn");
    let found = |candid: bool| {
        let history = History { candid, ..drawn.clone() };
        history.play(&settings(Protections::default()), true).expect("it is played")
    };
    assert_eq!(found(true).violations, [], "a panic on purpose is none");
    let told = found(false);
    assert!(!told.violations.is_empty(), "none is noticed");
    for broken in &told.violations {
        assert_eq!(broken.invariant, Invariant::NoPanic, "{}", broken.what);
        assert!(broken.what.contains("saboteur.rs:") && broken.what.contains(": a defect of "), "{}", broken.what);
        let trace = told.journal.trace(&broken.objects, broken.at, 40);
        assert!(trace.iter().any(|line| line.contains("FAULT actor-panics")), "{trace:?}");
        assert!(trace.last().is_some_and(|line| line.contains("PANIC: a defect of ")), "{trace:?}");
    }
}

/// Actors of NodeClaims that fail now and then.
const PANICS: &[(Fault, f64)] = &[(Fault::ActorPanics, 100.0)];

#[test]
fn without_revival_nodeclaims_wait_and_nobody_says_what_for() {
    is_needed(Protections { revival: false, ..Protections::default() }, Invariant::WaitsHaveReasons, PANICS);
}

#[test]
fn without_revival_machines_are_left() {
    is_needed(Protections { revival: false, ..Protections::default() }, Invariant::NothingLeft, PANICS);
}

#[test]
fn without_revival_joiner_remembers_what_is_left() {
    is_needed(Protections { revival: false, ..Protections::default() }, Invariant::MemoryReturns, PANICS);
}

#[test]
fn without_supervision_pods_wait_though_they_could_run() {
    let without = Protections { supervision: false, ..Protections::default() };
    is_needed(without, Invariant::PodsRun, &[(Fault::ActorPanics, 3.0)]);
}

#[test]
fn without_supervision_machines_stay_that_belong_to_nobody() {
    let without = Protections { supervision: false, ..Protections::default() };
    is_needed(without, Invariant::NoOrphan, &[(Fault::ActorPanics, 20.0), (Fault::UserStripsFinalizers, 60.0)]);
}

#[test]
fn without_confirmation_nodes_go_before_their_machines() {
    let without = Protections { confirmation: false, ..Protections::default() };
    is_needed(without, Invariant::NodeFinalizerLast, &[]);
}

#[test]
fn a_lease_that_is_to_be_lost_is_held() {
    for fault in [Fault::LeaseLost, Fault::LeaseLostMidWrite] {
        let seed = small_days().find(|seed| !seed.is_multiple_of(8)).expect("there is one");
        let verdict = play(Profile::These(vec![(fault, 60.0)].into()), seed..=seed, Protections::default());
        assert!(verdict.violations.is_empty() && verdict.faults.contains_key(fault.as_str()), "{}", verdict.text());
    }
}

#[test]
fn a_call_that_writes_twice_asks_for_the_lease_twice() {
    // Where kube-scheduler is shown a pod again, and the answer to the first of two writes takes longer than the lease.
    const TROUBLE: &[(Fault, f64)] =
        &[(Fault::LeaseLost, 100.0), (Fault::LeaseLostMidWrite, 100.0), (Fault::ApiSlow, 300.0)];
    let verdict = play(Profile::These(TROUBLE.into()), 1..=1, Protections::default());
    assert!(verdict.violations.is_empty(), "{}", verdict.text());
}

#[test]
fn without_minding_the_lease_joiner_writes_while_another_holds_it() {
    let without = Protections { lease: false, ..Protections::default() };
    is_needed(without, Invariant::OnlyLeaderWrites, &[(Fault::LeaseLost, 60.0)]);
}

#[test]
fn without_confirmation_finalizers_go_before_their_machines() {
    let without = Protections { confirmation: false, ..Protections::default() };
    is_needed(without, Invariant::FinalizerLast, &[]);
}

#[test]
fn without_disbelief_finalizers_go_when_the_cloud_denies_a_machine_that_runs() {
    let without = Protections { disbelief: false, ..Protections::default() };
    is_needed(
        without,
        Invariant::FinalizerLast,
        &[(Fault::DeleteDenied, 200.0), (Fault::MachineDenied, 200.0), (Fault::UserDeletesClaim, 200.0)],
    );
}

#[test]
fn an_actor_that_stands_still_has_joiner_started_anew_and_breaks_no_promise() {
    let seed = small_days().next().expect("there is one");
    let history =
        History::draw(seed, &Profile::These(vec![(Fault::ActorStalls, 100.0)].into())).expect("a day is drawn");
    let told = history.play(&settings(Protections::default()), false).expect("it is played");
    assert!(told.violations.is_empty(), "{:?}", told.violations);
    assert!(told.lives > 1, "the liveness probe has failed");
}

#[test]
fn a_history_that_fails_is_cut_down_to_what_it_takes() {
    let without = settings(Protections { token: false, ..Protections::default() });
    let trouble = [(Fault::LaunchLostAfter, 60.0), (Fault::MachineDies, 30.0), (Fault::ApiError, 30.0)];
    let trouble = Profile::These(trouble.to_vec().into());
    let failing = small_days().find_map(|seed| {
        let history = History::draw(seed, &trouble).expect("a day is drawn");
        let told = history.play(&without, false).expect("it is played");
        told.violations.iter().any(|broken| broken.invariant == Invariant::OneMachine).then_some(history)
    });
    let failing = failing.expect("one of them fails");
    let Plan(before) = &failing.plan;
    let shortest = shrink(&failing, Invariant::OneMachine, &without).expect("it is played again");
    let Plan(after) = &shortest.history.plan;
    assert!(after.len() < before.len() && after.len() <= 3, "{} of {} faults are left", after.len(), before.len());
    assert!(after.iter().any(|mishap| mishap.fault == Fault::LaunchLostAfter));
    assert!(shortest.told.violations.iter().any(|broken| broken.invariant == Invariant::OneMachine));
}
