//! Volumes: zones of PersistentVolumes and StorageClasses, attach limits, and what is wrong with a claim.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;

use super::super::{Plan, Reason, Violation, VolumeFault, check, improved, lower_bound, solve};
use super::build::*;
use crate::core::facts::samples::volume_claim;
use crate::core::facts::{
    Access, CsiNode, Kind, Pod, PodShape, Snapshot, StorageClass, Topologies, Volume, VolumeAttachment, VolumeClaim,
};
use crate::core::ids::{NodeName, ObjectKey};
use crate::core::labels::{HOSTNAME, INSTANCE_TYPE, ZONE};

pub(super) const DRIVER: &str = "ebs.csi.aws.com";

impl Scene {
    /// A claim; `volume` binds it.
    pub(super) fn with_volume_claim(mut self, name: &str, class: Option<&str>, volume: Option<&str>) -> Self {
        let claim = VolumeClaim { class: class.map(Arc::from), ..volume_claim("default", name, volume) };
        self.snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
        self
    }

    pub(super) fn with_volume(mut self, name: &str, topologies: Option<Topologies>) -> Self {
        let volume =
            Volume { name: name.into(), deleting: false, driver: Some(DRIVER.into()), on_one_node: false, topologies };
        self.snapshot.volumes.insert(name.into(), Arc::new(volume));
        self
    }

    /// A claim that is bound to a volume of its own in these zones.
    pub(super) fn bound_in(self, claim: &str, zones: &[&str]) -> Self {
        let volume = format!("pv-{claim}");
        let terms = zones.iter().map(|zone| vec![within(ZONE, &[zone])]).collect();
        self.with_volume(&volume, Some(terms)).with_volume_claim(claim, None, Some(&volume))
    }

    pub(super) fn with_storage_class(mut self, name: &str, zones: &[&str], immediate: bool) -> Self {
        let topologies = if zones.is_empty() { vec![] } else { vec![vec![within(ZONE, zones)]] };
        let class = StorageClass {
            name: name.into(),
            driver: Some(DRIVER.into()),
            immediate,
            topologies,
            is_default: name.starts_with("default"),
            created: Timestamp::UNIX_EPOCH,
        };
        self.snapshot.storage_classes.insert(name.into(), Arc::new(class));
        self
    }

    pub(super) fn with_limit(mut self, node: &str, limit: Option<u32>) -> Self {
        let node = NodeName::from(node);
        let csi = CsiNode { node: node.clone(), limits: [(DRIVER.into(), limit)].into() };
        self.snapshot.csi_nodes.insert(node, Arc::new(csi));
        self
    }

    pub(super) fn running_with(self, name: &str, node: &str, shape: &PodShape, claims: &[&str]) -> Self {
        let mut scene = self.running(name, node, shape);
        let uid = pod(name, 0, shape).uid.clone();
        let mut one = (*scene.snapshot.pods[&uid]).clone();
        one.volume_claims = claims.iter().map(|claim| Arc::from(*claim)).collect();
        scene.snapshot.pods.insert(uid, Arc::new(one));
        scene
    }
}

/// A pod that mounts claims.
pub(super) fn mounting(name: &str, shape: &PodShape, claims: &[&str]) -> Arc<Pod> {
    let mut one = (*pod(name, 0, shape)).clone();
    one.volume_claims = claims.iter().map(|claim| Arc::from(*claim)).collect();
    Arc::new(one)
}

fn zones(plan: &Plan) -> Vec<&str> {
    (0..plan.claims.len()).map(|at| pinned(plan, at, ZONE).unwrap_or("open")).collect()
}

/// Why the only pod was refused.
fn reason(scene: Scene, claims: &[&str]) -> Reason {
    let plan = scene.with_pods(vec![mounting("one", &shape(100, 100), claims)]).solve();
    plan.refused[0].reasons[0].clone()
}

#[test]
fn a_bound_volume_draws_its_pod_to_its_zone() {
    let scene = Scene::new().bound_in("data", &["zone-b"]);
    let plan = scene.with_pods(vec![mounting("db", &shape(500, 512), &["data"])]).solve();
    assert_eq!(zones(&plan), ["zone-b"]);
}

