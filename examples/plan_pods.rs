//! Only the solver: a snapshot and a catalog go in, a plan comes out. No actors, no clock, no cluster.
//!
//! `cargo run --example plan_pods`

use std::sync::Arc;

use joiner::clouds::catalog;
use joiner::cluster::convert::ShapeStore;
use joiner::command::{default_pool, mixed};
use joiner::core::conditions::Conditions;
use joiner::core::facts::{Catalog, Fact, Fold, Pod, PodPhase};
use joiner::core::ids::ObjectKey;
use joiner::core::scheduling::{Problem, Settings, check, solve};
use joiner::manifests::{Admission, Object, Workload, read_object};

fn main() -> anyhow::Result<()> {
    let beginning = jiff::Timestamp::from_second(1_767_225_600)?;
    let mut fold = Fold::default();
    let mut catalog = Catalog::default();
    let types = Arc::new(catalog::generated().into_iter().map(Arc::new).collect::<Vec<_>>());
    for object in default_pool()? {
        if let Object::Pool(mut pool) = object {
            let mut conditions = Conditions::of(&[], &[], pool.generation, beginning, beginning);
            conditions.set_true("Ready");
            pool.conditions = conditions.finish();
            catalog.pools.insert(pool.name.clone(), Arc::clone(&types));
            fold.fold(Fact::PoolSeen(Arc::new(*pool)));
        }
    }
    let mut pods = Vec::new();
    for manifest in mixed(100) {
        for object in read_object(&manifest, &ShapeStore::new(), &Admission::default())? {
            if let Object::Workload(workload) = object {
                pods.extend((0..workload.replicas).map(|number| pod(&workload, number, beginning)));
            }
        }
    }
    let settings = Settings::default();
    let problem = Problem::new(fold.snapshot(), &catalog, &pods, &settings);
    let plan = solve(&problem);
    #[expect(clippy::print_stdout, reason = "an example shows what it does")]
    {
        for claim in &plan.claims {
            println!(
                "{} {} pods on {} at {:.4} $/h",
                claim.draft.name,
                claim.pods.len(),
                claim.instance_types[0],
                claim.price
            );
        }
        println!(
            "{:.4} $/h in all, {} refused, {} violations",
            plan.price,
            plan.refused.len(),
            check(&problem, &plan).len()
        );
    }
    Ok(())
}

fn pod(workload: &Workload, number: u64, created: jiff::Timestamp) -> Arc<Pod> {
    let name = format!("{}-{number}", workload.key.name);
    Arc::new(Pod {
        key: ObjectKey::new("default", name.as_str()),
        uid: name.into(),
        created,
        shape: Arc::clone(&workload.shape),
        phase: PodPhase::Pending,
        node: None,
        nominated: None,
        unschedulable: true,
        unjudged: false,
        deleting: None,
        started: None,
        scheduled: None,
        ready: None,
        owned_by: None,
        volume_claims: vec![],
    })
}
