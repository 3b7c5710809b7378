//! Whole inputs: nothing depends on the order of the files, and what is wrong is said with its place.

use std::io;

use super::{Gathered, Source, gather};
use crate::cluster::convert::ShapeStore;
use crate::manifests::Object;

fn from_text(text: &str) -> Gathered {
    gather(&[Source::Stdin], &mut || Ok(text.to_owned()), &ShapeStore::new())
}

fn told(gathered: &Gathered) -> Vec<String> {
    gathered.troubles.iter().map(ToString::to_string).collect()
}

#[test]
fn priority_classes_count_wherever_they_stand() {
    let all = from_text(
        "{kind: Pod, metadata: {name: p}, spec: {priorityClassName: vip, containers: [{name: c}]}}\n---\n\
         {kind: PriorityClass, metadata: {name: vip}, value: 7}",
    );
    assert!(all.troubles.is_empty(), "{:?}", all.troubles);
    assert!(matches!(&all.objects[0].found.object, Object::Pod(pod, _) if pod.shape.priority == 7), "{all:?}");
}

#[test]
fn what_is_wrong_names_file_document_object_field_and_remedy() {
    let all = from_text(
        "{kind: ConfigMap, metadata: {name: fine}}\n---\n\
         {kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {memory: 1.5.2Gi}}}]}}",
    );
    assert_eq!(all.objects.len(), 2, "the pod is there, to be refused");
    let [line] = &told(&all)[..] else { panic!("{:?}", told(&all)) };
    assert!(line.starts_with("standard input: document 2: Pod p: spec.containers[0].resources.requests"), "{line}");
    assert!(line.contains("1.5.2Gi"), "{line}");
}

#[test]
fn of_two_that_differ_the_same_one_counts_whatever_their_order() {
    let (one, other) =
        ("{kind: Namespace, metadata: {name: n, labels: {a: b}}}", "{kind: Namespace, metadata: {name: n}}");
    let labels = |text: String| {
        let all = from_text(&text);
        assert_eq!(all.troubles.len(), 1, "{:?}", all.troubles);
        let [placed] = &all.objects[..] else { panic!("{all:?}") };
        format!("{:?}", placed.found.object)
    };
    assert_eq!(labels(format!("{one}\n---\n{other}")), labels(format!("{other}\n---\n{one}")));
    assert!(from_text(&format!("{one}\n---\n{one}")).troubles.is_empty(), "the same twice is no trouble");
}

#[test]
fn a_file_that_is_not_there_is_said() {
    let all = gather(
        &[Source::Path("no/such/file.yaml".into())],
        &mut || Err(io::ErrorKind::Other.into()),
        &ShapeStore::new(),
    );
    assert!(told(&all)[0].starts_with("no/such/file.yaml: cannot be read"), "{:?}", told(&all));
}

#[test]
fn lists_are_taken_apart_with_or_without_kinds() {
    let all = from_text("{apiVersion: v1, kind: NamespaceList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}");
    assert_eq!(all.objects.len(), 2, "{all:?}");
}
