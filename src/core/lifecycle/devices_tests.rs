//! When a driver counts as having published its devices.

use super::*;
use crate::core::facts::samples::claim;

fn slice(name: &str, pool: &str, generation: i64, of: i64) -> Arc<DeviceSlice> {
    let (name, driver, pool) = (name.into(), "gpu.example.com".into(), pool.into());
    Arc::new(DeviceSlice { name, node: Some("node-1".into()), driver, pool, generation, of })
}

#[test]
fn a_driver_is_there_once_one_of_its_pools_is_whole() {
    let published = |slices: &[Arc<DeviceSlice>]| is_published("gpu.example.com", slices);
    assert!(!published(&[]));
    assert!(published(&[slice("a", "one", 1, 1)]));
    assert!(!published(&[slice("a", "one", 1, 2)]), "one of two");
    assert!(published(&[slice("a", "one", 1, 2), slice("b", "one", 1, 2)]));
    assert!(!published(&[slice("a", "one", 1, 1), slice("b", "one", 2, 2)]), "the older generation counts no more");
    assert!(published(&[slice("a", "one", 1, 2), slice("b", "two", 1, 1)]), "another pool is whole");
    assert!(
        !published(&[slice("a", "one", 1, 1), slice("b", "one", 1, 1)]),
        "more than there are: the pool is changing"
    );
    assert!(!published(&[slice("a", "one", 1, 0)]), "no pool consists of nothing");
    assert!(!is_published("net.example.com", &[slice("a", "one", 1, 1)]), "another's are not its own");
}

#[test]
fn drivers_are_separated_by_commas_and_blanks_are_none() {
    let mut claim = claim();
    assert!(drivers(&claim).is_empty());
    claim.annotations.insert(labels::REQUESTED_DRA_DRIVERS.into(), " gpu.example.com,, net.example.com ,".into());
    assert_eq!(drivers(&claim), ["gpu.example.com", "net.example.com"]);
}
