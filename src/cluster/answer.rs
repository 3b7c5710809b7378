//! What an answer of the API server means, or that there was none.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause};
use serde_json::Value;

use crate::core::ids::{ObjectKey, PodUid};

use super::request::{Request, VERSION};
use super::{Error, evict};

/// Where evictions are asked for.
const EVICTION: &str = "pods/eviction";
/// The type of the causes that name a budget (`DisruptionBudgetCause` of policy/v1).
const CAUSE: &str = "DisruptionBudget";
/// How the API server begins when a budget forbids an eviction, named in a cause or (before Kubernetes 1.22) not.
const FORBIDDEN: &str = "Cannot evict pod as it would violate the pod's disruption budget";
/// What stands before the name in such a cause.
const NAMED: &str = "The disruption budget ";

/// What was asked for by its name; nothing when there is none.
pub(super) fn if_there<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What it means that the API server refused an eviction with this code and this `Status`.
pub fn refused_eviction(pod: &ObjectKey, uid: &PodUid, code: StatusCode, status: &Value) -> Error {
    refusal(&evict::eviction(pod, uid), code, None, status.to_string().as_bytes())
}

/// What an answer that is no success means.
pub(super) fn refusal(request: &Request, code: StatusCode, retry_after: Option<&str>, body: &[u8]) -> Error {
    let status: Option<Status> = serde_json::from_slice(body).ok();
    let message = status
        .as_ref()
        .and_then(|status| status.message.clone())
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    let reason = status.as_ref().and_then(|status| status.reason.as_deref()).unwrap_or_default();
    let object = || request.object.clone();
    let said_when = retry_after.is_some_and(|text| text.trim().parse::<u64>().is_ok());
    let hinted = status.as_ref().and_then(|status| status.details.as_ref()).and_then(|d| d.retry_after_seconds);
    let retry_after = retry_after
        .and_then(|text| text.trim().parse().ok())
        .or_else(|| hinted.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0))
        .map(Duration::from_secs);
    match code.as_u16() {
        401 => Error::Temporary(format!(
            "{}: the API server does not accept joiner's credentials ({message}); check its ServiceAccount or kubeconfig",
            request.object
        )),
        // RBAC says that somebody cannot do something; quotas and admission say forbidden too, of the object.
        403 if message.contains(" cannot ") => {
            Error::Forbidden { verb: request.verb, group: request.group, resource: request.resource }
        }
        403 => Error::Invalid { object: object(), message },
        // Only a Status that says so is evidence that an object is gone. An unknown path (or a balancer) answers in plain text.
        404 if reason == "NotFound" || request.resource == VERSION => Error::NotFound(object()),
        404 => Error::Invalid {
            object: object(),
            message: format!(
                "the API server knows no {} of group {:?}; if the definition is missing, apply it with `joiner crds | kubectl apply -f -`",
                request.resource, request.group
            ),
        },
        409 if reason == "AlreadyExists" => Error::Exists(object()),
        // Many evictions at once have written to one budget.
        409 if request.resource == EVICTION && message.contains("poddisruptionbudgets") => Error::Temporary(message),
        409 if request.guarded => Error::NotFound(object()),
        409 => Error::Conflict(object()),
        422 if request.guarded && message.contains("metadata.uid") => Error::NotFound(object()),
        429 if request.resource == EVICTION => forbidden(status.as_ref(), retry_after, message),
        429 => Error::TooManyRequests { retry_after, message },
        // Whoever says when to come back has not begun (RFC 9110, section 15.6.4; client-go repeats even creations then).
        503 if said_when => Error::TooManyRequests { retry_after, message: format!("{code}: {message}") },
        // More than one PodDisruptionBudget on a pod is answered as an internal error; to callers it is a budget that forbids.
        500 if request.resource == EVICTION && message.contains("PodDisruptionBudget") => {
            Error::Budget { code: code.as_u16(), budget: None, retry_after, message }
        }
        // Admission comes before the write.
        500 if message.contains("failed calling webhook") => Error::Temporary(format!("{}: {message}", request.object)),
        400..500 if code != StatusCode::REQUEST_TIMEOUT && code != StatusCode::GONE => {
            Error::Invalid { object: object(), message }
        }
        _ => unclear(request, &format!("{code} {message}")),
    }
}

/// What it means that an eviction is refused as one request too many: a budget forbids it, or the API server has too much to do. Which budget it is
/// stands apart from the message, in the causes.
fn forbidden(status: Option<&Status>, retry_after: Option<Duration>, message: String) -> Error {
    let causes = status.and_then(|status| status.details.as_ref()).and_then(|details| details.causes.as_deref());
    let ours = |cause: &&StatusCause| cause.reason.as_deref() == Some(CAUSE);
    let causes: Vec<&str> =
        causes.unwrap_or_default().iter().filter(ours).filter_map(|cause| cause.message.as_deref()).collect();
    if causes.is_empty() && !message.starts_with(FORBIDDEN) {
        return Error::TooManyRequests { retry_after, message };
    }
    let named = causes.iter().find_map(|cause| cause.strip_prefix(NAMED)?.split_whitespace().next());
    let budget = named.map(str::to_owned);
    let code = StatusCode::TOO_MANY_REQUESTS.as_u16();
    Error::Budget { code, budget, retry_after, message: [&[&*message], &*causes].concat().join(" ") }
}

/// What it means that there was no answer.
pub(super) fn silence(request: &Request, error: &kube::Error) -> Error {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>()
            && matches!(
                io.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable
            )
        {
            return Error::Temporary(format!("{}: the API server cannot be reached ({io})", request.object));
        }
        cause = error.source();
    }
    unclear(request, &error.to_string())
}

/// A failure that says nothing about the effect: reads had none, writes may have had one.
pub(super) fn unclear(request: &Request, what: &str) -> Error {
    let text = format!("{} {}: {what}", request.verb, request.object);
    if request.is_write() { Error::Unknown(text) } else { Error::Temporary(text) }
}
