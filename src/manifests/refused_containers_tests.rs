//! Names, ports and resources that the API server would not keep.

use serde::Deserialize;

use super::faults;
use crate::cluster::convert::wire::PodSpec;

fn of(spec: &str) -> Vec<String> {
    let value: serde_json::Value = serde_saphyr::from_str(&format!("{{{spec}}}")).unwrap();
    faults("spec", &PodSpec::deserialize(&value).unwrap())
}

fn with_ports(ports: &str) -> Vec<String> {
    of(&format!("containers: [{{name: c, ports: [{ports}]}}]"))
}

#[test]
fn ports() {
    let cases = [
        ("{containerPort: 70000}", "containerPort: 70000 is not from 1 to 65535"),
        ("{containerPort: 0}", "containerPort: 0 is not from 1 to 65535"),
        ("{containerPort: 80, protocol: FOO}", "protocol: \"FOO\" is no protocol; write TCP or UDP or SCTP"),
        ("{containerPort: 80, hostIP: here}", "hostIP: \"here\" is no IP address"),
    ];
    for (port, expected) in cases {
        let said = with_ports(port);
        let expected = format!("spec.containers[0].ports[0].{expected}");
        assert!(matches!(&said[..], [one] if one.starts_with(&expected)), "{said:?} lacks {expected:?}");
    }
    let twice = with_ports("{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80, protocol: TCP}");
    assert!(
        matches!(&twice[..], [one] if one.starts_with("spec.containers[0].ports[1].hostPort: another")),
        "{twice:?}"
    );
    let on_host = of("hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80, hostPort: 81}]}]");
    assert!(matches!(&on_host[..], [one] if one.contains("ports[0].hostPort: has to be")), "{on_host:?}");
    let fine = "{containerPort: 80, hostPort: 80, hostIP: '::1'}, {containerPort: 80, hostPort: 80, protocol: UDP}, {containerPort: 80}, {containerPort: 80}";
    assert!(with_ports(fine).is_empty(), "{:?}", with_ports(fine));
}

#[test]
fn names_and_resources() {
    let cases = [
        ("containers: [{name: C_c}]", "spec.containers[0].name: \"C_c\" is not a DNS name"),
        ("containers: [{name: c.d}]", "spec.containers[0].name: \"c.d\" is not a DNS name"),
        ("containers: [{name: c}], initContainers: [{name: c}]", "spec.initContainers[0].name: c is there already"),
        ("volumes: [{name: V V}]", "spec.volumes[0].name: \"V V\" is not a DNS name"),
        ("volumes: [{name: v}, {name: v}]", "spec.volumes[1].name: v is there already"),
        (
            "containers: [{name: c, resources: {requests: {cpux: 1}}}]",
            "spec.containers[0].resources.requests.cpux: is no resource of containers; write cpu, memory, ephemeral-storage",
        ),
        (
            "containers: [{name: c, resources: {limits: {'a b/c': 1}}}]",
            "spec.containers[0].resources.limits.a b/c: \"a b/c\" is not a qualified name",
        ),
    ];
    for (spec, expected) in cases {
        let said = of(spec);
        assert!(matches!(&said[..], [one] if one.starts_with(expected)), "{said:?} lacks {expected:?}");
    }
    let fine = "containers: [{resources: {requests: {cpu: 1, hugepages-2Mi: 2Mi, example.com/gpu: 1}}}, {}], volumes: [{name: a-1}, {}]";
    assert!(of(fine).is_empty(), "{:?}", of(fine));
}
