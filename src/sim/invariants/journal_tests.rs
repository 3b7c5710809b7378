//! What a trace tells.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_happens_again_and_again_is_one_line() {
    let journal = Journal::kept();
    for (object, what, times) in [("a", "refused", 3), ("b", "bound", 1), ("a", "refused", 2), ("a", "bound", 1)] {
        for _ in 0..times {
            tokio::time::advance(Duration::from_secs(1)).await;
            journal.note(object, || what.to_owned());
        }
    }
    let trace = |most| journal.trace(&["a".to_owned()], Duration::from_mins(1), most);
    assert_eq!(trace(9), ["00:00:01.000 a: refused (from then on 5 times)", "00:00:07.000 a: bound"]);
    assert_eq!(trace(1), ["00:00:07.000 a: bound"]);
}
