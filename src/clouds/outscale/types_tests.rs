//! What is said of words that name no VM types, or types that nobody sells.

use std::sync::Arc;

use super::*;
use crate::api::classes::outscale::VmTypes;
use crate::clouds::outscale::prices::Prices;
use crate::sim::oapi::Account;

/// The sample account's market.
fn offer() -> Offer {
    let account = Account::sample();
    let (prices, _) = Prices::read("price list", &account.catalog.entries).unwrap();
    Offer { listed: Arc::new(account.vm_types), prices: Arc::new(prices), read: None, is_whole: true, epoch: 0 }
}

/// What is said there of these families, names and performances.
fn told(families: &[&str], names: &[&str], performances: &[&str]) -> Result<String, Fault> {
    let words = |all: &[&str]| (!all.is_empty()).then(|| all.iter().map(|word| (*word).to_owned()).collect());
    let (families, names, performances) = (words(families), words(names), words(performances));
    let vm_types = Some(VmTypes { families, names, performances });
    judged(&OutscaleNodeClassSpec { vm_types, ..OutscaleNodeClassSpec::default() }, &offer())
}

#[test]
fn a_word_that_names_nothing_is_told_with_its_field_and_with_what_there_is() {
    let there = "there are c4, m4, p6, t2, tinav5, tinav6, tinav7";
    for (families, names, performances, message) in [
        (vec!["tinav6", "tinv7"], vec![], vec![], format!(r#"families: "tinv7" is no family of VM types (is tinav7 meant?); {there}"#)),
        (vec!["x"], vec![], vec![], format!(r#"families: "x" is no family of VM types; {there}"#)),
        (vec!["tinav"], vec![], vec![], format!(r#"families: "tinav" is no family of VM types (is tinav7 meant?); {there}"#)),
        (
            vec![],
            vec!["m4.lagre", "tinav6.c2r4p2"],
            vec![],
            r#"names: "m4.lagre" is no VM type (is m4.large meant?); there are custom types such as tinav7.c4r8p1, and c4.large, "#.to_owned(),
        ),
        (
            vec![],
            vec![],
            vec!["hihgest"],
            r#"performances: "hihgest" is no performance (is highest meant?); there are high, highest, medium"#.to_owned(),
        ),
    ] {
        let fault = told(&families, &names, &performances).unwrap_err();
        assert_eq!(fault.reason, "UnknownTypes");
        assert!(fault.message.starts_with(&format!("spec.vmTypes.{message}")), "{}", fault.message);
    }
}

#[test]
fn what_nobody_sells_is_told_and_the_rest_is_offered() {
    assert_eq!(told(&[], &[], &[]).unwrap(), "");
    assert_eq!(told(&["tinav6", "tinav7"], &["tinav6.c3r5p2"], &["highest", "high"]).unwrap(), "");
    let message = told(&["tinav6", "tinav77"], &[], &["high", "medium"]).unwrap();
    let lacking =
        "price in the price list: tinav6 medium, tinav77 high, tinav77 medium; there are tinav5 highest, tinav5 high, ";
    assert!(message.contains(lacking) && message.contains("correct spec.vmTypes"), "{message}");
    let fault = told(&["tinav77"], &[], &[]).unwrap_err();
    assert_eq!(fault.reason, "NoTypes");
    assert!(fault.message.contains("tinav77 high; there are tinav5 highest"), "{}", fault.message);
}

#[test]
fn before_the_api_has_told_its_types_nothing_is_called_unknown() {
    let offer =
        Offer { listed: Arc::default(), prices: Arc::new(Prices::built_in()), read: None, is_whole: true, epoch: 0 };
    let vm_types = VmTypes { families: Some(vec!["m4".to_owned(), "tinav6".to_owned()]), ..VmTypes::default() };
    let spec = OutscaleNodeClassSpec { vm_types: Some(vm_types), ..OutscaleNodeClassSpec::default() };
    assert_eq!(judged(&spec, &offer).unwrap(), "");
}
