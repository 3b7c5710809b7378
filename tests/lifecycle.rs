//! The life of NodeClaims, Nodes and NodePools as files that people read: `tests/lifecycle/<section>/<behaviour>.yaml` says what is there and
//! what happens, the `.snap` beside it what joiner does. Which behaviours there are, and which are missing: `tests/lifecycle/README.md`.
//!
//! Every file is a test of its own (`cargo test --test lifecycle termination/`). After a change of behaviour that is meant:
//! `INSTA_UPDATE=always cargo test --test lifecycle`, and read the difference.

#[path = "common/narrator.rs"]
mod narrator;
#[path = "common/witnesses.rs"]
mod witnesses;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use jiff::Timestamp;
use joiner::actors::runtime::Clock;
use joiner::actors::{Joiner, Parts, Settings};
use joiner::clouds::catalog;
use joiner::clouds::simulated::Conduct;
use joiner::cluster::convert::ShapeStore;
use joiner::command::with_features;
use joiner::manifests::Object;
use joiner::sim::{Act, End, Latency, Pace, Rhythm, Scenario, Seed, World, WorldConfig, read_scenario};
use joiner::telemetry::metrics::{Exporter, Samples, sample_budgets};
use libtest_mimic::{Arguments, Failed, Trial};
use metrics_exporter_prometheus::PrometheusBuilder;
use narrator::Narrator;
use tokio::time::{Instant, sleep_until};
use witnesses::{SeenCloud, SeenCluster};

