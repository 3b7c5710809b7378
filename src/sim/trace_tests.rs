//! Traces become timelines; a bad row is named.

use std::path::Path;
use std::time::Duration;

use super::read_openb;
use crate::cluster::convert::ShapeStore;
use crate::manifests::Object;
use crate::manifests::Workload;
use crate::shared_data::shared;
use crate::sim::scenario::{Act, Scenario};

const HEADER: &str =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

fn read(rows: &str) -> Result<Scenario, String> {
    let text = format!("{HEADER}{rows}");
    read_openb(Path::new("pods.csv"), &text, &ShapeStore::new()).map_err(|error| error.to_string())
}

fn created(act: &Act) -> &Workload {
    match act {
        Act::Apply(objects) => match &objects[..] {
            [Object::Workload(workload)] => workload,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn pods_come_and_go_in_order_of_time() {
    let rows = "a,12000,16384,1,460,,LS,Running,100,400,100\nb,500,64,0,0,,BE,Running,50,,50\n";
    let scenario = read(rows).unwrap();
    let at: Vec<_> = scenario.steps.iter().map(|step| step.at).collect();
    assert_eq!(at, [0, 50, 350].map(Duration::from_secs));
    let (b, a) = (created(&scenario.steps[0].act), created(&scenario.steps[1].act));
    assert_eq!((&*b.key.name, &*a.key.name), ("b", "a"));
    let gpu = "nvidia.com/gpu".into();
    assert_eq!(a.shape.requests.get(&gpu), 1_000, "a share takes a whole one");
    assert_eq!(b.shape.requests.mentioned(&gpu), None);
    assert_eq!(a.shape.requests.get(&"memory".into()), 16_384 * (1 << 20) * 1_000);
    assert!(matches!(&scenario.steps[2].act, Act::Delete { kind, key } if kind == "Pod" && &*key.name == "a"));
}

#[test]
fn a_bad_row_is_named_by_file_line_and_column() {
    let good = "a,1,1,0,0,,LS,Running,0,1,0\n";
    let cases = [
        ("b,much,1,0,0,,LS,Running,0,1,0\n", "pods.csv: line 3, column cpu_milli: \"much\" is not a whole number"),
        ("b,1,-1,0,0,,LS,Running,0,1,0\n", "line 3, column memory_mib"),
        (",1,1,0,0,,LS,Running,0,1,0\n", "line 3, column name: is empty"),
        ("b,1,1,0,0,,LS,Running,5,1,0\n", "line 3, column deletion_time: is before"),
        ("b,1,1\n", "pods.csv: line 3"),
    ];
    for (row, expected) in cases {
        let said = read(&format!("{good}{row}")).unwrap_err();
        assert!(said.contains(expected), "{said:?} lacks {expected:?}");
    }
    let said = read_openb(Path::new("x.csv"), "name,cpu\n", &ShapeStore::new()).unwrap_err().to_string();
    assert!(said.contains("column cpu_milli: is not a column of this file"), "{said}");
}

#[test]
fn the_recorded_trace_can_be_read() {
    let Some(file) = shared("traces/openb_pod_list_default.csv") else { return };
    let text = std::fs::read_to_string(&file).unwrap();
    let scenario = read_openb(&file, &text, &ShapeStore::new()).unwrap();
    let pods = scenario.steps.iter().filter(|step| matches!(step.act, Act::Apply(_))).count();
    assert_eq!(pods, 8_152);
}
