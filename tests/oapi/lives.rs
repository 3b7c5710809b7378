//! From a NodeClass that nobody has judged to a cluster without machines, and what comes between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use joiner::clouds::outscale;
use joiner::clouds::outscale::oapi::wire::{MaintenanceEvent, ResourceTag, State, Vm};
use joiner::clouds::outscale::oapi::{Answer, Post, Transport, Undelivered};
use joiner::core::facts::{Claim, Status, find_condition};
use joiner::core::writes::Regarding;
use joiner::sim::oapi::{Account, Fake, Fault, Scarce};

use super::stage::{deployment, scene, script};

#[tokio::test(start_paused = true)]
async fn from_pending_pods_to_machines_and_back_to_none() {
    let scene = scene(1);
    let joiner = scene.joiner();
    scene.play(&script("{families: [tinav6]}", 60, "'1'", "until: 10m")).await;
    {
        let store = scene.world.cluster.store();
        let class = store.classes().next().unwrap();
        let ready = find_condition(&class.conditions, "Ready").unwrap();
        assert_eq!(ready.status, Status::True, "{:?}", class.conditions);
        let (pods, bound) = (store.pods().count(), store.pods().filter(|record| record.pod.node.is_some()).count());
        assert_eq!((pods, bound), (60, 60));
        let initialized = |claim: &&Arc<Claim>| claim.is("Initialized");
        assert_eq!(store.claims().filter(initialized).count(), store.claims().count());
        assert!(store.nodes().all(|node| node.labels.get("tier").is_some_and(|tier| &**tier == "web")));
        assert!(store.claims().all(|claim| claim.labels.contains_key(outscale::INSTANCE_FAMILY)));
    }
    assert!(scene.check_pairs() > 0);
    let parts = "timeline:\n  - {at: 1s, delete: {kind: Deployment, name: web}}\n  - {at: 2s, delete: {kind: NodePool, name: general}}\nuntil: 15m";
    scene.play(parts).await;
    assert_eq!(scene.alive(), []);
    let left = {
        let store = scene.world.cluster.store();
        (store.claims().count(), store.nodes().count())
    };
    assert_eq!(left, (0, 0));
    joiner.stop(Duration::from_secs(5)).await;
}

/// On a good line, so that every call counts: no NodeClaim takes more than one of each kind.
#[tokio::test(start_paused = true)]
async fn three_hundred_nodeclaims_at_once_stay_within_the_limits_of_the_api() {
    let scene = scene(22);
    scene.fake.conduct(|conduct| conduct.limit_each = Some(20));
    let joiner = scene.joiner();
    scene.play(&script("{names: [tinav6.c1r2p2]}", 300, "600m", "until: 4m")).await;
    assert_eq!(scene.check_pairs(), 300);
    let load = scene.fake.load();
    assert!(load.values().all(|load| load.most_in_a_second <= 15), "{load:?}");
    assert_eq!(scene.fake.struck(Fault::Throttled), 0, "{load:?}");
    // Of the few others, one asks whether it may.
    for action in ["CreateVms", "CreateTags", "ReadVms"] {
        assert!((300..320).contains(&load[action].calls), "{action}: {load:?}");
    }
    joiner.stop(Duration::from_secs(5)).await;
}

