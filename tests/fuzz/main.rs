//! No input makes joiner panic: manifests that were changed at random go the whole way of `joiner plan` and `joiner explain`.
//!
//! Part of `cargo test` with a fixed seed. For a longer look, with a seed of its own that is printed when something is found:
//!
//! ```sh
//! JOINER_FUZZ_SEED=random PROPTEST_CASES=100000 cargo test --release --test fuzz
//! ```
//!
//! What is found is cut down to the fewest changes that still do it, and told with the seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jiff::Timestamp;
use joiner::clouds::catalog;
use joiner::cluster::convert::ShapeStore;
use joiner::core::scheduling::Settings;
use joiner::manifests::{Source, documents, gather};
use joiner::plan;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use serde_json::{Value, json};

/// One of each kind.
const EVERYTHING: &str = include_str!("everything.yaml");

/// More pods than this are planned by other tests; here they only take time.
const PODS: usize = 2_000;

/// All of them.
const FEATURES: plan::Features = plan::Features { node_overlay: true, capacity_buffer: true };

/// Scalars that have hurt somebody somewhere.
const NASTY: [&str; 34] = [
    "",
    " ",
    "0",
    "-0",
    "-1",
    "1",
    "3",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "1.5",
    "1e400",
    "NaN",
    "1.5.2Gi",
    "8Ei",
    "9223372036854775807Ei",
    "1n",
    "-5Gi",
    "true",
    "In",
    "NotIn",
    "Gt",
    "DoNotSchedule",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "karpenter.sh/nodepool",
    "general",
    "a/b/c",
    "ä\u{0}\u{202e}🦀",
    "2026-13-45T99:99:99Z",
    "-300000000000h",
];

/// A change of a document's tree.
#[derive(Clone, Debug)]
enum Change {
    /// Another text, or the number or truth value that it spells.
    Scalar(Index, bool),
    /// Nothing, an empty list, an empty map.
    Empty(u8),
    /// It is not there any more.
    Gone,
    /// What stands elsewhere stands here too.
    Copied(Index),
    /// Twice the same in a list.
    Twice,
    /// Very much of the same.
    Long,
}

/// A change of the text.
#[derive(Clone, Debug)]
enum Edit {
    Inserted(Index, &'static str),
    Cut(Index, usize),
    Repeated(Index, usize),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (any::<Index>(), any::<bool>()).prop_map(|(which, typed)| Change::Scalar(which, typed)),
        1 => (0..3_u8).prop_map(Change::Empty),
        2 => Just(Change::Gone),
        2 => any::<Index>().prop_map(Change::Copied),
        1 => Just(Change::Twice),
        1 => Just(Change::Long),
    ]
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let piece = proptest::sample::select(&NASTY[..]);
    prop_oneof![
        (any::<Index>(), piece).prop_map(|(at, piece)| Edit::Inserted(at, piece)),
        (any::<Index>(), 1..200_usize).prop_map(|(at, length)| Edit::Cut(at, length)),
        (any::<Index>(), 1..200_usize).prop_map(|(at, length)| Edit::Repeated(at, length)),
    ]
}

/// Pointers to all that is in a tree, itself included.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, inner)| (key.replace('~', "~0").replace('/', "~1"), inner)).collect()
        }
        Value::Array(list) => list.iter().enumerate().map(|(at, inner)| (at.to_string(), inner)).collect(),
        _ => Vec::new(),
    };
    for (key, inner) in inner {
        pointers(inner, &format!("{at}/{key}"), all);
    }
}

fn changed(mut all: Value, changes: &[(Index, Change)]) -> Value {
    for (at, change) in changes {
        let mut known = Vec::new();
        pointers(&all, "", &mut known);
        let at = at.get(&known).clone();
        let copy = match change {
            Change::Copied(from) => all.pointer(from.get(&known[..]).as_str()).cloned(),
            _ => None,
        };
        let (parent, last) = at.rsplit_once('/').map_or((None, String::new()), |(parent, last)| {
            (Some(parent.to_owned()), last.replace("~1", "/").replace("~0", "~"))
        });
        let Some(here) = all.pointer_mut(&at) else { continue };
        match change {
            Change::Scalar(which, typed) => {
                let text = *which.get(&NASTY);
                let read = serde_json::from_str(text).ok().filter(|_| *typed);
                *here = read.unwrap_or_else(|| json!(text));
            }
            Change::Empty(kind) => *here = [json!(null), json!([]), json!({})][usize::from(*kind)].clone(),
            Change::Copied(_) => *here = copy.unwrap_or_default(),
            Change::Long => *here = json!("x".repeat(5_000)),
            Change::Gone | Change::Twice => match parent.and_then(|parent| all.pointer_mut(&parent)) {
                Some(Value::Object(map)) if matches!(change, Change::Gone) => drop(map.remove(&last)),
                Some(Value::Array(list)) => {
                    let Ok(at) = last.parse::<usize>() else { continue };
                    if matches!(change, Change::Gone) {
                        list.remove(at);
                    } else {
                        list.push(list[at].clone());
                    }
                }
                _ => {}
            },
        }
    }
    all
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for edit in edits {
        let (Edit::Inserted(at, _) | Edit::Cut(at, _) | Edit::Repeated(at, _)) = edit;
        let at = at.index(letters.len() + 1);
        let reach = |length: usize| at..(at + length).min(letters.len());
        match edit {
            Edit::Inserted(_, piece) => drop(letters.splice(at..at, piece.chars()).collect::<Vec<_>>()),
            Edit::Cut(_, length) => drop(letters.drain(reach(*length)).collect::<Vec<_>>()),
            Edit::Repeated(_, length) => {
                let again = letters[reach(*length)].to_vec();
                drop(letters.splice(at..at, again).collect::<Vec<_>>());
            }
        }
    }
    letters.into_iter().collect()
}

