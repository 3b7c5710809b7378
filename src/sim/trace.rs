//! Recorded pods as a timeline: the CSV of Alibaba's GPU cluster trace ("openb").

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use csv::StringRecord;

use super::scenario::{Act, Behaviour, End, Scenario, ScenarioError, Step};
use super::verbs::Narration;
use crate::cluster::convert::ShapeStore;
use crate::core::facts::{Owner, PodShape};
use crate::core::ids::ObjectKey;
use crate::core::resources::Resources;
use crate::manifests::{Object, Workload, WorkloadKind};

/// Bytes in a MiB.
const MIB: i64 = 1 << 20;

/// Which column holds what.
struct Columns {
    name: usize,
    cpu_milli: usize,
    memory_mib: usize,
    num_gpu: usize,
    creation_time: usize,
    deletion_time: usize,
}

/// Reads a trace. Times count from the first creation. A pod that asks for a share of a GPU takes a whole one, as Kubernetes does without
/// a device plugin that can share.
pub fn read_openb(file: &Path, text: &str, shapes: &ShapeStore) -> Result<Scenario, ScenarioError> {
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let headers = table.headers().map_err(|problem| error(file, 1, "the header", problem))?.clone();
    let column = |name: &'static str| {
        let missing = || error(file, 1, name, "is not a column of this file; an openb pod list has it");
        headers.iter().position(|header| header == name).ok_or_else(missing)
    };
    let columns = Columns {
        name: column("name")?,
        cpu_milli: column("cpu_milli")?,
        memory_mib: column("memory_mib")?,
        num_gpu: column("num_gpu")?,
        creation_time: column("creation_time")?,
        deletion_time: column("deletion_time")?,
    };
    let mut lives = Vec::new();
    for row in table.records() {
        let row = row.map_err(|problem| {
            let line = problem.position().map_or(0, csv::Position::line);
            error(file, line, "the row", &problem)
        })?;
        lives.push(read_row(file, &columns, &row, shapes)?);
    }
    let start = lives.iter().map(|(_, created, _)| *created).min().unwrap_or(0);
    let mut steps = Vec::new();
    for (workload, created, deleted) in lives {
        let at = |time: u64| Duration::from_secs(time.saturating_sub(start));
        let key = workload.key.clone();
        steps.push(Step { at: at(created), act: Act::Apply(vec![Object::Workload(workload)]) });
        if let Some(deleted) = deleted {
            // Times are whole seconds: a pod that ends in the second of its creation was there for a part of it.
            let deleted = deleted.max(created + 1);
            steps.push(Step { at: at(deleted), act: Act::Delete { kind: "Pod".to_owned(), key } });
        }
    }
    steps.sort_by_key(|step| step.at);
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (cloud, narration) = (Behaviour::default(), Narration::default());
    Ok(Scenario { name, seed: None, features: BTreeSet::new(), cloud, steps, end: End::Settled, narration })
}

fn read_row(
    file: &Path,
    columns: &Columns,
    row: &StringRecord,
    shapes: &ShapeStore,
) -> Result<(Workload, u64, Option<u64>), ScenarioError> {
    let line = row.position().map_or(0, csv::Position::line);
    let number = |name: &str, at: usize| {
        let text = row.get(at).unwrap_or_default().trim();
        // Some tools write whole seconds with a decimal point.
        let whole = text.strip_suffix(".0").unwrap_or(text);
        let wrong = || error(file, line, name, format!("{text:?} is not a whole number from 0"));
        whole.parse::<u32>().map(i64::from).map_err(|_| wrong())
    };
    let name = row.get(columns.name).unwrap_or_default();
    if name.is_empty() {
        return Err(error(file, line, "name", "is empty; each pod needs a name"));
    }
    let mut requests = Resources::new()
        .with("cpu", number("cpu_milli", columns.cpu_milli)?)
        .with("memory", number("memory_mib", columns.memory_mib)? * MIB * 1_000);
    let gpus = number("num_gpu", columns.num_gpu)?;
    if gpus > 0 {
        requests.set("nvidia.com/gpu".into(), gpus * 1_000);
    }
    let created = number("creation_time", columns.creation_time)?;
    let deleted = match row.get(columns.deletion_time).unwrap_or_default().trim() {
        "" => None,
        _ => Some(number("deletion_time", columns.deletion_time)?),
    };
    if deleted.is_some_and(|deleted| deleted < created) {
        return Err(error(file, line, "deletion_time", "is before the creation_time"));
    }
    let shape = PodShape { owner: Owner::Nobody, ..PodShape::plain(requests) };
    let workload = Workload {
        kind: WorkloadKind::Pod,
        key: ObjectKey::new("default", name),
        replicas: 1,
        shape: shapes.share(shape),
        runs_for: None,
        volumes: Vec::new(),
    };
    Ok((workload, created.unsigned_abs(), deleted.map(i64::unsigned_abs)))
}

fn error(file: &Path, line: u64, column: &str, problem: impl std::fmt::Display) -> ScenarioError {
    let place = format!("line {line}, column {column}");
    ScenarioError { file: file.display().to_string(), place, problem: problem.to_string() }
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
