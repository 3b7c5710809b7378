//! A small world's outcome for the tests of this room, and what is derived from outcomes.

use super::*;

/// Instance types of the example with their price per hour, cores and GiB.
const TYPES: [(&str, f64, f64, f64); 10] = [
    ("c-4x-amd64-linux", 0.12, 4.0, 8.0),
    ("m-8x-amd64-linux", 0.34, 8.0, 32.0),
    ("c-16x-arm64-linux", 0.41, 16.0, 32.0),
    ("s-2x-amd64-linux", 0.07, 2.0, 8.0),
    ("m-32x-amd64-linux", 1.36, 32.0, 128.0),
    ("c-1x-amd64-linux", 0.03, 1.0, 2.0),
    ("c-2x-arm64-linux", 0.05, 2.0, 4.0),
    ("m-4x-amd64-linux", 0.17, 4.0, 16.0),
    ("m-64x-arm64-linux", 2.2, 64.0, 256.0),
    ("c-8x-amd64-linux", 0.24, 8.0, 16.0),
];

/// The outcome of a day on which `count` nodes came and went.
pub(in crate::sim) fn day(count: usize) -> Outcome {
    let end = 86_400.0;
    let mut rng = fastrand::Rng::with_seed(7);
    let mut nodes = (0..count)
        .map(|at| {
            let kind = rng.usize(..TYPES.len()).min(rng.usize(..TYPES.len()));
            let hour = if rng.bool() { 8.0 + 3.0 * rng.f64() } else { 20.0 * rng.f64() };
            let launched = (hour * 3600.0).round();
            let life = (600.0 + 40_000.0 * rng.f64() * rng.f64()).round();
            NodeRow {
                name: format!("{}-{at:04x}", ["default", "batch", "gpu"][at % 3]).into(),
                pool: ["default", "batch", "gpu"][at % 3].into(),
                instance_type: TYPES[kind].0.into(),
                zone: ["test-zone-a", "test-zone-b", "test-zone-c"][rng.usize(..3)].into(),
                capacity_type: if at % 2 == 0 { "spot" } else { "on-demand" }.into(),
                price_per_hour: TYPES[kind].1,
                launched,
                ready: (rng.u8(..) > 5).then_some(launched + 35.0 + (40.0 * rng.f64()).round()),
                gone: Some(launched + life).filter(|gone| *gone < end),
            }
        })
        .collect::<Vec<_>>();
    nodes.sort_by(|one, other| one.launched.total_cmp(&other.launched));
    let samples = (0..=1440).map(|minute| sample(&nodes, f64::from(minute) * 60.0)).collect::<Vec<_>>();
    let waits =
        (0..count * 12).map(|_| (4.0 + 60.0 * rng.f64() + 900.0 * rng.f64().powi(30)).round()).collect::<Vec<_>>();
    let taint = "NodePool gpu: its taint nvidia.com/gpu:NoSchedule is not tolerated; add a toleration to the pod";
    let unplaced = |name: &str, reasons: &[&str]| Unplaced {
        pod: name.to_owned(),
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
    };
    let mut pods = (0..14)
        .map(|at| {
            unplaced(&format!("ml/train-{at:02}"), &[taint, "NodePool default: no instance type has 8 nvidia.com/gpu"])
        })
        .collect::<Vec<_>>();
    pods.push(unplaced("shop/<cart> & co", &["zone moon-1 is offered by no cloud; see spec.nodeSelector"]));
    Outcome {
        title: "a day with a morning rush".to_owned(),
        facts: vec![
            ("Scenario".to_owned(), "examples/day.yaml".to_owned()),
            ("Instance types".to_owned(), "10 of KWOK's".to_owned()),
            ("Nominations".to_owned(), "contested".to_owned()),
        ],
        seed: 7,
        simulated_seconds: end,
        pods_total: (waits.len() + pods.len()) as u64,
        pods_bound: waits.len() as u64,
        unplaced: pods,
        seconds_to_bound: waits,
        nodes_peak: samples.iter().map(|sample| sample.nodes_by_type.values().sum()).max().unwrap_or(0),
        price_total: nodes.iter().map(|node| node.price_per_hour * node.hours(end)).sum(),
        price_peak_per_hour: samples.iter().map(|sample| sample.price_per_hour).fold(0.0, f64::max),
        samples,
        nodes,
        violations: Vec::new(),
        wall_seconds: 1.84,
        peak_memory_bytes: 96 << 20,
    }
}

/// The state of the example at a time, from the lives of its nodes.
fn sample(nodes: &[NodeRow], at: f64) -> Sample {
    let mut sample = Sample { at_seconds: at, ..Sample::default() };
    for node in nodes.iter().filter(|node| node.launched <= at) {
        sample.cumulative_price += node.price_per_hour * (node.gone.unwrap_or(at).min(at) - node.launched) / 3600.0;
        if node.gone.is_some_and(|gone| gone <= at) {
            continue;
        }
        *sample.nodes_by_type.entry(Arc::clone(&node.instance_type)).or_default() += 1;
        sample.price_per_hour += node.price_per_hour;
        let kind = TYPES.iter().find(|kind| kind.0 == &*node.instance_type).expect("a type of the example");
        sample.allocatable_cpu += kind.2 * 0.95;
        sample.allocatable_memory += kind.3 * 0.92 * f64::from(1 << 30);
        if node.ready.is_some_and(|ready| ready <= at) {
            sample.bound += 10;
            sample.requested_cpu += kind.2 * 0.85;
            sample.requested_memory += kind.3 * 0.6 * f64::from(1 << 30);
        } else {
            sample.pending += 10;
        }
    }
    sample
}

fn waiting(waits: &[f64]) -> Outcome {
    Outcome { seconds_to_bound: waits.to_vec(), ..Outcome::default() }
}

#[test]
fn percentiles_are_the_waits_of_pods_that_there_were() {
    let hundred = (1..=100).rev().map(f64::from).collect::<Vec<_>>();
    let of = |waits: &[f64]| waiting(waits).percentiles();
    assert_eq!(of(&hundred), Percentiles { p50: Some(50.0), p90: Some(90.0), p99: Some(99.0), max: Some(100.0) });
    assert_eq!(of(&[3.0]), Percentiles { p50: Some(3.0), p90: Some(3.0), p99: Some(3.0), max: Some(3.0) });
    assert_eq!(of(&[1.0, 9.0]), Percentiles { p50: Some(1.0), p90: Some(9.0), p99: Some(9.0), max: Some(9.0) });
    assert_eq!(of(&[]), Percentiles::default());
}

#[test]
fn unplaced_pods_are_grouped_by_their_reasons_most_pods_first() {
    let outcome = day(3);
    let groups = outcome.unplaced_by_reason();
    assert_eq!(groups.iter().map(|group| group.pods.len()).collect::<Vec<_>>(), [14, 1]);
    assert!(groups[0].reasons[0].contains("nvidia.com/gpu:NoSchedule"));
    assert_eq!(groups[1].pods, ["shop/<cart> & co"]);
}

#[test]
fn hours_of_a_node_end_with_it_or_with_the_rehearsal() {
    let mut node = day(1).nodes.remove(0);
    (node.launched, node.gone) = (3600.0, Some(9000.0));
    assert!((node.hours(86_400.0) - 1.5).abs() < 1e-9);
    node.gone = None;
    assert!((node.hours(10_800.0) - 2.0).abs() < 1e-9);
}
