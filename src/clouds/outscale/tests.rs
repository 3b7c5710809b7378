//! The cloud against the stand-in for the API, in simulated time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use jiff::Timestamp;
use tokio::time::Instant;

use super::oapi::wire::{self, ResourceTag, Vm};
use super::oapi::{Access, Client, Options, Transport};
use super::*;
use crate::api::classes::outscale::{
    HASH, OutscaleNodeClass, OutscaleNodeClassSpec, OutscaleNodeClassStatus, SecretRef, Talos, USER_DATA_HASH,
};
use crate::clouds::{Cloud, Deletion, Error, LaunchRefused, LaunchSpec, Resolution, Whereabouts};
use crate::core::conditions::Conditions;
use crate::core::facts::{Claim, Effect, InstanceType, NodeClass, Status, Taint, samples};
use crate::core::ids::{ClaimUid, ClassRef, ProviderId};
use crate::core::labels;
use crate::core::requirements::{Operator, Requirement};
use crate::core::resources::Resources;
use crate::sim::Seed;
use crate::sim::oapi::{Account, Fake, Fault, Scarce};

pub(super) const WORKER: &str = r#"
version: v1alpha1
machine: { type: worker, token: mmmmmm.0123456789abcdef, ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCm1hY2hpbmUKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo= } }
cluster:
  token: cccccc.0123456789abcdef
  ca: { crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmNsdXN0ZXIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo= }
  controlPlane: { endpoint: "https://10.0.0.2:6443" }
"#;

type Data = BTreeMap<String, Vec<u8>>;

/// Secrets in memory.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<BTreeMap<String, Data>>>);

impl Kept {
    pub(super) fn put(&self, name: &str, key: &str, text: &str) {
        self.0.lock().unwrap().entry(name.to_owned()).or_default().insert(key.to_owned(), text.into());
    }
}

impl Secrets for Kept {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, Vec<u8>>, SecretError>> {
        let found = self.0.lock().unwrap().get(name).cloned();
        async move { found.ok_or_else(|| SecretError::Missing(format!("kube-system/{name}"))) }.boxed()
    }
}

pub(super) struct Scene {
    pub(super) fake: Fake,
    pub(super) secrets: Kept,
    pub(super) cloud: Outscale,
}

pub(super) fn cloud(fake: &Fake, secrets: &Kept, dry_run: bool) -> Outscale {
    let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    cloud_over(access, Arc::new(fake.clone()), secrets, dry_run)
}

/// The cloud of somebody whose calls go this way.
pub(super) fn cloud_over(access: Access, transport: Arc<dyn Transport>, secrets: &Kept, dry_run: bool) -> Outscale {
    let began = Instant::now();
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let now = Arc::new(move || start + began.elapsed());
    let client = Client::new(access, transport, Options::new(now));
    let settings = Settings {
        cluster: "demo".to_owned(),
        cluster_id: "demo-id".to_owned(),
        prices: None,
        memory_overhead: 75,
        dry_run,
    };
    Outscale::new(Arc::new(client), Arc::new(secrets.clone()), settings).unwrap()
}

pub(super) fn scene() -> Scene {
    let began = Instant::now();
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let fake = Fake::new(Account::sample(), Arc::new(move || start + began.elapsed()), Seed(1));
    let secrets = Kept::default();
    secrets.put("talos", "worker.yaml", WORKER);
    let cloud = cloud(&fake, &secrets, false);
    Scene { fake, secrets, cloud }
}

pub(super) fn spec() -> OutscaleNodeClassSpec {
    OutscaleNodeClassSpec {
        image_id: Some(Account::IMAGE.to_owned()),
        subnet_ids: Some(vec!["subnet-00000001".to_owned(), "subnet-00000002".to_owned()]),
        security_group_ids: Some(vec![Account::GROUP.to_owned()]),
        tags: [("team".to_owned(), "web".to_owned())].into(),
        talos: Talos { secret_ref: SecretRef { name: "talos".to_owned(), key: None }, ..Talos::default() },
        ..OutscaleNodeClassSpec::default()
    }
}

pub(super) fn class_of(spec: OutscaleNodeClassSpec) -> NodeClass {
    NodeClass {
        reference: ClassRef { group: CLASS_GROUP.into(), kind: CLASS_KIND.into(), name: "workers".into() },
        conditions: Vec::new(),
        body: Arc::new(OutscaleNodeClass::new("workers", spec)),
        ..samples::class()
    }
}