#[test]
fn a_class_draws_pods_with_unbound_claims_to_its_zones() {
    let scene =
        Scene::new().with_storage_class("zonal", &["zone-c"], false).with_storage_class("default", &["zone-b"], false);
    let scene = scene.with_volume_claim("a", Some("zonal"), None).with_volume_claim("b", None, None);
    let plan =
        scene.with_pods(vec![mounting("a", &shape(500, 512), &["a"]), mounting("b", &shape(500, 512), &["b"])]).solve();
    let mut found = zones(&plan);
    found.sort_unstable();
    assert_eq!(found, ["zone-b", "zone-c"], "a claim without a class has the default class");
}

#[test]
fn pods_whose_volumes_are_in_one_zone_share_nodes_with_others_of_their_shape() {
    let mut scene = Scene::new().with_pods(pods("plain", 6, &shape(500, 512)));
    for at in 0..6 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(500, 512), &[&claim]));
    }
    let plan = scene.solve();
    assert!(plan.refused.is_empty());
    let alone = Scene::new().with_pods(pods("plain", 12, &shape(500, 512))).solve();
    assert!(plan.price <= alone.price + 1e-9, "{} instead of {}", plan.price, alone.price);
}

#[test]
fn an_existing_node_in_the_wrong_zone_is_not_used() {
    let scene = Scene::new().with_node(node("n-a", 8, 32, &[(ZONE, "zone-a")])).with_node(node(
        "n-b",
        8,
        32,
        &[(ZONE, "zone-b")],
    ));
    let scene = scene.bound_in("data", &["zone-b"]).with_pods(vec![mounting("db", &shape(500, 512), &["data"])]);
    let plan = scene.solve();
    assert_eq!(plan.existing[0].node, Some("n-b".into()));
}

#[test]
fn a_volume_of_several_zones_takes_a_node_that_is_there_in_any_of_them() {
    let scene = Scene::new().with_node(node("n-b", 8, 32, &[(ZONE, "zone-b")])).bound_in("data", &["zone-a", "zone-b"]);
    let plan = scene.with_pods(vec![mounting("db", &shape(500, 512), &["data"])]).solve();
    assert_eq!(plan.existing[0].node, Some("n-b".into()), "no node is bought for the first zone of the list");
}

/// A claim that is bound to a volume that lives on one node.
fn on_host(mut scene: Scene, claim: &str, host: &str) -> Scene {
    let name: Arc<str> = format!("pv-{claim}").into();
    scene = scene.with_volume_claim(claim, None, Some(&name));
    let topologies = Some(vec![vec![within(HOSTNAME, &[host])]]);
    let volume = Volume { name: Arc::clone(&name), deleting: false, driver: None, on_one_node: true, topologies };
    scene.snapshot.volumes.insert(name, Arc::new(volume));
    scene
}

#[test]
fn a_volume_of_a_node_that_is_there_keeps_its_pod_on_that_node() {
    let scene = |host: &str| {
        let [one, two] = ["n-1", "n-2"].map(|name| node(name, 8, 32, &[(ZONE, "zone-a"), (HOSTNAME, name)]));
        on_host(Scene::new().with_node(one).with_node(two), "data", host)
    };
    for host in ["n-1", "n-2"] {
        let plan = scene(host).with_pods(vec![mounting("db", &shape(500, 512), &["data"])]).solve();
        assert_eq!(plan.existing[0].node, Some(host.into()), "{plan:#?}");
    }
    // There is no room on it, and no other node will do.
    let full = scene("n-2").with_pods(vec![mounting("db", &shape(500_000, 512), &["data"])]);
    assert_eq!(full.solve().refused.len(), 1);
    let told = reason(scene("n-2").running("big", "n-2", &shape(8_000, 512)), &["data"]).to_string();
    assert!(told.contains("kubernetes.io/hostname In [n-2]") && told.contains("make room on that node"), "{told}");
    // Another's name is no place for it, and the check sees that.
    let right = scene("n-1").with_pods(vec![mounting("db", &shape(500, 512), &["data"])]);
    let plan = right.solve();
    let found = check(&on_host(right, "data", "n-2").problem(), &plan);
    assert!(matches!(&found[..], [Violation::VolumeUnreachable { .. }]), "{found:?}");
}

