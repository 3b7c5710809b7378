//! What a plan for a live cluster is made for.

use super::*;
use crate::core::facts::PodShape;
use crate::core::facts::samples::{pod, ready_pool, start};

#[test]
fn every_pod_of_a_cluster_that_waits_is_planned_or_set_aside() {
    let mut fold = Fold::default();
    fold.fold(Fact::PoolSeen(Arc::new(ready_pool())));
    let waiting = |name: &str, unschedulable: bool, unjudged: bool, scheduler: Option<&str>| {
        let sample = pod(name, None);
        let shape = PodShape { scheduler: scheduler.map(Into::into), ..(*sample.shape).clone() };
        Pod { unschedulable, unjudged, shape: Arc::new(shape), ..sample }
    };
    let pods = [
        waiting("weighed", true, false, None),
        waiting("weighed-elsewhere", true, false, Some("other")),
        waiting("new", false, true, None),
        waiting("gated", false, false, None),
        waiting("foreign", false, true, Some("other")),
        Pod { deleting: Some(start()), ..waiting("leaving", true, false, None) },
        pod("runs", Some("node-1")),
    ];
    for pod in pods {
        fold.fold(Fact::PodSeen(Arc::new(pod)));
    }
    let input = from_snapshot(fold.snapshot().clone(), Vec::new(), Features::default(), start());
    let planned: Vec<&str> = input.pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(planned, ["new", "weighed", "weighed-elsewhere"]);
    let aside: Vec<(&str, &str)> = input.set_aside.iter().map(|(key, why)| (&*key.name, &**why)).collect();
    let [("foreign", left), ("gated", gated)] = aside[..] else { panic!("{aside:?}") };
    assert!(left.contains("scheduler other") && gated.contains("spec.schedulingGates"), "{aside:?}");
}

/// The question that a text of manifests makes.
fn of_text(text: &str) -> Input {
    let shapes = crate::cluster::convert::ShapeStore::new();
    let sources = [crate::manifests::Source::Stdin];
    let gathered = crate::manifests::gather(&sources, &mut || Ok(text.to_owned()), &shapes);
    from_manifests(gathered, Vec::new(), Features::default(), start())
}

/// As in a cluster: what their scheduler has not judged is its business, and what it found no place for is joiner's.
#[test]
fn pods_of_other_schedulers_in_files_are_planned_once_those_say_that_they_fit_nowhere() {
    let spec = "schedulerName: other, containers: [{name: c}]";
    let said = "status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}";
    let input = of_text(&format!(
        "{{kind: Pod, metadata: {{name: new}}, spec: {{{spec}}}}}\n---\n\
         {{kind: Pod, metadata: {{name: weighed}}, spec: {{{spec}}}, {said}}}\n---\n\
         {{kind: Pod, metadata: {{name: own}}, spec: {{schedulerName: default-scheduler, containers: [{{name: c}}]}}}}\n---\n\
         {{kind: Deployment, apiVersion: apps/v1, metadata: {{name: d}}, spec: {{replicas: 1, selector: {{matchLabels: {{a: b}}}}, \
         template: {{metadata: {{labels: {{a: b}}}}, spec: {{{spec}}}}}}}}}"
    ));
    let planned: Vec<&str> = input.pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(planned, ["own", "weighed"]);
    let mut aside: Vec<(&str, &str)> = input.set_aside.iter().map(|(key, why)| (&*key.name, &**why)).collect();
    aside.sort_unstable();
    assert!(
        matches!(aside[..], [("d-0", one), ("new", other)] if one == other && one.contains("left to scheduler other")),
        "{aside:?}"
    );
}

#[test]
fn namespaces_have_the_label_that_names_them_with_or_without_a_manifest() {
    let input = of_text(
        "{kind: Namespace, metadata: {name: one, labels: {team: x}}}\n---\n\
         {kind: Pod, metadata: {name: p, namespace: two}, spec: {containers: [{name: c}]}}",
    );
    let label =
        |name: &str| input.snapshot.namespaces[name].get("kubernetes.io/metadata.name").map(ToString::to_string);
    assert_eq!((label("one").as_deref(), label("two").as_deref()), (Some("one"), Some("two")));
    assert_eq!(input.snapshot.namespaces["one"].len(), 2);
}