/// The whole way: read, plan, check, tell in every form, explain.
fn plan_all(text: &str) {
    let shapes = ShapeStore::new();
    let gathered = gather(&[Source::Stdin], &mut || Ok(text.to_owned()), &shapes);
    for trouble in &gathered.troubles {
        assert!(!trouble.to_string().trim().is_empty(), "trouble without a word");
    }
    let input = plan::from_manifests(gathered, catalog::generated(), FEATURES, Timestamp::UNIX_EPOCH);
    if input.pods.len() > PODS {
        return;
    }
    let settings = Settings::default();
    let answer = plan::answer(input, &settings, || 0.0);
    assert_eq!(answer.violations, Vec::<String>::new());
    for (pod, reasons) in answer.unplaced() {
        assert!(reasons.iter().any(|reason| !reason.trim().is_empty()), "{pod} has no place and no reason");
    }
    plan::json(&answer).expect("a plan can be written as JSON");
    assert!(!plan::table(&answer).is_empty() && !plan::render(&answer).is_empty());
    for pod in answer.input.pods.iter().take(3) {
        // Names may be shared, which is an answer too.
        let _ =
            plan::pod(&answer.case(&settings), Some(&pod.key.namespace), &pod.key.name).map(|said| said.to_string());
    }
    for claim in answer.plan.claims.iter().take(3) {
        plan::nodeclaim(&answer.case(&settings), claim.draft.name.as_str()).expect("it is planned");
    }
}

/// Tries many inputs; the shortest that fails is told with what it did and the seed.
fn try_all<S: Strategy>(cases: u32, inputs: &S, input: impl Fn(&S::Value) -> String) {
    let seed = match std::env::var("JOINER_FUZZ_SEED") {
        Err(_) => 1,
        Ok(word) if word == "random" => fastrand::u64(..),
        Ok(word) => word.parse().expect("JOINER_FUZZ_SEED is a number, or random"),
    };
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    let config = Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let told = TestRunner::new(config).run(inputs, |made| {
        let text = input(&made);
        catch_unwind(AssertUnwindSafe(|| plan_all(&text))).map_err(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
            TestCaseError::fail(said)
        })
    });
    let found = told.err().map(|found| found.to_string());
    assert_eq!(found, None, "JOINER_FUZZ_SEED={seed}");
}

/// The documents as one list.
fn everything() -> Value {
    let all = documents(EVERYTHING).into_iter();
    let all: Vec<Value> = all.map(|document| document.content.expect("the corpus is YAML")).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": all })
}

#[test]
fn the_corpus_is_understood_and_planned() {
    let shapes = ShapeStore::new();
    let gathered = gather(&[Source::Stdin], &mut || Ok(EVERYTHING.to_owned()), &shapes);
    assert_eq!(gathered.troubles.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    let answer = plan::answer(
        plan::from_manifests(gathered, catalog::generated(), FEATURES, Timestamp::UNIX_EPOCH),
        &Settings::default(),
        || 0.0,
    );
    assert!(answer.input.pods.len() >= 10 && answer.plan.price > 0.0, "{answer:?}");
    plan_all(&everything().to_string());
}

#[test]
fn changed_objects_make_nothing_panic() {
    let all = everything();
    let changes = prop::collection::vec((any::<Index>(), any_change()), 1..12);
    try_all(60, &changes, |changes| changed(all.clone(), changes).to_string());
}

#[test]
fn changed_text_makes_nothing_panic() {
    let edits = prop::collection::vec(any_edit(), 1..12);
    try_all(40, &edits, |edits| edited(EVERYTHING, edits));
}

#[test]
fn noise_makes_nothing_panic() {
    try_all(100, &prop::collection::vec(any::<u8>(), 0..300), |bytes| String::from_utf8_lossy(bytes).into_owned());
}