#[test]
fn a_volume_of_a_node_that_is_gone_keeps_its_pod_from_all_others_and_says_how_to_go_on() {
    let scene = || Scene::new().with_node(node("n-1", 8, 32, &[(ZONE, "zone-a"), (HOSTNAME, "n-1")]));
    let told = reason(on_host(scene(), "data", "n-2"), &["data"]).to_string();
    assert!(told.contains("pv-data lives on node n-2, which is gone") && told.contains("delete the claim"), "{told}");
    // The check sees it, too: the plan was made while the volume was on the node that is there.
    let pod = vec![mounting("db", &shape(500, 512), &["data"])];
    let right = on_host(scene(), "data", "n-1").with_pods(pod);
    let plan = right.solve();
    let found = check(&on_host(right, "data", "n-2").problem(), &plan);
    assert!(matches!(&found[..], [Violation::VolumeUnreachable { .. }]), "{found:?}");
}

#[test]
fn volumes_do_not_count_for_spread_constraints() {
    // One pod in each zone; the next one's volume decides, though the constraint would allow any.
    let mut web = shape(600, 512);
    web.labels = labels(&[("app", "web")]);
    let mut spread = spread(ZONE, 1, &[("app", "web")]);
    spread.min_domains = Some(3);
    web.spreads.push(spread);
    let mut scene = Scene::new().bound_in("data", &["zone-b"]);
    for zone in ZONES {
        scene = scene.with_node(node(zone, 1, 1, &[(ZONE, zone)])).running(&format!("on-{zone}"), zone, &web);
    }
    let plan = scene.with_pods(vec![mounting("web-0", &web, &["data"])]).solve();
    assert_eq!(zones(&plan), ["zone-b"]);
}

#[test]
fn a_node_takes_no_more_volumes_than_it_can_attach() {
    let mut scene = Scene::new().with_node(node("n", 64, 256, &[(ZONE, "zone-a")])).with_limit("n", Some(3));
    scene = scene.bound_in("there", &["zone-a"]).running_with("old", "n", &shape(100, 100), &["there"]);
    for at in 0..4 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(100, 100), &[&claim]));
    }
    let plan = scene.solve();
    assert_eq!(plan.existing[0].pods.len(), 2);
    assert_eq!(plan.claims.iter().map(|claim| claim.pods.len()).sum::<usize>(), 2);
}

#[test]
fn a_volume_counts_once_however_many_pods_use_it() {
    let mut scene = Scene::new().with_node(node("n", 64, 256, &[(ZONE, "zone-a")])).with_limit("n", Some(1));
    scene = scene.bound_in("shared", &["zone-a"]).bound_in("other", &["zone-a"]);
    for at in 0..20 {
        scene.pods.push(mounting(&format!("web-{at}"), &shape(100, 100), &["shared"]));
    }
    scene.pods.push(mounting("one-more", &shape(100, 50), &["other"]));
    let plan = scene.solve();
    assert_eq!(plan.existing[0].pods.len(), 20);
    assert_eq!(plan.claims.len(), 1, "the other volume finds no slot");
}

#[test]
fn what_is_still_attached_takes_a_slot_unless_it_is_the_pods_own() {
    let scene = || {
        let mut scene = Scene::new().with_node(node("n", 8, 32, &[(ZONE, "zone-a")])).with_limit("n", Some(1));
        scene = scene.bound_in("left", &["zone-a"]).bound_in("new", &["zone-a"]);
        let one = VolumeAttachment { name: "csi-1".into(), node: "n".into(), volume: Some("pv-left".into()) };
        scene.snapshot.attachments.insert(Arc::clone(&one.name), Arc::new(one));
        scene.snapshot.attached.insert("n".into(), [Arc::from("csi-1")].into_iter().collect());
        scene
    };
    let plan = scene().with_pods(vec![mounting("db", &shape(100, 100), &["new"])]).solve();
    assert!(plan.existing.is_empty());
    let plan = scene().with_pods(vec![mounting("db", &shape(100, 100), &["left"])]).solve();
    assert_eq!(plan.existing.len(), 1);
}

#[test]
fn a_driver_without_a_count_and_volumes_that_are_not_attached_have_no_limit() {
    let mut scene = Scene::new().with_node(node("n", 64, 256, &[(ZONE, "zone-a")])).with_limit("n", None);
    for at in 0..50 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(100, 100), &[&claim]));
    }
    assert_eq!(scene.solve().existing[0].pods.len(), 50);
    let mut scene = scene.with_limit("n", Some(0));
    for (name, volume) in scene.snapshot.volumes.clone() {
        scene.snapshot.volumes.insert(name, Arc::new(Volume { driver: None, ..(*volume).clone() }));
    }
    assert_eq!(scene.solve().existing[0].pods.len(), 50, "NFS");
}

