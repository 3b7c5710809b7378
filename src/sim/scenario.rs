//! Scenario files: what to apply, scale and delete, when, and how the cloud behaves meanwhile.
//!
//! A file has any number of YAML documents. One of them may be a scenario; all others are ordinary manifests, applied at the start.
//!
//! A step of its `timeline` has a time and one verb: `apply`, `scale` and `delete` are what users do; `edit` changes labels, taints, conditions and
//! the like of an object that is there, whoever may do that; `applyUnchecked` puts an object that an API server would refuse; `cloud` says how its
//! next calls fail; `machine` lets one vanish. A Node that is applied has no machine, and a pod that is applied with the name of a Node that is
//! there is on it. `features` names what is on besides what the flags say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::edit::Edit;
use super::verbs::{Answers, Fate, Feature, Narration};
use crate::clouds::simulated::{Conduct, Hook, SoldOutWindow};
use crate::cluster::convert::ShapeStore;
use crate::core::ids::ObjectKey;
use crate::core::time::go_duration;
use crate::manifests::{Admission, Object, examine, read_object};

/// What is to happen in a world.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name; that of the file when it gives none.
    pub name: String,
    /// Its seed, if it names one.
    pub seed: Option<u64>,
    /// Optional features that are on, besides those that flags turn on.
    pub features: BTreeSet<Feature>,
    /// How the cloud behaves.
    pub cloud: Behaviour,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
    /// When it is over.
    pub end: End,
    /// What a narration of it tells.
    pub narration: Narration,
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub struct Step {
    /// When, from the start.
    pub at: Duration,
    /// What.
    pub act: Act,
}

/// Something that happens to joiner: a user, a controller, the cloud or a machine does it.
#[derive(Clone, Debug)]
pub enum Act {
    /// Puts objects.
    Apply(Vec<Object>),
    /// Changes how many pods a workload wants.
    Scale {
        /// Kind of the workload.
        kind: String,
        /// Namespace and name.
        key: ObjectKey,
        /// How many pods.
        replicas: u64,
    },
    /// Deletes an object.
    Delete {
        /// Kind of the object.
        kind: String,
        /// Namespace and name; the namespace does not count for objects that have none.
        key: ObjectKey,
    },
    /// Changes an object that is there.
    Edit(Box<Edit>),
    /// Decides how the next calls to the cloud are answered.
    Answer(Box<Answers>),
    /// Lets something become of a machine.
    Befall(Fate),
}

/// When a scenario is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// After so long.
    At(Duration),
    /// When the timeline is exhausted and nothing is pending or under way.
    Settled,
}

/// A scenario that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {place}: {problem}")]
pub struct ScenarioError {
    /// The file.
    pub file: String,
    /// Document and path in it.
    pub place: String,
    /// What is wrong, and the remedy.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    scenario: Option<String>,
    seed: Option<u64>,
    #[serde(default)]
    features: BTreeSet<Feature>,
    #[serde(default)]
    cloud: Behaviour,
    #[serde(default)]
    manifests: Vec<Value>,
    #[serde(default)]
    files: Vec<PathBuf>,
    #[serde(default)]
    timeline: Vec<WrittenStep>,
    until: Option<Until>,
    #[serde(default)]
    narrate: Narration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenStep {
    at: Span,
    apply: Option<OneOrMany>,
    apply_unchecked: Option<Value>,
    scale: Option<Scale>,
    delete: Option<Delete>,
    edit: Option<Box<Edit>>,
    cloud: Option<Box<Answers>>,
    machine: Option<Fate>,
}

/// What a step can do.
const VERBS: &str = "needs exactly one of apply, scale, delete, edit, applyUnchecked, cloud and machine";

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Value>),
    One(Value),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scale {
    deployment: Option<String>,
    replica_set: Option<String>,
    stateful_set: Option<String>,
    job: Option<String>,
    replicas: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Delete {
    kind: String,
    name: String,
    namespace: Option<String>,
}

/// How the cloud behaves, as far as a scenario says it.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Behaviour {
    launch_seconds: Option<[f64; 2]>,
    boot_seconds: Option<[f64; 2]>,
    reboot_seconds: Option<[f64; 2]>,
    shutdown_seconds: Option<[f64; 2]>,
    may_deny_seconds: Option<f64>,
    launch_timeout_seconds: Option<f64>,
    #[serde(default)]
    hooks: Vec<WrittenHook>,
    #[serde(default)]
    sold_out: Vec<WrittenWindow>,
    #[serde(default)]
    quota: Quota,
    never_register: Option<Share>,
    lost_answers: Option<Share>,
    broken_listings: Option<Share>,
    name_after_claims: Option<bool>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenWindow {
    instance_type: Option<String>,
    zone: Option<String>,
    capacity_type: Option<String>,
    #[serde(default)]
    from: Span,
    until: Option<Span>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenHook {
    name: String,
    takes: Span,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Quota {
    machines: Option<usize>,
}

/// A duration as `90s`, `5m` or `1h30m`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("{text:?} is no duration; write for instance 90s, 5m or 1h30m"));
        go_duration(&text).map(Self).ok_or_else(wrong)
    }
}

/// A share as `1%` or 0.01.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Share(f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let share = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.strip_suffix('%').and_then(|n| n.trim().parse().ok()).map(|n: f64| n / 100.0),
            _ => None,
        };
        let wrong = || D::Error::custom(format!("{value} is no share; write for instance 1% or 0.01, from 0 to 1"));
        share.filter(|share| (0.0..=1.0).contains(share)).map(Self).ok_or_else(wrong)
    }
}