/// The class after the actor's look at it.
pub(super) async fn resolved(cloud: &Outscale, class: &NodeClass) -> (NodeClass, Resolution) {
    let resolution = cloud.resolve(class).await.unwrap();
    let dependents = cloud.class_conditions();
    let mut conditions =
        Conditions::of(&class.conditions, dependents, class.generation, Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    for judgement in &resolution.judgements {
        conditions.set(judgement.condition, judgement.status, judgement.reason, &judgement.message);
    }
    let mut body = class.body.downcast_ref::<OutscaleNodeClass>().unwrap().clone();
    if let Some(details) = &resolution.details {
        let status: OutscaleNodeClassStatus = serde_json::from_str(details).unwrap();
        body.status = Some(status);
    }
    (NodeClass { conditions: conditions.finish(), body: Arc::new(body), ..class.clone() }, resolution)
}

pub(super) async fn ready(cloud: &Outscale, spec: OutscaleNodeClassSpec) -> NodeClass {
    let (class, resolution) = resolved(cloud, &class_of(spec)).await;
    let bad: Vec<_> = resolution.judgements.iter().filter(|judgement| judgement.status != Status::True).collect();
    assert!(bad.is_empty(), "{bad:?}");
    class
}

pub(super) fn claim(number: usize) -> Claim {
    Claim {
        name: format!("default-{number:05}").into(),
        uid: format!("00000000-0000-4000-8000-{number:012}").into(),
        labels: [(labels::NODEPOOL.into(), "default".into()), ("tier".into(), "a".into())].into(),
        requirements: vec![Requirement::new("team", Operator::In, ["x"])],
        requests: Resources::new().with("cpu", 1000),
        taints: vec![Taint::new("dedicated", Effect::NoSchedule)],
        startup_taints: vec![Taint::new("booting", Effect::NoExecute)],
        class: ClassRef { group: CLASS_GROUP.into(), kind: CLASS_KIND.into(), name: "workers".into() },
        ..samples::claim()
    }
}

/// A launch of one of these types.
pub(super) async fn launch(cloud: &Outscale, class: &NodeClass, number: usize, types: &[&str]) -> LaunchSpec {
    let catalog = cloud.catalog(class).await.unwrap().types;
    let candidates: Vec<Arc<InstanceType>> =
        catalog.iter().filter(|kind| types.contains(&kind.name.as_str())).cloned().collect();
    assert_eq!(candidates.len(), types.len(), "{types:?}");
    let claim = claim(number);
    LaunchSpec { token: claim.uid.clone(), claim: Arc::new(claim), class: Arc::new(class.clone()), candidates }
}

pub(super) fn tags(vm: &Vm) -> BTreeMap<&str, &str> {
    vm.tags.iter().map(|tag| (tag.key.as_str(), tag.value.as_str())).collect()
}

pub(super) const SMALL: &str = "tinav6.c2r4p2";
pub(super) const LARGE: &str = "tinav6.c4r8p2";

pub(super) fn calls(fake: &Fake, action: &str) -> u64 {
    fake.load().get(action).map_or(0, |load| load.calls)
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_made_marked_and_told_all_that_it_needs() {
    let Scene { fake, cloud, .. } = scene();
    // Whether the API makes tags of the section in the user data is not known: everything must work when it does not.
    fake.conduct(|conduct| conduct.reads_section = false);
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[LARGE, SMALL]).await).await.unwrap();
    let vms = fake.vms();
    let [vm] = vms.as_slice() else { panic!("{vms:?}") };
    assert_eq!(machine.id, ProviderId::from(format!("aws:///eu-west-2a/{}", vm.vm_id)));
    assert_eq!(machine.token, Some("00000000-0000-4000-8000-000000000001".into()));
    assert_eq!(machine.claim, Some("default-00001".into()));
    assert_eq!(machine.instance_type, Some(SMALL.into()));
    assert_eq!(machine.image.as_deref(), Some(Account::IMAGE));
    let node = format!("ip-{}", vm.private_ip.as_deref().unwrap().replace('.', "-"));
    let all = tags(vm);
    assert_eq!(all["OscK8sNodeName"], node);
    assert_eq!(all["Name"], format!("demo-{node}"));
    assert_eq!((all["karpenter.sh/managed-by"], all["OscK8sClusterID/demo-id"], all["team"]), ("demo", "owned", "web"));
    assert_eq!((all["karpenter.sh/nodeclaim"], all["karpenter.sh/nodepool"]), ("default-00001", "default"));
    assert_eq!(all["OscK8sRole/worker"], "");
    assert_eq!(vm.client_token.as_deref(), Some("00000000-0000-4000-8000-000000000001"));
    assert_eq!(vm.vm_initiated_shutdown_behavior.as_deref(), Some("terminate"));
    let label = |key: &str| machine.labels.get(key).map(ToString::to_string).unwrap_or_default();
    assert_eq!((label(labels::ZONE), label(labels::REGION)), ("eu-west-2a".to_owned(), "eu-west-2".to_owned()));
    assert_eq!((label(INSTANCE_CPU), label(INSTANCE_PERFORMANCE)), ("2".to_owned(), "high".to_owned()));
    // 4 GiB less 7.5 % less what Talos and the kubelet keep.
    let memory = machine.allocatable.get(&"memory".into()) / 1000 / 1024 / 1024;
    assert_eq!(memory, 4096 - 4096 * 75 / 1000 - 384 - 100);
    assert!(machine.annotations.contains_key(HASH) && machine.annotations.contains_key(USER_DATA_HASH));
    let told = String::from_utf8(vm.user_data.as_ref().unwrap().bytes().unwrap()).unwrap();
    assert!(told.starts_with("-----BEGIN OUTSCALE SECTION-----\nfilter_private_section=true\ntags."), "{told}");
    let (_, yaml) = told.split_once("-----END OUTSCALE SECTION-----\n").unwrap();
    let config: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
    assert_eq!(
        config["machine"]["kubelet"]["extraArgs"]["register-with-taints"],
        "dedicated=:NoSchedule,booting=:NoExecute,karpenter.sh/unregistered=:NoExecute"
    );
    let node_labels = &config["machine"]["nodeLabels"];
    assert_eq!((&node_labels["tier"], &node_labels["team"]), (&"a".into(), &"x".into()));
    assert_eq!(node_labels[labels::ZONE], "eu-west-2a");
    assert_eq!(node_labels[labels::INSTANCE_TYPE], SMALL);
    assert_eq!(node_labels.get(labels::HOSTNAME), None);
    assert_eq!(cloud.get(&machine.id).await.unwrap().machine(), Some(machine.clone()));
    assert_eq!(
        cloud.get(&ProviderId::from(format!("osc:///x/{}", vm.vm_id))).await.unwrap().machine().unwrap().id,
        machine.id
    );
    let listing = cloud.list().await.unwrap();
    assert!(listing.complete);
    assert_eq!(listing.machines, [machine]);
}

