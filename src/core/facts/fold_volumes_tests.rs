//! What facts about volumes do to the snapshot, and who hears of them.

use std::sync::Arc;

use super::super::samples::volume_claim;
use super::super::{Kind, Snapshot};
use super::*;

fn claim(volume: Option<&str>) -> Fact {
    Fact::VolumeClaimSeen(Arc::new(volume_claim("shop", "data", volume)))
}

fn attachment(name: &str, node: &str) -> Fact {
    let one = VolumeAttachment { name: name.into(), node: node.into(), volume: Some("pv".into()) };
    Fact::AttachmentSeen(Arc::new(one))
}

fn names(snapshot: &Snapshot, node: &str) -> Vec<String> {
    snapshot.attachments_of(&node.into()).map(|one| one.name.to_string()).collect()
}

#[test]
fn attachments_are_known_by_their_node() {
    let mut fold = Fold::default();
    fold.fold(attachment("csi-1", "n1"));
    fold.fold(attachment("csi-2", "n1"));
    assert_eq!(names(fold.snapshot(), "n1"), ["csi-1", "csi-2"]);
    fold.fold(attachment("csi-2", "n2"));
    assert_eq!(
        (names(fold.snapshot(), "n1"), names(fold.snapshot(), "n2")),
        (vec!["csi-1".into()], vec!["csi-2".into()])
    );
    fold.fold(Fact::AttachmentGone("csi-1".into()));
    assert!(fold.snapshot().attached.len() == 1, "no empty set is left behind");
    // What a list does not show again is gone.
    fold.fold(Fact::Relisting(Kind::VolumeAttachment));
    fold.fold(Fact::Relisted(Kind::VolumeAttachment));
    assert!(fold.snapshot().attachments.is_empty() && names(fold.snapshot(), "n2").is_empty());
}

#[test]
fn a_claim_is_news_when_it_has_changed() {
    let mut fold = Fold::default();
    fold.fold(claim(None));
    assert!(fold.take_news().supply);
    fold.fold(claim(None));
    assert!(!fold.take_news().supply);
    fold.fold(claim(Some("pv")));
    assert!(fold.take_news().supply);
}

#[test]
fn volumes_that_may_not_be_seen_hold_up_nobody_and_pods_do() {
    let mut fold = Fold::default();
    for kind in Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Pod | Kind::Volume)) {
        fold.fold(Fact::Relisted(kind));
    }
    fold.fold(Fact::Withheld(Kind::Volume));
    assert!(!fold.snapshot().is_complete());
    fold.fold(Fact::Relisted(Kind::Pod));
    assert!(fold.snapshot().is_complete());
    assert!(fold.snapshot().withheld.contains(&Kind::Volume));
    fold.fold(Fact::Relisted(Kind::Volume));
    assert!(fold.snapshot().withheld.is_empty(), "the permission was given");
}