struct Until(End);

impl<'de> Deserialize<'de> for Until {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || D::Error::custom(format!("{text:?} is neither \"settle\" nor a duration such as 2h"));
        let end = if text == "settle" { Some(End::Settled) } else { go_duration(&text).map(End::At) };
        end.map(Self).ok_or_else(wrong)
    }
}

impl Behaviour {
    /// The cloud's conduct: what the scenario says, and for the rest what `usual` says.
    pub fn conduct(&self, usual: &Conduct) -> Conduct {
        let seconds = |given: Option<[f64; 2]>, usual| match given {
            Some([low, high]) => (
                Duration::try_from_secs_f64(low).unwrap_or_default(),
                Duration::try_from_secs_f64(high).unwrap_or_default(),
            ),
            None => usual,
        };
        let share = |given: Option<Share>, usual| given.map_or(usual, |share| share.0);
        let shared = |text: &Option<String>| text.as_deref().map(Into::into);
        let windows = self.sold_out.iter().map(|window| SoldOutWindow {
            instance_type: shared(&window.instance_type),
            zone: shared(&window.zone),
            capacity_type: shared(&window.capacity_type),
            from: window.from.0,
            until: window.until.map(|until| until.0),
        });
        let one = |given: Option<f64>, usual| {
            given.map_or(usual, |given| Duration::try_from_secs_f64(given).unwrap_or_default())
        };
        let hooks = self.hooks.iter().map(|hook| Hook {
            name: hook.name.as_str().into(),
            takes: hook.takes.0,
            labels: hook.labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect(),
        });
        Conduct {
            launch: seconds(self.launch_seconds, usual.launch),
            boot: seconds(self.boot_seconds, usual.boot),
            reboot: self.reboot_seconds.map(|given| seconds(Some(given), usual.boot)).or(usual.reboot),
            shutdown: seconds(self.shutdown_seconds, usual.shutdown),
            may_deny_for: one(self.may_deny_seconds, usual.may_deny_for),
            launch_timeout: one(self.launch_timeout_seconds, usual.launch_timeout),
            hooks: usual.hooks.iter().cloned().chain(hooks).collect(),
            sold_out: usual.sold_out.iter().cloned().chain(windows).collect(),
            quota: self.quota.machines.or(usual.quota),
            never_register: share(self.never_register, usual.never_register),
            lost_answers: share(self.lost_answers, usual.lost_answers),
            broken_listings: share(self.broken_listings, usual.broken_listings),
            named_after_claims: self.name_after_claims.unwrap_or(usual.named_after_claims),
            ..usual.clone()
        }
    }
}

/// Reads a scenario file. Files that it names are read beside it, by `open`.
pub fn read_scenario(
    file: &Path,
    shapes: &ShapeStore,
    open: &dyn Fn(&Path) -> std::io::Result<String>,
) -> Result<Scenario, ScenarioError> {
    let mut reader = Reader { shapes, open, admission: Admission::default() };
    let mut written = None;
    let mut first = Vec::new();
    for (number, document) in reader.documents(file)?.into_iter().enumerate() {
        let place = format!("document {}", number + 1);
        if document.get("kind").is_some() {
            first.extend(reader.objects(file, &place, &document)?);
        } else if written.is_some() {
            return Err(error(file, place, "is a second scenario; a file may have one, besides manifests"));
        } else {
            written = Some((parse::<Written>(file, &place, document)?, place));
        }
    }
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut scenario = Scenario {
        name,
        seed: None,
        features: BTreeSet::new(),
        cloud: Behaviour::default(),
        steps: Vec::new(),
        end: End::Settled,
        narration: Narration::default(),
    };
    if let Some((written, place)) = written {
        for (at, manifest) in written.manifests.iter().enumerate() {
            first.extend(reader.objects(file, &format!("{place}, manifests[{at}]"), manifest)?);
        }
        for name in &written.files {
            let other = file.parent().unwrap_or_else(|| Path::new("")).join(name);
            for (number, document) in reader.documents(&other)?.into_iter().enumerate() {
                first.extend(reader.objects(&other, &format!("document {}", number + 1), &document)?);
            }
        }
        for (at, step) in written.timeline.into_iter().enumerate() {
            scenario.steps.push(reader.step(file, &format!("{place}, timeline[{at}]"), step)?);
        }
        scenario.name = written.scenario.unwrap_or(scenario.name);
        scenario.seed = written.seed;
        scenario.features = written.features;
        scenario.cloud = written.cloud;
        scenario.end = written.until.map_or(End::Settled, |until| until.0);
        scenario.narration = written.narrate;
    }
    scenario.steps.insert(0, Step { at: Duration::ZERO, act: Act::Apply(first) });
    scenario.steps.sort_by_key(|step| step.at);
    Ok(scenario)
}

