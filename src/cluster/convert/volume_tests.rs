//! Storage objects as the API server sends them.

use serde_json::json;

use super::*;

#[test]
fn a_bound_claim_names_its_volume_and_a_volume_its_driver_and_zone() {
    let claim = read_volume_claim(&json!({
        "metadata": {
            "name": "data-web-0", "namespace": "shop",
            "annotations": { "pv.kubernetes.io/bind-completed": "yes" },
        },
        "spec": { "storageClassName": "fast", "volumeName": "pv-1", "accessModes": ["ReadWriteOnce"] },
        "status": { "phase": "Bound" },
    }))
    .unwrap();
    assert_eq!((claim.class.as_deref(), claim.volume.as_deref(), claim.bound), (Some("fast"), Some("pv-1"), true));
    assert!(!claim.lost && !claim.deleting);
    let volume = read_volume(&json!({
        "metadata": { "name": "pv-1" },
        "spec": {
            "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": "vol-1" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["eu-1a"] }] },
            ] } },
        },
    }))
    .unwrap();
    assert_eq!(volume.driver.as_deref(), Some("ebs.csi.aws.com"));
    let zone = Requirement::new(labels::ZONE, Operator::In, ["eu-1a"]);
    assert_eq!(volume.topologies, Some(vec![vec![zone]]), "a driver's zone key is the well-known one");
}

#[test]
fn a_volume_of_one_node_says_so_and_keeps_the_host_name() {
    let of = |source: &str| {
        read_volume(&json!({
            "metadata": { "name": "disk" },
            "spec": {
                source: { "path": "/mnt" },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [
                    { "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"] }] },
                ] } },
            },
        }))
        .unwrap()
    };
    let on_one_node = |source: &str| of(source).on_one_node;
    assert_eq!(["local", "hostPath", "nfs"].map(on_one_node), [true, true, false]);
    assert_eq!(of("local").topologies, Some(vec![vec![Requirement::new(labels::HOSTNAME, Operator::In, ["node-1"])]]));
    assert_eq!(of("local").driver, None);
}

#[test]
fn the_zone_and_region_labels_of_a_volume_count_beside_its_node_affinity() {
    let of = |labels: serde_json::Value, terms: &[&str]| {
        let term =
            |zone: &&str| json!({ "matchExpressions": [{ "key": labels::ZONE, "operator": "In", "values": [zone] }] });
        let terms: Vec<_> = terms.iter().map(term).collect();
        let mut volume = json!({ "metadata": { "name": "pv", "labels": labels }, "spec": { "nfs": {} } });
        if !terms.is_empty() {
            volume["spec"]["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": terms } });
        }
        read_volume(&volume).unwrap().topologies
    };
    let zones = |zones: &[&str]| Requirement::new(labels::ZONE, Operator::In, zones.iter().copied());
    let region = Requirement::new(labels::REGION, Operator::In, ["eu"]);
    assert_eq!(of(json!({ "app": "db" }), &[]), None);
    assert_eq!(of(json!({ "topology.kubernetes.io/zone": "a__b" }), &[]), Some(vec![vec![zones(&["a", "b"])]]));
    let old =
        json!({ "failure-domain.beta.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/region": "eu" });
    assert_eq!(of(old, &[]), Some(vec![vec![region, zones(&["a"])]]), "the old keys");
    assert_eq!(of(json!({ "topology.kubernetes.io/zone": "a" }), &["a", "b"]), Some(vec![vec![zones(&["a"])]]));
    assert_eq!(of(json!({ "topology.kubernetes.io/zone": "c" }), &["a", "b"]), Some(vec![]), "nowhere");
    assert_eq!(of(json!({ "topology.kubernetes.io/zone": "a__" }), &[]), None, "kube-scheduler passes over it");
}

#[test]
fn migrated_plugins_count_as_their_csi_drivers() {
    let old =
        read_volume(&json!({ "metadata": { "name": "pv" }, "spec": { "awsElasticBlockStore": { "volumeID": "v" } } }));
    assert_eq!(old.unwrap().driver.as_deref(), Some("ebs.csi.aws.com"));
    let class = |provisioner: &str| {
        let value = json!({ "metadata": { "name": "c" }, "provisioner": provisioner });
        read_storage_class(&value).unwrap().driver
    };
    assert_eq!(class("kubernetes.io/cinder").as_deref(), Some("cinder.csi.openstack.org"));
    assert_eq!(class("csi.exoscale.com").as_deref(), Some("csi.exoscale.com"));
    assert_eq!(class("kubernetes.io/no-provisioner"), None);
}

#[test]
fn a_class_says_when_it_binds_and_where_it_may_be() {
    let class = read_storage_class(&json!({
        "metadata": { "name": "zonal", "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } },
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [
            { "matchLabelExpressions": [{ "key": "topology.kubernetes.io/zone", "values": ["a", "b"] }] },
        ],
    }))
    .unwrap();
    assert!(class.is_default && !class.immediate);
    assert_eq!(class.topologies, vec![vec![Requirement::new(labels::ZONE, Operator::In, ["a", "b"])]]);
    let plain = read_storage_class(&json!({ "metadata": { "name": "plain" }, "provisioner": "x" })).unwrap();
    assert!(plain.immediate, "what the API server takes when nothing is written");
}

#[test]
fn a_driver_without_a_count_sets_no_limit() {
    let node = read_csi_node(&json!({
        "metadata": { "name": "node-1" },
        "spec": { "drivers": [
            { "name": "ebs.csi.aws.com", "nodeID": "i-1", "topologyKeys": null, "allocatable": { "count": 25 } },
            { "name": "nfs.csi.k8s.io", "nodeID": "i-1", "topologyKeys": null },
        ] },
    }))
    .unwrap();
    assert_eq!(
        node.limits.into_iter().collect::<Vec<_>>(),
        [("ebs.csi.aws.com".into(), Some(25)), ("nfs.csi.k8s.io".into(), None)]
    );
    let attachment = read_attachment(&json!({
        "metadata": { "name": "csi-1" },
        "spec": { "attacher": "ebs.csi.aws.com", "nodeName": "node-1", "source": { "persistentVolumeName": "pv-1" } },
        "status": { "attached": true },
    }))
    .unwrap();
    assert_eq!((attachment.node.as_str(), attachment.volume.as_deref()), ("node-1", Some("pv-1")));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_field() {
    let error = read_volume(&json!({ "metadata": { "name": "pv" }, "spec": { "nodeAffinity": 3 } })).unwrap_err();
    assert!(error.to_string().starts_with("PersistentVolume pv: spec"), "{error}");
}
