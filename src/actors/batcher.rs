//! `batcher`: gathers pending pods into one batch, so that a burst is planned as a whole.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::protocol::{BatcherMsg, ProvisionerMsg};
use super::runtime::{Behaviour, Cx, Kind, Timer, View};
use super::tree::Wiring;

/// Keeps the window.
#[derive(Debug)]
pub(super) struct Batcher {
    wiring: Arc<Wiring>,
    /// Number of the last window.
    number: u64,
    open: Option<Window>,
}

#[derive(Debug)]
struct Window {
    opened: Instant,
    since: Timestamp,
    /// Ends the window when nothing new has come for a while, or at the latest moment.
    _timer: Timer,
}

impl Batcher {
    /// The window stays open until nothing new has come for a while, or it has been open for long enough.
    fn open_for(&mut self, opened: Instant, since: Timestamp, cx: &Cx<BatcherMsg>) {
        let settings = &self.wiring.settings;
        let left = settings.batch_max.saturating_sub(opened.elapsed());
        self.number += 1;
        let timer = cx.after(settings.batch_idle.min(left), BatcherMsg::WindowElapsed(self.number));
        self.open = Some(Window { opened, since, _timer: timer });
    }
}

impl Behaviour for Batcher {
    type Msg = BatcherMsg;
    type Args = Arc<Wiring>;
    const KIND: Kind = Kind::Batcher;

    fn born(wiring: &Self::Args, cx: &Cx<BatcherMsg>) -> Self {
        // A predecessor may have died with an open window.
        cx.cast(BatcherMsg::PodsPending);
        Self { wiring: Arc::clone(wiring), number: 0, open: None }
    }

    fn handle(&mut self, message: BatcherMsg, cx: &Cx<BatcherMsg>) {
        match message {
            BatcherMsg::PodsPending => {
                // That kube-scheduler refuses pods that had come before does not make the burst longer.
                if self.open.is_none() {
                    self.open_for(Instant::now(), cx.now(), cx);
                }
            }
            BatcherMsg::PodsCame => {
                if let Some(Window { opened, since, .. }) = self.open {
                    self.open_for(opened, since, cx);
                }
            }
            BatcherMsg::WindowElapsed(number) => {
                if number == self.number && self.open.take().is_some() {
                    self.wiring.slots.provisioner.cast(ProvisionerMsg::BatchReady);
                }
            }
        }
    }

    fn observe(&self, _: Timestamp) -> View {
        match &self.open {
            None => View { state: "idle".to_owned(), ..View::default() },
            Some(window) => View {
                state: "gathering".to_owned(),
                waits_for: Some("pods to stop coming".to_owned()),
                timeline: vec![(window.since, "window opened".to_owned())],
                ..View::default()
            },
        }
    }
}