/// That a token makes no second machine is documented, and nothing here depends on it.
#[tokio::test(start_paused = true)]
async fn a_thousand_launches_over_a_bad_line_make_a_thousand_machines() {
    let scene = scene(2);
    scene.fake.conduct(|conduct| {
        conduct.loses_answers = 0.05;
        conduct.lists_after = Duration::from_secs(2);
        conduct.limit_each = Some(20);
        conduct.honours_tokens = false;
    });
    let joiner = scene.joiner();
    scene.play(&script("{names: [tinav6.c1r2p2]}", 1000, "600m", "until: 40m")).await;
    let bound = {
        let store = scene.world.cluster.store();
        store.pods().filter(|record| record.pod.node.is_some()).count()
    };
    let made = scene.fake.vms().len();
    assert_eq!((scene.check_pairs(), bound, made), (1000, 1000, 1000), "none was ever made twice");
    // One in twenty is what was asked for.
    let load = scene.fake.load();
    let lost = load["CreateVms"].struck(Fault::AnswerLost);
    assert!((20..100).contains(&lost) && load["ReadVms"].struck(Fault::ListedLate) > 0, "{load:?}");
    assert_eq!((scene.fake.struck(Fault::Throttled), scene.fake.struck(Fault::TokenForgotten)), (0, 0), "{load:?}");
    scene.play("timeline:\n  - {at: 1s, delete: {kind: Deployment, name: web}}\n  - {at: 2s, delete: {kind: NodePool, name: general}}\nuntil: 60m").await;
    assert_eq!(scene.alive(), []);
    assert_eq!(scene.world.cluster.store().claims().count(), 0);
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_nodeclass_in_use_outlives_its_deletion() {
    let scene = scene(4);
    let joiner = scene.joiner();
    scene.play(&script("{families: [tinav6]}", 5, "'1'", "until: 10m")).await;
    let class = || scene.world.cluster.store().classes().next().cloned();
    assert!(class().unwrap().has_finalizer());
    scene.play("timeline:\n  - {at: 1s, delete: {kind: OutscaleNodeClass, name: workers}}\nuntil: 12m").await;
    assert!(class().is_some_and(|class| class.deleting.is_some()), "NodeClaims use it");
    assert!(!scene.alive().is_empty());
    scene.play("timeline:\n  - {at: 1s, delete: {kind: Deployment, name: web}}\n  - {at: 2s, delete: {kind: NodePool, name: general}}\nuntil: 20m").await;
    assert_eq!(scene.alive(), []);
    assert_eq!(class().map(|class| class.reference.to_string()), None);
    joiner.stop(Duration::from_secs(5)).await;
}

/// The one machine that no token and no tag leads to: its launch was lost, the API shows it to nobody for longer than joiner waits for it, and
/// its NodeClaim is gone by then.
#[tokio::test(start_paused = true)]
async fn a_machine_that_nobody_could_find_in_time_is_taken_down_in_the_end() {
    let scene = scene(5);
    scene.fake.conduct(|conduct| {
        conduct.loses_first = vec!["CreateVms".to_owned()];
        conduct.lists_after = Duration::from_mins(15);
    });
    let joiner = scene.joiner();
    let user = async {
        while scene.fake.vms().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        scene.fake.conduct(|conduct| conduct.lists_after = Duration::ZERO);
        let lost = scene.fake.vms().remove(0).vm_id;
        let mut store = scene.world.cluster.store();
        let claims: Vec<_> = store.claims().map(|claim| claim.name.clone()).collect();
        for claim in &claims {
            store.delete_claim(claim).unwrap();
        }
        (lost, claims)
    };
    let script = script("{names: [tinav6.c1r2p2]}", 1, "600m", "until: 14m");
    let (lost, claims) = tokio::join!(user, scene.play(&script)).0;
    assert_eq!(scene.fake.load()["CreateVms"].struck(Fault::AnswerLost), 1);
    assert!(scene.fake.struck(Fault::ListedLate) > 0);
    let is_alive = || scene.alive().iter().any(|vm| vm.vm_id == lost);
    {
        let store = scene.world.cluster.store();
        assert!(
            claims.iter().all(|claim| store.claims().all(|there| there.name != *claim)),
            "the NodeClaim does not wait for ever"
        );
    }
    assert!(is_alive(), "nobody knows of it");
    scene.play("until: 50m").await;
    assert!(!is_alive(), "it is found by what it was told at its birth");
    assert_eq!(scene.check_pairs(), 1);
    joiner.stop(Duration::from_secs(5)).await;
}

/// The machines of a cluster that is called otherwise now carry no mark of it: that none is listed any more is no reason to take one down, or to finish
/// its NodeClaim.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_renamed_loses_no_machine() {
    let scene = scene(21);
    let joiner = scene.joiner();
    scene.play(&script("{families: [tinav6]}", 3, "'1'", "until: 10m")).await;
    let ids = || scene.alive().into_iter().map(|vm| vm.vm_id).collect::<Vec<_>>();
    let (before, pairs) = (ids(), scene.check_pairs());
    assert!(pairs > 0);
    joiner.stop(Duration::from_secs(5)).await;
    let joiner = scene.joiner_with(scene.cloud_of("renamed", Arc::new(scene.fake.clone()), false), 1);
    scene.play("until: 3h").await;
    assert_eq!((ids(), scene.check_pairs()), (before, pairs));
    joiner.stop(Duration::from_secs(5)).await;
}

