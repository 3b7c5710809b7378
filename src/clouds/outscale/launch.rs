//! The birth of a machine: found if it exists already, else made where it is cheapest and can be had, and marked before anybody hears of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::classes::outscale::{OutscaleNodeClass, OutscaleNodeClassStatus, Placement, ResolvedSubnet};
use crate::clouds::{Error, LaunchRefused, LaunchSpec, SoldOut};
use crate::core::facts::{InstanceType, Machine, Offering, Taint};
use crate::core::ids::{ClaimUid, PoolName, ProviderId};
use crate::core::labels::{self, Labels};
use crate::core::requirements::Operator;
use crate::telemetry::log::rounded;

use super::birth::user_data;
use super::catalogue::{self, region};
use super::cloud::{Outscale, read_failed};
use super::fit::no_node_name;
use super::marking::{Names, Remembered, class_not_ready, marked};
use super::marks::Marked;
use super::oapi::wire::{self, UserData, Vm};
use super::oapi::{Class, Error as Failure};
use super::quotas::Left;
use super::talos::{Own, Template};

/// How many offerings one launch tries. Each is a call, and the next launch goes on where this one ended.
const ATTEMPTS: usize = 5;
/// How long an offering that could not be had is not tried again (Karpenter's AWS provider: 3 minutes).
const SOLD_OUT_FOR: Duration = Duration::from_mins(3);
/// A launch writes its marks within this long, or leaves it to others.
const UNDER_WAY: Duration = Duration::from_mins(2);
/// Births that did not end within this long are not remembered; their machines are found by the tokens of their NodeClaims.
const REMEMBERED_FOR: Duration = Duration::from_hours(1);

/// The client tokens of a NodeClaim, in the order of their use. The first is its UID; the others are for launches after a machine that was made
/// with the one before had to be taken down: the API may answer a token that was used with the machine that it made.
pub(super) fn tokens(uid: &str) -> Vec<String> {
    vec![uid.to_owned(), format!("{uid}.1"), format!("{uid}.2")]
}

/// What is under way, and what launches learn from each other.
#[derive(Default)]
pub(super) struct Launches(Mutex<State>);

#[derive(Default)]
struct State {
    /// Tags that machines are to have, by the UID of their NodeClaim.
    births: BTreeMap<ClaimUid, Remembered>,
    /// Until when an offering is not tried.
    sold_out: BTreeMap<SoldOut, Instant>,
    /// Addresses taken in subnets since their free ones were counted.
    taken: BTreeMap<String, i64>,
    /// Subnets without a free address, until they are counted anew.
    full: BTreeSet<String>,
}

