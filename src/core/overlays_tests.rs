//! NodeOverlays.

use super::*;
use crate::core::facts::samples::{self, start};
use crate::core::facts::{Condition, Offering, find_condition};
use crate::core::ids::InstanceTypeName;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;

const ZONES: [&str; 2] = ["a", "b"];
const CAPACITY_TYPES: [(&str, f64); 2] = [(labels::SPOT, 0.5), (labels::ON_DEMAND, 1.0)];
const GPU: &str = "example.com/gpu";

/// A type with an offering in each zone, spot at 0.5 and on demand at 1 $/h.
fn instance_type(name: &str) -> Arc<InstanceType> {
    let offering = |zone: &str, (capacity_type, price): (&str, f64)| Offering {
        requirements: vec![
            Requirement::new(labels::ZONE, Operator::In, [zone]),
            Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]),
        ],
        price,
        available: true,
        reservation_capacity: None,
    };
    let offerings = ZONES.iter().flat_map(|zone| CAPACITY_TYPES.map(|sold| offering(zone, sold)));
    Arc::new(InstanceType {
        name: name.into(),
        requirements: vec![Requirement::new(labels::INSTANCE_TYPE, Operator::In, [name])],
        capacity: Resources::new().with("cpu", 4000),
        overhead: Resources::new(),
        attach_limits: BTreeMap::new(),
        offerings: offerings.collect(),
    })
}

/// NodePools `web` and `batch` (labelled `team: data`) with types `m` and `s`.
fn world(overlays: &[Overlay]) -> (Snapshot, Catalog) {
    let mut snapshot = Snapshot::default();
    for name in ["web", "batch"] {
        let mut pool = Pool { name: name.into(), ..samples::ready_pool() };
        if name == "batch" {
            pool.template.labels.insert("team".into(), "data".into());
        }
        snapshot.pools.insert(name.into(), Arc::new(pool));
    }
    for overlay in overlays {
        snapshot.overlays.insert(Arc::clone(&overlay.name), Arc::new(overlay.clone()));
    }
    let types: Types = Arc::new(vec![instance_type("m"), instance_type("s")]);
    let mut catalog = Catalog::default();
    for pool in ["web", "batch"] {
        catalog.pools.insert(pool.into(), Arc::clone(&types));
    }
    (snapshot, catalog)
}

/// The catalogue with these overlays.
fn with(overlays: &[Overlay]) -> Catalog {
    let (snapshot, mut catalog) = world(overlays);
    apply(&mut catalog, &snapshot);
    catalog
}

/// An overlay that selects everything and changes nothing.
fn overlay(name: &str) -> Overlay {
    Overlay {
        name: name.into(),
        uid: name.into(),
        generation: 1,
        version: "1".into(),
        created: start(),
        weight: 0,
        requirements: Vec::new(),
        price: None,
        capacity: Resources::new(),
        errors: Vec::new(),
        conditions: Vec::new(),
    }
}

impl Overlay {
    fn price(self, price: PriceChange) -> Self {
        Self { price: Some(price), ..self }
    }

    fn gives(self, name: &str, milli: i64) -> Self {
        Self { capacity: self.capacity.with(name, milli), ..self }
    }

    fn only(mut self, key: &str, values: &[&str]) -> Self {
        self.requirements.push(Requirement::new(key, Operator::In, values.iter().copied()));
        self
    }

    fn weighs(self, weight: i32) -> Self {
        Self { weight, ..self }
    }
}

/// Prices of a type in a pool, by zone and capacity type.
fn prices(catalog: &Catalog, pool: &str, name: &str) -> Vec<f64> {
    let kind = catalog.pools[&PoolName::from(pool)].iter().find(|kind| kind.name.as_str() == name);
    kind.expect("the type is there").offerings.iter().map(|offering| offering.price).collect()
}

fn capacity(catalog: &Catalog, pool: &str, name: &str, resource: &str) -> i64 {
    let kind = catalog.pools[&PoolName::from(pool)].iter().find(|kind| kind.name.as_str() == name);
    kind.expect("the type is there").allocatable().get(&resource.into())
}

fn verdict<'a>(catalog: &'a Catalog, name: &str) -> &'a Verdict {
    &catalog.overlays[name].verdict
}

fn conflict(catalog: &Catalog, name: &str) -> String {
    let Verdict::Conflict(why) = verdict(catalog, name) else { panic!("{name}: {:?}", verdict(catalog, name)) };
    why.clone()
}

const AS_SOLD: [f64; 4] = [0.5, 1.0, 0.5, 1.0];

