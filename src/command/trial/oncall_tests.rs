//! What the person on call does, and what is counted of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::cluster::Cluster;
use crate::core::facts::{Claim, samples};
use crate::sim::faults::{Fault, HostileCluster, Mishap, Plan};
use crate::sim::{World, WorldConfig};

/// Somebody who is called about a NodeClaim without a machine, in a world in which something has gone wrong, or not.
async fn called(trouble: bool) -> OnCall {
    let world = World::new(WorldConfig::usual(1, Arc::new(|| Timestamp::UNIX_EPOCH)));
    let (cluster, cloud, journal) = (world.cluster.clone(), world.cloud.clone(), Journal::kept());
    let clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let invariants = Invariants::new(cluster.clone(), cloud.clone(), clock, journal.clone());
    let error = Mishap { at: Duration::ZERO, fault: Fault::ApiError, lasting: Duration::ZERO, pass_over: 0, pick: 0 };
    let (mishaps, _orders) = Mishaps::new(&Plan(vec![error]), Duration::from_hours(1), journal.clone());
    if trouble {
        let hostile = HostileCluster::new(cluster.clone(), mishaps.clone(), invariants.clone());
        assert!(hostile.list_claims().await.is_err());
    }
    cluster.store().apply_claim(Claim { provider_id: Some("sim://nowhere/1".into()), ..samples::claim() });
    OnCall { cluster, cloud, mishaps, invariants, journal, interventions: Cell::default(), doubts: Cell::default() }
}

/// What the auditor's page shows.
fn page(on_call: &OnCall, remedy: &str) -> View {
    let claim = Arc::clone(on_call.cluster.store().claims().next().unwrap());
    let finding = Finding::LostMachine(claim.name.clone(), claim.uid.clone());
    let details = [("what to do", remedy), (&finding.to_string(), "ID abc, 3 looks")];
    View {
        state: "breaker open: the machines of 1 of 1 NodeClaims are not in the listing".to_owned(),
        details: details.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
        ..View::default()
    }
}

#[tokio::test(start_paused = true)]
async fn each_decision_is_told_and_counted_once() {
    let on_call = called(true).await;
    let page_with_lease = page(&on_call, "kubectl annotate lease joiner-audit='approve abc'");
    on_call.read(&page_with_lease);
    on_call.read(&page_with_lease);
    assert_eq!(on_call.interventions.get(), 1);
    let said = on_call.journal.lines();
    assert!(said.last().is_some_and(|line| line.contains("PERSON approve abc (the machines of 1")), "{said:?}");
    on_call.read(&page(&on_call, "joiner holds no lease"));
    assert_eq!(on_call.interventions.get(), 2, "the NodeClaim is deleted by hand");
    assert!(on_call.cluster.store().claims().next().is_none_or(|claim| claim.deleting.is_some()));
    on_call.read(&View { state: "3 findings".to_owned(), ..View::default() });
    assert_eq!((on_call.interventions.get(), on_call.invariants.violations()), (2, vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_true_is_left_out_of_an_approval_and_read_again_soon() {
    let on_call = called(true).await;
    let mut mixed = page(&on_call, "kubectl annotate lease joiner-audit='approve abc,def dismiss fed'");
    let orphan = Finding::OrphanMachine("sim://nowhere/2".into());
    mixed.details.push((orphan.to_string(), "ID def, 3 looks".to_owned()));
    let mut untrue = mixed.clone();
    untrue.details.remove(1);
    untrue.details[0].1 = "kubectl annotate lease joiner-audit='approve def dismiss fed'".to_owned();
    on_call.read(&untrue);
    assert_eq!((on_call.interventions.get(), on_call.doubts.get()), (0, true));
    on_call.read(&mixed);
    assert_eq!((on_call.interventions.get(), on_call.doubts.get()), (1, true));
    let said = on_call.journal.lines();
    assert!(said.last().is_some_and(|line| line.contains("PERSON approve abc dismiss fed (the machines")), "{said:?}");
    on_call.read(&View { state: "1 findings".to_owned(), ..View::default() });
    assert!(!on_call.doubts.get());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_while_nothing_has_gone_wrong() {
    let on_call = called(false).await;
    on_call.read(&page(&on_call, "kubectl annotate lease joiner-audit='approve abc'"));
    let broken: Vec<_> = on_call.invariants.violations().into_iter().map(|broken| broken.invariant).collect();
    assert_eq!(broken, [Invariant::NobodyIsAsked]);
}
