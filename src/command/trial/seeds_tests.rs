//! What a seed has broken once stays broken, whatever comes of it the next time.

use super::*;

fn broke(what: &[&str]) -> Told {
    let one = |what: &&str| Violation {
        invariant: Invariant::OneMachine,
        at: Duration::from_secs(1),
        objects: vec!["claim".into()],
        what: (*what).to_owned(),
    };
    Told { violations: what.iter().map(one).collect(), ..Told::default() }
}

/// What is told of seed 7, which is played twice.
fn told(first: Result<Told>, again: impl Fn() -> Result<Told>) -> Vec<(Invariant, String)> {
    let verdict = judge([(7, first)].into(), |_| again());
    verdict.violations.into_iter().map(|broken| (broken.invariant, broken.what)).collect()
}

#[test]
fn what_does_not_happen_again_has_happened_and_its_seed_is_not_one_history() {
    let first = || Ok(broke(&["two machines"]));
    let one = (Invariant::OneMachine, "two machines".to_owned());
    assert_eq!(told(first(), first), std::slice::from_ref(&one), "it is the same again");
    let not_again = [
        (Ok(broke(&[])), "nothing"),
        (Ok(broke(&["three machines"])), "one-machine-per-nodeclaim at 00:00:01.000 (three machines)"),
        (Err("no runtime"), "one-seed-one-history at 00:00:00.000 (seed 7 cannot be played: no runtime)"),
    ];
    for (again, said) in not_again {
        let said = format!(
            "seed 7 is not one history: the first time it broke one-machine-per-nodeclaim at 00:00:01.000 (two machines), the second time {said}"
        );
        let told = told(first(), || again.clone().map_err(anyhow::Error::msg));
        assert_eq!(told, [one.clone(), (Invariant::OneHistory, said)]);
    }
}

#[test]
fn a_seed_that_cannot_be_played_fails_by_itself() {
    let all = [(6, Err(anyhow!("no runtime"))), (7, Ok(broke(&["two machines"]))), (8, Ok(broke(&[])))];
    let verdict = judge(all.into(), |_| Ok(broke(&["two machines"])));
    let told: Vec<_> = verdict.violations.iter().map(|broken| (broken.seed, broken.what.as_str())).collect();
    assert_eq!(told, [(6, "seed 6 cannot be played: no runtime"), (7, "two machines")]);
    assert_eq!(verdict.seeds, 2);
}

#[test]
fn a_kind_that_never_strikes_is_named_once_there_were_enough_days() {
    let struck = |missing: &str| -> BTreeMap<&'static str, u64> {
        Profile::Mixed.kinds().into_iter().map(|kind| (kind.as_str(), 1)).filter(|(kind, _)| *kind != missing).collect()
    };
    let trial =
        |last| Trial { profile: Profile::Mixed, seeds: 1..=last, settings: actors::Settings::default(), threads: 1 };
    assert_eq!(never_struck(&trial(1000), &struck("quota")), ["quota"]);
    assert_eq!(never_struck(&trial(1000), &struck("none")), [""; 0], "amnesia strikes by name only");
    assert_eq!(never_struck(&trial(999), &struck("quota")), [""; 0], "they were few");
    let verdict = Verdict { never_struck: vec!["quota"], ..Verdict::default() };
    assert!(
        !verdict.is_well() && verdict.text().contains("these faults never struck, which says nothing of them: quota")
    );
    assert!(verdict.json().unwrap().contains("\"neverStruck\""));
}

#[test]
fn what_was_broken_is_told_though_no_shorter_history_can_be_found() {
    let mut verdict = judge([(7, Ok(broke(&["two machines"])))].into(), |_| Ok(broke(&["two machines"])));
    let why =
        guarded(|| -> Result<Shortest> { panic!("a defect of the simulator") }).map_err(|error| error.to_string());
    verdict.shortest = Some(why);
    for told in [verdict.text(), verdict.json().unwrap()] {
        assert!(told.contains("two machines") && told.contains("the simulator panicked"), "{told}");
    }
}
