//! What the auditor has done and why is written down where whoever acts next finds it, and so is what a person was asked about.

use std::sync::Arc;

use jiff::Timestamp;

use crate::actors::protocol::AuditorMsg;
use crate::actors::runtime::Cx;
use crate::core::audit::Finding;
use crate::core::record::{HELD_MOST, Record};

use super::Auditor;

impl Auditor {
    /// What was written down, by this auditor and by those before it.
    pub(super) fn record(&self) -> Record {
        let boards = &self.wiring.boards;
        let waiting = boards.record.borrow().clone();
        let written = || boards.lease.borrow().as_ref()?.record.clone();
        waiting.or_else(written).map(|text| Record::read(&text)).unwrap_or_default()
    }

    /// Writes down what is done, and why.
    pub(super) fn write_down(&self, what: &str, why: &str, cx: &Cx<AuditorMsg>) {
        let mut record = self.record();
        record.note(cx.now(), what, why);
        self.publish(&record);
    }

    /// Writes down what a look has found, what a person was asked about, and what they have just said, if that has changed. A list with holes has found
    /// nothing, which is not the same as that there is nothing.
    pub(super) fn write_down_look(&self, complete: bool, now: Timestamp) {
        let known = self.record();
        let mut record = known.clone();
        record.held = self.consent.held().take(HELD_MOST).cloned().collect();
        if complete {
            record.saw(now, self.history.iter().map(|(found, seen)| (found.to_string(), &*seen.seen)).collect());
        }
        let decided = self.verdict.decided.iter();
        let decided: Vec<_> = decided.map(|(decision, findings)| format!("{decision} {findings} findings")).collect();
        if !decided.is_empty() {
            record.heard(now, self.consent.describe(), &decided.join(", "));
        } else if self.consent.is_silent() {
            record.heard(now, None, "the annotation is gone");
        }
        if record != known {
            self.publish(&record);
        }
    }

    /// What speaks for a finding, in words.
    pub(super) fn why(&self, finding: &Finding) -> String {
        self.history.get(finding).map(ToString::to_string).unwrap_or_default()
    }

    fn publish(&self, record: &Record) {
        self.wiring.boards.record.send_replace(Some(Arc::from(record.to_string())));
    }
}
