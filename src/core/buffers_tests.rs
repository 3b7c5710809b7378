//! CapacityBuffers.

use super::*;
use crate::core::facts::samples::start;
use crate::core::facts::{Fact, Fold, PodTemplate, Scalable};
use crate::core::scheduling::{PlacedOn, Refusal};

/// A buffer `shop/spare` of nothing.
fn buffer() -> Buffer {
    Buffer {
        key: ObjectKey::new("shop", "spare"),
        uid: "uid-spare".into(),
        generation: 1,
        version: "1".into(),
        strategy: "buffer.x-k8s.io/active-capacity".into(),
        source: Some(Source::Template("small".into())),
        replicas: None,
        percentage: None,
        limits: None,
        errors: Vec::new(),
        status: BufferStatus::default(),
        conditions: Vec::new(),
    }
}

fn fixed(replicas: i64) -> Buffer {
    Buffer { replicas: Some(replicas), ..buffer() }
}

fn follows(kind: ScalableKind) -> Buffer {
    Buffer { source: Some(Source::Scalable(Ok(kind), "web".into())), percentage: Some(20), ..buffer() }
}

/// 500m CPU and 100 (thousandths of) memory.
fn shape() -> Arc<PodShape> {
    let shape = PodShape::plain(Resources::new().with("cpu", 500).with("memory", 100));
    Arc::new(placeholder_shape(&PodShape { namespace: "shop".into(), ..shape }))
}

fn template(generation: i64) -> Fact {
    Fact::TemplateSeen(Arc::new(PodTemplate { key: ObjectKey::new("shop", "small"), generation, shape: shape() }))
}

fn workload(kind: ScalableKind, replicas: i64) -> Fact {
    Fact::ScalableSeen(Arc::new(Scalable { kind, key: ObjectKey::new("shop", "web"), replicas, shape: shape() }))
}

fn snapshot(facts: impl IntoIterator<Item = Fact>) -> Snapshot {
    let mut fold = Fold::default();
    facts.into_iter().for_each(|fact| fold.fold(fact));
    fold.snapshot().clone()
}

fn seen(buffer: Buffer) -> Fact {
    Fact::BufferSeen(Arc::new(buffer))
}

fn count(resolution: &Resolution) -> i64 {
    let Resolution::Ready { replicas, .. } = resolution else { panic!("{resolution:?}") };
    *replicas
}

fn refusal(resolution: Resolution) -> (&'static str, String) {
    let Resolution::NotReady { reason, message } = resolution else { panic!("{resolution:?}") };
    (reason, message)
}

fn limits(pairs: &[(&str, i64)]) -> Resources {
    pairs.iter().map(|(name, milli)| ((*name).into(), *milli)).collect()
}

fn math(replicas: Option<i64>, percentage: Option<i64>, limits: Option<Resources>, scale: Option<i64>) -> i64 {
    let asked = Resources::new().with("cpu", 500).with("memory", 100).with("pods", 1000);
    super::replicas(&Buffer { replicas, percentage, limits, ..buffer() }, &asked, scale)
}

#[test]
fn a_pod_template_resolves_with_its_generation() {
    let resolved = resolve(&snapshot([template(3)]), &fixed(2));
    let Resolution::Ready { replicas, template, shape: found } = resolved else { panic!("{resolved:?}") };
    assert_eq!((replicas, template, found), (2, Some(("small".into(), 3)), shape()));
}

#[test]
fn a_missing_pod_template_is_named() {
    let (reason, message) = refusal(resolve(&snapshot([]), &fixed(2)));
    assert_eq!(reason, "PodTemplateNotFound");
    assert!(message.contains("shop/small"), "{message}");
}

#[test]
fn every_kind_of_workload_can_be_followed() {
    for kind in ScalableKind::ALL {
        assert_eq!(count(&resolve(&snapshot([workload(kind, 10)]), &follows(kind))), 2, "{kind:?}");
    }
}

#[test]
fn a_missing_workload_is_named() {
    let (reason, message) = refusal(resolve(&snapshot([]), &follows(ScalableKind::StatefulSet)));
    assert_eq!(reason, "ScalableRefNotFound");
    assert!(message.contains("StatefulSet shop/web"), "{message}");
}