#[tokio::test(start_paused = true)]
async fn asked_twice_there_is_one_machine_even_when_answers_are_lost() {
    let Scene { fake, secrets, cloud } = scene();
    let class = ready(&cloud, spec()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    let first = cloud.create(&wanted).await.unwrap();
    assert_eq!(cloud.create(&wanted).await.unwrap(), first);
    // Another controller, asked for something else meanwhile.
    let other = self::cloud(&fake, &secrets, false);
    assert_eq!(other.create(&launch(&other, &class, 1, &[LARGE]).await).await.unwrap(), first);
    fake.conduct(|conduct| {
        conduct.reads_section = false;
        conduct.loses_answers = 1.0;
    });
    let lost = launch(&cloud, &class, 2, &[SMALL]);
    let lost = lost.await;
    // The reads before it must be answered.
    fake.conduct(|conduct| conduct.loses_answers = 0.0);
    cloud.by_token.ask(&cloud.client, vec!["x".to_owned()]).await.unwrap();
    let racing = async {
        tokio::time::sleep(Duration::from_millis(160)).await;
        fake.conduct(|conduct| conduct.loses_answers = 1.0);
        tokio::time::sleep(Duration::from_mins(5)).await;
        fake.conduct(|conduct| conduct.loses_answers = 0.0);
    };
    let (answer, ()) = tokio::join!(cloud.create(&lost), racing);
    assert!(matches!(answer, Err(Error::Unknown(_) | Error::Temporary(_))), "{answer:?}");
    assert!(fake.struck(Fault::AnswerLost) > 0);
    let found = cloud.find(&lost.token).await.unwrap();
    assert!(found.len() <= 1, "{found:?}");
    let machine = cloud.create(&lost).await.unwrap();
    // One that could not be marked may have been taken down again.
    let vms: Vec<Vm> = fake.vms().into_iter().filter(|vm| !vm.state.is_leaving()).collect();
    assert_eq!(vms.len(), 2);
    assert_eq!(cloud.find(&lost.token).await.unwrap(), [machine]);
    assert!(vms.iter().all(|vm| tags(vm).contains_key("OscK8sNodeName")));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_found_unmarked_is_marked_before_it_is_shown() {
    let Scene { fake, cloud, .. } = scene();
    fake.conduct(|conduct| conduct.reads_section = false);
    let class = ready(&cloud, spec()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    // Two failures are overcome by the client itself.
    fake.conduct(|conduct| conduct.fails_first = vec!["CreateTags".to_owned(); 2]);
    cloud.create(&wanted).await.unwrap();
    assert_eq!((fake.vms().len(), fake.struck(Fault::Failed), fake.struck(Fault::TagsIgnored)), (1, 2, 1));
    // Somebody takes the tags off, and the machine has forgotten what it was told; a controller that knows nothing of it adopts it.
    strip(&fake, &cloud, &["team"]).await;
    fake.tamper(&fake.vms()[0].vm_id, |vm| vm.user_data = None);
    assert_eq!(cloud.list().await.unwrap().machines.len(), 1, "a machine without its tags is still reported");
    assert_eq!(cloud.list().await.unwrap().machines[0].token, None);
    let machine = cloud.create(&wanted).await.unwrap();
    assert_eq!(machine.token, Some(wanted.token.clone()));
    assert_eq!(cloud.list().await.unwrap().machines, [machine]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_launch_was_lost_remembers_what_it_was_made_from() {
    for reads_section in [false, true] {
        let Scene { fake, secrets, cloud } = scene();
        fake.conduct(|conduct| {
            conduct.reads_section = reads_section;
            conduct.loses_first = vec!["CreateVms".to_owned()];
        });
        let before = ready(&cloud, spec()).await;
        let lost = launch(&cloud, &before, 1, &[SMALL]).await;
        assert!(matches!(cloud.create(&lost).await, Err(Error::Unknown(_))));
        // Another joiner finds it before anybody has marked it.
        let found = self::cloud(&fake, &secrets, false).find(&lost.token).await.unwrap().remove(0);
        let hash = spec().hash();
        assert_eq!(found.annotations.get(HASH).map(|hash| &**hash), Some(&*hash), "{reads_section}");
        // Meanwhile somebody changes the class and the machine configuration, and the launch is tried again.
        secrets.put("talos", "worker.yaml", &format!("{WORKER}debug: true\n"));
        let talos = Talos { node_name: Some("NodeClaim".to_owned()), ..spec().talos };
        let keypair_name = Some(Account::KEYPAIR.to_owned());
        let after = ready(&cloud, OutscaleNodeClassSpec { keypair_name, talos, ..spec() }).await;
        let machine = cloud.create(&launch(&cloud, &after, 1, &[SMALL]).await).await.unwrap();
        assert_eq!(machine.annotations, found.annotations, "{reads_section}");
        let vm = fake.vms().remove(0);
        assert_eq!(tags(&vm)["OscK8sNodeName"], format!("ip-{}", vm.private_ip.as_deref().unwrap().replace('.', "-")));
        let claim =
            Claim { provider_id: Some(machine.id.clone()), annotations: machine.annotations.clone(), ..claim(1) };
        assert_eq!(cloud.drift(&claim, &after).await.unwrap().as_deref(), Some("NodeClassDrift"));
        // The next look at the marks agrees.
        assert_eq!(cloud.list().await.unwrap().machines, [machine]);
    }
}

/// Takes all tags off the first machine, but these.
pub(super) async fn strip(fake: &Fake, cloud: &Outscale, but: &[&str]) {
    let vm = fake.vms().remove(0);
    let tags: Vec<ResourceTag> = vm.tags.into_iter().filter(|tag| !but.contains(&tag.key.as_str())).collect();
    cloud.client.call(&wire::DeleteTags { resource_ids: vec![vm.vm_id], tags }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn marks_that_were_lost_or_changed_are_written_again() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let before = fake.vms()[0].tags.clone();
    tokio::time::sleep(Duration::from_mins(3)).await;
    strip(&fake, &cloud, &["team"]).await;
    assert_eq!(cloud.list().await.unwrap().machines, std::slice::from_ref(&machine));
    let sorted = |mut tags: Vec<ResourceTag>| {
        tags.sort_by(|one, other| one.key.cmp(&other.key));
        tags
    };
    assert_eq!(sorted(fake.vms()[0].tags.clone()), sorted(before));
    // Somebody gives the machine to another NodeClaim.
    let id = fake.vms()[0].vm_id.clone();
    let tags = vec![ResourceTag::new("karpenter.outscale.com/nodeclaim-uid", "another")];
    cloud.client.call(&wire::CreateTags { resource_ids: vec![id], tags }).await.unwrap();
    assert_eq!(cloud.list().await.unwrap().machines, [machine]);
    let writes = calls(&fake, "CreateTags");
    cloud.list().await.unwrap();
    assert_eq!(calls(&fake, "CreateTags"), writes, "nothing is missing, nothing is written");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_never_got_its_marks_is_found_by_a_joiner_that_knows_nothing_of_it() {
    let Scene { fake, secrets, cloud } = scene();
    fake.conduct(|conduct| conduct.reads_section = false);
    let class = ready(&cloud, spec()).await;
    cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    strip(&fake, &cloud, &[]).await;
    // A copy that somebody made has another token.
    let vm = fake.vms().remove(0);
    let copy = wire::CreateVms {
        image_id: Account::IMAGE.to_owned(),
        subnet_id: vm.subnet_id.clone(),
        user_data: vm.user_data.clone(),
        ..wire::CreateVms::default()
    };
    cloud.client.call(&copy).await.unwrap();
    let other = self::cloud(&fake, &secrets, false);
    assert_eq!(other.list().await.unwrap().machines, [], "no NodeClass says yet where to look");
    ready(&other, spec()).await;
    let listed = other.list().await.unwrap().machines;
    let tokens: Vec<_> = listed.iter().map(|machine| machine.token.clone()).collect();
    assert_eq!(tokens, [Some("00000000-0000-4000-8000-000000000001".into())]);
    assert_eq!(tags(&fake.vms()[0])["karpenter.sh/managed-by"], "demo");
    // From now on lists by tags show it, and all machines are not read every time.
    let reads = calls(&fake, "ReadVms");
    assert_eq!(other.list().await.unwrap().machines, listed);
    assert_eq!(calls(&fake, "ReadVms"), reads + 1);
    // Nobody writes anything in a dry run.
    strip(&fake, &cloud, &[]).await;
    let looking = self::cloud(&fake, &secrets, true);
    ready(&looking, spec()).await;
    looking.list().await.unwrap();
    assert_eq!(fake.vms()[0].tags, []);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_cannot_be_marked_is_taken_down() {
    let Scene { fake, cloud, .. } = scene();
    fake.conduct(|conduct| conduct.reads_section = false);
    let class = ready(&cloud, spec()).await;
    let wanted = launch(&cloud, &class, 1, &[SMALL]).await;
    fake.account(|account| account.denied.extend(["CreateTags".to_owned()]));
    let error = cloud.create(&wanted).await.unwrap_err();
    assert!(matches!(&error, Error::Launch(LaunchRefused::ClassNotReady(_))), "{error}");
    assert!(error.to_string().contains("allow the action api:CreateTags in an EIM policy"), "{error}");
    assert!(fake.vms().iter().all(|vm| vm.state.is_leaving()), "{:?}", fake.vms());
    // The next attempt does not get the machine that is going.
    fake.account(|account| account.denied.clear());
    let machine = cloud.create(&wanted).await.unwrap();
    assert_eq!(machine.token, Some(wanted.token.clone()));
    assert_eq!(fake.vms().iter().filter(|vm| !vm.state.is_leaving()).count(), 1);
    assert_eq!(cloud.find(&wanted.token).await.unwrap(), [machine]);
}

#[tokio::test(start_paused = true)]
async fn what_is_sold_out_is_not_tried_again_for_a_while() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    fake.conduct(|conduct| {
        conduct.sold_out = vec![Scarce { vm_type: Some(SMALL.to_owned()), subregion: Some("eu-west-2a".to_owned()) }];
    });
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    assert_eq!(machine.labels.get(labels::ZONE).map(|zone| &**zone), Some("eu-west-2b"));
    assert_eq!(fake.struck(Fault::SoldOut), 1);
    let before = calls(&fake, "CreateVms");
    cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.unwrap();
    assert_eq!(calls(&fake, "CreateVms"), before + 1, "the subregion that is sold out was tried again");
    fake.conduct(|conduct| conduct.sold_out = vec![Scarce::default()]);
    let error = cloud.create(&launch(&cloud, &class, 3, &[SMALL, LARGE]).await).await.unwrap_err();
    let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, .. }) = &error else { panic!("{error}") };
    assert_eq!(sold_out.len(), 4);
    assert!(sold_out.iter().all(|offering| &*offering.capacity_type == "on-demand" && offering.zone.is_some()));
    fake.conduct(|conduct| conduct.sold_out.clear());
    assert!(cloud.create(&launch(&cloud, &class, 3, &[SMALL]).await).await.is_err());
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert!(cloud.create(&launch(&cloud, &class, 3, &[SMALL]).await).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_used_up_quota_is_told_as_such() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    fake.account(|account| account.quotas.vms = 0);
    let error = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap_err();
    let Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, .. }) = &error else { panic!("{error}") };
    let offerings: usize = cloud.catalog(&class).await.unwrap().types.iter().map(|kind| kind.offerings.len()).sum();
    assert_eq!(sold_out.len(), offerings, "there is no room for any machine");
    assert!(error.to_string().contains("reached: vm_limit (0 of 0 used, 1 needed); ask Outscale for more"), "{error}");
    // Many launches that are refused at once ask once; without the permission to ask, the message says what to allow.
    let again = launch(&cloud, &class, 8, &[SMALL]).await;
    let (made, asked) = (calls(&fake, "CreateVms"), calls(&fake, "ReadQuotas"));
    assert!(cloud.create(&again).await.is_err());
    assert_eq!((calls(&fake, "CreateVms"), calls(&fake, "ReadQuotas"), asked), (made, 1, 1));
    tokio::time::sleep(Duration::from_mins(4)).await;
    fake.account(|account| account.denied.extend(["ReadQuotas".to_owned()]));
    let error = cloud.create(&again).await.unwrap_err();
    assert!(error.to_string().contains("allow the action api:ReadQuotas"), "{error}");
    assert_eq!(fake.vms().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn machines_of_others_are_left_alone() {
    let Scene { fake, secrets, cloud } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let vm = fake.vms()[0].clone();
    let tag = |key: &str, value: &str| wire::CreateTags {
        resource_ids: vec![vm.vm_id.clone()],
        tags: vec![ResourceTag::new(key, value)],
    };
    // The second mark is of another cluster: it is reported, and nobody's to reap.
    cloud.client.call(&tag("OscK8sClusterID/demo-id", "shared")).await.unwrap();
    assert_eq!(cloud.list().await.unwrap().machines[0].token, None);
    cloud.client.call(&tag("karpenter.sh/managed-by", "production")).await.unwrap();
    let fresh = self::cloud(&fake, &secrets, false);
    assert_eq!(fresh.list().await.unwrap().machines, []);
    let error = fresh.delete(&machine.id).await.unwrap_err();
    assert!(error.to_string().contains("belongs to cluster production"), "{error}");
    assert!(!fake.vms()[0].state.is_leaving());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_confirmed_before_it_is_believed() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert!(cloud.get(&machine.id).await.unwrap().machine().unwrap().deleting);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::Gone);
    assert_eq!(cloud.get(&machine.id).await.unwrap(), Whereabouts::Ended);
    assert_eq!(cloud.list().await.unwrap().machines, []);
    assert_eq!(calls(&fake, "DeleteVms"), 2, "one dry run, one deletion");
    for other in ["kwok://x", "aws:///eu-west-2a/i-xyz", ""] {
        assert_eq!(cloud.delete(&ProviderId::from(other)).await.unwrap(), Deletion::Gone, "{other}");
        assert_eq!(cloud.get(&ProviderId::from(other)).await.unwrap().machine(), None, "{other}");
    }
    // A VM that nobody has seen may be so new that no list shows it; it is not waited for for ever, and nothing of it is deleted.
    let unknown = ProviderId::from("aws:///eu-west-2a/i-0000ffff");
    assert!(matches!(cloud.get(&unknown).await, Err(Error::Temporary(_))));
    assert_eq!(cloud.delete(&unknown).await.unwrap(), Deletion::InProgress);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cloud.get(&unknown).await.unwrap().machine(), None);
    assert_eq!(cloud.delete(&unknown).await.unwrap(), Deletion::Missing);
    assert_eq!(calls(&fake, "DeleteVms"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_protected_is_freed_when_its_nodeclaim_goes() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let vm_id = fake.vms()[0].vm_id.clone();
    let protect = wire::UpdateVm { vm_id, deletion_protection: Some(true), ..wire::UpdateVm::default() };
    cloud.client.call(&protect).await.unwrap();
    assert_eq!(cloud.delete(&machine.id).await.unwrap(), Deletion::InProgress);
    assert!(fake.vms()[0].state.is_leaving());
}

#[tokio::test(start_paused = true)]
async fn many_questions_are_few_calls() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    let before = calls(&fake, "ReadVms");
    let answers = join_all((0..100).map(|_| cloud.get(&machine.id))).await;
    let there = Whereabouts::There(Box::new(machine.clone()));
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap() == &there));
    let others: Vec<ProviderId> = (0..100).map(|n| ProviderId::from(format!("aws:///x/i-{n:08x}"))).collect();
    let answers = join_all(others.iter().map(|id| cloud.get(id))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(Error::Temporary(_)))), "they may be listed late");
    assert!(calls(&fake, "ReadVms") - before <= 4, "{} calls", calls(&fake, "ReadVms") - before);
    // Who goes away does not take the answer with it.
    let mut first = Box::pin(cloud.get(&machine.id));
    assert!(futures::poll!(&mut first).is_pending());
    let mut second = Box::pin(cloud.get(&machine.id));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    assert_eq!(second.await.unwrap().machine(), Some(machine));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_is_an_error_and_never_empty() {
    let Scene { fake, cloud, .. } = scene();
    ready(&cloud, spec()).await;
    fake.conduct(|conduct| conduct.fails = 1.0);
    assert!(matches!(cloud.list().await, Err(Error::Temporary(_))));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_asks_and_makes_nothing() {
    let Scene { fake, secrets, cloud: real } = scene();
    let class = ready(&real, spec()).await;
    let standing = real.create(&launch(&real, &class, 1, &[SMALL]).await).await.unwrap();
    let dry = self::cloud(&fake, &secrets, true);
    // Nobody has written the class' status: what was found out is remembered, and of no namesake.
    let (unwritten, _) = resolved(&dry, &class_of(spec())).await;
    let bare = NodeClass { body: class_of(spec()).body, ..unwritten };
    let namesake = NodeClass { uid: "another".into(), ..bare.clone() };
    let offerings = async |class: &NodeClass| {
        let types = dry.catalog(class).await.unwrap().types;
        types.iter().map(|kind| kind.offerings.len()).sum::<usize>()
    };
    assert_eq!((offerings(&bare).await > 0, offerings(&namesake).await), (true, 0));
    let wanted = launch(&dry, &bare, 2, &[SMALL]).await;
    let machine = dry.create(&wanted).await.unwrap();
    assert_eq!(machine.id.as_str(), "dry-run:///eu-west-2a/default-00002");
    assert_eq!(machine.token, Some(wanted.token.clone()));
    assert_eq!(dry.create(&wanted).await.unwrap(), machine);
    assert_eq!(dry.find(&wanted.token).await.unwrap(), std::slice::from_ref(&machine));
    assert_eq!(dry.list().await.unwrap().machines.len(), 2);
    assert_eq!(dry.delete(&machine.id).await.unwrap(), Deletion::Gone);
    assert_eq!(dry.delete(&standing.id).await.unwrap(), Deletion::InProgress);
    dry.reboot(&standing.id, "op").await.unwrap();
    let vms = fake.vms();
    assert!(vms.len() == 1 && !vms[0].state.is_leaving(), "{vms:?}");
    assert_eq!(fake.reboots(&vms[0].vm_id), Some(0));
    fake.account(|account| account.denied.extend(["CreateVms".to_owned()]));
    let error = dry.create(&launch(&dry, &bare, 3, &[SMALL]).await).await.unwrap_err();
    assert!(error.to_string().contains("api:CreateVms"), "{error}");
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table of faults")]
async fn what_is_wrong_with_a_class_is_said_with_field_and_remedy() {
    let Scene { fake, secrets, cloud } = scene();
    secrets.put("broken", "worker.yaml", "version: v1alpha1\n");
    secrets.put("elsewhere", "machine.yaml", WORKER);
    fake.account(|account| {
        let mut other = account.subnets[0].clone();
        (other.subnet_id, other.net_id) = ("subnet-00000009".to_owned(), Some("vpc-00000009".to_owned()));
        account.subnets.push(other);
    });
    let talos = |name: &str| Talos { secret_ref: SecretRef { name: name.to_owned(), key: None }, ..Talos::default() };
    let subnets = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect());
    for (spec, condition, reason, message) in [
        (
            OutscaleNodeClassSpec { image_id: Some("ami-0000ffff".to_owned()), ..spec() },
            "ImagesReady",
            "ImageNotFound",
            "spec.imageId",
        ),
        (
            OutscaleNodeClassSpec { subnet_ids: subnets(&["subnet-0000ffff"]), ..spec() },
            "SubnetsReady",
            "SubnetNotFound",
            "spec.subnetIds",
        ),
        (
            OutscaleNodeClassSpec { subnet_ids: subnets(&["subnet-00000001", "subnet-00000009"]), ..spec() },
            "SubnetsReady",
            "SubnetsOfSeveralNets",
            "vpc-00000001, vpc-00000009",
        ),
        (
            OutscaleNodeClassSpec { security_group_ids: Some(vec!["sg-0000ffff".to_owned()]), ..spec() },
            "SecurityGroupsReady",
            "SecurityGroupNotFound",
            "spec.securityGroupIds",
        ),
        (
            OutscaleNodeClassSpec { subnet_ids: subnets(&["subnet-00000009"]), ..spec() },
            "SecurityGroupsReady",
            "SecurityGroupOfAnotherNet",
            "is not of the subnets' Net vpc-00000009",
        ),
        (
            OutscaleNodeClassSpec { keypair_name: Some("none".to_owned()), ..spec() },
            "KeypairReady",
            "KeypairNotFound",
            "spec.keypairName",
        ),
        (
            OutscaleNodeClassSpec { talos: talos("missing"), ..spec() },
            "UserDataReady",
            "SecretNotFound",
            "Secret kube-system/missing does not exist",
        ),
        (
            OutscaleNodeClassSpec { talos: talos("elsewhere"), ..spec() },
            "UserDataReady",
            "SecretKeyNotFound",
            "has no key worker.yaml (there are: machine.yaml)",
        ),
        (
            OutscaleNodeClassSpec { talos: talos("broken"), ..spec() },
            "UserDataReady",
            "InvalidMachineConfiguration",
            "machine.type: must be worker",
        ),
        (
            OutscaleNodeClassSpec {
                talos: Talos {
                    patches: vec![format!("machine: {{ env: {{ A: {} }} }}", "x".repeat(400_000))],
                    ..talos("talos")
                },
                ..spec()
            },
            "UserDataReady",
            "UserDataUnfit",
            "the API takes 512000",
        ),
        (
            OutscaleNodeClassSpec {
                vm_types: Some(crate::api::classes::outscale::VmTypes {
                    names: Some(vec!["c9.huge".to_owned()]),
                    ..Default::default()
                }),
                ..spec()
            },
            "TypesReady",
            "UnknownTypes",
            r#"spec.vmTypes.names: "c9.huge" is no VM type; there are custom types such as"#,
        ),
        (
            OutscaleNodeClassSpec {
                vm_types: Some(crate::api::classes::outscale::VmTypes {
                    families: Some(vec!["tinav9".to_owned()]),
                    ..Default::default()
                }),
                ..spec()
            },
            "TypesReady",
            "NoTypes",
            "tinav9 high; there are tinav5 highest",
        ),
    ] {
        let (class, resolution) = resolved(&cloud, &class_of(spec)).await;
        let bad: Vec<_> = resolution.judgements.iter().filter(|judgement| judgement.status != Status::True).collect();
        let found = bad.iter().any(|j| j.condition == condition && j.reason == reason && j.message.contains(message));
        assert!(found && bad.len() == 1, "{condition} {reason}: {bad:?}");
        let shown = Arc::new(class);
        let claim = Arc::new(claim(1));
        let spec = LaunchSpec { token: claim.uid.clone(), claim, class: shown, candidates: Vec::new() };
        let error = cloud.create(&spec).await.unwrap_err();
        assert!(matches!(&error, Error::Launch(LaunchRefused::ClassNotReady(_))), "{error}");
    }
    fake.account(|account| account.denied.extend(["CreateVms".to_owned()]));
    let (_, resolution) = resolved(&cloud, &class_of(spec())).await;
    let bad: Vec<_> = resolution.judgements.iter().filter(|judgement| judgement.status != Status::True).collect();
    assert!(
        bad.len() == 1 && bad[0].condition == "PermissionsReady" && bad[0].message.contains("api:CreateVms"),
        "{bad:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_that_does_not_answer_says_nothing_against_a_class() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    fake.conduct(|conduct| conduct.fails = 1.0);
    let resolution = cloud.resolve(&class).await.unwrap();
    assert!(resolution.judgements.iter().all(|judgement| judgement.status != Status::False), "{resolution:?}");
    assert_eq!(resolution.details, None, "what was found before stays");
    let free = class.body.downcast_ref::<OutscaleNodeClass>().unwrap().status.as_ref().unwrap();
    assert_eq!(
        free.subnets.iter().map(|subnet| subnet.zone.as_str()).collect::<Vec<_>>(),
        ["eu-west-2a", "eu-west-2b"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_catalogue_is_one_list_as_long_as_nothing_changes() {
    let Scene { cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let first = cloud.catalog(&class).await.unwrap().types;
    assert!(Arc::ptr_eq(&first, &cloud.catalog(&class).await.unwrap().types));
    let names: Vec<&str> = first.iter().map(|kind| kind.name.as_str()).collect();
    assert!(
        names.contains(&"tinav6.c4r8p2") && names.contains(&"tinav7.c64r512p2") && !names.contains(&"tinav6.c4r8p1"),
        "{names:?}"
    );
    let price = |name: &str| first.iter().find(|kind| kind.name.as_str() == name).unwrap().offerings[0].price;
    assert!((price("tinav6.c4r8p2") - 0.18).abs() < 1e-9);
    assert!(
        first.iter().all(|kind| kind.offerings.len() == 2 && kind.offerings.iter().all(|offering| offering.available))
    );
    assert!(first.windows(2).all(|pair| pair[0].offerings[0].price <= pair[1].offerings[0].price));
    // Nothing is offered in the dark.
    assert_eq!(
        cloud.catalog(&class_of(spec())).await.unwrap().types.iter().map(|kind| kind.offerings.len()).max(),
        Some(0)
    );
}

#[tokio::test(start_paused = true)]
async fn three_hundred_launches_at_once_stay_within_the_limits() {
    let Scene { fake, cloud, .. } = scene();
    fake.conduct(|conduct| {
        conduct.limit_each = Some(20);
        conduct.lists_after = Duration::from_secs(2);
    });
    let class = ready(&cloud, spec()).await;
    let mut specs = Vec::new();
    for number in 0..300 {
        specs.push(launch(&cloud, &class, number, &[SMALL]).await);
    }
    let cloud = &cloud;
    let all = join_all(specs.iter().map(|spec| async move {
        let began = Instant::now();
        loop {
            match cloud.create(spec).await {
                Ok(machine) => return machine,
                Err(Error::Throttled { .. } | Error::Unknown(_)) if began.elapsed() < Duration::from_mins(10) => {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }))
    .await;
    let tokens: std::collections::BTreeSet<ClaimUid> = all.iter().filter_map(|machine| machine.token.clone()).collect();
    assert_eq!((fake.vms().len(), tokens.len()), (300, 300));
    let load = fake.load();
    assert_eq!(fake.struck(Fault::Throttled), 0, "{load:?}");
    assert!(
        load["CreateVms"].calls <= 301 && load["CreateTags"].calls <= 302 && load["ReadVms"].calls < 60,
        "{load:?}"
    );
}