#[test]
fn kinds_that_are_left_out_are_said_once_with_their_number() {
    let input = of_text(
        "{kind: Deploymnet, metadata: {name: a}}\n---\n{kind: ConfigMap, metadata: {name: a}}\n---\n\
         {kind: ConfigMap, metadata: {name: b}}\n---\n{kind: Service, metadata: {name: s}}",
    );
    let [line] = &input.notices[..] else { panic!("{:?}", input.notices) };
    assert!(line.contains("ConfigMap (2), Deploymnet (1)") && !line.contains("Service"), "{line}");
}

#[test]
fn pods_of_a_statefulset_are_numbered_where_somebody_tells_them_apart() {
    let set = |selector: &str| {
        of_text(&format!(
            "{{kind: StatefulSet, metadata: {{name: db}}, spec: {{replicas: 2, template: {{metadata: {{labels: {{app: db}}}}, spec: {{\
             containers: [{{name: c}}], affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [\
             {{topologyKey: zone, labelSelector: {{matchLabels: {{{selector}}}}}}}]}}}}}}}}}}}}"
        ))
    };
    let told = set("statefulset.kubernetes.io/pod-name: db-0");
    let labels = |at: usize| told.pods[at].shape.labels.clone();
    assert_eq!(&*labels(0)["statefulset.kubernetes.io/pod-name"], "db-0");
    assert_eq!(&*labels(1)["apps.kubernetes.io/pod-index"], "1");
    let alike = set("app: db");
    assert!(Arc::ptr_eq(&alike.pods[0].shape, &alike.pods[1].shape), "{:?}", alike.pods);
}

#[test]
fn a_job_gets_the_pods_that_it_still_needs() {
    let pods = |spec: &str, status: &str, there: &[&str]| {
        let spec = format!("{spec}, template: {{spec: {{containers: [{{name: c}}]}}}}");
        let job = format!("{{kind: Job, metadata: {{name: j}}, spec: {{{spec}}}, status: {{{status}}}}}");
        let one = |(at, phase): (usize, &&str)| {
            format!(
                "\n---\n{{kind: Pod, metadata: {{name: j-x{at}, ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: j, uid: u}}]}}, \
                 spec: {{nodeName: n, containers: [{{name: c}}]}}, status: {{phase: {phase}}}}}"
            )
        };
        let there: String = there.iter().enumerate().map(one).collect();
        of_text(&format!("{job}{there}")).pods.len()
    };
    let spec = "parallelism: 3, completions: 5";
    assert_eq!(pods(spec, "", &[]), 3);
    assert_eq!(pods(spec, "succeeded: 3", &[]), 2);
    assert_eq!(pods(spec, "succeeded: 5", &[]), 0);
    assert_eq!(pods(spec, "", &["Running"]), 2, "no more than three at a time");
    assert_eq!(
        pods(spec, "succeeded: 3", &["Running", "Succeeded", "Failed"]),
        1,
        "the one that succeeded is among three"
    );
    assert_eq!(
        pods(spec, "succeeded: 1", &["Succeeded", "Succeeded", "Succeeded", "Succeeded"]),
        1,
        "the status is old"
    );
    assert_eq!((pods("parallelism: 3", "", &[]), pods("parallelism: 3", "succeeded: 1", &[])), (3, 0));
}

#[test]
fn workloads_of_one_name_have_all_their_pods() {
    let of = |kind: &str, cpu: u32| {
        format!(
            "{{kind: {kind}, metadata: {{name: web}}, spec: {{replicas: 2, parallelism: 2, completions: 2, template: {{spec: \
                 {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}}}"
        )
    };
    let input = of_text(&["Deployment", "Job", "ReplicaSet"].map(|kind| of(kind, 1)).join("\n---\n"));
    let names: Vec<&str> = input.pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(names, ["web-0", "web-1", "web-2", "web-3", "web-4", "web-5"]);
}

#[test]
fn kinds_of_other_apis_are_left_out() {
    let input = of_text(
        "{apiVersion: example.com/v1, kind: NodePool, metadata: {name: default}, spec: {}}\n---\n\
         {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: a}, spec: {}}\n---\n\
         {apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: old}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}}",
    );
    assert!(input.snapshot.pools.is_empty() && input.pods.len() == 1, "{:?}", input.notices);
    assert!(
        input.notices.iter().any(|notice| notice.contains("NodePool of example.com/v1 (1)")),
        "{:?}",
        input.notices
    );
}