/// Turns what is sampled into text; what is recorded, each scenario keeps for itself.
static EXPORTER: LazyLock<Exporter> = LazyLock::new(|| Exporter::install().expect("nobody else records"));

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lifecycle");
    let trials = stories(&folder).into_iter().map(|file| {
        let below = file.strip_prefix(&folder).expect("it was found there");
        let name = below.with_extension("").to_string_lossy().into_owned();
        Trial::test(name, move || tell_and_compare(&file))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// All scenario files, by section; what stands in `common/` is what they share.
fn stories(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("the folder can be read");
        entries.map(|entry| entry.expect("the folder can be read").path()).collect::<Vec<_>>()
    };
    let sections = entries(folder).into_iter().filter(|path| path.is_dir() && !path.ends_with("common"));
    let mut files: Vec<_> = sections.flat_map(|section| entries(&section)).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    files
}

/// Plays a file and compares what happened with the snapshot beside it.
fn tell_and_compare(file: &Path) -> Result<(), Failed> {
    let open = |path: &Path| std::fs::read_to_string(path);
    let scenario = read_scenario(file, &ShapeStore::new(), &open)?;
    let told = tell(&scenario);
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(file.parent().expect("a file is in a folder"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let name = file.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    settings.bind(|| insta::assert_snapshot!(name, told));
    Ok(())
}

/// Plays a scenario in virtual time with the actors of production, and tells what happened.
fn tell(scenario: &Scenario) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let figures = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime starts");
    let (narrator, samples) = metrics::with_local_recorder(&recorder, || runtime.block_on(play(scenario)));
    // What actors set is shared by all scenarios that play meanwhile: left out.
    let sampled = EXPORTER.render(samples);
    let budgets = sampled.lines().filter(|line| line.starts_with("karpenter_nodepools_"));
    narrator.text(&(figures.render() + &budgets.collect::<Vec<_>>().join("\n")))
}

async fn play(scenario: &Scenario) -> (Narrator, Samples) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let world = World::new(round_world(scenario, clock));
    let narrator = Narrator::new(scenario.narration.clone());
    let joiner = Joiner::start(Parts {
        cluster: Arc::new(SeenCluster { inner: world.cluster.clone(), narrator: narrator.clone() }),
        cloud: Arc::new(SeenCloud { inner: world.cloud.clone(), narrator: narrator.clone() }),
        settings: with_features(Settings::default(), &scenario.features),
        clock,
    });
    let mut facts = world.cluster.prompt_facts();
    let listening = async {
        while let Some(fact) = facts.next().await {
            narrator.fact(&fact);
        }
    };
    let timeline = async {
        let start = Instant::now();
        for step in &scenario.steps {
            sleep_until(start + step.at).await;
            narrator.step(&describe(&step.act));
            world.perform(&step.act).expect("what a timeline is about is there");
        }
        match scenario.end {
            End::At(end) => sleep_until(start + end).await,
            End::Settled => world.play(&[], End::Settled).await,
        }
    };
    tokio::select! {
        biased;
        () = listening => {}
        () = timeline => {}
        _ = join_all(world.stand_ins().into_iter().map(|(_, player)| player)) => {}
    }
    let mut samples = Samples::new();
    sample_budgets(&mut samples, &joiner.boards().snapshot(), &joiner.class_kinds(), clock.now());
    joiner.kill();
    (narrator, samples)
}

/// A world in which everything takes a round number of seconds, and a machine has the name of its NodeClaim.
fn round_world(scenario: &Scenario, clock: Clock) -> WorldConfig {
    let always = |millis| (Duration::from_millis(millis), Duration::from_millis(millis));
    let usual = Conduct {
        launch: always(1_000),
        boot: always(10_000),
        call: always(20),
        shutdown: always(8_000),
        settles_within: Duration::from_secs(5),
        named_after_claims: true,
        ..Conduct::default()
    };
    WorldConfig {
        seed: Seed(scenario.seed.unwrap_or(1)),
        clock: Arc::new(move || clock.now()),
        latency: Latency { request: always(4), watch: always(8) },
        pace: Pace {
            ready: always(5_000),
            equip: always(2_000),
            pod_start: always(1_000),
            pod_stop: always(2_000),
            detach: always(4_000),
            lost: Duration::from_secs(40),
            orphans: always(1_000),
        },
        rhythm: Rhythm::default(),
        conduct: scenario.cloud.conduct(&usual),
        catalogue: catalog::generated(),
    }
}

/// What a step of the timeline does, in words.
fn describe(act: &Act) -> String {
    match act {
        Act::Apply(objects) => {
            let names: Vec<_> = objects.iter().map(name_of).collect();
            format!("apply {}", names.join(", "))
        }
        Act::Scale { kind, key, replicas } => format!("scale {kind} {} to {replicas}", key.name),
        Act::Delete { kind, key } => format!("delete {kind} {}", key.name),
        Act::Edit(edit) => format!("edit {} {}", edit.kind, edit.name),
        Act::Answer(answers) => answers.to_string(),
        Act::Befall(fate) => fate.to_string(),
    }
}

fn name_of(object: &Object) -> String {
    match object {
        Object::Pool(pool) => format!("NodePool {}", pool.name),
        Object::Class(class) => format!("{} {}", class.reference.kind, class.reference.name),
        Object::Claim(claim) => format!("NodeClaim {}", claim.name),
        Object::Node(node) => format!("Node {}", node.name),
        Object::Daemon(daemon) => format!("DaemonSet {}", daemon.key.name),
        Object::Namespace(name, _) => format!("Namespace {name}"),
        Object::Budget(budget) => format!("PodDisruptionBudget {}", budget.key.name),
        Object::Priority(name, _) => format!("PriorityClass {name}"),
        Object::VolumeClaim(claim) => format!("PersistentVolumeClaim {}", claim.key.name),
        Object::Volume(volume) => format!("PersistentVolume {}", volume.name),
        Object::StorageClass(class) => format!("StorageClass {}", class.name),
        Object::CsiNode(node) => format!("CSINode {}", node.node),
        Object::Overlay(overlay) => format!("NodeOverlay {}", overlay.name),
        Object::Buffer(buffer) => format!("CapacityBuffer {}", buffer.key.name),
        Object::Template(template) => format!("PodTemplate {}", template.key.name),
        Object::Attachment(one) => format!("VolumeAttachment {}", one.name),
        Object::Slice(slice) => format!("ResourceSlice {}", slice.name),
        Object::Pod { pod, .. } => format!("Pod {}", pod.key.name),
        Object::Workload(workload) => format!("{} {}", workload.kind.as_str(), workload.key.name),
        Object::Secret(secret) => format!("Secret {}", secret.name),
        Object::Irrelevant(kind) => kind.clone(),
    }
}
