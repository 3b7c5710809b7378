//! NodePools for which a NodeClass is of no use, and NodeClaims that cannot lend their names.

use super::super::tests::{SMALL, Scene, calls, class_of, launch, ready, resolved, scene, spec};
use crate::api::classes::outscale::{OutscaleNodeClassSpec, Talos};
use crate::clouds::{Cloud, Error, LaunchSpec};
use crate::core::facts::{Claim, NodeClass, Pool, Status, Template, find_condition, samples};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::sim::oapi::Account;
use std::sync::Arc;

fn named() -> OutscaleNodeClassSpec {
    let talos = Talos { node_name: Some("NodeClaim".to_owned()), ..spec().talos };
    OutscaleNodeClassSpec { talos, ..spec() }
}

fn pool(name: &str) -> Pool {
    Pool { name: name.into(), ..samples::pool() }
}

#[tokio::test(start_paused = true)]
async fn a_nodepool_whose_nodeclaims_cannot_be_host_names_is_not_planned_with() {
    let Scene { cloud, .. } = scene();
    let class = ready(&cloud, named()).await;
    let longest = "x".repeat(57);
    assert_eq!((cloud.misfit(&class, &pool("web")), cloud.misfit(&class, &pool(&longest))), (None, None));
    let why = cloud.misfit(&class, &pool("shop.web")).unwrap();
    assert!(why.starts_with("metadata.name: NodePool shop.web has a dot"), "{why}");
    assert!(why.ends_with("or set spec.talos.nodeName to PrivateIp"), "{why}");
    let why = cloud.misfit(&class, &pool(&"x".repeat(58))).unwrap();
    assert!(why.contains("is too long for a host name") && why.contains("at most 57 characters"), "{why}");
    // By its address a machine can always be called.
    let class = ready(&cloud, spec()).await;
    assert_eq!(cloud.misfit(&class, &pool("shop.web")), None);
}

#[tokio::test(start_paused = true)]
async fn a_nodeclaim_that_cannot_be_a_host_name_is_not_launched() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, named()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    let with = |name: &str| {
        let claim = Claim { name: name.into(), ..(*wanted.claim).clone() };
        LaunchSpec { claim: Arc::new(claim), ..wanted.clone() }
    };
    let before = calls(&fake, "CreateVms");
    for name in ["shop.web-bcdfg", &"x".repeat(64)] {
        let error = cloud.create(&with(name)).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid { field, .. } if field == "metadata.name"), "{error}");
        assert!(error.to_string().contains("set spec.talos.nodeName to PrivateIp"), "{error}");
    }
    assert_eq!(calls(&fake, "CreateVms"), before);
    cloud.create(&with(&"x".repeat(63))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_nodepool_of_zones_without_a_subnet_is_told_where_the_subnets_are() {
    let Scene { cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let zones = |operator, zones: &[&str]| {
        let mut pool = pool("web");
        pool.template.requirements = vec![Requirement::new(labels::ZONE, operator, zones.iter().copied())];
        pool
    };
    let why = cloud.misfit(&class, &zones(Operator::In, &["eu-west-2c"])).unwrap();
    for part in [
        "spec.template.spec.requirements: topology.kubernetes.io/zone In",
        "eu-west-2c",
        "admits none of eu-west-2a, eu-west-2b, where the subnets of ",
        "add a subnet of the wanted subregion to the NodeClass (spec.subnetIds or spec.subnetSelectorTerms)",
    ] {
        assert!(why.contains(part), "{why}");
    }
    assert!(cloud.misfit(&class, &zones(Operator::NotIn, &["eu-west-2a", "eu-west-2b"])).is_some());
    // One of several is enough; and before the subnets are known, nothing is.
    assert_eq!(cloud.misfit(&class, &zones(Operator::In, &["eu-west-2c", "eu-west-2b"])), None);
    let (unknown, _) = (class_of(spec()), resolved(&cloud, &class_of(spec())).await);
    assert_eq!(cloud.misfit(&unknown, &zones(Operator::In, &["eu-west-2c"])), None);
}

#[tokio::test(start_paused = true)]
async fn a_class_whose_subnets_are_full_stays_ready_and_its_nodepools_say_so_until_addresses_are_free() {
    let Scene { fake, cloud, .. } = scene();
    let fill =
        |number: usize| fake.account(|account| account.subnets[number].ip_range = Some("10.0.0.0/30".to_owned()));
    let zone = |zone: &str| {
        let requirements = vec![Requirement::new(labels::ZONE, Operator::In, [zone])];
        let template = Template { requirements, ..pool("web").template };
        Pool { template, ..pool("web") }
    };
    let remark = |class: &NodeClass| {
        let told = find_condition(&class.conditions, "SubnetsReady").unwrap();
        assert_eq!(told.status, Status::True, "{told:?}");
        told.message.to_string()
    };
    let class = ready(&cloud, spec()).await;
    assert_eq!((remark(&class).as_str(), cloud.misfit(&class, &pool("web"))), ("", None));
    fill(0);
    let class = ready(&cloud, spec()).await;
    assert_eq!(
        remark(&class),
        "no address is free in subnet-00000001 (eu-west-2a): until one is, machines are launched into the others alone; add a subnet \
         (spec.subnetIds or spec.subnetSelectorTerms), or free addresses"
    );
    let why = cloud.misfit(&class, &zone("eu-west-2a")).unwrap();
    assert!(
        why.contains("no free address for machines of this NodePool: subnet-00000001 (eu-west-2a) is full;"),
        "{why}"
    );
    assert_eq!((cloud.misfit(&class, &pool("web")), cloud.misfit(&class, &zone("eu-west-2b"))), (None, None));
    fill(1);
    let class = ready(&cloud, spec()).await;
    assert!(remark(&class).contains("subnet-00000002 (eu-west-2b): until one is, no machine is launched;"));
    let why = cloud.misfit(&class, &pool("web")).unwrap();
    assert!(why.contains("subnet-00000001 (eu-west-2a), subnet-00000002 (eu-west-2b) are full; add a subnet"), "{why}");
    fake.account(|account| account.subnets.clone_from(&Account::sample().subnets));
    let class = ready(&cloud, spec()).await;
    assert_eq!((remark(&class).as_str(), cloud.misfit(&class, &pool("web"))), ("", None));
}
