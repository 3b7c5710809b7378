//! Services and controllers, as the API server writes them.

use serde_json::{Value, json};

use super::{controller_group, plain_group, read_group};
use crate::cluster::convert::wire;
use crate::core::facts::{Group, Kind, Selector};
use crate::core::requirements::{Operator, Requirement};

fn object(selector: &Value) -> Value {
    json!({ "metadata": { "name": "web", "namespace": "shop" }, "spec": { "selector": selector, "replicas": 3 } })
}

fn labels(pairs: &[(&str, &str)]) -> Selector {
    Selector { labels: pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(), expressions: vec![] }
}

#[test]
fn a_service_is_a_map_of_labels() {
    let read = |selector: &Value| {
        let value = object(selector);
        let wire: wire::Service = serde_json::from_value(value.clone()).unwrap();
        let group = plain_group(Kind::Service, &wire.metadata, wire.spec.as_ref()).unwrap();
        assert_eq!(read_group(Kind::Service, &value).as_ref(), Some(&group));
        group
    };
    let group = read(&json!({ "app": "web" }));
    let path = "/apis/v1/namespaces/shop/services/web".into();
    assert_eq!(group, Group { kind: Kind::Service, path, selector: Some(labels(&[("app", "web")])) });
    // Without a selector it selects nothing, with an empty one everything.
    assert_eq!(read(&Value::Null).selector, None);
    assert_eq!(read(&json!({})).selector, Some(Selector::default()));
}

#[test]
fn a_replicaset_has_a_label_selector() {
    let read = |selector: &Value| {
        let value = object(selector);
        let wire: wire::ReplicaSet = serde_json::from_value(value.clone()).unwrap();
        let group = controller_group(Kind::ReplicaSet, &wire.metadata, wire.spec.as_ref()).unwrap();
        assert_eq!(read_group(Kind::ReplicaSet, &value).as_ref(), Some(&group));
        group
    };
    let group = read(&json!({
        "matchLabels": { "app": "web" },
        "matchExpressions": [{ "key": "tier", "operator": "Exists" }],
    }));
    assert_eq!(&*group.path, "/apis/apps/v1/namespaces/shop/replicasets/web");
    let expressions = vec![Requirement::new("tier", Operator::Exists, [""; 0])];
    assert_eq!(group.selector, Some(Selector { expressions, ..labels(&[("app", "web")]) }));
    let odd = read(&json!({ "matchExpressions": [{ "key": "tier", "operator": "Gt", "values": ["1"] }] }));
    assert_eq!(odd.selector, None);
}
