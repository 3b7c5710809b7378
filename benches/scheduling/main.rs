//! How fast, how well and in how much memory the solver plans.
//!
//! `cargo bench --bench scheduling -- --table [PART OF A NAME]` prints one line for each question in a few minutes: nodes, price against its
//! lower bound before and after improvement, pods left, seconds and peak memory, because a fast plan that is dear or incomplete is no plan. Without `--table` criterion measures, too.

mod clusters;
#[path = "../../tests/common/shared.rs"]
mod shared_data;
mod upstream;

use std::cell::RefCell;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use joiner::core::facts::{Catalog, Pod, Snapshot};
use joiner::core::scheduling::{
    Exclusions, Ground, Plan, Problem, Settings, check, crowded, improved, lower_bound, mingled, out_of_turn, solve,
};
use tokio::time::Instant;

/// A question with all that it borrows.
struct Case {
    snapshot: Snapshot,
    catalog: Catalog,
    pods: Vec<Arc<Pod>>,
    settings: Settings,
    excluded: Exclusions,
    /// What is kept between answers, where a name ends in `kept`.
    ground: RefCell<Ground>,
}

impl Case {
    fn new((snapshot, catalog): (Snapshot, Catalog), pods: Vec<Arc<Pod>>) -> Self {
        let (settings, excluded) = (Settings::default(), Exclusions::default());
        Self { snapshot, catalog, pods, settings, excluded, ground: RefCell::default() }
    }

    fn problem(&self) -> Problem<'_> {
        let plain = Problem::new(&self.snapshot, &self.catalog, &self.pods, &self.settings);
        Problem { excluded: &self.excluded, ..plain }
    }
}

/// All questions by name, smallest first.
const NAMES: [&str; 24] = [
    "diverse/100",
    "diverse/1000",
    "diverse/5000",
    "diverse/10000",
    "diverse/20000",
    "diverse/100000",
    "equal/10000",
    "equal/100000",
    "preferences/respect/4000",
    "preferences/ignore/4000",
    "deployments/10000",
    "deployments/100000",
    "aws/10000",
    "aws/100000",
    "distinct/1000",
    "distinct/10000",
    "openb/busiest-minute",
    "openb/burst",
    "cluster/1000-pending",
    "cluster/1000-pending-kept",
    "cluster/removal",
    "cluster/removal-kept",
    "check/diverse/10000",
    "check/deployments/10000",
];

fn fake() -> (Snapshot, Catalog) {
    upstream::empty_cluster(upstream::instance_types(400))
}

/// The question of that name; nothing when its data is not there.
fn case(name: &str) -> Option<Case> {
    let parts: Vec<&str> = name.trim_start_matches("check/").split('/').collect();
    let count = parts.last().and_then(|count| count.parse().ok()).unwrap_or(0);
    let found = match parts[..] {
        ["diverse", _] => Case::new(fake(), upstream::diverse(count)),
        ["equal", _] => Case::new(fake(), upstream::equal(count)),
        ["preferences", policy, _] => {
            let mut case = Case::new(fake(), upstream::preferring(count));
            case.settings.respect_preferences = policy == "respect";
            case
        }
        ["deployments", _] => Case::new(upstream::empty_cluster(clusters::aws_size()), clusters::deployments(count)),
        ["aws", _] => Case::new(upstream::empty_cluster(clusters::aws()?), clusters::deployments(count)),
        ["distinct", _] => Case::new(upstream::empty_cluster(clusters::aws_size()), clusters::distinct(count)),
        ["openb", part] => {
            let (snapshot, catalog, pods) = clusters::recorded(part == "busiest-minute")?;
            Case::new((snapshot, catalog), pods)
        }
        ["cluster", "1000-pending" | "1000-pending-kept"] => {
            Case::new(clusters::full_cluster(), clusters::newcomers(1_000))
        }
        ["cluster", ..] => {
            let (snapshot, catalog) = clusters::full_cluster();
            let node = "node-2500".into();
            let pods = clusters::running_on(&snapshot, &node);
            let mut case = Case::new((snapshot, catalog), pods);
            case.excluded.nodes.insert(node);
            case
        }
        _ => unreachable!("every name is known"),
    };
    Some(found)
}