#[test]
fn what_a_definition_refuses_of_overlays_and_buffers_counts_for_nothing_and_is_said() {
    let input = of_text(
        "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: free}, spec: {requirements: [], priceAdjustment: '-200%'}}\n---\n\
         {apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: none, namespace: a}, spec: {podTemplateRef: {name: t}}}",
    );
    for told in ["NodeOverlay free: spec.priceAdjustment: ", "CapacityBuffer a/none: spec"] {
        assert!(input.notices.iter().any(|notice| notice.contains(told)), "{told}: {:?}", input.notices);
    }
    assert!(input.snapshot.overlays.values().all(|overlay| !overlay.errors.is_empty()));
}

#[test]
fn a_node_takes_nobody_new_while_it_is_not_known_what_its_pods_request() {
    let of = |requests: &str| {
        let text = format!(
            "{{kind: Node, metadata: {{name: n}}, status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 9}}}}}}\n---\n\
             {{kind: Pod, metadata: {{name: runs}}, spec: {{nodeName: n, containers: [{{name: c, resources: {{requests: {requests}}}}}]}}}}"
        );
        let input = of_text(&text);
        let full = input.notices.iter().any(|notice| notice.starts_with("Node n: takes nobody new"));
        let pod = input.snapshot.pods_on(&"n".into()).next().expect("it is on its node").clone();
        assert!(input.pods.is_empty() && input.set_aside.is_empty());
        (full, pod.shape.requests.get(&"cpu".into()), pod.shape.requests.get(&"pods".into()))
    };
    assert_eq!(of("{cpu: 1, memory: 1Gi}"), (false, 1_000, 1_000));
    assert_eq!(of("{cpu: 1, memory: 1.5.2Gi}"), (true, 4_000, 9_000));
    assert_eq!(of("{cpu: [1]}"), (true, 4_000, 9_000));
    assert_eq!(of("{cpu: 5, memory: x}"), (true, 5_000, 9_000), "what can be read counts");
}

#[test]
fn gates_hold_pods_back_whoever_makes_them_and_wrong_ones_are_a_fault() {
    let spec = |gates: &str| format!("spec: {{schedulingGates: {gates}, containers: [{{name: c}}]}}");
    let input = of_text(&format!(
        "{{kind: Pod, metadata: {{name: held}}, {}}}\n---\n{{kind: Pod, metadata: {{name: wrong}}, {}}}\n---\n\
         {{kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 2, template: {{{}}}}}}}",
        spec("[{name: a}]"),
        spec("[{name: a}, {}]"),
        spec("[{name: b}]")
    ));
    let aside: Vec<String> = input.set_aside.iter().map(|(key, _)| key.name.to_string()).collect();
    assert_eq!(aside, ["held", "web-0", "web-1"]);
    let [wrong] = &input.pods[..] else { panic!("{:?}", input.pods) };
    let broken = wrong.shape.broken.as_deref();
    assert!(broken.is_some_and(|broken| broken.starts_with("spec.schedulingGates[1].name: is missing")), "{broken:?}");
}

/// Why the pods that wait are refused, by name.
fn refused(input: &Input) -> Vec<(&str, &str)> {
    input.pods.iter().filter_map(|pod| Some((&*pod.key.name, pod.shape.broken.as_deref()?))).collect()
}

/// A pod with a volume.
fn mounting(name: &str, volume: &str) -> String {
    format!(
        "\n---\n{{kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c}}], volumes: [{{name: v, {volume}}}]}}}}"
    )
}

