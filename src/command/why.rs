//! Answers to why: what a running joiner says of its decisions, and how `joiner explain` asks for it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::FutureExt;
use kube::Client;
use kube::client::Body;

use crate::actors::runtime::{House, Kind};
use crate::actors::{Boards, Decision, Joiner};
use crate::admin::{Explainer, Why};
use crate::config::{self, Subject};
use crate::core::facts::{Pod, Snapshot};
use crate::core::ids::{ClaimName, ObjectKey};
use crate::plan::{self, Case, Explanation, Unknown};

/// How long the actor of a NodeClaim has to say what it waits for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a running joiner has to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Answers from what the joiner has seen and decided.
pub fn explainer(joiner: &Joiner) -> Explainer {
    let (boards, house) = (joiner.boards().clone(), joiner.house().clone());
    Arc::new(move |why| {
        let (boards, house) = (boards.clone(), house.clone());
        async move {
            let asked = boards.clone();
            // An explanation asks the solver what each pool alone would do: not on a thread that actors need.
            let known = tokio::task::spawn_blocking(move || answer(&asked, &why)).await;
            let (mut explanation, claim) = known.map_err(|error| error.to_string())?.map_err(|unknown| unknown.0)?;
            if explanation.decided.is_none() && !house.operations.may_write() {
                explanation
                    .reasons
                    .push("this joiner stands by and decides nothing; ask the one that holds the lease".to_owned());
            }
            if let Some(claim) = claim {
                explanation.waits_for = standing(&house, &claim).await.or(explanation.waits_for);
            }
            serde_json::to_value(explanation).map_err(|error| error.to_string())
        }
        .boxed()
    })
}

/// What a NodeClaim's actor says of it: its phase, and what it waits for.
async fn standing(house: &House, claim: &ClaimName) -> Option<String> {
    let name = claim.as_str();
    let wanted = |actor: &crate::actors::runtime::Observation| actor.kind == Kind::Claim && actor.name == name;
    let found = house.observations.read(PATIENCE, wanted).await;
    let view = found.into_iter().find_map(|actor| actor.view)?;
    let phase = view.state;
    view.waits_for.map(|what| format!("{what} (NodeClaim {name} is {phase})"))
}

/// An explanation, and the NodeClaim on which it depends what comes next.
type Known = (Explanation, Option<ClaimName>);

fn answer(boards: &Boards, why: &Why) -> Result<Known, Unknown> {
    match why {
        Why::Pod { namespace, name } => pod(boards, namespace.as_deref(), name),
        Why::NodeClaim(name) => nodeclaim(boards, name),
    }
}

fn case(decision: &Decision) -> Case<'_> {
    let question = &decision.question;
    Case {
        snapshot: &question.snapshot,
        catalog: &question.catalog,
        pods: &question.pods,
        set_aside: &[],
        settings: &question.settings,
        label_keys: &question.label_keys,
        plan: &decision.plan,
    }
}

fn pod(boards: &Boards, namespace: Option<&str>, name: &str) -> Result<Known, Unknown> {
    let snapshot = boards.snapshot();
    let pod = find(&snapshot, namespace, name)?;
    let claim = snapshot.planned.get(&pod.uid).cloned();
    let decisions = boards.decisions();
    let subject = format!("pod {}", pod.key);
    let mut explanation = match decisions.about_pod(&pod.uid) {
        Some(decision) => {
            let known = plan::pod(&case(decision), Some(&pod.key.namespace), &pod.key.name)?;
            Explanation { decided: Some(decision.question.at), ..known }
        }
        None => {
            Explanation { subject, verdict: "no plan of this joiner was about it".to_owned(), ..Explanation::default() }
        }
    };
    if let Some(node) = &pod.node {
        explanation.verdict = match explanation.decided {
            Some(_) => format!("runs on node {node}; the latest plan about it: {}", explanation.verdict),
            None => format!("runs on node {node}; {}", explanation.verdict),
        };
        return Ok((explanation, None));
    }
    explanation.waits_for = waits_for(&snapshot, pod, claim.as_ref(), explanation.decided.is_some());
    Ok((explanation, claim))
}

