//! Progress as it is shown.

use std::sync::{Arc, Mutex};

use super::*;

/// A writer whose text can be read while it is in use.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().map_err(|_| std::io::Error::other("a panic while it was held"))?.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn standing(hours: u64, bound: u64) -> Standing {
    Standing {
        at: Duration::from_hours(hours),
        until: Some(Duration::from_hours(24)),
        bound,
        pods: 2000,
        nodes: 12,
        price_per_hour: 3.456,
    }
}

#[test]
fn lines_come_at_each_tenth_and_no_oftener() {
    let shared = Shared::default();
    let mut progress = Progress::lines(Box::new(shared.clone()));
    for minute in 0..=24 * 60 {
        let mut now = standing(0, minute);
        now.at = Duration::from_secs(minute * 60);
        progress.update(&now);
    }
    progress.finish();
    let text = String::from_utf8(shared.0.lock().expect("no panic while it was held").clone()).expect("UTF-8");
    let lines = text.lines().collect::<Vec<_>>();
    assert_eq!(lines.len(), 11, "{text}");
    assert_eq!(lines[5], " 50 % | 12h of 1d | 720/2,000 pods bound | 12 nodes | $3.46/h");
}

#[test]
fn without_an_end_the_pods_say_how_far_it_is() {
    let open = |bound, pods| Standing { until: None, pods, ..standing(3, bound) }.parts();
    assert_eq!([open(500, 2000), open(0, 0), open(3000, 2000)], [250, 0, 1000]);
    assert_eq!(Standing { until: Some(Duration::ZERO), ..standing(0, 0) }.parts(), 1000);
    assert_eq!(standing(6, 0).parts(), 250);
}

#[test]
fn never_shows_nothing_even_on_a_terminal() {
    assert!(matches!(Progress::on_stderr(When::Never).0, Show::Nothing));
}

#[test]
fn the_bar_can_be_drawn() {
    assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
}
