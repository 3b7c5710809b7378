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
    assert!(matches!(&all.objects[0].found.object, Object::Pod { pod, .. } if pod.shape.priority == 7), "{all:?}");
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

/// A folder of a test's own.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("joiner-gather-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn what_is_said_of_objects_that_differ_does_not_depend_on_the_order_of_the_files() {
    let folder = folder("order");
    let path = |name: &str| folder.join(name);
    for (name, label) in [("1.yaml", "b"), ("2.yaml", "a"), ("3.yaml", "c"), ("4.yaml", "a")] {
        std::fs::write(path(name), format!("{{kind: Namespace, metadata: {{name: n, labels: {{a: {label}}}}}}}"))
            .unwrap();
    }
    let said = |order: [&str; 4]| {
        let sources = order.map(|name| Source::Path(path(name)));
        let all = gather(&sources, &mut || Err(io::ErrorKind::Other.into()), &ShapeStore::new());
        assert_eq!(all.objects.len(), 1);
        told(&all)
    };
    let first = said(["1.yaml", "2.yaml", "3.yaml", "4.yaml"]);
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first.iter().all(|line| line.contains("differs from the one in") && line.contains("2.yaml (document 1)")));
    assert_eq!(said(["4.yaml", "3.yaml", "2.yaml", "1.yaml"]), first);
}

#[test]
fn a_byte_that_is_no_text_spoils_its_value_and_not_the_file() {
    let path = folder("bytes").join("latin.yaml");
    std::fs::write(
        &path,
        b"{kind: Namespace, metadata: {name: a}}\n---\n{kind: Namespace, metadata: {name: b, labels: {who: \xe9}}}\n",
    )
    .unwrap();
    let all = gather(&[Source::Path(path)], &mut || Err(io::ErrorKind::Other.into()), &ShapeStore::new());
    assert_eq!(all.objects.len(), 2, "{all:?}");
    let [line] = &told(&all)[..] else { panic!("{:?}", told(&all)) };
    assert!(line.contains("line 3 is not UTF-8"), "{line}");
}

#[test]
fn what_a_node_or_a_nodeclaim_has_and_nobody_can_read_is_said() {
    let all = from_text(
        "{kind: Node, metadata: {name: n}, spec: {taints: [{key: a, effect: Nope}]}, status: {capacity: {cpu: 4x, memory: 8Gi}}}\n---\n\
         {kind: NodeClaim, metadata: {name: c}, spec: {nodeClassRef: {group: g, kind: k, name: n}, requirements: []}, status: {allocatable: {cpu: 1.2.3}}}",
    );
    let said = told(&all);
    assert_eq!((all.objects.len(), said.len()), (2, 3), "{said:?}");
    assert!(said[0].contains("Node n: spec.taints[0].effect: \"Nope\"") && said[0].contains("NoSchedule"), "{said:?}");
    assert!(said[1].contains("Node n: status.capacity.cpu") && said[1].contains("4x"), "{said:?}");
    assert!(said[2].contains("NodeClaim c: status.allocatable.cpu") && said[2].contains("1.2.3"), "{said:?}");
}

#[test]
fn files_and_directories_without_anything_are_told_apart_from_wrong_ones() {
    let folder = folder("empty");
    let [bare, words, inner] = ["bare.yaml", "words.yaml", "inner"].map(|name| folder.join(name));
    std::fs::write(&bare, "").unwrap();
    std::fs::write(&words, "# not yet\n---\n").unwrap();
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("README"), "nothing").unwrap();
    let of = |path: &std::path::Path| {
        let all = gather(&[Source::Path(path.into())], &mut || Ok(String::new()), &ShapeStore::new());
        assert!(all.troubles.is_empty() && all.objects.is_empty(), "{all:?}");
        all.empty.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for path in [&bare, &words] {
        assert_eq!(
            of(path),
            [format!("{}: there is nothing in it; write a manifest, or leave it out", path.display())]
        );
    }
    assert!(of(&inner)[0].contains("there is no file in it that ends in .yaml or .yml or .json"), "{:?}", of(&inner));
    assert_eq!(of(&folder).len(), 2, "a directory below one that is named may hold other things");
    assert_eq!(from_text("\n").empty.len(), 1);
}