/// What a pod without a node waits for, as far as the snapshot tells.
fn waits_for(snapshot: &Snapshot, pod: &Pod, claim: Option<&ClaimName>, decided: bool) -> Option<String> {
    if pod.deleting.is_some() || pod.is_terminal() {
        return Some("nothing: it is being deleted, or has ended".to_owned());
    }
    if let Some(claim) = claim {
        let node = snapshot.claims.get(claim).and_then(|claim| claim.node.as_ref());
        return Some(match node {
            Some(node) => format!("kube-scheduler to bind it to node {node} of NodeClaim {claim}"),
            None => format!("the node of NodeClaim {claim}"),
        });
    }
    if pod.unjudged {
        return Some("kube-scheduler to look at it".to_owned());
    }
    if !pod.unschedulable {
        return Some("kube-scheduler, which has not said that it fits nowhere (scheduling gates?)".to_owned());
    }
    (!decided).then(|| "the next plan".to_owned())
}

fn find<'a>(snapshot: &'a Snapshot, namespace: Option<&str>, name: &str) -> Result<&'a Arc<Pod>, Unknown> {
    let meant = |key: &ObjectKey| &*key.name == name && namespace.is_none_or(|namespace| &*key.namespace == namespace);
    let found: Vec<&Arc<Pod>> = snapshot.pods.values().filter(|pod| meant(&pod.key)).collect();
    match &found[..] {
        [pod] => Ok(pod),
        [] => Err(Unknown(match namespace {
            Some(namespace) => format!("there is no pod {namespace}/{name}"),
            None => format!("there is no pod named {name}"),
        })),
        [one, ..] => Err(Unknown(format!(
            "{} pods are named {name}; say which with --namespace, such as {}",
            found.len(),
            one.key.namespace
        ))),
    }
}

fn nodeclaim(boards: &Boards, name: &str) -> Result<Known, Unknown> {
    let (snapshot, decisions) = (boards.snapshot(), boards.decisions());
    let claim = ClaimName::from(name);
    if let Some(decision) = decisions.about_claim(&claim) {
        let known = plan::nodeclaim(&case(decision), name)?;
        return Ok((Explanation { decided: Some(decision.question.at), ..known }, Some(claim)));
    }
    let Some(object) = snapshot.claims.get(&claim) else {
        return Err(Unknown(format!(
            "there is no NodeClaim {name}, and no plan that is remembered has one of that name"
        )));
    };
    let pool = object.pool().map_or_else(|| "no NodePool".to_owned(), |pool| format!("NodePool {pool}"));
    let kind = object.labels.get(crate::core::labels::INSTANCE_TYPE).map_or("a type not known yet", |kind| &**kind);
    let explanation = Explanation {
        subject: format!("NodeClaim {name}"),
        verdict: format!("{kind}, from {pool}; the plan that it came from is not remembered"),
        reasons: vec![
            "it was made by hand, by an earlier joiner, or too long ago (the last 32 plans that bought something are remembered)".to_owned(),
        ],
        ..Explanation::default()
    };
    Ok((explanation, Some(claim)))
}

/// Asks a running joiner.
pub(super) fn ask(explain: &config::Explain) -> Result<Explanation> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let path = match explain.subject {
        Subject::NodeClaim => format!("/explain/nodeclaim/{}", explain.name),
        Subject::Pod => match (explain.name.contains('/'), &explain.namespace) {
            (false, Some(namespace)) => format!("/explain/pod/{namespace}/{}", explain.name),
            _ => format!("/explain/pod/{}", explain.name),
        },
    };
    let url = explain.url.trim_end_matches('/');
    let answer = runtime.block_on(async { tokio::time::timeout(ANSWERED_WITHIN, fetch(url, &path)).await });
    let (found, body) = answer
        .map_err(|_| anyhow!("no answer within {} s", ANSWERED_WITHIN.as_secs()))
        .and_then(|answer| answer)
        .with_context(|| {
            format!(
                "no joiner answers at {url}; say where one runs with --url, let `kubectl --namespace kube-system port-forward deployment/joiner 8080` bring it here, or name manifests with --filename"
            )
        })?;
    if !found {
        bail!("{}", body.trim_end());
    }
    serde_json::from_str(&body).with_context(|| format!("what answers at {url} is no joiner that can explain"))
}

/// What is at a path, and whether there is anything: the client that talks to API servers talks to joiner as well.
async fn fetch(url: &str, path: &str) -> Result<(bool, String)> {
    let uri: http::Uri = url.parse().with_context(|| format!("--url {url} is no URL; write http://HOST:PORT"))?;
    if uri.scheme().is_none() {
        bail!("--url {url} names no scheme; write http://HOST:PORT");
    }
    let client = Client::try_from(kube::Config::new(uri))?;
    let request = http::Request::get(path).body(Body::empty()).with_context(|| format!("{path} is no name"))?;
    let response = client.send(request).await?;
    let found = response.status().is_success();
    let body = response.into_body().collect_bytes().await?;
    Ok((found, String::from_utf8_lossy(&body).into_owned()))
}