#[test]
fn a_kind_that_cannot_be_followed_is_named() {
    let strange = Buffer { source: Some(Source::Scalable(Err("batch/Job".into()), "web".into())), ..buffer() };
    let (reason, message) = refusal(resolve(&snapshot([]), &strange));
    assert_eq!(reason, "ResolutionFailed");
    assert!(message.contains("batch/Job"), "{message}");
}

#[test]
fn a_buffer_that_refers_to_nothing_says_so() {
    let (reason, message) = refusal(resolve(&snapshot([]), &Buffer { source: None, ..buffer() }));
    assert_eq!(reason, "ResolutionFailed");
    assert!(message.contains("podTemplateRef") && message.contains("scalableRef"), "{message}");
}

#[test]
fn a_buffer_that_cannot_be_read_says_so() {
    let broken = Buffer { errors: vec!["spec.limits.cpu: no quantity".into()], ..fixed(1) };
    assert_eq!(refusal(resolve(&snapshot([template(1)]), &broken)).0, "ResolutionFailed");
}

#[test]
fn a_slip_of_the_pen_takes_no_memory() {
    let snapshot = snapshot([template(1), seen(fixed(1_000_000_000))]);
    let (reason, message) = refusal(resolve(&snapshot, &fixed(1_000_000_000)));
    assert!(
        reason == "ResolutionFailed" && message.contains("spec.replicas") && message.contains("10000"),
        "{message}"
    );
    assert_eq!(placeholders(&snapshot).pods.len(), 0);
}

#[test]
fn fixed_replicas_are_taken() {
    assert_eq!(math(Some(3), None, None, None), 3);
    assert_eq!(math(Some(0), None, None, None), 0);
}

#[test]
fn a_share_is_rounded_up_and_at_least_one() {
    assert_eq!(math(None, Some(20), None, Some(11)), 3);
    assert_eq!(math(None, Some(1), None, Some(3)), 1);
    assert_eq!(math(None, Some(0), None, Some(3)), 0);
    assert_eq!(math(None, Some(20), None, Some(0)), 0);
}

#[test]
fn a_share_of_a_pod_template_means_nothing() {
    assert_eq!(math(Some(2), Some(500), None, None), 2);
}

#[test]
fn the_larger_of_replicas_and_share_counts() {
    assert_eq!(math(Some(5), Some(20), None, Some(10)), 5);
    assert_eq!(math(Some(1), Some(20), None, Some(10)), 2);
}

#[test]
fn limits_cap_and_do_not_raise() {
    assert_eq!(math(Some(5), None, Some(limits(&[("cpu", 1600)])), None), 3);
    assert_eq!(math(Some(2), None, Some(limits(&[("cpu", 9000)])), None), 2);
    assert_eq!(math(Some(5), Some(90), Some(limits(&[("cpu", 1600)])), Some(10)), 3);
}

#[test]
fn limits_alone_are_filled() {
    assert_eq!(math(None, None, Some(limits(&[("cpu", 1600)])), None), 3);
    assert_eq!(math(None, None, Some(limits(&[("cpu", 1600), ("memory", 250)])), None), 2, "the tightest counts");
    assert_eq!(math(None, None, Some(limits(&[("cpu", 499)])), None), 0);
    assert_eq!(math(None, None, Some(limits(&[("cpu", 0)])), None), 0);
}

#[test]
fn limits_on_what_no_chunk_asks_for_bound_nothing() {
    assert_eq!(math(Some(4), None, Some(limits(&[("example.com/gpu", 1000)])), None), 4);
    assert_eq!(math(None, None, Some(limits(&[("example.com/gpu", 1000)])), None), 0);
}