impl Launches {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The free addresses of these subnets have been counted anew.
    pub(super) fn counted<'a>(&self, subnets: impl Iterator<Item = &'a str>) {
        let mut state = self.state();
        for subnet in subnets {
            state.taken.remove(subnet);
            state.full.remove(subnet);
        }
    }

    /// The API has found no free address in a subnet, whatever was counted.
    fn is_full(&self, subnet: &str) {
        self.state().full.insert(subnet.to_owned());
    }

    /// The marks of the machine of a launch in this life, if that is not known to have ended.
    pub(super) fn birth(&self, token: &ClaimUid) -> Option<Remembered> {
        self.state().births.get(token).cloned()
    }

    /// The machine of this launch has all of its marks.
    pub(super) fn ended(&self, token: &ClaimUid) {
        self.state().births.remove(token);
    }

    fn begin(&self, token: &ClaimUid, birth: Remembered) {
        let mut state = self.state();
        state.births.retain(|_, birth| birth.since.elapsed() < REMEMBERED_FOR);
        state.births.insert(token.clone(), birth);
    }

    /// Whether a launch with this token may still be writing marks.
    pub(super) fn is_under_way(&self, token: &str) -> bool {
        let state = self.state();
        state.births.get(&ClaimUid::from(token)).is_some_and(|birth| birth.since.elapsed() < UNDER_WAY)
    }

    /// The first of these that is known to be sold out.
    fn sold_out_of(&self, offerings: [SoldOut; 2]) -> Option<SoldOut> {
        let mut state = self.state();
        state.sold_out.retain(|_, until| *until > Instant::now());
        offerings.into_iter().find(|offering| state.sold_out.contains_key(offering))
    }

    fn sold_out(&self, offerings: &[SoldOut]) {
        let until = Instant::now() + SOLD_OUT_FOR;
        self.state().sold_out.extend(offerings.iter().map(|offering| (offering.clone(), until)));
    }

    /// The subnet of a zone with the most free addresses, one of which is taken.
    fn take(&self, subnets: &[ResolvedSubnet], zone: &str) -> Option<String> {
        let mut state = self.state();
        let free = |subnet: &ResolvedSubnet| subnet.available_ips - state.taken.get(&subnet.id).copied().unwrap_or(0);
        let roomiest = subnets
            .iter()
            .filter(|subnet| subnet.zone == zone && !state.full.contains(&subnet.id))
            .max_by_key(|subnet| (free(subnet), std::cmp::Reverse(&subnet.id)));
        let id = roomiest.filter(|subnet| free(subnet) > 0)?.id.clone();
        *state.taken.entry(id.clone()).or_default() += 1;
        Some(id)
    }

    fn give_back(&self, subnet: &str) {
        if let Some(taken) = self.state().taken.get_mut(subnet) {
            *taken -= 1;
        }
    }
}

/// Whether a launch was refused for its type, which another one need not be: neither the type nor the code says so for certain, the words do.
fn is_of_type(error: &Failure, kind: &str) -> bool {
    let names = |text: &String| {
        let text = text.to_lowercase();
        ["vmtype", "vm type", "instancetype", "instance type", kind].iter().any(|word| text.contains(word))
    };
    error.class == Class::Invalid && error.entries.iter().any(|entry| names(&entry.kind) || names(&entry.details))
}

/// One launch.
pub(super) struct Birth<'a> {
    pub(super) cloud: &'a Outscale,
    pub(super) spec: &'a LaunchSpec,
    pub(super) class: &'a OutscaleNodeClass,
}

/// One way to launch.
struct Choice<'a> {
    kind: &'a Arc<InstanceType>,
    offering: &'a Offering,
    zone: &'a str,
}

/// What came of trying an offering.
enum Tried {
    /// A machine.
    Made(Box<Vm>),
    /// What cannot be had now: it, and what cannot for the same reason; and why, if that is news.
    Lost(Vec<SoldOut>, Option<String>),
    /// What no other offering would mend.
    Refused(Error),
    /// So many have been tried that it is time to stop.
    Enough,
}