#[test]
fn without_overlays_everything_is_shared() {
    let (snapshot, mut catalog) = world(&[]);
    let before = catalog.pools.clone();
    apply(&mut catalog, &snapshot);
    assert!(before.iter().all(|(pool, types)| Arc::ptr_eq(types, &catalog.pools[pool])));
    assert!(catalog.overlays.is_empty() && catalog.overlaid.is_empty());
}

#[test]
fn a_price_is_replaced() {
    let catalog = with(&[overlay("o").price(PriceChange::To(0.1))]);
    assert_eq!(verdict(&catalog, "o"), &Verdict::Applied);
    assert_eq!(prices(&catalog, "web", "m"), [0.1; 4]);
}

#[test]
fn a_price_is_adjusted_by_an_amount_or_a_share_and_never_below_zero() {
    let adjusted = |change| prices(&with(&[overlay("o").price(change)]), "web", "m");
    assert_eq!(adjusted(PriceChange::By(0.25)), [0.75, 1.25, 0.75, 1.25]);
    assert_eq!(adjusted(PriceChange::Percent(-50.0)), [0.25, 0.5, 0.25, 0.5]);
    assert_eq!(adjusted(PriceChange::By(-0.75)), [0.0, 0.25, 0.0, 0.25]);
    assert_eq!(adjusted(PriceChange::Percent(-100.0)), [0.0; 4]);
}

#[test]
fn a_price_can_be_for_one_pool() {
    let catalog = with(&[overlay("o").price(PriceChange::To(0.1)).only(labels::NODEPOOL, &["web"])]);
    assert_eq!(prices(&catalog, "web", "m"), [0.1; 4]);
    assert_eq!(prices(&catalog, "batch", "m"), AS_SOLD);
}

#[test]
fn a_price_can_be_for_pools_with_a_label() {
    let catalog = with(&[overlay("o").price(PriceChange::To(0.1)).only("team", &["data"])]);
    assert_eq!(prices(&catalog, "web", "m"), AS_SOLD);
    assert_eq!(prices(&catalog, "batch", "m"), [0.1; 4]);
}

#[test]
fn a_price_can_be_for_one_instance_type() {
    let catalog = with(&[overlay("o").price(PriceChange::To(0.1)).only(labels::INSTANCE_TYPE, &["m"])]);
    assert_eq!(prices(&catalog, "web", "m"), [0.1; 4]);
    assert_eq!(prices(&catalog, "web", "s"), AS_SOLD);
}

#[test]
fn a_price_can_be_for_a_zone_and_a_capacity_type() {
    let of_zone = with(&[overlay("o").price(PriceChange::To(0.1)).only(labels::ZONE, &["a"])]);
    assert_eq!(prices(&of_zone, "web", "m"), [0.1, 0.1, 0.5, 1.0]);
    let of_spot = with(&[overlay("o").price(PriceChange::To(0.1)).only(labels::CAPACITY_TYPE, &[labels::SPOT])]);
    assert_eq!(prices(&of_spot, "web", "m"), [0.1, 1.0, 0.1, 1.0]);
}

#[test]
fn what_matches_nothing_changes_nothing_and_is_fine() {
    let catalog = with(&[overlay("o").price(PriceChange::To(0.1)).only("team", &["nobody"])]);
    assert_eq!(verdict(&catalog, "o"), &Verdict::Applied);
    assert!(catalog.overlaid.is_empty());
    let unknown = overlay("o").price(PriceChange::To(0.1)).only("no/such-label", &["x"]);
    assert!(with(&[unknown]).overlaid.is_empty());
}

#[test]
fn a_label_that_must_be_absent_is_absent_where_nobody_sets_it() {
    let mut one = overlay("o").price(PriceChange::To(0.1));
    one.requirements.push(Requirement::new("team", Operator::DoesNotExist, Vec::<&str>::new()));
    let catalog = with(&[one]);
    assert_eq!(prices(&catalog, "web", "m"), [0.1; 4]);
    assert_eq!(prices(&catalog, "batch", "m"), AS_SOLD);
}

#[test]
fn capacity_is_added_to_the_whole_type_when_any_offering_matches() {
    let catalog = with(&[overlay("o").gives(GPU, 2000).only(labels::ZONE, &["a"]).only(labels::INSTANCE_TYPE, &["m"])]);
    assert_eq!(capacity(&catalog, "web", "m", GPU), 2000);
    assert_eq!(capacity(&catalog, "web", "m", "cpu"), 4000, "what the cloud says stays");
    assert_eq!(capacity(&catalog, "web", "s", GPU), 0);
}