#[test]
fn placeholders_have_the_same_names_and_uids_every_time() {
    let there = snapshot([template(1), seen(fixed(2))]);
    let names = |all: &Placeholders| -> Vec<(String, String)> {
        all.pods.iter().map(|pod| (pod.key.to_string(), pod.uid.to_string())).collect()
    };
    let first = placeholders(&there);
    assert_eq!(
        names(&first),
        [
            ("shop/capacity-buffer-spare-1".to_owned(), "uid-spare-1".to_owned()),
            ("shop/capacity-buffer-spare-2".to_owned(), "uid-spare-2".to_owned()),
        ]
    );
    assert_eq!(names(&placeholders(&there)), names(&first));
}

#[test]
fn placeholders_come_after_every_real_pod_and_hold_no_volumes() {
    let all = placeholders(&snapshot([template(1), seen(fixed(1))]));
    let pod = all.pods.first().expect("there is one");
    assert_eq!((pod.shape.priority, pod.created), (i32::MIN, Timestamp::MAX));
    assert!(pod.volume_claims.is_empty() && pod.node.is_none() && pod.nominated.is_none());
    assert!(pod.is_provisionable());
    assert_eq!(pod.shape.requests.get(&ResourceName::Cpu), 500);
}

#[test]
fn a_placeholder_keeps_what_its_pod_asks_of_nodes() {
    let mut real = PodShape::plain(Resources::new());
    real.node_selector.insert("disk".into(), "ssd".into());
    real.labels.insert("app".into(), "web".into());
    let placeholder = placeholder_shape(&PodShape { priority: 1000, critical: true, ..real.clone() });
    assert_eq!((&placeholder.node_selector, &placeholder.labels), (&real.node_selector, &real.labels));
    assert!(!placeholder.critical);
}

#[test]
fn buffers_that_are_empty_or_not_ready_have_no_placeholders() {
    assert!(placeholders(&snapshot([template(1), seen(fixed(0))])).pods.is_empty());
    assert!(placeholders(&snapshot([seen(fixed(3))])).pods.is_empty());
    assert!(placeholders(&snapshot([template(1)])).pods.is_empty());
}

#[test]
fn buffers_of_one_name_in_two_namespaces_are_two() {
    let other = Buffer { key: ObjectKey::new("dev", "spare"), uid: "uid-other".into(), ..fixed(1) };
    let mut there = snapshot([template(1), seen(fixed(1)), seen(other.clone())]);
    let of_dev = PodTemplate { key: ObjectKey::new("dev", "small"), generation: 1, shape: shape() };
    there.templates.insert(of_dev.key.clone(), Arc::new(of_dev));
    let all = placeholders(&there);
    let mut plan = Plan { refused: all.pods.iter().map(refused).collect(), ..Plan::default() };
    let rooms = all.take_out(&mut plan);
    let one = Room { refused: 1, ..Room::default() };
    assert_eq!(rooms.of, BTreeMap::from([(buffer().key, one), (other.key, one)]));
}

fn refused(pod: &Arc<Pod>) -> Refusal {
    Refusal { pod: pod.uid.clone(), reasons: Vec::new() }
}

#[test]
fn placeholders_leave_the_plan_and_what_they_stood_on_is_known() {
    let all = placeholders(&snapshot([template(1), seen(fixed(3))]));
    let real = Arc::new(crate::core::facts::samples::pod("real", None));
    let on = |claim: &str, pods: Vec<Arc<Pod>>| PlacedOn { claim: Some(claim.into()), node: None, pods };
    let mut plan = Plan {
        existing: vec![
            on("a", vec![Arc::clone(&real), Arc::clone(&all.pods[0])]),
            on("b", vec![Arc::clone(&all.pods[1])]),
        ],
        refused: vec![refused(&all.pods[2]), refused(&real)],
        ..Plan::default()
    };
    let rooms = all.take_out(&mut plan);
    assert_eq!(rooms.of[&buffer().key], Room { existing: 2, new: 0, refused: 1 });
    assert_eq!(rooms.on, BTreeMap::from([("a".into(), 1), ("b".into(), 1)]));
    assert_eq!(plan.existing.len(), 1, "nothing real was planned for b");
    assert_eq!(plan.existing[0].pods.len(), 1);
    assert_eq!(plan.refused.iter().map(|one| one.pod.to_string()).collect::<Vec<_>>(), ["real"]);
}

