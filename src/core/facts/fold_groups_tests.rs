//! Groups come and go with their lists.

use std::sync::Arc;

use super::super::{Fact, Fold, Group, Kind, Selector};

fn group(kind: Kind, name: &str) -> Arc<Group> {
    Arc::new(Group { kind, path: Group::path(kind, "shop", name).unwrap(), selector: Some(Selector::default()) })
}

#[test]
fn what_is_not_listed_again_is_gone_and_other_kinds_stay() {
    let mut fold = Fold::default();
    for kind in Kind::GROUPS {
        fold.fold(Fact::GroupSeen(group(kind, "a")));
        fold.fold(Fact::GroupSeen(group(kind, "b")));
    }
    fold.fold(Fact::Relisting(Kind::ReplicaSet));
    fold.fold(Fact::GroupSeen(group(Kind::ReplicaSet, "b")));
    fold.fold(Fact::Relisted(Kind::ReplicaSet));
    fold.fold(Fact::GroupGone(Group::path(Kind::Service, "shop", "b").unwrap()));
    let left: Vec<(Kind, &str)> =
        fold.snapshot().groups.values().map(|group| (group.kind, group.path.rsplit('/').next().unwrap())).collect();
    assert_eq!(
        left,
        [
            (Kind::ReplicaSet, "b"),
            (Kind::StatefulSet, "a"),
            (Kind::StatefulSet, "b"),
            (Kind::ReplicationController, "a"),
            (Kind::ReplicationController, "b"),
            (Kind::Service, "a"),
        ]
    );
}