/// NodeClaims that are deleted as soon as they name their machines, which lists show two seconds late.
#[tokio::test(start_paused = true)]
async fn no_nodeclaim_goes_before_its_machine_however_early_it_is_deleted() {
    let scene = scene(14);
    scene.fake.conduct(|conduct| conduct.lists_after = Duration::from_secs(2));
    let joiner = scene.joiner();
    let user = async {
        let mut doomed = BTreeSet::new();
        for _ in 0..2000 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut store = scene.world.cluster.store();
            let launched = store.claims().filter(|claim| claim.provider_id.is_some() && claim.deleting.is_none());
            let launched: Vec<_> = launched.map(|claim| (claim.name.clone(), claim.uid.as_str().to_owned())).collect();
            for (name, uid) in launched.into_iter().take(5_usize.saturating_sub(doomed.len())) {
                store.delete_claim(&name).unwrap();
                doomed.insert(uid);
            }
            let there: BTreeSet<&str> = store.claims().map(|claim| claim.uid.as_str()).collect();
            for vm in scene.fake.vms().iter().filter(|vm| vm.state != State::Terminated) {
                let uid = vm.client_token.as_deref().unwrap_or_default();
                assert!(!doomed.contains(uid) || there.contains(uid), "{} outlives its NodeClaim", vm.vm_id);
            }
        }
        doomed.len()
    };
    let script = script("{names: [tinav6.c1r2p2]}", 3, "600m", "until: 10m");
    let (doomed, ()) = tokio::join!(user, scene.play(&script));
    assert_eq!((doomed, scene.check_pairs()), (5, 3));
    assert!(scene.fake.struck(Fault::ListedLate) > 0);
    joiner.stop(Duration::from_secs(5)).await;
}

/// An API that fails so often at what is meant.
struct Fails {
    fake: Fake,
    is_meant: fn(&Post) -> bool,
    failures: Mutex<u32>,
}

impl Transport for Fails {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 && (self.is_meant)(&post) {
            *failures -= 1;
            let body = r#"{"Errors":[{"Code":"2000","Type":"InternalError","Details":""}],"ResponseContext":{"RequestId":"x"}}"#;
            return async move { Ok(Answer::of(500, &http::HeaderMap::new(), body.into())) }.boxed();
        }
        self.fake.post(post)
    }
}

fn is_deletion(post: &Post) -> bool {
    post.url.path().ends_with("DeleteVms") && !String::from_utf8_lossy(&post.body).contains("DryRun")
}

fn is_price_list(post: &Post) -> bool {
    post.url.path().ends_with("Catalog")
}