impl Birth<'_> {
    /// The machine of this launch, marked: the one that exists, or a new one.
    pub(super) async fn launched(&self) -> Result<Vm, Error> {
        if let Some(why) = self.cloud.unmarkable.why(&self.spec.class) {
            return Err(self.class_not_ready(&why));
        }
        let template = self.template().await?;
        let birth = self.remembered(&template);
        self.cloud.launches.begin(&self.spec.token, birth.clone());
        let all = tokens(self.spec.token.as_str());
        let mut known = self.cloud.by_token.ask(&self.cloud.client, all.clone()).await.map_err(read_failed)?;
        known.sort_by(|one, other| one.vm_id.cmp(&other.vm_id));
        let is_spent =
            |token: &&String| known.iter().any(|vm| vm.state.is_leaving() && vm.client_token.as_ref() == Some(*token));
        let vm = if let Some(vm) = known.iter().find(|vm| !vm.state.is_leaving()) {
            tracing::info!(nodeclaim = %self.spec.claim.name, vm = %vm.vm_id, "adopted the machine of an earlier attempt");
            vm.clone()
        } else {
            let Some(token) = all.iter().find(|token| !is_spent(token)) else {
                let message =
                    format!("machines of {} attempts had to be taken down; wait until they are gone", all.len());
                return Err(Error::Temporary(message));
            };
            self.made(token, &template).await?
        };
        let (id, vm_type) = (vm.vm_id.clone(), vm.vm_type.clone());
        match marked(&self.cloud.client, vm, &birth).await {
            Ok(vm) => {
                self.cloud.launches.ended(&self.spec.token);
                Ok(vm)
            }
            Err(error) => Err(self.cloud.unmarked((&id, vm_type.as_deref()), &birth, &error).await),
        }
    }

    /// What the launch would be, asked of the API and done to nothing.
    pub(super) async fn rehearsed(&self) -> Result<Machine, Error> {
        let template = self.template().await?;
        let subnets = &self.status().subnets;
        let here = |choice: &Choice<'_>| subnets.iter().any(|subnet| subnet.zone == choice.zone);
        let choices = self.choices();
        let Some(choice) = choices.iter().find(|choice| here(choice)) else {
            return Err(Self::nothing_left(BTreeSet::new(), ""));
        };
        let subnet = subnets
            .iter()
            .find(|subnet| subnet.zone == choice.zone)
            .map(|subnet| subnet.id.clone())
            .unwrap_or_default();
        let request = self.request(choice, &subnet, self.spec.token.as_str(), &template)?;
        self.cloud.client.rehearse(&request).await.map_err(Error::from)?;
        tracing::info!(
            nodeclaim = %self.spec.claim.name, vm_type = %choice.kind.name, zone = choice.zone, price = rounded(choice.offering.price),
            image = request.image_id, subnet, "dry run: would create a machine"
        );
        let vm = Vm {
            vm_id: "i-00000000".to_owned(),
            vm_type: request.vm_type.clone(),
            image_id: Some(request.image_id.clone()),
            placement: Some(wire::Placement { subregion_name: Some(choice.zone.to_owned()), tenancy: None }),
            client_token: Some(self.spec.token.as_str().to_owned()),
            tags: self
                .remembered(&template)
                .tags
                .iter()
                .map(|(key, value)| wire::ResourceTag::new(key.as_str(), value.as_str()))
                .collect(),
            ..Vm::default()
        };
        let offer = self.cloud.market.offer().await;
        let id = ProviderId::imagined(choice.zone, &self.spec.claim.name);
        let machine = self.cloud.read(&vm, &offer, Some(self.class)).map(|machine| Machine { id, ..machine });
        machine.ok_or_else(|| Error::Temporary("a dry run's machine could not be imagined".to_owned()))
    }

    fn status(&self) -> &OutscaleNodeClassStatus {
        static NOTHING: std::sync::LazyLock<OutscaleNodeClassStatus> =
            std::sync::LazyLock::new(OutscaleNodeClassStatus::default);
        self.class.status.as_ref().unwrap_or(&NOTHING)
    }

    async fn template(&self) -> Result<Arc<Template>, Error> {
        let named = self.class.spec.talos.named_by_claim();
        if let Some(why) = no_node_name(self.spec.claim.name.as_str()).filter(|_| named) {
            return Err(Error::Invalid { field: "metadata.name".to_owned(), message: format!("NodeClaim {why}") });
        }
        let template = self.cloud.templates.of(&self.class.spec).await;
        template.map_err(|fault| self.class_not_ready(&fault.message))
    }

    fn class_not_ready(&self, why: &str) -> Error {
        class_not_ready(&self.spec.class, why)
    }

    fn remembered(&self, template: &Template) -> Remembered {
        let claim = &self.spec.claim;
        let settings = &self.cloud.settings;
        let pool = claim.pool();
        let hash = template.hash();
        let marked = Marked {
            cluster: &settings.cluster,
            cluster_id: &settings.cluster_id,
            claim: claim.name.as_str(),
            uid: self.spec.token.as_str(),
            pool: pool.as_ref().map(PoolName::as_str),
            spec: &self.class.spec,
            user_data_hash: &hash,
        };
        let names = if self.class.spec.talos.named_by_claim() {
            Names::Fixed(claim.name.as_str().to_owned())
        } else {
            Names::ByAddress { fqdn: template.registers_with_fqdn() }
        };
        let fixed = if let Names::Fixed(name) = &names { Some(name.as_str()) } else { None };
        let tags = marked.at_birth(fixed);
        Remembered {
            since: Instant::now(),
            class: Arc::clone(&self.spec.class),
            of_class: self.class.spec.tags.len(),
            names,
            tags,
            cluster: settings.cluster.clone(),
        }
    }

    /// All ways to launch, cheapest first.
    fn choices(&self) -> Vec<Choice<'_>> {
        let mut all: Vec<Choice<'_>> = self
            .spec
            .candidates
            .iter()
            .flat_map(|kind| kind.offerings.iter().map(move |offering| (kind, offering)))
            .filter(|(_, offering)| offering.available)
            .filter_map(|(kind, offering)| Some(Choice { kind, offering, zone: offering.zone()? }))
            .collect();
        all.sort_by(|one, other| one.offering.price.total_cmp(&other.offering.price));
        all
    }

    async fn made(&self, token: &str, template: &Template) -> Result<Vm, Error> {
        let (mut sold_out, mut said, mut attempts) = (BTreeSet::new(), String::new(), 0);
        for choice in self.choices() {
            match self.tried(&choice, (token, template), &mut attempts).await {
                Tried::Made(vm) => return Ok(*vm),
                Tried::Refused(error) => return Err(error),
                Tried::Enough => break,
                Tried::Lost(lost, why) => {
                    sold_out.extend(lost);
                    said = why.unwrap_or(said);
                }
            }
        }
        Err(Self::nothing_left(sold_out, &said))
    }

    /// The offering, as what cannot be had: by anybody, or (`own`) with this NodeClass.
    fn lost(&self, kind: &InstanceType, zone: &str, own: bool) -> SoldOut {
        SoldOut {
            class: own.then(|| self.spec.class.reference.clone()),
            instance_type: kind.name.clone(),
            zone: Some(zone.into()),
            capacity_type: labels::ON_DEMAND.into(),
        }
    }

    /// All offerings of the class for which a quota leaves no room, and of which nothing more is tried for a while. Where what is left is not known,
    /// they are those of the type that was tried and of all that are as large.
    async fn beyond_quota(&self, tried: &InstanceType, left: Option<Left>) -> Vec<SoldOut> {
        let size = catalogue::size(tried);
        let is_beyond = |kind: &&Arc<InstanceType>| match left {
            Some(left) => !left.has_room_for(catalogue::size(kind)),
            None => catalogue::size(kind).holds(size),
        };
        let all = self.cloud.types(&self.spec.class).await.unwrap_or_default().types;
        let beyond = all.iter().chain(&self.spec.candidates).filter(is_beyond);
        let offerings = beyond.flat_map(|kind| kind.offerings.iter().map(move |offering| (kind, offering)));
        let lost: BTreeSet<SoldOut> =
            offerings.filter_map(|(kind, offering)| Some(self.lost(kind, offering.zone()?, false))).collect();
        let lost: Vec<SoldOut> = lost.into_iter().collect();
        self.cloud.launches.sold_out(&lost);
        lost
    }

    /// Tries one offering, in one subnet of its zone after the other until one has room.
    async fn tried(&self, choice: &Choice<'_>, (token, template): (&str, &Template), attempts: &mut usize) -> Tried {
        let launches = &self.cloud.launches;
        let kind = choice.kind.name.as_str();
        let of = |own| self.lost(choice.kind, choice.zone, own);
        if let Some(known) = launches.sold_out_of([of(false), of(true)]) {
            return Tried::Lost(vec![known], None);
        }
        loop {
            let Some(subnet) = launches.take(&self.status().subnets, choice.zone) else {
                let why = format!("no subnet of the NodeClass has a free address in {}", choice.zone);
                return Tried::Lost(vec![of(true)], Some(why));
            };
            if *attempts == ATTEMPTS {
                launches.give_back(&subnet);
                return Tried::Enough;
            }
            *attempts += 1;
            let request = match self.request(choice, &subnet, token, template) {
                Ok(request) => request,
                Err(error) => return Tried::Refused(error),
            };
            let error = match self.cloud.client.call(&request).await {
                Ok(answer) => {
                    return self.born(answer, token).map_or_else(Tried::Refused, |vm| Tried::Made(Box::new(vm)));
                }
                Err(error) => error,
            };
            launches.give_back(&subnet);
            if error.is_subnet_full() {
                tracing::warn!(subnet, zone = choice.zone, %error, "the subnet has no free address");
                launches.is_full(&subnet);
                continue;
            }
            if error.class == Class::Quota {
                let shortage = self.cloud.quotas.in_the_way(&self.cloud.client, catalogue::size(choice.kind)).await;
                let lost = self.beyond_quota(choice.kind, shortage.left).await;
                return Tried::Lost(lost, Some(format!("{error}; {}", shortage.told)));
            }
            if is_of_type(&error, kind) {
                tracing::warn!(vm_type = kind, zone = choice.zone, %error, "the API does not take this type here, trying others");
                let lost = vec![of(false)];
                launches.sold_out(&lost);
                let why =
                    format!("{error}; the API does not take {kind} in {}: leave it out with spec.vmTypes", choice.zone);
                return Tried::Lost(lost, Some(why));
            }
            if error.class != Class::SoldOut {
                return Tried::Refused(self.refused(error, choice));
            }
            tracing::info!(vm_type = kind, zone = choice.zone, %error, "sold out");
            // Where machines are put together or kept apart, others may still find room.
            let own = self.class.spec.placement.as_ref().is_some_and(Placement::is_particular);
            let lost = vec![of(own)];
            launches.sold_out(&lost);
            return Tried::Lost(lost, Some(error.to_string()));
        }
    }

    fn born(&self, answer: wire::TheVms, token: &str) -> Result<Vm, Error> {
        let vm = answer.vms.into_iter().next().filter(|vm| !vm.vm_id.is_empty());
        let Some(mut vm) = vm else { return Err(Error::Unknown("CreateVms: the answer names no VM".to_owned())) };
        if vm.state.is_leaving() {
            let message = format!("CreateVms: the API answered with VM {}, which is {}", vm.vm_id, vm.state.as_str());
            return Err(Error::Temporary(message));
        }
        tracing::info!(nodeclaim = %self.spec.claim.name, vm = %vm.vm_id, vm_type = vm.vm_type, "created a machine");
        vm.client_token.get_or_insert_with(|| token.to_owned());
        Ok(vm)
    }

    fn nothing_left(sold_out: BTreeSet<SoldOut>, said: &str) -> Error {
        let tried = if sold_out.is_empty() {
            "no offering could be tried".to_owned()
        } else {
            format!("{} offerings cannot be had", sold_out.len())
        };
        let message = if said.is_empty() { tried } else { format!("{tried}: {said}") };
        let sold_out = sold_out.into_iter().collect();
        Error::Launch(LaunchRefused::InsufficientCapacity { sold_out, message })
    }

    /// A refusal that no other offering would mend.
    fn refused(&self, error: Failure, choice: &Choice<'_>) -> Error {
        let field = [
            ("5023", "images"),
            ("5057", "subnets"),
            ("5020", "security groups"),
            ("5022", "security groups (of another Net than the subnet)"),
            ("5071", "keypair"),
        ]
        .into_iter()
        .find(|(code, _)| error.has_code(code));
        match field {
            // It was there when the class was looked at, and will be found missing at the next look.
            Some((_, what)) => self.class_not_ready(&format!("its {what} are not there any more: {error}")),
            None if error.class == Class::Invalid => Error::Invalid {
                field: error.action.to_owned(),
                message: format!(
                    "{error}; tried was {} in {}: if the API does not take that type, leave it out with spec.vmTypes of {}",
                    choice.kind.name, choice.zone, self.spec.class.reference
                ),
            },
            None => error.into(),
        }
    }

    fn request(
        &self,
        choice: &Choice<'_>,
        subnet: &str,
        token: &str,
        template: &Template,
    ) -> Result<wire::CreateVms, Error> {
        let (spec, status) = (&self.class.spec, self.status());
        let image = status.images.first().ok_or_else(|| self.class_not_ready("no image is known yet"))?;
        let tenancy = spec.placement.as_ref().and_then(|placement| placement.tenancy.clone());
        let placement = tenancy
            .map(|tenancy| wire::Placement { subregion_name: Some(choice.zone.to_owned()), tenancy: Some(tenancy) });
        let devices = spec.volumes().into_iter().map(|volume| wire::DeviceToCreate {
            bsu: Some(wire::BsuToCreate {
                delete_on_vm_deletion: Some(volume.bsu.delete_on_vm_deletion.unwrap_or(true)),
                iops: volume.bsu.iops,
                snapshot_id: volume.bsu.snapshot_id.clone(),
                volume_size: Some(volume.bsu.size()),
                volume_type: Some(volume.bsu.kind().to_owned()),
            }),
            device_name: Some(volume.device_name),
            ..wire::DeviceToCreate::default()
        });
        Ok(wire::CreateVms {
            block_device_mappings: devices.collect(),
            boot_on_creation: Some(true),
            client_token: Some(token.to_owned()),
            image_id: image.id.clone(),
            keypair_name: spec.keypair_name.clone(),
            max_vms_count: Some(1),
            min_vms_count: Some(1),
            placement,
            security_group_ids: status.security_groups.iter().map(|group| group.id.clone()).collect(),
            subnet_id: Some(subnet.to_owned()),
            user_data: Some(self.told(choice, template)?),
            // A node that shuts itself down is not to stay behind, stopped and with a volume that is paid for.
            vm_initiated_shutdown_behavior: Some("terminate".to_owned()),
            vm_type: Some(choice.kind.name.as_str().to_owned()),
            ..wire::CreateVms::default()
        })
    }

    /// What the machine is told at its birth.
    fn told(&self, choice: &Choice<'_>, template: &Template) -> Result<UserData, Error> {
        let claim = &self.spec.claim;
        let mut set: Labels = [
            (labels::ZONE, choice.zone),
            (labels::REGION, region(choice.zone)),
            (labels::CAPACITY_TYPE, labels::ON_DEMAND),
        ]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
        for requirement in claim.requirements.iter().chain(&choice.kind.requirements) {
            if let (Operator::In, [value]) = (requirement.operator, requirement.values.as_slice()) {
                set.entry(Arc::clone(&requirement.key)).or_insert_with(|| Arc::clone(value));
            }
        }
        set.extend(claim.labels.iter().map(|(key, value)| (Arc::clone(key), Arc::clone(value))));
        let taints: Vec<Taint> = claim.taints.iter().chain(&claim.startup_taints).cloned().collect();
        let text = template.made_out_for(Own { claim: claim.name.as_str(), labels: &set, taints: &taints });
        let birth = self.remembered(template);
        user_data(&birth.tags, self.class.spec.placement.as_ref(), &text).map_err(|unfit| Error::Invalid {
            field: format!("{} {}", self.spec.class.reference, unfit.field()),
            message: unfit.to_string(),
        })
    }
}