struct Reader<'a> {
    shapes: &'a ShapeStore,
    open: &'a dyn Fn(&Path) -> std::io::Result<String>,
    admission: Admission,
}

impl Reader<'_> {
    /// The documents of a file, empty ones left out.
    fn documents(&self, file: &Path) -> Result<Vec<Value>, ScenarioError> {
        let text = (self.open)(file).map_err(|problem| error(file, "the file".to_owned(), problem))?;
        let all: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|problem| error(file, "YAML".to_owned(), problem))?;
        Ok(all.into_iter().filter(|document| !document.is_null()).collect())
    }

    fn objects(&mut self, file: &Path, place: &str, value: &Value) -> Result<Vec<Object>, ScenarioError> {
        let objects = read_object(value, self.shapes, &self.admission)
            .map_err(|invalid| error(file, place.to_owned(), invalid))?;
        self.admission.hear(value);
        Ok(objects)
    }

    fn step(&mut self, file: &Path, place: &str, step: WrittenStep) -> Result<Step, ScenarioError> {
        let mut acts = Vec::new();
        if let Some(apply) = step.apply {
            let manifests = match apply {
                OneOrMany::Many(all) => all,
                OneOrMany::One(one) => vec![one],
            };
            let mut objects = Vec::new();
            for manifest in &manifests {
                objects.extend(self.objects(file, &format!("{place}.apply"), manifest)?);
            }
            acts.push(Act::Apply(objects));
        }
        if let Some(object) = &step.apply_unchecked {
            let found = examine(object, self.shapes, &self.admission).into_iter().map(|found| found.map(|f| f.object));
            let found: Result<Vec<_>, _> = found.collect();
            let place = format!("{place}.applyUnchecked");
            acts.push(Act::Apply(found.map_err(|invalid| error(file, place, invalid))?));
        }
        if let Some(scale) = step.scale {
            acts.push(scale_act(file, &format!("{place}.scale"), scale)?);
        }
        if let Some(delete) = step.delete {
            let namespace = delete.namespace.as_deref().unwrap_or("default");
            acts.push(Act::Delete { kind: delete.kind, key: ObjectKey::new(namespace, delete.name.as_str()) });
        }
        if let Some(edit) = step.edit {
            if let Some(problem) = edit.misplaced() {
                return Err(error(file, format!("{place}.edit"), problem));
            }
            acts.push(Act::Edit(edit));
        }
        if let Some(answers) = step.cloud {
            if let Some(problem) = answers.problem() {
                return Err(error(file, format!("{place}.cloud"), problem));
            }
            acts.push(Act::Answer(answers));
        }
        acts.extend(step.machine.map(Act::Befall));
        let (Some(act), true) = (acts.pop(), acts.is_empty()) else {
            return Err(error(file, place.to_owned(), VERBS));
        };
        Ok(Step { at: step.at.0, act })
    }
}

fn scale_act(file: &Path, place: &str, scale: Scale) -> Result<Act, ScenarioError> {
    let named = [
        ("Deployment", scale.deployment),
        ("ReplicaSet", scale.replica_set),
        ("StatefulSet", scale.stateful_set),
        ("Job", scale.job),
    ];
    let mut named = named.into_iter().filter_map(|(kind, name)| Some((kind, name?)));
    let (Some((kind, name)), None) = (named.next(), named.next()) else {
        return Err(error(file, place.to_owned(), "needs exactly one of deployment, replicaSet, statefulSet and job"));
    };
    let (namespace, name) = name.split_once('/').unwrap_or(("default", &name));
    Ok(Act::Scale { kind: kind.to_owned(), key: ObjectKey::new(namespace, name), replicas: scale.replicas })
}

/// Reads a document strictly: a field that is not known is an error that names those that are.
fn parse<T: DeserializeOwned>(file: &Path, place: &str, document: Value) -> Result<T, ScenarioError> {
    serde_path_to_error::deserialize(document).map_err(|problem| {
        let path = problem.path().to_string();
        let place = if path == "." { place.to_owned() } else { format!("{place}, {path}") };
        error(file, place, problem.inner())
    })
}

fn error(file: &Path, place: String, problem: impl std::fmt::Display) -> ScenarioError {
    ScenarioError { file: file.display().to_string(), place, problem: problem.to_string() }
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