#[test]
fn the_heavier_wins_per_offering_and_per_resource() {
    let catalog = with(&[
        overlay("light").price(PriceChange::To(0.9)).gives(GPU, 1000).gives("example.com/fpga", 3000).weighs(1),
        overlay("heavy").price(PriceChange::To(0.1)).gives(GPU, 2000).only(labels::ZONE, &["a"]).weighs(2),
    ]);
    assert_eq!(verdict(&catalog, "light"), &Verdict::Applied);
    assert_eq!(prices(&catalog, "web", "m"), [0.1, 0.1, 0.9, 0.9]);
    assert_eq!(capacity(&catalog, "web", "m", GPU), 2000);
    assert_eq!(capacity(&catalog, "web", "m", "example.com/fpga"), 3000);
}

#[test]
fn price_and_capacity_of_two_overlays_of_one_weight_combine() {
    let catalog = with(&[overlay("p").price(PriceChange::To(0.1)), overlay("c").gives(GPU, 1000)]);
    assert_eq!((verdict(&catalog, "p"), verdict(&catalog, "c")), (&Verdict::Applied, &Verdict::Applied));
    assert_eq!((prices(&catalog, "web", "m"), capacity(&catalog, "web", "m", GPU)), (vec![0.1; 4], 1000));
}

#[test]
fn of_one_weight_the_later_name_wins_and_the_other_is_told_why() {
    let catalog = with(&[overlay("a").price(PriceChange::To(0.1)), overlay("b").price(PriceChange::By(0.5))]);
    assert_eq!(verdict(&catalog, "b"), &Verdict::Applied);
    let why = conflict(&catalog, "a");
    assert!(why.contains("NodeOverlay b") && why.contains("NodePool batch") && why.contains("type m"), "{why}");
    assert_eq!(prices(&catalog, "web", "m"), [1.0, 1.5, 1.0, 1.5]);
}

#[test]
fn equal_values_conflict_all_the_same() {
    conflict(&with(&["a", "b"].map(|name| overlay(name).price(PriceChange::To(0.1)))), "a");
    conflict(&with(&["a", "b"].map(|name| overlay(name).gives(GPU, 1000))), "a");
}

#[test]
fn overlays_conflict_where_they_meet_and_not_where_they_do_not() {
    for (key, values) in [
        (labels::INSTANCE_TYPE, ["m", "s"]),
        (labels::ZONE, ["a", "b"]),
        (labels::CAPACITY_TYPE, ["spot", "on-demand"]),
    ] {
        let apart = [0, 1].map(|at| overlay(&format!("o{at}")).price(PriceChange::To(0.1)).only(key, &[values[at]]));
        assert_eq!(verdict(&with(&apart), "o0"), &Verdict::Applied, "{key}");
        let both = overlay("o2").price(PriceChange::To(0.2)).only(key, &values);
        let meeting = with(&[apart[0].clone(), both]);
        conflict(&meeting, "o0");
    }
}

#[test]
fn capacity_conflicts_by_resource() {
    let catalog = with(&[overlay("a").gives(GPU, 1000), overlay("b").gives("example.com/fpga", 1000)]);
    assert_eq!(verdict(&catalog, "a"), &Verdict::Applied);
    let three = with(&["a", "b", "c"].map(|name| overlay(name).gives(GPU, 1000)));
    let why = conflict(&three, "a");
    assert!(why.contains(GPU) && why.contains("NodeOverlay c"), "{why}");
    conflict(&three, "b");
    assert_eq!(verdict(&three, "c"), &Verdict::Applied);
}

#[test]
fn different_weights_never_conflict() {
    let catalog = with(&[
        overlay("a").price(PriceChange::To(0.1)).gives(GPU, 1000).weighs(3),
        overlay("b").price(PriceChange::To(0.2)).gives(GPU, 2000).weighs(2),
    ]);
    assert_eq!(verdict(&catalog, "b"), &Verdict::Applied);
    assert_eq!((prices(&catalog, "web", "m"), capacity(&catalog, "web", "m", GPU)), (vec![0.1; 4], 1000));
}

#[test]
fn an_overlay_that_conflicts_anywhere_is_applied_nowhere() {
    let catalog = with(&[
        overlay("a").price(PriceChange::To(0.1)),
        overlay("b").price(PriceChange::To(0.2)).only(labels::NODEPOOL, &["web"]).only(labels::INSTANCE_TYPE, &["m"]),
    ]);
    conflict(&catalog, "a");
    assert_eq!(prices(&catalog, "web", "m"), [0.2; 4]);
    assert_eq!((prices(&catalog, "web", "s"), prices(&catalog, "batch", "m")), (AS_SOLD.into(), AS_SOLD.into()));
}

