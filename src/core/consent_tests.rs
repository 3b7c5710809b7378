//! What an annotation says about findings, whoever reads it.

use super::*;

fn orphan(n: u32) -> Finding {
    Finding::OrphanMachine(format!("sim://{n}").into())
}

#[test]
fn an_annotation_says_the_same_to_whoever_reads_it_first() {
    let (one, two, three) = (orphan(1), orphan(2), orphan(3));
    let said = format!("approve {},{} dismiss {}", id(&one), id(&two), id(&three));
    let mut consent = Consent::default();
    consent.hear(Some(&said));
    // The first has gone, and another has come: what was said of the others holds.
    let decided = [&two, &three, &orphan(4)].map(|finding| consent.about(finding));
    assert_eq!(decided, [Some(Decision::Approve), Some(Decision::Dismiss), None]);
    assert_eq!(consent.news([&two, &three].into_iter()), [(Decision::Approve, 1), (Decision::Dismiss, 1)]);
    assert!(consent.news([&two, &three].into_iter()).is_empty(), "once");
    consent.hear(None);
    assert_eq!(consent.about(&two), None, "it was taken back");
}

#[test]
fn what_is_asked_repeats_what_was_decided() {
    let (one, two, three) = (orphan(1), orphan(2), orphan(3));
    let mut consent = Consent::default();
    consent.hear(Some(&format!("dismiss {}", id(&one))));
    let all = [&one, &two, &three];
    let question = consent.question(&[&two, &three].into(), all.into_iter());
    assert_eq!(question.approve, format!("approve {},{} dismiss {}", id(&two), id(&three), id(&one)));
    assert_eq!(question.dismiss, format!("dismiss {},{},{}", id(&two), id(&three), id(&one)));
    assert_eq!(question.about, all.map(|finding| (id(finding), finding.to_string())).into());
    // A look that does not show what was dismissed takes nothing back.
    let question = consent.question(&[&two].into(), [&two].into_iter());
    assert_eq!(question.approve, format!("approve {} dismiss {}", id(&two), id(&one)));
    assert_eq!(question.dismiss, format!("dismiss {},{}", id(&two), id(&one)));
    assert_eq!(consent.misunderstood(), None);
}

#[test]
fn a_dismissal_is_repeated_until_what_it_is_about_is_gone_for_good() {
    let patience = Duration::from_mins(5);
    let (one, two, three) = (orphan(1), orphan(2), orphan(3));
    let mut consent = Consent::default();
    consent.hear(Some(&format!("dismiss {},{}", id(&one), id(&two))));
    for (minute, found, repeats) in [
        (0, vec![&one, &two, &three], true),
        (2, vec![&two, &three], true),
        (6, vec![&two, &three], true),
        (7, vec![&two, &three], false),
    ] {
        consent.forget(found.iter().copied(), Duration::from_mins(minute), patience);
        let question = consent.question(&[&three].into(), found.into_iter());
        for words in [question.approve, question.dismiss] {
            assert!(words.contains(&id(&two)), "it stands: {words}");
            assert_eq!(words.contains(&id(&one)), repeats, "at minute {minute}: {words}");
        }
    }
    assert_eq!(consent.about(&one), Some(Decision::Dismiss), "as long as the annotation says so, were it found again");
}

#[test]
fn no_two_of_a_hundred_thousand_findings_have_one_id() {
    let ids: BTreeSet<String> = (0..100_000).map(|n| id(&orphan(n))).collect();
    assert_eq!(ids.len(), 100_000);
    assert!(ids.iter().all(|id| id.len() == 12));
}

#[test]
fn a_decision_is_not_passed_on_to_a_namesake() {
    let ids = ["a", "b"].map(|uid| {
        let (lost, left) =
            (Finding::LostMachine("one".into(), uid.into()), Finding::LeftNode("one".into(), uid.into()));
        (id(&lost), id(&left))
    });
    assert!(ids[0].0 != ids[1].0 && ids[0].1 != ids[1].1, "{ids:?}");
}

#[test]
fn what_is_no_decision_decides_nothing() {
    let one = orphan(1);
    let typos = [
        ("yes", "\"yes\" is neither approve nor dismiss"),
        ("approve", "there are no IDs behind approve"),
        ("", "it names no finding"),
        ("approve ,", "it names no finding"),
        (&format!("approve {} all", id(&one)), "\"all\" is neither"),
        (&format!("approve {}, 0123456789ab", id(&one)), "\"0123456789ab\" is neither"),
        (&format!("approve {};0123456789ab", id(&one)), "is no ID"),
        (&format!("approve {}", id(&one).to_uppercase()), "is no ID"),
        (&format!("approve {}", "f".repeat(4000)), "fff\" is no ID"),
    ];
    for (said, why) in typos {
        let mut consent = Consent::default();
        consent.hear(Some(said));
        assert_eq!(consent.about(&one), None, "{said}");
        let told = consent.unread().unwrap();
        assert!(told.contains(why) && told.len() < 300, "{told}");
    }
    let mut consent = Consent::default();
    consent.hear(Some(&format!("dismiss {0} approve {0}", id(&one))));
    assert_eq!(consent.about(&one), Some(Decision::Dismiss), "who says both means neither");
}

#[test]
fn what_a_person_was_asked_about_is_held_until_it_is_decided_or_no_more() {
    let patience = Duration::from_mins(5);
    let (one, two, three) = (orphan(1), orphan(2), orphan(3));
    let held = |consent: &Consent| [&one, &two, &three].map(|finding| consent.is_held(finding));
    let mut consent = Consent::default();
    consent.hold([&one, &two]);
    assert_eq!(held(&consent), [true, true, false]);
    consent.hear(Some(&format!("dismiss {}", id(&one))));
    assert_eq!(held(&consent), [false, true, false], "it was decided");
    let mut next = Consent::default();
    next.resume(consent.held().cloned().collect());
    next.hear(None);
    assert_eq!(held(&next), [true, true, false], "whoever acts next goes on with it, were the decision taken back");
    // A look or two without it do not make it go away.
    for (minute, found, expected) in [
        (10, vec![&one], true),
        (14, vec![&one], true),
        (16, vec![&one, &two], true),
        (20, vec![&one], true),
        (24, vec![&one], true),
        (25, vec![&one], false),
        (26, vec![&one, &two], false),
    ] {
        next.forget(found.into_iter(), Duration::from_mins(minute), patience);
        assert_eq!(held(&next), [true, expected, false], "at minute {minute}");
    }
}

#[test]
fn what_was_said_stays_in_force_until_the_annotation_says_something_else_or_is_gone() {
    let (one, two) = (orphan(1), orphan(2));
    let mut consent = Consent::default();
    let said = format!("dismiss {}", id(&one));
    consent.hear(Some(&said));
    assert_eq!(consent.news([&one].into_iter()), [(Decision::Dismiss, 1)]);
    consent.resume([id(&two)].into());
    consent.hear(Some(&format!("{said} {}", id(&two))));
    assert_eq!((consent.about(&one), consent.is_held(&two)), (Some(Decision::Dismiss), true), "a comma is missing");
    assert_eq!((consent.describe(), consent.unread().is_some()), (Some(&*said), true));
    consent.hear(Some(&said));
    assert_eq!((consent.about(&one), consent.is_held(&two)), (Some(Decision::Dismiss), true));
    assert!(consent.unread().is_none() && consent.news([&one].into_iter()).is_empty(), "it is no news");
    consent.hear(Some("no"));
    consent.hear(None);
    assert_eq!((consent.about(&one), consent.unread()), (None, None), "it was taken back");
}