/// The cloud made a machine and did not say so, showed it to nobody for a while, and did not know the token again.
#[tokio::test(start_paused = true)]
async fn the_second_machine_of_a_nodeclaim_goes_however_often_that_fails_and_the_first_serves_on() {
    let scene = scene(6);
    scene.fake.conduct(|conduct| {
        conduct.honours_tokens = false;
        conduct.loses_first = vec!["CreateVms".to_owned()];
        conduct.lists_after = Duration::from_mins(5);
    });
    let line = Arc::new(Fails { fake: scene.fake.clone(), is_meant: is_deletion, failures: Mutex::new(12) });
    let joiner = scene.joiner_over(Arc::clone(&line) as Arc<dyn Transport>, 0);
    let user = async {
        while scene.fake.vms().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        scene.fake.conduct(|conduct| conduct.lists_after = Duration::ZERO);
    };
    let script = script("{names: [tinav6.c1r2p2]}", 1, "600m", "until: 8m");
    tokio::join!(user, scene.play(&script));
    let alive = scene.alive();
    assert_eq!(alive.len(), 2, "{alive:?}");
    assert_eq!((scene.fake.struck(Fault::AnswerLost), scene.fake.struck(Fault::TokenForgotten)), (1, 1));
    assert_eq!(alive[0].client_token, alive[1].client_token);
    let named = || {
        let store = scene.world.cluster.store();
        let claims: Vec<_> = store.claims().filter(|claim| claim.is("Initialized")).collect();
        let [claim] = claims.as_slice() else { panic!("{} NodeClaims", claims.len()) };
        claim.provider_id.clone().unwrap()
    };
    let before = named();
    scene.play("until: 70m").await;
    assert_eq!(*line.failures.lock().unwrap(), 0, "it was tried again and again");
    assert_eq!((scene.check_pairs(), named()), (1, before.clone()));
    assert!(before.as_str().ends_with(&scene.alive()[0].vm_id), "{before} is left");
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_nodes_turn_out_to_have_is_planned_with_and_what_the_cloud_plans_is_said() {
    let scene = scene(7);
    let joiner = scene.joiner();
    // By estimate, machines of 4 GiB leave 3305Mi to pods; their kubelets will say 3366Mi.
    let large = format!("timeline:\n  - {{at: 1s, apply: {}}}\nuntil: 4m", deployment("large", "3340Mi"));
    scene.play(&script("{names: [tinav6.c2r4p2]}", 0, "'1'", &large)).await;
    assert_eq!(scene.alive(), [], "nothing that is sold seems to hold it");
    let small = deployment("small", "500Mi");
    scene.play(&format!("timeline:\n  - {{at: 1s, apply: {small}}}\nuntil: 14m")).await;
    let bound = || scene.world.cluster.store().pods().filter(|record| record.pod.node.is_some()).count();
    assert_eq!((scene.check_pairs(), bound()), (2, 2), "one Node has shown what there is");
    let vm = scene.alive().remove(0).vm_id;
    let event = MaintenanceEvent {
        code: Some("system-maintenance".to_owned()),
        description: Some("a server is replaced".to_owned()),
        not_before: Some("2027-02-01T04:00:00Z".parse().unwrap()),
        not_after: Some("2027-02-01T06:00:00Z".parse().unwrap()),
    };
    assert!(scene.fake.plan_maintenance(&vm, event));
    scene.play("until: 20m").await;
    let events = scene.world.cluster.events();
    let mut said: Vec<_> =
        events.iter().map(|(_, event)| event).filter(|event| event.reason == "MaintenancePlanned").collect();
    said.sort_by_key(|event| !matches!(event.regarding, Regarding::Node(..)));
    let [node, claim] = said.as_slice() else { panic!("{said:?}") };
    let plan =
        "system-maintenance (a server is replaced), not before 2027-02-01T04:00:00Z, over by 2027-02-01T06:00:00Z";
    assert!(node.warning && node.message.contains(plan) && node.message == claim.message, "{node:?}");
    assert!(matches!((&node.regarding, &claim.regarding), (Regarding::Node(..), Regarding::Claim(..))), "{said:?}");
    scene.check_policy();
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_vanishes_between_two_looks_is_said_and_the_nodeclass_is_looked_at_anew() {
    let scene = scene(8);
    let joiner = scene.joiner();
    // The class was looked at at the beginning and after five minutes, and would be after ten.
    scene.play(&script("{families: [tinav6]}", 1, "'1'", "until: 6m")).await;
    assert_eq!(scene.check_pairs(), 1);
    scene.fake.account(|account| account.images.clear());
    let launches = || scene.fake.load().get("CreateVms").map_or(0, |load| load.calls);
    let before = launches();
    scene.play(&format!("timeline:\n  - {{at: 1s, apply: {}}}\nuntil: 90s", deployment("large", "40Gi"))).await;
    {
        let store = scene.world.cluster.store();
        let class = store.classes().next().unwrap();
        let images = find_condition(&class.conditions, "ImagesReady").unwrap();
        assert_eq!((images.status, &*images.reason), (Status::False, "ImageNotFound"), "{:?}", class.conditions);
        assert_eq!(store.claims().count(), 1, "nothing is launched for a class that is not ready");
    }
    assert!(launches() - before < 10, "{} launches of a machine without an image", launches() - before);
    let events = scene.world.cluster.events();
    let said = events.iter().any(|(_, event)| {
        matches!(event.regarding, Regarding::Claim(..))
            && event.reason == "DisruptionTerminating"
            && event.message.contains("OutscaleNodeClass/workers: its images are not there any more")
    });
    let reasons: Vec<_> = events.iter().map(|(_, event)| (event.reason, &event.message)).collect();
    assert!(said, "{reasons:?}");
    joiner.stop(Duration::from_secs(5)).await;
}

/// Plays everything that is in this file the way a user would meet trouble: the wrong keys.
#[tokio::test(start_paused = true)]
async fn wrong_keys_are_said_on_the_nodeclass_and_nothing_is_launched() {
    let scene = scene(3);
    scene.fake.account(|account| account.keys.clear());
    let joiner = scene.joiner();
    scene.play(&script("{families: [tinav6]}", 5, "'1'", "until: 5m")).await;
    {
        let store = scene.world.cluster.store();
        let class = store.classes().next().unwrap();
        let permissions = find_condition(&class.conditions, "PermissionsReady").unwrap();
        assert_eq!(
            (permissions.status, &*permissions.reason),
            (Status::False, "Unauthorized"),
            "{:?}",
            class.conditions
        );
        assert!(permissions.message.contains("check the access key"), "{}", permissions.message);
        // Nobody could ask for the rest, and no condition but this one and Ready says that anything is wrong.
        let images = find_condition(&class.conditions, "ImagesReady").unwrap();
        assert_eq!((images.status, &*images.reason), (Status::Unknown, "NotAsked"), "{:?}", class.conditions);
        let wrong = class.conditions.iter().filter(|condition| condition.status == Status::False).count();
        assert_eq!(wrong, 2, "{:?}", class.conditions);
        assert_eq!(find_condition(&class.conditions, "UserDataReady").unwrap().status, Status::True);
        assert_eq!(store.claims().count(), 0);
    }
    assert_eq!(scene.fake.vms(), []);
    // Keys that were refused are not tried again and again: that gets an account banned.
    let signed: u64 = scene
        .fake
        .load()
        .iter()
        .filter(|(action, _)| !action.starts_with("ReadVmTypes") && !action.starts_with("ReadPublic"))
        .map(|(_, load)| load.calls)
        .sum();
    assert!(signed < 20, "{signed} calls with refused keys");
    joiner.stop(Duration::from_secs(5)).await;
}

/// A pod for machines of one generation.
fn of_generation(name: &str, generation: u32) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{nodeSelector: {{karpenter.outscale.com/instance-generation: '{generation}'}}, \
         containers: [{{name: c, resources: {{requests: {{cpu: 900m, memory: 500Mi}}}}}}]}}}}"
    )
}

