//! What the keys may do, as far as the API tells without anything being done: each action that makes, changes or ends machines is rehearsed, and
//! those without which something else is left out.
//!
//! Not rehearsed is what looking at a NodeClass calls anyhow (`ReadImages`, `ReadSubnets`, `ReadSecurityGroups`, `ReadKeypairs`, `ReadSnapshots`,
//! and `ReadQuotas` for whose images are meant): the condition that needs it says that it is missing.

use std::iter;

use super::found::{Fault, Found, UNAUTHORIZED};
use super::oapi::{Action, Class, Client, Error, wire};

/// Whether the keys may make, mark, read and take down machines, and see to their GPUs where they bring some; with what else they may not, which only leaves something out.
pub(super) async fn asked(client: &Client, brings_gpus: bool) -> Found<String> {
    // Dry runs look at permissions and hardly at anything else: no such image, VM or tag need exist.
    let id = "i-00000000".to_owned();
    let ids = vec![id.clone()];
    let create = wire::CreateVms { image_id: "ami-00000000".to_owned(), ..wire::CreateVms::default() };
    let mark = wire::CreateTags {
        resource_ids: ids.clone(),
        tags: vec![wire::ResourceTag::new("karpenter.sh/managed-by", "nobody")],
    };
    let filters = wire::VmFilters { vm_ids: ids.clone(), ..wire::VmFilters::default() };
    let read = wire::ReadVms { filters: Some(filters), ..wire::ReadVms::default() };
    let delete = wire::DeleteVms { vm_ids: ids.clone() };
    // By these two, machines are taken down that hang or that somebody has protected.
    let stop = wire::StopVms { vm_ids: ids.clone(), force_stop: Some(true) };
    let open = wire::UpdateVm { vm_id: id, deletion_protection: Some(false), ..wire::UpdateVm::default() };
    let (reboot, maintenance) = (wire::RebootVms { vm_ids: ids }, wire::ReadVmsState::default());
    let catalog = wire::ReadCatalog {};
    let (create, mark, read, delete, stop, open, reboot, maintenance, catalog, gpus) = tokio::join!(
        refusal(client, &create),
        refusal(client, &mark),
        refusal(client, &read),
        refusal(client, &delete),
        refusal(client, &stop),
        refusal(client, &open),
        refusal(client, &reboot),
        refusal(client, &maintenance),
        refusal(client, &catalog),
        of_gpus(client, brings_gpus)
    );
    let needed: Vec<Error> = [create, mark, read, delete, stop, open].into_iter().chain(gpus).flatten().collect();
    let lesser = [
        ("machines are not restarted", reboot),
        ("planned maintenance is not seen", maintenance),
        ("prices are the public ones, and not the account's own", catalog),
    ];
    judged(&needed, &lesser, client.clock_trouble())
}

/// Without these, GPUs stay behind that are paid for.
async fn of_gpus(client: &Client, brings_gpus: bool) -> [Option<Error>; 2] {
    if !brings_gpus {
        return [None, None];
    }
    let tie =
        wire::UpdateFlexibleGpu { delete_on_vm_deletion: Some(true), flexible_gpu_id: "fgpu-00000000".to_owned() };
    let read = wire::ReadFlexibleGpus::default();
    tokio::join!(refusal(client, &read), refusal(client, &tie)).into()
}

async fn refusal<A: Action>(client: &Client, request: &A) -> Option<Error> {
    client.rehearse(request).await.err()
}

/// What refusals say of the keys' permissions; the second ones with what does not happen without them. A clock that is wrong is said, as signatures
/// depend on it.
fn judged(needed: &[Error], lesser: &[(&str, Option<Error>)], clock: Option<String>) -> Found<String> {
    if let Some(error) = needed.iter().find(|error| error.class == Class::Keys) {
        let told: Vec<String> = iter::once(error.words()).chain(clock).collect();
        return Found::Bad(Fault::new(UNAUTHORIZED, format!("the API refuses the keys: {}", told.join("; "))));
    }
    if let Some(error) = needed.iter().find(|error| error.unreachable) {
        return Found::Unanswered(error.words());
    }
    let is_denied = |error: &Error| error.class == Class::Denied && !error.is_foreign();
    let denied: Vec<String> = needed.iter().filter(|error| is_denied(error)).map(Error::stable).collect();
    if !denied.is_empty() {
        return Found::Bad(Fault::new("Forbidden", denied.join("; ")));
    }
    // What is refused for what the request names, which nobody means, is allowed. Everything else leaves it open.
    let is_allowed =
        |error: &Error| matches!(error.class, Class::NotFound | Class::Invalid | Class::Conflict) || error.is_foreign();
    if let Some(error) = needed.iter().find(|error| !is_allowed(error)) {
        return Found::Unanswered(error.stable());
    }
    // The one who refuses as if what nobody means were another account's may refuse it for everything else as well.
    let unsure = needed.iter().filter(|error| error.is_foreign()).map(|error| {
        format!(
            "whether api:{} is allowed is not certain, as the API answered a rehearsal with {}",
            error.action,
            error.words()
        )
    });
    let left_out = lesser.iter().filter_map(|(what, error)| Some((what, error.as_ref()?)));
    let denied = left_out.filter(|(_, error)| is_denied(error));
    let denied = denied.map(|(what, error)| format!("{what}: {}", error.stable()));
    let told: Vec<String> = unsure.chain(denied).chain(clock).collect();
    Found::Good(told.join("; "))
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