#[test]
fn new_nodes_keep_the_limits_that_the_cloud_knows() {
    let mut few = types();
    for kind in &mut few {
        kind.attach_limits.insert(DRIVER.into(), 2);
    }
    let mut scene = Scene::default().with_pool(pool("default"), few);
    for at in 0..6 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(10, 10), &[&claim]));
    }
    let plan = scene.solve();
    assert_eq!(plan.claims.len(), 3);
    let scene = scene.bound_in("x", &["zone-a"]).bound_in("y", &["zone-a"]).bound_in("z", &["zone-a"]);
    let scene = Scene { pods: vec![mounting("all", &shape(10, 10), &["x", "y", "z"])], ..scene };
    let refused = scene.solve().refused;
    let Reason::AttachLimit { wanted: 3, most: 2, .. } = &refused[0].reasons[0] else { panic!("{refused:?}") };
}

#[test]
fn a_node_without_slots_is_still_there_for_pods_without_volumes() {
    let sizes = [700, 500, 300];
    let mounting = |scene: Scene, at: usize, cpu: i64| {
        let claim = format!("data-{at}");
        let mut scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(cpu, 100), &[&claim]));
        scene
    };
    // Larger, equal and smaller ones, so that some are tried after those with volumes were refused.
    let others = |scene: Scene| {
        let one = |scene: Scene, cpu: i64| scene.with_pods(pods(&format!("plain-{cpu}"), 1, &shape(cpu, 100)));
        sizes.into_iter().fold(scene, one)
    };
    let scene = Scene::new().with_node(node("n", 64, 256, &[(ZONE, "zone-a")])).with_limit("n", Some(1));
    let plan = others((0..2).fold(scene, |scene, at| mounting(scene, at, 500))).solve();
    assert_eq!((plan.existing[0].pods.len(), plan.claims.len()), (4, 1), "{plan:#?}");

    let mut few = types();
    for kind in &mut few {
        kind.attach_limits.insert(DRIVER.into(), 1);
    }
    let scene = Scene::default().with_pool(pool("default"), few);
    let plan = others((0..2).fold(scene, |scene, at| mounting(scene, at, 500))).solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (2, 0), "{plan:#?}");
}

#[test]
fn a_node_that_has_not_told_its_limits_has_those_of_its_instance_type() {
    let mut few = types();
    few[3].attach_limits.insert(DRIVER.into(), 1);
    let labels = [(ZONE, "zone-a"), (INSTANCE_TYPE, few[3].name.as_str()), ("karpenter.sh/nodepool", "default")];
    let mut fresh = node("n", 8, 32, &labels);
    fresh.labels.remove(HOSTNAME);
    let mut scene = Scene::default().with_pool(pool("default"), few.clone()).with_node(fresh);
    for at in 0..2 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(10, 10), &[&claim]));
    }
    assert_eq!(scene.solve().existing[0].pods.len(), 1);
    assert_eq!(scene.with_limit("n", Some(5)).solve().existing[0].pods.len(), 2, "what it tells counts more");
}

/// No cloud says what depends on how the driver is configured; the machines that run do.
#[test]
fn new_nodes_keep_the_limits_that_others_of_their_type_show() {
    let few: Vec<_> = types().into_iter().take(1).collect();
    let labels = [(ZONE, "zone-b"), (INSTANCE_TYPE, few[0].name.as_str())];
    let mut scene = Scene::default().with_pool(pool("default"), few.clone()).with_node(node("n", 8, 32, &labels));
    for at in 0..6 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(10, 10), &[&claim]));
    }
    assert_eq!(scene.solve().claims.len(), 1, "nobody knows of a limit");
    let scene = scene.with_limit("n", Some(2));
    assert_eq!(scene.solve().claims.len(), 3);
    let too_full = Scene::default().with_pool(pool("default"), few);
    let plan = Scene {
        pods: scene.pods.clone(),
        snapshot: Snapshot { csi_nodes: imbl::OrdMap::new(), ..scene.snapshot.clone() },
        ..too_full
    }
    .solve();
    assert!(check(&scene.problem(), &plan).iter().any(|one| matches!(one, Violation::TooManyVolumes { .. })));
}

