//! Whose a machine is by what it was told at its birth.

use super::*;
use crate::clouds::outscale::oapi::wire::{ResourceTag, UserData};

const OWNER: Owner<'_> = Owner { cluster: "demo", cluster_id: "demo-id" };

fn told(tags: &[(&str, &str)], configuration: &str) -> UserData {
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    birth::user_data(&tags, None, configuration).unwrap()
}

const TAGS: [(&str, &str); 5] = [
    ("karpenter.sh/managed-by", "demo"),
    ("OscK8sClusterID/demo-id", "owned"),
    ("karpenter.outscale.com/nodeclaim-uid", "0a1b"),
    ("karpenter.sh/nodepool", "default"),
    ("team", "web"),
];

fn vm(tags: &[(&str, &str)], token: &str, configuration: &str) -> Vm {
    Vm {
        vm_id: "i-00000001".to_owned(),
        client_token: Some(token.to_owned()),
        private_ip: Some("10.0.1.88".to_owned()),
        private_dns_name: Some("ip-10-0-1-88.eu-west-2.compute.internal".to_owned()),
        user_data: Some(told(tags, configuration)),
        ..Vm::default()
    }
}

#[test]
fn the_marks_are_those_of_birth_and_the_name_that_the_address_gives() {
    let wanted = |configuration: &str| wanted(&vm(&TAGS, "0a1b.1", configuration), OWNER, &Names::default()).unwrap();
    let all = wanted("machine: {}\n");
    assert_eq!((&*all["karpenter.sh/nodepool"], &*all["OscK8sNodeName"]), ("default", "ip-10-0-1-88"));
    assert_eq!(all["Name"], "demo-ip-10-0-1-88");
    assert!(!all.contains_key("team"), "whether a user's tag differs is a question of drift");
    let all = wanted("machine:\n  kubelet:\n    registerWithFQDN: true\n");
    assert_eq!(all["OscK8sNodeName"], "ip-10-0-1-88.eu-west-2.compute.internal");
}

#[test]
fn what_somebody_called_a_machine_stays() {
    let named = [ResourceTag::new("Name", "pet"), ResourceTag::new("OscK8sNodeName", "other")];
    let vm = Vm { tags: named.to_vec(), ..vm(&TAGS, "0a1b", "") };
    let all = wanted(&vm, OWNER, &Names::default()).unwrap();
    assert!(!all.contains_key("Name") && !all.contains_key("OscK8sNodeName"), "{all:?}");
}

#[test]
fn a_node_name_that_cannot_be_is_put_right() {
    let called = |tag: &str| Vm {
        tags: vec![ResourceTag::new("Name", "pet"), ResourceTag::new("OscK8sNodeName", tag)],
        ..vm(&TAGS, "0a1b", "")
    };
    let other = Vm {
        vm_id: "i-00000002".to_owned(),
        private_ip: Some("10.0.1.99".to_owned()),
        private_dns_name: Some("ip-10-0-1-99.eu-west-2.compute.internal".to_owned()),
        ..Vm::default()
    };
    let name = |vm: &Vm, nodes: &[(&str, &str)]| {
        let nodes = nodes.iter().map(|(id, node)| ((*id).to_owned(), (*node).to_owned())).collect();
        let all = wanted(vm, OWNER, &Names::of(nodes, &[vm.clone(), other.clone()])).unwrap();
        assert!(!all.contains_key("Name"), "what people see is theirs: {all:?}");
        all.get("OscK8sNodeName").cloned()
    };
    let right = Some("ip-10-0-1-88".to_owned());
    // The Node of another machine would be taken for this one's.
    for another in ["ip-10-0-1-99", "ip-10-0-1-99.eu-west-2.compute.internal"] {
        assert_eq!(name(&called(another), &[]), right, "{another}");
    }
    // Its Node has registered, and is called as its address says.
    assert_eq!(name(&called("pet"), &[("i-00000001", "ip-10-0-1-88")]), right);
    // Otherwise whoever wrote it may know better.
    assert_eq!(name(&called("pet"), &[]), None);
    assert_eq!(name(&called("pet"), &[("i-00000001", "pet")]), None);
    assert_eq!(name(&called("pet"), &[("i-00000002", "ip-10-0-1-88")]), None);
    assert_eq!(name(&called("ip-10-0-1-98"), &[]), None, "nobody has this address");
}

#[test]
fn a_machine_that_was_given_to_others_stays_theirs() {
    for (key, value) in [("karpenter.sh/managed-by", "production"), ("OscK8sClusterID/demo-id", "shared")] {
        let vm = Vm { tags: vec![ResourceTag::new(key, value)], ..vm(&TAGS, "0a1b", "") };
        assert_eq!(wanted(&vm, OWNER, &Names::default()), None, "{key}");
    }
    let vm = Vm { tags: vec![ResourceTag::new("karpenter.sh/managed-by", "demo")], ..vm(&TAGS, "0a1b", "") };
    assert!(wanted(&vm, OWNER, &Names::default()).is_some());
}

#[test]
fn a_machine_is_ours_only_with_its_own_token_and_for_our_cluster() {
    let is_ours = |vm: &Vm| wanted(vm, OWNER, &Names::default()).is_some();
    assert!(is_ours(&vm(&TAGS, "0a1b", "")));
    for (token, why) in [("ffff", "a copy"), ("", "no token")] {
        assert!(!is_ours(&vm(&TAGS, token, "")), "{why}");
    }
    assert!(!is_ours(&Vm { client_token: None, ..vm(&TAGS, "", "") }));
    assert!(!is_ours(&Vm { user_data: None, ..vm(&TAGS, "0a1b", "") }));
    assert!(!is_ours(&Vm { user_data: Some(UserData::of(b"#!/bin/sh")), ..vm(&TAGS, "0a1b", "") }));
    for (at, value) in [(0, "other"), (1, "shared"), (2, "ffff")] {
        let mut tags = TAGS;
        tags[at].1 = value;
        assert!(!is_ours(&vm(&tags, "0a1b", "")), "{tags:?}");
    }
}