#[tokio::test(start_paused = true)]
async fn a_price_list_that_was_missed_at_the_start_is_used_as_soon_as_it_can_be_had() {
    let scene = scene(9);
    // Of generation 7 with high performance the built-in list has no price. The client itself tries a call several times, and there are two lists.
    let line = Arc::new(Fails { fake: scene.fake.clone(), is_meant: is_price_list, failures: Mutex::new(16) });
    let joiner = scene.joiner_over(Arc::clone(&line) as Arc<dyn Transport>, 0);
    let pods = format!("timeline:\n  - {{at: 1s, apply: {}}}\nuntil: 45s", of_generation("seven", 7));
    scene.play(&script("{families: [tinav6, tinav7]}", 0, "'1'", &pods)).await;
    assert_eq!(scene.alive(), []);
    scene.play("until: 6m").await;
    assert_eq!((*line.failures.lock().unwrap(), scene.check_pairs()), (0, 1));
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_always_sold_out_does_not_keep_new_prices_out() {
    let scene = scene(10);
    let seventh = |account: &mut Account| {
        let is_seventh = |kind: &Option<String>| kind.as_deref() == Some("CustomCore:v7-p2");
        let (seventh, others) =
            std::mem::take(&mut account.catalog.entries).into_iter().partition(|row| is_seventh(&row.kind));
        account.catalog.entries = others;
        seventh
    };
    let mut row: Vec<_> = Vec::new();
    scene.fake.account(|account| row = seventh(account));
    scene.fake.conduct(|conduct| {
        conduct.sold_out = vec![Scarce { vm_type: Some("tinav6".to_owned()), subregion: None }];
    });
    let joiner = scene.joiner();
    let pods = format!(
        "timeline:\n  - {{at: 1s, apply: {}}}\n  - {{at: 2s, apply: {}}}\nuntil: 1h",
        of_generation("six", 6),
        of_generation("seven", 7)
    );
    scene.play(&script("{names: [tinav6.c1r2p2, tinav7.c1r2p2]}", 0, "'1'", &pods)).await;
    scene.fake.account(|account| account.catalog.entries.append(&mut row));
    let launches = || scene.fake.load().get("CreateVms").map_or(0, |load| load.calls);
    let before = launches();
    // Price lists are read every twelve hours.
    scene.play("until: 13h").await;
    assert!(launches() - before > 200, "{} attempts at what is sold out", launches() - before);
    assert!(scene.fake.struck(Fault::SoldOut) > 200);
    assert_eq!(scene.check_pairs(), 1, "the machine of generation 7");
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn under_a_quota_what_fits_is_bought_in_place_of_what_does_not() {
    let scene = scene(11);
    scene.fake.account(|account| account.quotas.cores = 7);
    let joiner = scene.joiner();
    // Five pods fit on one machine of 8 vCores, or on two of 4 and 2 that are dearer.
    let types = "{names: [tinav6.c8r4p2, tinav6.c4r64p2, tinav6.c2r64p2]}";
    scene.play(&script(types, 5, "'900m'", "until: 15m")).await;
    let events = scene.world.cluster.events();
    let said = events.iter().any(|(_, event)| {
        event.reason == "InsufficientCapacityError"
            && event.message.contains("reached: core_limit (0 of 7 used, 8 needed)")
    });
    let said: Vec<_> = if said { Vec::new() } else { events.iter().map(|(_, event)| &event.message).collect() };
    assert!(said.is_empty(), "{said:?}");
    let bound = {
        let store = scene.world.cluster.store();
        store.pods().filter(|record| record.pod.node.is_some()).count()
    };
    assert_eq!((scene.check_pairs(), bound), (2, 5));
    joiner.stop(Duration::from_secs(5)).await;
}

/// Each of two pods is told what the cloud said, and where it is told that nothing can be had, it is led there.
async fn pods_are_told(shorten: fn(&Fake), fault: Fault, words: &[&str]) {
    let scene = scene(23);
    shorten(&scene.fake);
    let joiner = scene.joiner();
    scene.play(&script("{names: [tinav6.c2r4p2]}", 2, "'1'", "until: 8m")).await;
    assert!(scene.fake.struck(fault) > 0 && scene.fake.vms().is_empty());
    let events = scene.world.cluster.events();
    let pods_told = |reason: &str, words: &[&str]| {
        let is_meant = |message: &str| words.iter().all(|word| message.contains(word));
        let meant = events.iter().filter(|(_, event)| event.reason == reason && is_meant(&event.message));
        let pods: BTreeSet<String> = meant
            .filter_map(|(_, event)| match &event.regarding {
                Regarding::Pod(key, _) => Some(key.to_string()),
                _ => None,
            })
            .collect();
        pods.len()
    };
    let said: Vec<_> = events.iter().map(|(_, event)| (event.reason, &event.message)).collect();
    assert_eq!(pods_told("InsufficientCapacityError", words), 2, "{said:#?}");
    let led = ["can be had at the moment", "Events InsufficientCapacityError"];
    assert_eq!(pods_told("FailedScheduling", &led), 2, "{said:#?}");
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_wait_for_a_quota_are_told_which_and_what_to_do() {
    let words =
        ["reached: vm_limit (0 of 0 used, 1 needed)", "ask Outscale for more, or lower spec.limits of NodePools"];
    pods_are_told(|fake| fake.account(|account| account.quotas.vms = 0), Fault::QuotaReached, &words).await;
}

#[tokio::test(start_paused = true)]
async fn pods_for_which_all_is_sold_out_are_told_what_and_where() {
    let shorten = |fake: &Fake| fake.conduct(|conduct| conduct.sold_out = vec![Scarce::default()]);
    pods_are_told(shorten, Fault::SoldOut, &["there is no tinav6.c2r4p2 in eu-west-2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing_in_the_cluster_and_nothing_in_the_account() {
    let scene = scene(12);
    let joiner = scene.joiner();
    scene.play(&script("{families: [tinav6]}", 5, "'1'", "until: 10m")).await;
    assert!(scene.check_pairs() > 0);
    joiner.stop(Duration::from_secs(5)).await;
    // A machine to take down, one to buy, and marks to mend.
    let first = scene.fake.vms().remove(0).vm_id;
    scene.fake.tamper(&first, |vm| vm.tags.retain(|tag| tag.key != "karpenter.sh/nodepool"));
    let (vms, calls) = (scene.fake.vms(), scene.fake.load());
    let (requests, events) = (scene.world.cluster.requests(), scene.world.cluster.events().len());
    let claim = scene.world.cluster.store().claims().next().unwrap().name.to_string();
    let joiner = scene.looking();
    let large = deployment("large", "40Gi");
    let rest = format!(
        "timeline:\n  - {{at: 1s, apply: {large}}}\n  - {{at: 2s, delete: {{kind: NodeClaim, name: {claim}}}}}\nuntil: 30m"
    );
    scene.play(&rest).await;
    assert_eq!(scene.fake.vms(), vms);
    assert_eq!(scene.world.cluster.events().len(), events);
    let is_there = scene.world.cluster.store().claims().any(|there| there.name.as_str() == claim);
    assert!(is_there, "its machine is not taken down, and so it does not go");
    let asked: BTreeMap<_, _> =
        scene.world.cluster.requests().into_iter().filter(|(what, count)| requests.get(what) != Some(count)).collect();
    let reads = ["get", "list", "watch"];
    assert!(asked.keys().all(|(verb, _)| reads.contains(verb)), "{asked:?}");
    // What would be done was asked of the API: whether it is allowed.
    let asked = |action: &str| {
        scene.fake.load().get(action).map_or(0, |load| load.calls) > calls.get(action).map_or(0, |load| load.calls)
    };
    assert!(asked("CreateVms") && asked("DeleteVms"), "{:?}", scene.fake.load());
    joiner.stop(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_called_like_the_node_of_another_is_called_right_again() {
    let scene = scene(13);
    let joiner = scene.joiner();
    let names = |vms: &[Vm]| -> BTreeMap<String, String> {
        let tag = |vm: &Vm| vm.tags.iter().find(|tag| tag.key == "OscK8sNodeName").map(|tag| tag.value.clone());
        vms.iter().map(|vm| (vm.vm_id.clone(), tag(vm).unwrap_or_default())).collect()
    };
    let mistake = async {
        while names(&scene.fake.vms()).values().filter(|name| !name.is_empty()).count() < 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let vms = scene.fake.vms();
        let right = names(&vms);
        let other = ResourceTag::new("OscK8sNodeName", right[&vms[1].vm_id].as_str());
        scene.fake.tamper(&vms[0].vm_id, |vm| {
            vm.tags.retain(|tag| tag.key != "OscK8sNodeName");
            vm.tags.push(other);
        });
        right
    };
    let script = script("{names: [tinav6.c1r2p2]}", 2, "600m", "until: 10m");
    let (right, ()) = tokio::join!(mistake, scene.play(&script));
    assert_eq!((right.len(), names(&scene.fake.vms())), (2, right), "the same two machines, called as before");
    {
        let store = scene.world.cluster.store();
        assert!(store.claims().all(|claim| claim.is("Initialized")), "{:?}", store.claims().collect::<Vec<_>>());
    }
    joiner.stop(Duration::from_secs(5)).await;
}