#[test]
fn a_plan_without_placeholders_stays_as_it_is() {
    let real = Arc::new(crate::core::facts::samples::pod("real", None));
    let mut plan = Plan { refused: vec![refused(&real)], ..Plan::default() };
    assert_eq!(Placeholders::default().take_out(&mut plan), Rooms::default());
    assert_eq!(plan.refused.len(), 1);
}

/// Status, reason of a condition after the status was written.
fn said(patch: &BufferStatusPatch, kind: &str) -> Option<(Status, String)> {
    let found = patch.conditions.iter().find(|condition| &*condition.kind == kind)?;
    Some((found.status, found.reason.to_string()))
}

fn after(there: &Snapshot, buffer: &Buffer, room: Option<Room>) -> BufferStatusPatch {
    wanted(there, buffer, room.as_ref(), start()).expect("there is something to say")
}

#[test]
fn the_status_of_a_resolved_buffer() {
    let there = snapshot([template(4)]);
    let patch = after(&there, &fixed(2), None);
    assert_eq!(
        patch.status,
        BufferStatus {
            strategy: Some("buffer.x-k8s.io/active-capacity".into()),
            template: Some("small".into()),
            template_generation: Some(4),
            replicas: Some(2),
        }
    );
    assert_eq!(said(&patch, READY), Some((Status::True, "Resolved".to_owned())));
    assert_eq!(said(&patch, PROVISIONING), None, "nothing was planned yet");
}

#[test]
fn the_status_of_a_buffer_that_follows_a_workload_names_no_template() {
    let there = snapshot([workload(ScalableKind::Deployment, 10)]);
    let before = BufferStatus { template: Some("old".into()), template_generation: Some(1), ..BufferStatus::default() };
    let patch = after(&there, &Buffer { status: before, ..follows(ScalableKind::Deployment) }, None);
    assert_eq!((patch.status.template, patch.status.template_generation, patch.status.replicas), (None, None, Some(2)));
}

#[test]
fn a_buffer_that_is_not_ready_is_not_provisioned() {
    let patch = after(&snapshot([]), &fixed(2), None);
    assert_eq!(said(&patch, READY), Some((Status::False, "PodTemplateNotFound".to_owned())));
    assert_eq!(said(&patch, PROVISIONING), Some((Status::False, "NotReadyForProvisioning".to_owned())));
}

#[test]
fn provisioning_says_how_the_placeholders_fared() {
    let there = snapshot([template(1)]);
    let provisioning = |replicas, room| said(&after(&there, &fixed(replicas), room), PROVISIONING);
    let bad = |reason: &str| Some((Status::False, reason.to_owned()));
    assert_eq!(provisioning(0, None), bad("BufferEmpty"));
    let room = |existing, new, refused| Some(Room { existing, new, refused });
    assert_eq!(provisioning(2, room(1, 1, 0)), bad("RequiresNewCapacity"));
    assert_eq!(provisioning(2, room(1, 0, 1)), bad("RequiresNewCapacity"));
    assert_eq!(provisioning(2, room(2, 0, 0)), Some((Status::True, "FitsExistingCapacity".to_owned())));
    assert_eq!(provisioning(3, room(2, 0, 0)), None, "that was planned before it grew");
}

#[test]
fn what_was_said_is_not_said_again_and_transitions_keep_their_time() {
    let there = snapshot([template(1)]);
    let patch = after(&there, &fixed(2), Some(Room { existing: 2, new: 0, refused: 0 }));
    let told = Buffer { status: patch.status, conditions: patch.conditions, ..fixed(2) };
    let later = start() + jiff::SignedDuration::from_mins(5);
    assert_eq!(wanted(&there, &told, Some(&Room { existing: 2, new: 0, refused: 0 }), later), None);
    let edited = Buffer { generation: 2, ..told };
    let patch = wanted(&there, &edited, None, later).expect("the generation is new");
    let ready = patch.conditions.iter().find(|condition| &*condition.kind == READY).expect("it is there");
    assert_eq!((ready.generation, ready.since), (2, start()));
}
