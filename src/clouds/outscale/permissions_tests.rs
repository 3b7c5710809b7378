//! Every action that the adapter calls is in the example policy, and whoever may not call one is told so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::super::tests::{Scene, class_of, resolved, scene, spec};
use super::*;
use crate::api::classes::outscale::{BlockDeviceMapping, Bsu, ImageTerm, OutscaleNodeClassSpec, VmTypes};
use crate::clouds::outscale::oapi;
use crate::core::facts::Status;
use crate::sim::oapi::Account;

fn error(class: Class) -> Error {
    Error { class, ..Error::silent("CreateVms", Class::Unknown, "said") }
}

#[test]
fn only_a_refusal_for_what_is_named_shows_that_an_action_is_allowed() {
    let of = |class| judged(&[error(class)], &[], None);
    for class in [Class::NotFound, Class::Invalid, Class::Conflict] {
        assert!(matches!(of(class), Found::Good(told) if told.is_empty()), "{class:?}");
    }
    for class in [Class::Throttled, Class::SoldOut, Class::Quota, Class::Temporary, Class::Unknown] {
        assert!(matches!(of(class), Found::Unanswered(_)), "{class:?}");
    }
    for class in [Class::Keys, Class::Denied] {
        assert!(matches!(of(class), Found::Bad(_)), "{class:?}");
    }
    // That nobody's machine is somebody else's does not say that the action is denied, nor for certain that it is allowed.
    let entry = oapi::wire::ErrorEntry { code: "5".to_owned(), ..Default::default() };
    let foreign = Error { entries: vec![entry], ..error(Class::Denied) };
    let Found::Good(told) = judged(&[foreign], &[], None) else { panic!("another account's") };
    assert!(told.starts_with("whether api:CreateVms is allowed is not certain"), "{told}");
    // What only leaves something out decides nothing.
    for class in [Class::Denied, Class::Throttled, Class::Unknown] {
        let Found::Good(told) = judged(&[], &[("it is not done", Some(error(class)))], None) else {
            panic!("{class:?}")
        };
        assert_eq!(told.starts_with("it is not done: CreateVms: said; allow"), class == Class::Denied, "{told}");
    }
}

/// The actions of the example policy.
fn policy() -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/outscale/eim-policy.json");
    let policy: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let actions = statements.iter().flat_map(|statement| statement["Action"].as_array().unwrap());
    actions.map(|action| action.as_str().unwrap().strip_prefix("api:").unwrap().to_owned()).collect()
}

/// The adapter's source, without tests and without the client that could call anything.
fn adapter() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/clouds/outscale");
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_code = |file: &&PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap();
        file.is_file() && !name.ends_with("tests")
    };
    files.iter().filter(is_code).map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn the_example_policy_allows_what_the_adapter_calls_and_nothing_else() {
    let source = adapter();
    let is_called = |name: &str| Regex::new(&format!(r"\b{name}( \{{|::default)")).unwrap().is_match(&source);
    let signed = oapi::ACTIONS.iter().filter(|(_, is_signed)| *is_signed).map(|(name, _)| *name);
    let called: BTreeSet<String> = signed.filter(|name| is_called(name)).map(str::to_owned).collect();
    assert!(called.contains("CreateVms") && !called.contains("ReadUnitPrice"), "{called:?}");
    assert_eq!(policy(), called);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_call_an_action_is_told_which_and_what_to_allow() {
    // A class that makes use of everything.
    let bsu = Bsu { snapshot_id: Some(Account::SNAPSHOT.to_owned()), ..Bsu::default() };
    let class = OutscaleNodeClassSpec {
        image_id: None,
        image_selector_terms: Some(vec![ImageTerm { name: Some("Talos-*".to_owned()), ..ImageTerm::default() }]),
        keypair_name: Some(Account::KEYPAIR.to_owned()),
        block_device_mappings: Some(vec![BlockDeviceMapping { device_name: "/dev/xvdb".to_owned(), bsu }]),
        vm_types: Some(VmTypes { names: Some(vec!["p6.large".to_owned()]), ..VmTypes::default() }),
        ..spec()
    };
    for action in policy() {
        let Scene { fake, cloud, .. } = scene();
        let (_, resolution) = resolved(&cloud, &class_of(class.clone())).await;
        let is_good = resolution.judgements.iter().all(|told| told.status == Status::True && told.message.is_empty());
        assert!(is_good, "{:?}", resolution.judgements);
        let other = super::super::tests::cloud(&fake, &super::super::tests::Kept::default(), false);
        fake.account(|account| account.denied.extend([action.clone()]));
        let (_, resolution) = resolved(&other, &class_of(class.clone())).await;
        let statement = format!(r#"{{"Effect":"Allow","Action":["api:{action}"],"Resource":["*"]}}"#);
        let told: Vec<_> =
            resolution.judgements.iter().filter(|judgement| judgement.message.contains(&statement)).collect();
        let [told] = told.as_slice() else { panic!("{action}: {:?}", resolution.judgements) };
        let is_lesser = ["RebootVms", "ReadVmsState", "ReadCatalog"].contains(&action.as_str());
        assert_eq!(told.status, if is_lesser { Status::True } else { Status::False }, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_offers_no_gpus_needs_no_permission_for_them() {
    let Scene { fake, cloud, .. } = scene();
    fake.account(|account| account.denied.extend(["ReadFlexibleGpus", "UpdateFlexibleGpu"].map(str::to_owned)));
    let (_, resolution) = resolved(&cloud, &class_of(spec())).await;
    let is_good = resolution.judgements.iter().all(|told| told.status == Status::True && told.message.is_empty());
    assert!(is_good, "{:?}", resolution.judgements);
}