#[test]
fn a_wrong_overlay_is_named_and_its_neighbours_go_on() {
    let wrong = Overlay { errors: vec!["spec.price: wrong".into()], ..overlay("a").price(PriceChange::To(0.1)) };
    let catalog = with(&[wrong, overlay("b").price(PriceChange::To(0.2))]);
    assert_eq!(verdict(&catalog, "a"), &Verdict::Invalid("spec.price: wrong".to_owned()));
    assert_eq!(prices(&catalog, "web", "m"), [0.2; 4]);
}

#[test]
fn a_pool_without_types_is_left_out_and_the_others_are_judged() {
    let (snapshot, mut catalog) = world(&[overlay("o").price(PriceChange::To(0.1))]);
    catalog.pools.remove(&PoolName::from("batch"));
    apply(&mut catalog, &snapshot);
    assert_eq!(prices(&catalog, "web", "m"), [0.1; 4]);
    assert!(!catalog.pools.contains_key(&PoolName::from("batch")));
}

#[test]
fn types_keep_their_labels_and_untouched_ones_are_shared() {
    let (snapshot, mut catalog) =
        world(&[overlay("o").price(PriceChange::To(0.1)).only(labels::INSTANCE_TYPE, &["m"]).only("team", &["data"])]);
    let before = catalog.pools.clone();
    apply(&mut catalog, &snapshot);
    let (web, batch) = (PoolName::from("web"), PoolName::from("batch"));
    assert!(Arc::ptr_eq(&before[&web], &catalog.pools[&web]));
    assert_eq!(catalog.pools[&batch][0].requirements, before[&batch][0].requirements);
    assert!(Arc::ptr_eq(&catalog.pools[&batch][1], &before[&batch][1]));
}

#[test]
fn node_claims_are_marked_with_what_was_changed() {
    let catalog = with(&[
        overlay("p").price(PriceChange::To(0.1)).only(labels::INSTANCE_TYPE, &["m"]),
        overlay("c").gives(GPU, 1000).only(labels::NODEPOOL, &["web"]),
    ]);
    let marks = |pool: &str, names: &[&str]| -> Vec<String> {
        let names: Vec<InstanceTypeName> = names.iter().map(|name| (*name).into()).collect();
        catalog.overlay_marks(&pool.into(), &names.iter()).map(|(key, _)| key.to_string()).collect()
    };
    assert_eq!(marks("web", &["m", "s"]), [labels::PRICE_OVERLAY_APPLIED, labels::CAPACITY_OVERLAY_APPLIED]);
    assert_eq!(marks("web", &["s"]), [labels::CAPACITY_OVERLAY_APPLIED]);
    assert_eq!(marks("batch", &["s"]), Vec::<String>::new());
}

#[test]
fn the_status_says_what_became_of_it() {
    let said = |verdict| {
        let judgement = Judgement { generation: 1, verdict };
        let patch = wanted(&overlay("o"), &judgement, start()).expect("nothing was said yet");
        assert_eq!(patch.version.as_deref(), Some("1"));
        let of = |kind| -> Condition { find_condition(&patch.conditions, kind).expect("it is there").clone() };
        let (validation, ready) = (of("ValidationSucceeded"), of("Ready"));
        (validation.status, validation.reason.to_string(), validation.message.to_string(), ready.status)
    };
    let (fine, bad) = (Status::True, Status::False);
    assert_eq!(said(Verdict::Applied), (fine, "ValidationSucceeded".to_owned(), String::new(), fine));
    assert_eq!(said(Verdict::Invalid("w".to_owned())), (bad, "RuntimeValidation".to_owned(), "w".to_owned(), bad));
    assert_eq!(said(Verdict::Conflict("w".to_owned())), (bad, "Conflict".to_owned(), "w".to_owned(), bad));
}

#[test]
fn what_was_said_is_not_said_again_and_not_of_another_version() {
    let judgement = Judgement { generation: 1, verdict: Verdict::Applied };
    let patch = wanted(&overlay("o"), &judgement, start()).expect("nothing was said yet");
    let told = Overlay { conditions: patch.conditions, ..overlay("o") };
    assert_eq!(wanted(&told, &judgement, start()), None);
    assert_eq!(wanted(&Overlay { generation: 2, ..overlay("o") }, &judgement, start()), None);
}
