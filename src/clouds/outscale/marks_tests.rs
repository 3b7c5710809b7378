//! Tags and node names, exactly.

use super::*;

fn vm(address: &str) -> Vm {
    let name = format!("ip-{}.eu-west-2.compute.internal", address.replace('.', "-"));
    Vm { private_ip: Some(address.to_owned()), private_dns_name: Some(name), ..Vm::default() }
}

fn marked(spec: &OutscaleNodeClassSpec) -> Marked<'_> {
    Marked {
        cluster: "demo",
        cluster_id: "demo-id",
        claim: "default-abcde",
        uid: "0a1b",
        pool: Some("default"),
        spec,
        user_data_hash: "aa",
    }
}

#[test]
fn nodes_are_called_as_talos_calls_them() {
    for (address, name) in
        [("10.0.1.88", "ip-10-0-1-88"), ("1.2.3.4", "ip-1-2-3-4"), ("192.168.100.255", "ip-192-168-100-255")]
    {
        assert_eq!(node_name(&vm(address), false).as_deref(), Some(name));
        assert_eq!(node_name(&vm(address), true), Some(format!("{name}.eu-west-2.compute.internal")));
    }
    let without_address = Vm { private_ip: None, ..vm("10.0.1.88") };
    assert_eq!(node_name(&without_address, false).as_deref(), Some("ip-10-0-1-88"));
    assert_eq!(node_name(&Vm::default(), false), None);
    assert_eq!(node_name(&Vm::default(), true), None);
}

#[test]
fn the_tags_are_those_that_everybody_needs() {
    let spec = OutscaleNodeClassSpec {
        tags: [("team".to_owned(), "a b".to_owned())].into(),
        ..OutscaleNodeClassSpec::default()
    };
    let tags = marked(&spec).at_birth(Some("ip-10-0-1-88"));
    let text: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let hash = spec.hash();
    assert_eq!(
        text,
        [
            "Name=demo-ip-10-0-1-88",
            "OscK8sClusterID/demo-id=owned",
            "OscK8sNodeName=ip-10-0-1-88",
            "OscK8sRole/worker=",
            &format!("karpenter.outscale.com/class-hash=v1-{hash}"),
            "karpenter.outscale.com/nodeclaim-uid=0a1b",
            "karpenter.outscale.com/user-data-hash=aa",
            "karpenter.sh/managed-by=demo",
            "karpenter.sh/nodeclaim=default-abcde",
            "karpenter.sh/nodepool=default",
            "team=a b",
        ]
    );
    let before = marked(&spec).at_birth(None);
    assert!(!before.contains_key(NODE_NAME) && !before.contains_key(NAME));
}

#[test]
fn only_what_is_missing_or_wrong_is_written_again() {
    let spec = OutscaleNodeClassSpec::default();
    let tags = marked(&spec).at_birth(None);
    let all: Vec<ResourceTag> =
        tags.iter().map(|(key, value)| ResourceTag::new(key.as_str(), value.as_str())).collect();
    let mut vm = Vm { tags: all, ..Vm::default() };
    assert_eq!(missing(&vm, &tags), []);
    vm.tags.push(ResourceTag::new("somebody", "else"));
    assert_eq!(missing(&vm, &tags), []);
    vm.tags.retain(|tag| tag.key != MANAGED_BY);
    vm.tags.iter_mut().filter(|tag| tag.key == NODEPOOL).for_each(|tag| tag.value = "other".to_owned());
    assert_eq!(missing(&vm, &tags), [ResourceTag::new(MANAGED_BY, "demo"), ResourceTag::new(NODEPOOL, "default")]);
}
