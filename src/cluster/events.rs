//! Events, as Karpenter writes them.

use jiff::Timestamp;
use serde_json::json;

use crate::core::ids::ClassRef;
use crate::core::time::rfc3339;

use super::convert::ClassKind;
use super::request::{JSON, Request};
use super::{Announcement, Regarding};

/// Who says so: dashboards and Karpenter's own suites look for this name.
const COMPONENT: &str = "karpenter";
/// Where Events about cluster-scoped objects are kept.
const DEFAULT_NAMESPACE: &str = "default";

/// The request that writes an Event.
pub(super) fn event(announcement: &Announcement, kinds: &[ClassKind], instance: &str, now: Timestamp) -> Request {
    let version_of = |class: &ClassRef| {
        let kind = kinds.iter().find(|kind| kind.is(class));
        format!("{}/{}", class.group, kind.map_or("v1", |kind| kind.version))
    };
    let (of_class, of_pod);
    let (api_version, kind, namespace, name, uid) = match &announcement.regarding {
        Regarding::Pod(key, uid) => {
            of_pod = uid.to_string();
            ("v1", "Pod", Some(&*key.namespace), &*key.name, of_pod.as_str())
        }
        Regarding::Node(name, uid) => ("v1", "Node", None, name.as_str(), uid.as_str()),
        Regarding::Claim(name, uid) => ("karpenter.sh/v1", "NodeClaim", None, name.as_str(), uid.as_str()),
        Regarding::Pool(name, uid) => ("karpenter.sh/v1", "NodePool", None, name.as_str(), uid.as_str()),
        Regarding::Class(class, uid) => {
            of_class = version_of(class);
            (of_class.as_str(), &*class.kind, None, &*class.name, &**uid)
        }
        Regarding::Lease(key, uid) => ("coordination.k8s.io/v1", "Lease", Some(&*key.namespace), &*key.name, &**uid),
    };
    let mut involved = json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid });
    if let Some(namespace) = namespace {
        involved["namespace"] = namespace.into();
    }
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let time = rfc3339(now);
    Request::new("create", "", "events", format!("Event {} of {kind} {name}", announcement.reason))
        .within(namespace, "")
        .with(
            JSON,
            json!({
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": { "generateName": format!("{name}."), "namespace": namespace },
                "involvedObject": involved,
                "type": if announcement.warning { "Warning" } else { "Normal" },
                "reason": announcement.reason,
                "message": &announcement.message,
                "source": { "component": COMPONENT },
                "reportingComponent": COMPONENT,
                "reportingInstance": instance,
                "firstTimestamp": time,
                "lastTimestamp": time,
                "count": 1,
            }),
        )
}
