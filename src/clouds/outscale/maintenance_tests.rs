//! What the cloud plans, as the list of machines brings it.

use jiff::Timestamp;

use super::super::tests::{SMALL, Scene, calls, launch, ready, scene, spec};
use super::*;
use crate::clouds::Cloud;

#[tokio::test(start_paused = true)]
async fn planned_maintenance_comes_with_the_list_and_the_list_does_not_depend_on_it() {
    let Scene { fake, cloud, .. } = scene();
    let class = ready(&cloud, spec()).await;
    let machine = cloud.create(&launch(&cloud, &class, 1, &[SMALL]).await).await.unwrap();
    cloud.create(&launch(&cloud, &class, 2, &[SMALL]).await).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cloud.list().await.unwrap().notices, []);
    let moment = |text: &str| -> Option<Timestamp> { text.parse().ok() };
    let event = wire::MaintenanceEvent {
        code: Some("system-reboot".to_owned()),
        description: None,
        not_before: moment("2026-01-05T02:00:00Z"),
        not_after: None,
    };
    assert!(fake.plan_maintenance(&fake.vms()[0].vm_id, event));
    let listing = cloud.list().await.unwrap();
    let [notice] = listing.notices.as_slice() else { panic!("{listing:?}") };
    assert_eq!(notice.machine, machine.id);
    assert_eq!(notice.to_string(), "system-reboot, not before 2026-01-05T02:00:00Z");
    // Keys from before this was asked for do not allow it: it is left alone for an hour.
    fake.account(|account| account.denied.extend(["ReadVmsState".to_owned()]));
    let listing = cloud.list().await.unwrap();
    assert_eq!((listing.machines.len(), listing.complete, listing.notices.len()), (2, true, 0));
    let asked = calls(&fake, "ReadVmsState");
    cloud.list().await.unwrap();
    assert_eq!(calls(&fake, "ReadVmsState"), asked);
    fake.account(|account| account.denied.clear());
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(cloud.list().await.unwrap().notices.len(), 1);
}
