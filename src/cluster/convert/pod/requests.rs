//! What a pod asks for, as kube-scheduler counts it.

use serde::Deserialize;
use serde_json::Value;

use crate::cluster::convert::amounts::requests;
use crate::cluster::convert::problems::Problems;
use crate::cluster::convert::wire::{Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements};
use crate::core::resources::{ResourceName, Resources};

/// What a pod asks for, as kube-scheduler counts it, and one pod: the larger of what its containers need together and what its init
/// containers need one after another (sidecars running on), then the pod-level requests where there are any, then the overhead. While
/// a pod is resized in place, the larger of what is wanted and what is set aside counts; a resize that the node has called infeasible
/// does not.
pub(super) fn of_pod(spec: &PodSpec, status: Option<&PodStatus>, problems: &mut Problems) -> Resources {
    let infeasible = status.is_some_and(resize_is_infeasible);
    let mut all = together(spec, |field, container, starts| {
        let set_aside = status.and_then(|s| {
            let statuses = if starts { &s.init_container_statuses } else { &s.container_statuses };
            find(statuses.as_ref(), container)
        });
        of_container(field, container, set_aside, infeasible, problems)
    });
    for (name, milli) in of_whole_pod(spec, status, infeasible, &all, problems).iter() {
        all.set(name.clone(), milli);
    }
    all.add(&requests("spec.overhead", spec.overhead.as_ref(), problems));
    all.set(ResourceName::Pods, 1000);
    all
}

/// Whether all that a pod with this spec requests can be read.
pub fn are_requests_readable(spec: &Value) -> bool {
    let Ok(spec) = PodSpec::deserialize(spec) else { return false };
    let mut problems = Problems::default();
    of_pod(&spec, None, &mut problems);
    problems.is_empty()
}

/// Notes requests above their limits, as the API server refuses them: of a container, of the pod as a whole, and of its containers together above
/// those of the pod. What cannot be overcommitted must be limited to what is requested.
pub(super) fn check_limits(spec: &PodSpec, problems: &mut Problems) {
    let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
    for (list, containers) in lists {
        for (at, container) in containers.iter().flatten().enumerate() {
            check_within(&format!("spec.{list}[{at}].resources"), container.resources.as_ref(), problems);
        }
    }
    let Some(whole) = &spec.resources else { return };
    check_within("spec.resources", Some(whole), problems);
    let mut unheard = Problems::default();
    let together = together(spec, |field, container, _| with_limits(field, container.resources.as_ref(), &mut unheard));
    for (name, asked) in requests("", whole.requests.as_ref(), &mut unheard).iter() {
        if is_of_whole_pods(name) && together.get(name) > asked {
            let name = name.as_str();
            let problem =
                format!("is less than what its containers request together; write that much, or leave {name} out");
            problems.note(&format!("spec.resources.requests.{name}"), problem);
        }
    }
}

fn check_within(field: &str, resources: Option<&ResourceRequirements>, problems: &mut Problems) {
    let Some(resources) = resources else { return };
    let mut unheard = Problems::default();
    let limits = requests("", resources.limits.as_ref(), &mut unheard);
    for (name, asked) in requests("", resources.requests.as_ref(), &mut unheard).iter() {
        let may_be_overcommitted = !matches!(name, ResourceName::Other(_));
        let Some(limit) = limits.mentioned(name) else { continue };
        let name = name.as_str();
        if asked > limit {
            problems.note(&format!("{field}.requests.{name}"), "is above its limit; raise the limit or request less");
        } else if asked < limit && !may_be_overcommitted {
            problems.note(&format!("{field}.requests.{name}"), "is not its limit; write the same for both");
        }
    }
}

/// What a pod may use at most, put together like its requests; the overhead counts where there is a limit to add it to.
pub(super) fn limits_of_pod(spec: &PodSpec, problems: &mut Problems) -> Resources {
    let mut limits = |field: &str, resources: Option<&ResourceRequirements>| {
        requests(&format!("{field}.limits"), resources.and_then(|r| r.limits.as_ref()), problems)
    };
    let mut all =
        together(spec, |field, container, _| limits(&format!("{field}.resources"), container.resources.as_ref()));
    let whole = limits("spec.resources", spec.resources.as_ref());
    for (name, milli) in whole.iter().filter(|(name, _)| is_of_whole_pods(name)) {
        all.set(name.clone(), milli);
    }
    for (name, milli) in requests("spec.overhead", spec.overhead.as_ref(), problems).iter() {
        if let Some(limit) = all.mentioned(name).filter(|limit| *limit != 0) {
            all.set(name.clone(), limit.saturating_add(milli));
        }
    }
    all.set(ResourceName::Pods, 1000);
    all
}

