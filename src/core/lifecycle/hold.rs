//! Who has just failed an act is left alone for a while: the API server and the cloud, each by itself. Both may be out of reach at one time, and the
//! failures of one say nothing about the other.

use jiff::Timestamp;

/// How one of the two has failed of late.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Hold {
    /// It is asked nothing before this moment.
    pub until: Option<Timestamp>,
    /// Which act it failed last, and how.
    pub trouble: Option<String>,
    /// How often it has failed in a row.
    pub failures: u32,
    /// Nobody has failed: the last act was not begun, as joiner did not hold the lease.
    pub is_barred: bool,
}

impl Hold {
    /// It has failed an act, and is left alone for a time that may grow with the failures in a row. Answers whether this is another trouble than before.
    pub fn failed(&mut self, trouble: String, until: impl FnOnce(u32) -> Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        (self.until, self.is_barred) = (Some(until(self.failures)), false);
        let is_new = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble);
        is_new
    }

    /// An act was not begun for want of the lease, and need not be tried before `until`, if the lease is not there sooner.
    pub fn bar(&mut self, until: Timestamp) {
        (self.until, self.is_barred) = (Some(until), true);
    }

    /// The lease is there.
    pub fn unbar(&mut self) {
        if std::mem::take(&mut self.is_barred) {
            self.until = None;
        }
    }

    /// What it failed last, or why nothing is asked of it.
    pub fn why(&self) -> Option<String> {
        if self.is_barred { Some("this joiner does not hold the lease".to_owned()) } else { self.trouble.clone() }
    }

    /// Until when it is left alone, if it is.
    pub fn lasts_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| now < *until)
    }
}