/// What a benchmark of that name does, once.
fn work(name: &str, case: &Case) -> Plan {
    if name.ends_with("kept") { case.ground.borrow_mut().solve(&case.problem()) } else { solve(&case.problem()) }
}

/// Peak resident memory of this process, in MiB, as far as the system tells.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

/// Answers one question several times and prints its line of the table.
fn line(name: &str) {
    let Some(case) = case(name) else {
        say(&format!("| {name} | SKIPPED: its data is not in $JOINER_SHARED_DATA | | | | | | | | | | | | | | |"));
        return;
    };
    let before = peak();
    let mut best = f64::INFINITY;
    let mut plan = work(name, &case);
    let after = peak();
    let begin = Instant::now();
    for _ in 0..50 {
        let start = Instant::now();
        plan = black_box(work(name, &case));
        best = best.min(start.elapsed().as_secs_f64());
        if begin.elapsed().as_secs_f64() > 3.0 {
            break;
        }
    }
    let start = Instant::now();
    let better = improved(&mut Ground::default(), &case.problem(), plan.clone());
    let better = mingled(&case.problem(), better);
    let seconds = start.elapsed().as_secs_f64();
    let late = out_of_turn(&case.problem(), &better);
    let in_the_end = peak();
    let bound = lower_bound(&case.problem(), &better);
    let over =
        |price: f64| if bound > 0.0 { format!("{:.1} %", 100.0 * (price / bound - 1.0)) } else { "-".to_owned() };
    let violations = check(&case.problem(), &better);
    let verdict = violations.first().map_or_else(|| "accepted".to_owned(), |first| format!("REJECTED: {first:?}"));
    let placed = case.pods.len() - plan.refused.len();
    say(&format!(
        "| {name} | {} | {:.2} | {} | {} | {:.2} | {} | {seconds:.3} | {placed} | {} | {:.5} | {:.0} | {:.0} | {after:.0} ({before:.0}), {in_the_end:.0} | {} | {late} | {verdict} |",
        plan.claims.len(),
        plan.price,
        over(plan.price),
        better.claims.len(),
        better.price,
        over(better.price),
        plan.refused.len(),
        best,
        case.pods.len() as f64 / best,
        case.pods.len() as f64 / (best + seconds),
        crowded(&case.problem(), &better),
    ));
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn say(text: &str) {
    println!("{text}");
}

/// Prints the table: each line by a process of its own, so that peak memory is that of one question.
fn table(wanted: &str) {
    say(
        "| question | new nodes | $/h | over bound | improved: new nodes | improved: $/h | improved: over bound | improvement s | placed | left | best s | pods/s | pods/s improved | peak MiB (before the first solve), with improvement | crowded | late | check |",
    );
    say("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let own = std::env::current_exe().expect("a running program has a path");
    for name in NAMES.iter().filter(|name| name.contains(wanted) && !name.starts_with("check/")) {
        let status = Command::new(&own).args(["--line", name]).status().expect("the benchmark can start itself");
        assert!(status.success(), "{name} failed");
    }
}

fn measure(criterion: &mut Criterion) {
    for name in NAMES {
        let Some(case) = case(name) else { continue };
        let problem = case.problem();
        let mut group = criterion.benchmark_group("scheduling");
        group.sample_size(10);
        group.throughput(Throughput::Elements(case.pods.len() as u64));
        let id = BenchmarkId::from_parameter(name);
        if name.starts_with("check/") {
            let plan = solve(&problem);
            group.bench_function(id, |bencher| bencher.iter(|| black_box(check(&problem, &plan))));
        } else {
            group.bench_function(id, |bencher| {
                bencher.iter_batched(|| (), |()| black_box(work(name, &case)), BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--line", name] => line(name),
        ["--table"] => table(""),
        ["--table", part] => table(part),
        _ => {
            let mut criterion = Criterion::default().configure_from_args();
            table(arguments.iter().find(|argument| !argument.starts_with('-')).map_or("", String::as_str));
            measure(&mut criterion);
            criterion.final_summary();
        }
    }
}
