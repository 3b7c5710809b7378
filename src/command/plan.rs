//! `joiner plan` and `joiner explain`: what would be bought, and why.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;

use crate::actors::runtime::Clock;
use crate::clouds::outscale::{GivenSecrets, NoSecrets, Secrets};
use crate::cluster::Cluster as _;
use crate::cluster::convert::ShapeStore;
use crate::config::{self, Output, Subject};
use crate::core::facts::{Fold, Snapshot};
use crate::core::scheduling;
use crate::manifests::{Admission, Object, Placed, Source, gather, read_object};
use crate::plan::{self, Answer, Input};
use crate::sim::Act;

use super::stopwatch::Stopwatch;
use super::{live, load, rehearsal};

/// How long a cluster may take to list everything.
const LISTED_WITHIN: Duration = Duration::from_mins(2);

/// Plans, and prints what came of it. The answer says whether anything could be planned at all.
pub fn plan(plan: &config::Plan) -> Result<bool> {
    let (answer, understood) = answer(plan)?;
    if let Some(path) = &plan.report {
        plan::write(path, &answer)?;
    }
    let text = match plan.output {
        Output::Table => plan::table(&answer),
        Output::Json => plan::json(&answer)?,
    };
    print(&text)?;
    Ok(understood)
}

/// Says why: of a plan that is made for it, or of what a running joiner has decided.
pub fn explain(explain: &config::Explain) -> Result<()> {
    let input = &explain.plan;
    let explanation = if is_live(input) {
        super::why::ask(explain)?
    } else {
        let ((answer, _), settings) = (answer(input)?, solving(input));
        let case = answer.case(&settings);
        match explain.subject {
            Subject::Pod => plan::pod(&case, explain.namespace.as_deref(), &explain.name)?,
            Subject::NodeClaim => plan::nodeclaim(&case, &explain.name)?,
        }
    };
    print(&match explain.plan.output {
        Output::Table => explanation.to_string(),
        Output::Json => serde_json::to_string_pretty(&explanation)?,
    })
}

/// The plan for what was named, and whether there was anything to plan with.
fn answer(plan: &config::Plan) -> Result<(Answer, bool)> {
    for warning in &plan.settings.warnings {
        tell(warning);
    }
    let (mut input, understood) = input(plan)?;
    let (runtime, mut outscale) = (runtime()?, None);
    if plan.cloud == config::Cloud::Outscale {
        let given = input.secrets.iter().map(|secret| (secret.name.clone(), secret.data.clone()));
        let given: Arc<dyn Secrets> = Arc::new(GivenSecrets::new(given));
        let asked = async {
            let is_in_cluster = plan.settings.outscale.secret.is_some() && is_live(plan);
            // Of a cluster no machine configuration is read: whoever plans need not be let to see it.
            let configurations = if is_live(plan) { Arc::new(NoSecrets) } else { Arc::clone(&given) };
            let keys = if is_in_cluster { live::secrets(&plan.settings).await? } else { given };
            super::outscale::sell(&mut input, &plan.settings, (keys, configurations), Clock::machine()).await
        };
        let (cloud, told) = runtime.block_on(asked)?;
        input.notices.extend(told);
        outscale = Some(cloud);
    }
    let mut spreads = scheduling::DefaultSpreads::new(plan.settings.default_spreads.clone());
    input.pods = spreads.apply(&input.snapshot, input.pods);
    for notice in &input.notices {
        tell(notice);
    }
    let told = input.notices.len();
    let stopwatch = Stopwatch::start();
    let mut answer = plan::answer(input, &solving(plan), || stopwatch.elapsed().as_secs_f64());
    if let Some(cloud) = outscale {
        let beyond = runtime.block_on(super::outscale::beyond_quotas(&cloud, &answer));
        answer.input.notices.extend(beyond);
    }
    for notice in answer.input.notices.iter().skip(told) {
        tell(notice);
    }
    Ok((answer, understood))
}

/// How to solve.
fn solving(plan: &config::Plan) -> scheduling::Settings {
    scheduling::Settings {
        respect_preferences: plan.settings.preference_policy == config::PreferencePolicy::Respect,
        lower_min_values: plan.settings.min_values_policy == config::MinValuesPolicy::BestEffort,
        wait_for_reserved: true,
        ..scheduling::Settings::default()
    }
}

/// Whether it is the cluster of the kubeconfig that is planned for.
fn is_live(plan: &config::Plan) -> bool {
    plan.files.is_empty() && plan.trace.is_none() && plan.pods.is_none()
}

fn input(plan: &config::Plan) -> Result<(Input, bool)> {
    let types = rehearsal::instance_types(&plan.settings)?;
    let gates = &plan.settings.gates;
    let features = plan::Features { node_overlay: gates.node_overlay, capacity_buffer: gates.capacity_buffer };
    if is_live(plan) {
        return Ok((plan::from_snapshot(look(plan)?, types, features, Clock::machine().now()), true));
    }
    let sources: Vec<Source> = plan.files.iter().cloned().map(Source::from).collect();
    let mut stdin = || {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    };
    let shapes = ShapeStore::new();
    let mut gathered = gather(&sources, &mut stdin, &shapes);
    let more = made(plan, &shapes)?;
    let is_pool = |placed: &Placed| matches!(placed.found.object, Object::Pool(_));
    if !more.is_empty() && !gathered.objects.iter().any(is_pool) {
        gathered.add(rehearsal::default_pool()?);
    }
    gathered.add(more);
    let understood = !gathered.objects.is_empty() || gathered.troubles.is_empty();
    Ok((plan::from_manifests(gathered, types, features, Clock::machine().now()), understood))
}

/// The pods that are planned for besides those in files.
fn made(plan: &config::Plan, shapes: &ShapeStore) -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    if let Some(trace) = &plan.trace {
        for step in rehearsal::trace(trace, shapes)?.steps {
            if let Act::Apply(applied) = step.act {
                objects.extend(applied);
            }
        }
    }
    for manifest in load::mixed(plan.pods.unwrap_or(0)) {
        objects.extend(read_object(&manifest, shapes, &Admission::default())?);
    }
    Ok(objects)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")
}

/// One look at the cluster of the kubeconfig: everything is listed once, nothing is written.
fn look(plan: &config::Plan) -> Result<Snapshot> {
    runtime()?.block_on(async {
        let cluster = live::cluster(&plan.settings, (&config::Cluster::Found, plan.cloud), Clock::machine()).await?;
        let mut facts = cluster.facts();
        let mut fold = Fold::default();
        let listed = async {
            while !fold.snapshot().is_complete() {
                match facts.next().await {
                    Some(fact) => fold.fold(fact),
                    None => return,
                }
            }
        };
        let in_time = tokio::time::timeout(LISTED_WITHIN, listed).await;
        if in_time.is_err() || !fold.snapshot().is_complete() {
            bail!(
                "the cluster did not list its {}; check the permissions of this kubeconfig",
                fold.not_listed().join(", ")
            );
        }
        Ok(fold.snapshot().clone())
    })
}

/// A line for people, beside what is printed for programs.
fn tell(text: &str) {
    // When even that fails, nobody is there to be told.
    let _ = writeln!(std::io::stderr(), "joiner: {text}");
}

fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        // `joiner plan | head` has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot print"),
    }
}
