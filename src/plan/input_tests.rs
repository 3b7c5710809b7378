//! What a plan for a live cluster is made for.

use super::*;
use crate::core::facts::PodShape;
use crate::core::facts::samples::{pod, ready_pool, start};

#[test]
fn every_pod_of_a_cluster_that_waits_is_planned_or_set_aside() {
    let mut fold = Fold::default();
    fold.fold(Fact::PoolSeen(Arc::new(ready_pool())));
    let waiting = |name: &str, unschedulable: bool, unjudged: bool, scheduler: Option<&str>| {
        let sample = pod(name, None);
        let shape = PodShape { scheduler: scheduler.map(Into::into), ..(*sample.shape).clone() };
        Pod { unschedulable, unjudged, shape: Arc::new(shape), ..sample }
    };
    let pods = [
        waiting("weighed", true, false, None),
        waiting("weighed-elsewhere", true, false, Some("other")),
        waiting("new", false, true, None),
        waiting("gated", false, false, None),
        waiting("foreign", false, true, Some("other")),
        Pod { deleting: Some(start()), ..waiting("leaving", true, false, None) },
        pod("runs", Some("node-1")),
    ];
    for pod in pods {
        fold.fold(Fact::PodSeen(Arc::new(pod)));
    }
    let input = from_snapshot(fold.snapshot().clone(), Vec::new(), Features::default(), start());
    let planned: Vec<&str> = input.pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(planned, ["new", "weighed", "weighed-elsewhere"]);
    let aside: Vec<(&str, &str)> = input.set_aside.iter().map(|(key, why)| (&*key.name, &**why)).collect();
    let [("foreign", left), ("gated", gated)] = aside[..] else { panic!("{aside:?}") };
    assert!(left.contains("scheduler other") && gated.contains("spec.schedulingGates"), "{aside:?}");
}