#[test]
fn what_is_wrong_with_a_claim_is_said_with_its_remedy() {
    let broken = |change: fn(&mut VolumeClaim)| {
        let mut scene = Scene::new().bound_in("data", &["zone-a"]);
        let key = ObjectKey::new("default", "data");
        let mut claim = (*scene.snapshot.volume_claims[&key]).clone();
        change(&mut claim);
        scene.snapshot.volume_claims.insert(key, Arc::new(claim));
        reason(scene, &["data"]).to_string()
    };
    let unbound = |class: Option<&str>| {
        let scene = Scene::new().with_storage_class("at-once", &[], true).with_volume_claim("data", class, None);
        reason(scene, &["data"]).to_string()
    };
    let withheld = {
        let mut scene = Scene::new().bound_in("data", &["zone-a"]);
        scene.snapshot.withheld.insert(Kind::Volume);
        reason(scene, &["data"]).to_string()
    };
    let told = [
        reason(Scene::new(), &["data"]).to_string(),
        broken(|claim| claim.deleting = true),
        broken(|claim| claim.lost = true),
        broken(|claim| claim.volume = Some("gone".into())),
        broken(|claim| claim.bound = false),
        unbound(None),
        unbound(Some("")),
        unbound(Some("missing")),
        unbound(Some("at-once")),
        withheld,
        reason(Scene::new().bound_in("a", &["zone-a"]).bound_in("b", &["zone-b"]), &["a", "b"]).to_string(),
    ];
    insta::assert_snapshot!(told.join("\n"), @r"
    PersistentVolumeClaim default/data does not exist; create it, or correct spec.volumes of the pod
    PersistentVolumeClaim default/data is being deleted; wait for its end and create it again
    PersistentVolumeClaim default/data has status.phase Lost: its PersistentVolume is gone; restore that, or replace the claim
    PersistentVolumeClaim default/data: spec.volumeName names gone, which does not exist or is being deleted; restore it, or replace the claim
    PersistentVolumeClaim default/data: its binding to pv-data (spec.volumeName) is not complete; see the events of the claim
    PersistentVolumeClaim default/data is not bound and has no StorageClass; set spec.storageClassName, mark a default class, or bind it by hand
    PersistentVolumeClaim default/data is not bound, and its spec.storageClassName is empty, so that only a PersistentVolume without a class is bound to it; create one of its size and access modes, or name a StorageClass
    PersistentVolumeClaim default/data: spec.storageClassName names missing, which does not exist; create that StorageClass, or correct the claim
    PersistentVolumeClaim default/data is not bound, and StorageClass at-once binds at once; see its provisioner, or use volumeBindingMode WaitForFirstConsumer
    the pod has volumes, and joiner may not list PersistentVolumes; add the rule that its log names to its ClusterRole
    PersistentVolumeClaim default/b can be reached from no place that the pod's other volumes can be reached from; put them into one place
    ");
}

#[test]
fn one_bad_claim_does_not_hold_up_the_others() {
    let scene = Scene::new().bound_in("good", &["zone-a"]);
    let pods = vec![mounting("a", &shape(100, 100), &["good"]), mounting("b", &shape(100, 100), &["bad"])];
    let plan = scene.with_pods(pods).solve();
    assert_eq!(plan.claims.len(), 1);
    let missing = VolumeFault::NoClaim { claim: ObjectKey::new("default", "bad") };
    assert_eq!(plan.refused[0].reasons, [Reason::Volume(missing)]);
}

#[test]
fn a_pool_without_the_volumes_zone_says_so_and_a_pod_that_excludes_it_too() {
    let mut elsewhere = pool("default");
    elsewhere.template.requirements.push(within(ZONE, &["zone-a"]));
    let scene = Scene::default().with_pool(elsewhere, types()).bound_in("data", &["zone-b"]);
    let told = reason(scene, &["data"]);
    assert!(matches!(&told, Reason::VolumeTopology { key, .. } if &**key == ZONE), "{told:?}");
    assert!(told.to_string().contains("zone-b"), "{told}");

    let mut picky = shape(100, 100);
    picky.node_selector = labels(&[(ZONE, "zone-a")]);
    let scene = Scene::new().bound_in("data", &["zone-b"]).with_pods(vec![mounting("one", &picky, &["data"])]);
    assert!(matches!(&scene.solve().refused[0].reasons[0], Reason::VolumesElsewhere { key } if &**key == ZONE));
}

#[test]
fn a_wish_for_another_zone_gives_way_to_the_volume() {
    let mut picky = shape(100, 100);
    let term = vec![within(ZONE, &["zone-a"])];
    picky.node_affinity.preferred.push(crate::core::facts::Weighted { weight: 1, term });
    let scene = Scene::new().bound_in("data", &["zone-b"]).with_pods(vec![mounting("one", &picky, &["data"])]);
    assert_eq!(zones(&scene.solve()), ["zone-b"]);
}

#[test]
fn the_checker_sees_volumes_out_of_reach_and_nodes_with_too_many() {
    let mut scene = Scene::new().with_node(node("n", 64, 256, &[(ZONE, "zone-a")]));
    for at in 0..3 {
        let claim = format!("data-{at}");
        scene = scene.bound_in(&claim, &["zone-a"]);
        scene.pods.push(mounting(&format!("db-{at}"), &shape(100, 100), &[&claim]));
    }
    let plan = scene.solve();
    let scene = scene.with_limit("n", Some(2)).bound_in("data-1", &["zone-b"]);
    let found: Vec<String> = check(&scene.problem(), &plan).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    a volume of pod uid-db-1 may not be reachable from n
    n cannot attach so many volumes of ebs.csi.aws.com
    ");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random volumes on few nodes with few slots: no plan breaks a rule, and the order of the pods does not matter.
    #[test]
    fn no_plan_breaks_a_rule(
        volumes in prop::collection::vec(proptest::sample::subsequence(&ZONES[..], 0..3), 8),
        mounts in prop::collection::vec((prop::collection::btree_set(0..8_usize, 0..3), 0..2_usize), 1..12),
        running in prop::collection::vec((0..8_usize, 0..2_usize), 0..4),
        limits in prop::collection::vec(prop::option::of(0..4_u32), 3),
    ) {
        let mut few = types();
        for kind in &mut few {
            kind.attach_limits.extend(limits[2].map(|limit| (DRIVER.into(), limit)));
        }
        let mut scene = Scene::default().with_pool(pool("default"), few.clone());
        for (at, zone) in ["zone-a", "zone-b"].into_iter().enumerate() {
            let (name, kind) = (format!("n{at}"), few[at].name.as_str());
            scene = scene.with_node(node(&name, 2, 8, &[(ZONE, zone), (INSTANCE_TYPE, kind)])).with_limit(&name, limits[at]);
        }
        for (at, zones) in volumes.iter().enumerate() {
            scene = scene.bound_in(&format!("c{at}"), zones);
        }
        for (at, (claim, node)) in running.into_iter().enumerate() {
            scene = scene.running_with(&format!("r{at}"), &format!("n{node}"), &shape(100, 100), &[&format!("c{claim}")]);
        }
        for (at, (claims, size)) in mounts.into_iter().enumerate() {
            let claims: Vec<String> = claims.into_iter().map(|claim| format!("c{claim}")).collect();
            let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
            scene.pods.push(mounting(&format!("p{at:02}"), &shape([100, 900][size], 100), &claims));
        }
        let plan = solve(&scene.problem());
        let better = improved(&mut crate::core::scheduling::Ground::default(), &scene.problem(), plan.clone());
        for one in [&plan, &better] {
            let violations = check(&scene.problem(), one);
            prop_assert!(violations.is_empty(), "{:#?}", violations);
            prop_assert!(lower_bound(&scene.problem(), one) <= one.price + 1e-9);
        }
        let (before, now) = (plan.refused.len(), better.refused.len());
        prop_assert!(now < before || now == before && better.price <= plan.price + 1e-9);
        prop_assert!(plan.refused.iter().all(|refusal| !refusal.reasons.is_empty()));
        let mut turned = scene.pods.clone();
        turned.reverse();
        let problem = super::super::Problem { pods: &turned, ..scene.problem() };
        prop_assert_eq!(format!("{plan:#?}"), format!("{:#?}", solve(&problem)));
    }
}

#[test]
fn pods_that_share_a_volume_that_is_yet_to_come_are_in_one_zone() {
    let claim = ObjectKey::new("default", "data");
    let scene = |zones: [&str; 2]| {
        let of = |name: &str, zone: &str| {
            let mut one = shape(500, 512);
            one.node_selector = if zone.is_empty() { labels(&[]) } else { labels(&[(ZONE, zone)]) };
            mounting(name, &one, &["data"])
        };
        let scene = Scene::new().with_storage_class("zonal", &[], false).with_volume_claim("data", Some("zonal"), None);
        // There is room for one of them that is in no hurry.
        let scene = scene.with_node(node("old", 1, 1, &[(ZONE, "zone-a")]));
        scene.with_pods(vec![of("one", zones[0]), of("two", zones[1])])
    };
    let plan = scene(["zone-c", ""]).plan();
    assert_eq!((plan.refused.len(), zones(&plan)), (0, vec!["zone-c"]));
    let torn = scene(["zone-b", "zone-c"]).plan();
    assert_eq!((torn.claims.len(), torn.refused.len()), (1, 1));
    assert_eq!(torn.refused[0].reasons, [Reason::SharedVolume { claim: "default/data".into() }]);
    // Pods of many nodes may share it: wherever its volume will be, all reach it.
    let everywhere = |mut scene: Scene| {
        let fact = VolumeClaim { access: Access::ManyNodes, ..(*scene.snapshot.volume_claims[&claim]).clone() };
        scene.snapshot.volume_claims.insert(claim.clone(), Arc::new(fact));
        scene
    };
    let plan = everywhere(scene(["zone-b", "zone-c"])).plan();
    assert_eq!((plan.claims.len(), plan.refused.len()), (2, 0));
    let found = check(&scene(["zone-b", "zone-c"]).problem(), &plan);
    assert_eq!(found, [Violation::VolumeTorn { claim: claim.clone() }]);
}

#[test]
fn a_claim_for_one_pod_at_a_time_is_not_given_to_two() {
    let one_pod = |mut scene: Scene| {
        let key = ObjectKey::new("default", "data");
        let claim = VolumeClaim { access: Access::OnePod, ..(*scene.snapshot.volume_claims[&key]).clone() };
        scene.snapshot.volume_claims.insert(key, Arc::new(claim));
        scene
    };
    let both = || vec![mounting("one", &shape(100, 100), &["data"]), mounting("two", &shape(100, 100), &["data"])];
    let scene = one_pod(Scene::new().bound_in("data", &["zone-b"])).with_pods(both());
    let plan = scene.solve();
    assert_eq!((plan.claims.len(), plan.refused.len()), (1, 1));
    let (claim, other) = (ObjectKey::new("default", "data"), |name: &str| ObjectKey::new("default", name));
    let used = |pod: &str| vec![Reason::Volume(VolumeFault::InUse { claim: claim.clone(), pod: other(pod) })];
    assert_eq!(plan.refused[0].reasons, used("one"));
    // Who comes first and has no place leaves it to the next.
    let first = |cpu: i64| (0..5).map(move |at| mounting(&format!("first-{at}"), &shape(cpu, 100), &["data"]));
    let next = mounting("next", &shape(100, 100), &["data"]);
    for plan in [Scene::solve, Scene::plan] {
        let pods = first(1_000_000).chain([Arc::clone(&next)]).collect();
        let plan = plan(&one_pod(Scene::new().bound_in("data", &["zone-b"])).with_pods(pods));
        assert_eq!((plan.claims.len(), plan.refused.len()), (1, 5));
        assert_eq!(plan.claims[0].pods, [Arc::clone(&next)]);
        assert!(plan.refused.iter().all(|refusal| refusal.pod != next.uid));
    }
    // Who runs has it.
    let scene = Scene::new().bound_in("data", &["zone-b"]).with_node(node("old", 1, 1, &[(ZONE, "zone-b")]));
    let scene = one_pod(scene.running_with("runs", "old", &shape(100, 100), &["data"])).with_pods(both());
    let plan = scene.solve();
    assert_eq!((plan.existing.len(), plan.claims.len(), plan.refused.len()), (0, 0, 2));
    assert_eq!(plan.refused[0].reasons, used("runs"));
    let for_a_node = Scene::new().bound_in("data", &["zone-b"]).with_pods(both());
    let plan = for_a_node.solve();
    assert_eq!(plan.refused.len(), 0, "ReadWriteOnce is for a node");
    let shared = || vec![Violation::VolumeShared { claim: claim.clone() }];
    assert_eq!(check(&one_pod(for_a_node).problem(), &plan), shared());
    // One that runs and one that is planned are two as well.
    let one = || vec![mounting("one", &shape(100, 100), &["data"])];
    let alone = one_pod(Scene::new().bound_in("data", &["zone-b"])).with_pods(one());
    let plan = alone.solve();
    let old = node("old", 1, 1, &[(ZONE, "zone-b")]);
    let beside = alone.with_node(old).running_with("runs", "old", &shape(100, 100), &["data"]);
    assert_eq!(check(&beside.problem(), &plan), shared());
}