#[test]
fn a_pod_says_what_cannot_be_read_of_its_volume() {
    let storage = "{kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {accessModes: ReadWriteOnce}}\n---\n\
                   {kind: PersistentVolumeClaim, metadata: {name: of-class}, spec: {storageClassName: class}}\n---\n\
                   {kind: PersistentVolumeClaim, metadata: {name: of-volume}, spec: {volumeName: volume}}\n---\n\
                   {kind: StorageClass, metadata: {name: class}, provisioner: a, allowedTopologies: x}\n---\n\
                   {kind: PersistentVolume, metadata: {name: volume}, spec: {nodeAffinity: x}}";
    let names = ["claim", "of-class", "of-volume", "nowhere"];
    let pods = names.map(|claim| mounting(claim, &format!("persistentVolumeClaim: {{claimName: {claim}}}")));
    let brief = mounting("brief", "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: class}}}");
    let taken = "\n---\n{kind: PersistentVolumeClaim, metadata: {name: taken-v}, spec: 7}".to_owned();
    let taken = taken + &mounting("taken", "ephemeral: {volumeClaimTemplate: {spec: {}}}");
    let input = of_text(&format!("{storage}{}{brief}{taken}", pods.concat()));
    let said = refused(&input);
    let expected = [
        ("brief", "behind claim brief-v cannot be read: StorageClass class: allowedTopologies: "),
        ("claim", "behind claim claim cannot be read: PersistentVolumeClaim claim: spec.accessModes: "),
        ("of-class", "behind claim of-class cannot be read: StorageClass class: allowedTopologies: "),
        ("of-volume", "behind claim of-volume cannot be read: PersistentVolume volume: spec.nodeAffinity: "),
        ("taken", "behind claim taken-v cannot be read: PersistentVolumeClaim taken-v: spec: "),
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for ((pod, why), (expected, part)) in said.iter().zip(expected) {
        assert!(*pod == expected && why.contains(part), "{said:?} lacks {part:?}");
    }
}

#[test]
fn an_ephemeral_volume_has_a_claim_of_its_own() {
    let claim = |owner: &str| {
        format!(
            "{{kind: PersistentVolumeClaim, metadata: {{name: p-v, ownerReferences: {owner}}}, spec: {{storageClassName: class}}}}"
        )
    };
    let brief = "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: class}}}";
    let owner = |name: &str| format!("[{{apiVersion: v1, kind: Pod, name: {name}, uid: u, controller: true}}]");
    for (owner, is_own) in [(owner("p"), true), (owner("q"), false), ("[]".to_owned(), false)] {
        let input = of_text(&format!("{}{}", claim(&owner), mounting("p", brief)));
        let said = refused(&input);
        assert_eq!(said.is_empty(), is_own, "{said:?}");
        assert!(is_own || said[0].1.starts_with("spec.volumes: PersistentVolumeClaim default/p-v, which"), "{said:?}");
    }
    let longer = mounting("p-v", brief).replace("name: v,", "name: w,");
    let other = mounting("p", brief).replace("name: v,", "name: v-w,");
    let input = of_text(&format!("{longer}{other}"));
    let said: Vec<&str> = refused(&input).iter().map(|(pod, _)| *pod).collect();
    assert_eq!(said, ["p-v"], "the two would have p-v-w");
}

#[test]
fn an_annotation_for_rehearsals_keeps_no_pod_from_the_plan() {
    let annotations = "annotations: {sim.joiner.dev/run-for: soon}";
    let input = of_text(&format!(
        "{{kind: Pod, metadata: {{name: p, {annotations}}}, spec: {{containers: [{{name: c}}]}}}}\n---\n\
         {{kind: Job, metadata: {{name: j}}, spec: {{template: {{metadata: {{{annotations}}}, spec: {{containers: [{{name: c}}]}}}}}}}}"
    ));
    assert_eq!(input.pods.len(), 2);
    assert!(input.notices.iter().all(|notice| notice.contains("\"soon\" is no duration")), "{:?}", input.notices);
}

/// As it stands in a repository: nobody has annotated the claim, and there are no events of it to look at.
#[test]
fn a_claim_in_a_file_that_names_a_volume_in_a_file_is_bound() {
    let volume = "{kind: PersistentVolume, metadata: {name: v}, spec: {nfs: {server: s, path: /}}}";
    let claim = "{kind: PersistentVolumeClaim, metadata: {name: c}, spec: {storageClassName: \"\", volumeName: v}}";
    let bound = |text: &str| of_text(text).snapshot.volume_claims.values().any(|claim| claim.bound);
    assert!(bound(&format!("{claim}\n---\n{volume}")));
    assert!(!bound(claim), "it may never be there");
}
