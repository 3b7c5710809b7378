//! For how long a machine may have no NodeClaim.

use tokio::time::sleep;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_machine_without_a_nodeclaim_has_two_hours_in_which_its_mark_can_be_read() {
    let (mut book, one, two) = (Book::default(), ProviderId::from("sim://a/1"), ProviderId::from("sim://a/2"));
    book.orphaned(one.clone());
    sleep(60 * MINUTE).await;
    book.lost_mark(&one, 90 * MINUTE);
    book.lost_mark(&two, 20 * MINUTE);
    sleep(10 * MINUTE).await;
    book.orphaned(two.clone());
    sleep(20 * MINUTE).await;
    // For longer, and not for a second time.
    book.lost_mark(&one, 90 * MINUTE);
    sleep(109 * MINUTE).await;
    assert_eq!(book.overdue(), []);
    sleep(2 * MINUTE).await;
    assert_eq!(book.overdue(), [(two, 131 * MINUTE)], "ten minutes of its time do not count");
    sleep(40 * MINUTE).await;
    assert_eq!(book.overdue()[0], (one, 241 * MINUTE), "two hours of its time do not count");
}
