//! Which key somebody may have meant.

use super::*;

#[test]
fn a_part_of_a_key_is_taken_for_the_key() {
    for (written, meant) in [
        ("zone", ZONE),
        ("region", REGION),
        ("nodepool", NODEPOOL),
        ("instance-type", INSTANCE_TYPE),
        ("arch", ARCH),
        ("os", OS),
        ("capacity-type", CAPACITY_TYPE),
    ] {
        assert_eq!(meant_by(written), Some(meant));
    }
}

#[test]
fn a_slip_of_the_pen_is_taken_for_the_key() {
    for (written, meant) in [
        ("karpenter.io/nodepool", NODEPOOL),
        ("topology.kubernetesio/zone", ZONE),
        ("topology.kubernetes.io/regio", REGION),
        ("node.io/instance-type", INSTANCE_TYPE),
        ("kubernetes.io/arc", ARCH),
    ] {
        assert_eq!(meant_by(written), Some(meant));
    }
}

#[test]
fn other_keys_are_taken_for_nothing() {
    for key in ["deployment", "example.com/team", "io", "", "example.com/", ZONE] {
        assert_eq!(meant_by(key), None, "{key}");
    }
}