/// The larger of what containers take together and what init containers take one after another (sidecars running on). `of` is asked
/// for each with its path and whether it is an init container.
fn together(spec: &PodSpec, mut of: impl FnMut(&str, &Container, bool) -> Resources) -> Resources {
    let mut running = Resources::new();
    for (at, container) in spec.containers.iter().flatten().enumerate() {
        running.add(&of(&format!("spec.containers[{at}]"), container, false));
    }
    let mut sidecars = Resources::new();
    let mut starting = Resources::new();
    for (at, container) in spec.init_containers.iter().flatten().enumerate() {
        let mut needs = of(&format!("spec.initContainers[{at}]"), container, true);
        if container.restart_policy.as_deref() == Some("Always") {
            running.add(&needs);
            sidecars.add(&needs);
            starting.raise(&sidecars);
        } else {
            needs.add(&sidecars);
            starting.raise(&needs);
        }
    }
    running.raise(&starting);
    running
}

fn of_container(
    field: &str,
    container: &Container,
    status: Option<&ContainerStatus>,
    infeasible: bool,
    problems: &mut Problems,
) -> Resources {
    let mut wanted = with_limits(&format!("{field}.resources"), container.resources.as_ref(), problems);
    if let Some(status) = status {
        let set_aside =
            requests("status.containerStatuses.allocatedResources", status.allocated_resources.as_ref(), problems);
        if infeasible && !set_aside.is_empty() {
            return set_aside;
        }
        wanted.raise(&set_aside);
        let in_force = status.resources.as_ref().and_then(|r| r.requests.as_ref());
        wanted.raise(&requests("status.containerStatuses.resources.requests", in_force, problems));
    }
    wanted
}

/// Pod-level requests: they replace the sum over `containers`. Only CPU, memory and huge pages can be given so. A limit stands for a request
/// that is absent, unless containers ask for that resource (the API server does so too when it stores a pod); of huge pages, always.
fn of_whole_pod(
    spec: &PodSpec,
    status: Option<&PodStatus>,
    infeasible: bool,
    containers: &Resources,
    problems: &mut Problems,
) -> Resources {
    let Some(resources) = &spec.resources else { return Resources::new() };
    let mut wanted = requests("spec.resources.requests", resources.requests.as_ref(), problems);
    for (name, milli) in requests("spec.resources.limits", resources.limits.as_ref(), problems).iter() {
        let is_summed =
            matches!(name, ResourceName::Cpu | ResourceName::Memory) && containers.mentioned(name).is_some();
        if wanted.mentioned(name).is_none() && !is_summed {
            wanted.set(name.clone(), milli);
        }
    }
    if wanted.is_empty() {
        return wanted;
    }
    if let Some(status) = status {
        let set_aside = requests("status.allocatedResources", status.allocated_resources.as_ref(), problems);
        if infeasible && !set_aside.is_empty() {
            wanted = set_aside;
        } else {
            wanted.raise(&set_aside);
            let in_force = status.resources.as_ref().and_then(|r| r.requests.as_ref());
            wanted.raise(&requests("status.resources.requests", in_force, problems));
        }
    }
    wanted.iter().filter(|(name, _)| is_of_whole_pods(name)).map(|(name, milli)| (name.clone(), milli)).collect()
}

/// Whether a resource can be given to a pod as a whole.
fn is_of_whole_pods(name: &ResourceName) -> bool {
    match name {
        ResourceName::Cpu | ResourceName::Memory => true,
        ResourceName::Other(name) => name.starts_with("hugepages-"),
        ResourceName::Pods | ResourceName::EphemeralStorage => false,
    }
}

/// Requests, with limits standing for those that are absent (the API server does so too when it stores a pod).
fn with_limits(field: &str, resources: Option<&ResourceRequirements>, problems: &mut Problems) -> Resources {
    let Some(resources) = resources else { return Resources::new() };
    let mut all = requests(&format!("{field}.requests"), resources.requests.as_ref(), problems);
    for (name, milli) in requests(&format!("{field}.limits"), resources.limits.as_ref(), problems).iter() {
        if all.mentioned(name).is_none() {
            all.set(name.clone(), milli);
        }
    }
    all
}

fn find<'a>(statuses: Option<&'a Vec<ContainerStatus>>, container: &Container) -> Option<&'a ContainerStatus> {
    statuses?.iter().find(|status| status.name == container.name)
}

fn resize_is_infeasible(status: &PodStatus) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.kind == "PodResizePending" && c.reason.as_deref() == Some("Infeasible"))
}
