//! What the API server would not keep in the containers and volumes of a pod: names, ports, and resources that are none.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::refused::{LONGEST_LABEL, named};
use crate::api::validation::check_qualified_name;
use crate::cluster::convert::wire::{Container, PodSpec, Port};

/// What ports may speak.
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
/// Resources without a domain that containers may ask for, besides huge pages.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What is wrong with the containers and the volumes of a pod, `path` being that of its spec.
pub(super) fn faults(path: &str, spec: &PodSpec) -> Vec<String> {
    let mut found = Vec::new();
    let (mut names, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let on_host = spec.host_network.unwrap_or(false);
    for (list, containers) in [("containers", &spec.containers), ("initContainers", &spec.init_containers)] {
        for (at, container) in containers.iter().flatten().enumerate() {
            let field = format!("{path}.{list}[{at}]");
            found.extend(name_fault(&format!("{field}.name"), &container.name, &mut names));
            found.extend(resource_faults(&format!("{field}.resources"), container));
            for (number, port) in container.ports.iter().flatten().enumerate() {
                let field = format!("{field}.ports[{number}]");
                found.extend(port_faults(&field, port, on_host));
                // Init containers end before the others begin.
                if list == "containers" && !taken.insert(on_node(port)) && port.host_port.is_some_and(|port| port != 0)
                {
                    found.push(format!("{field}.hostPort: another container has it; write another port"));
                }
            }
        }
    }
    let mut names = BTreeSet::new();
    for (at, volume) in spec.volumes.iter().flatten().enumerate() {
        found.extend(name_fault(&format!("{path}.volumes[{at}].name"), &volume.name, &mut names));
    }
    found
}

/// What is wrong with the name of a container or a volume, of which no other may have it.
fn name_fault<'a>(field: &str, name: &'a str, names: &mut BTreeSet<&'a str>) -> Option<String> {
    if !name.is_empty() && !names.insert(name) {
        return Some(format!("{field}: {name} is there already; write another name"));
    }
    named(field, name, LONGEST_LABEL)
}

/// The port of the node that a port of a container takes.
fn on_node(port: &Port) -> (Option<i32>, &str, &str) {
    let protocol = port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or(PROTOCOLS[0]);
    (port.host_port, protocol, port.host_ip.as_deref().unwrap_or_default())
}

fn port_faults(field: &str, port: &Port, on_host: bool) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(number) = port.container_port.filter(|number| !(1..=65_535).contains(number)) {
        found.push(format!("{field}.containerPort: {number} is not from 1 to 65535; write such a number"));
    }
    if let Some(protocol) = port.protocol.as_deref().filter(|text| !text.is_empty() && !PROTOCOLS.contains(text)) {
        found.push(format!("{field}.protocol: {protocol:?} is no protocol; write {}", PROTOCOLS.join(" or ")));
    }
    if let Some(ip) = port.host_ip.as_deref().filter(|ip| !ip.is_empty() && ip.parse::<IpAddr>().is_err()) {
        found.push(format!("{field}.hostIP: {ip:?} is no IP address; write one, or leave it out"));
    }
    if let (true, Some(host), Some(own)) = (on_host, port.host_port, port.container_port)
        && host != 0
        && host != own
    {
        found.push(format!("{field}.hostPort: has to be the containerPort beside hostNetwork; leave it out"));
    }
    found
}

/// Resources of a container that are none. What amounts there are is looked at where they are read.
fn resource_faults(field: &str, container: &Container) -> Vec<String> {
    let Some(resources) = &container.resources else { return Vec::new() };
    let lists = [("requests", &resources.requests), ("limits", &resources.limits)];
    let of = |(list, name): (&str, &String)| {
        let is_standard = RESOURCES.contains(&name.as_str()) || name.starts_with("hugepages-");
        let remedy = match check_qualified_name(name) {
            Err(remedy) => remedy,
            Ok(()) if is_standard || name.contains('/') => return None,
            Ok(()) => format!(
                "is no resource of containers; write {} or hugepages-…, or the domain of another before its name (example.com/{name})",
                RESOURCES.join(", ")
            ),
        };
        Some(format!("{field}.{list}.{name}: {remedy}"))
    };
    let names =
        lists.into_iter().flat_map(|(list, amounts)| amounts.iter().flatten().map(move |(name, _)| (list, name)));
    names.filter_map(of).collect()
}

#[cfg(test)]
#[path = "refused_containers_tests.rs"]
mod tests;
