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
}

impl Hold {
    /// It has failed an act, and is left alone for a time that may grow with the failures in a row. Answers whether this is another trouble than before.
    pub fn failed(&mut self, trouble: String, until: impl FnOnce(u32) -> Timestamp) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.until = Some(until(self.failures));
        let is_new = self.trouble.as_ref() != Some(&trouble);
        self.trouble = Some(trouble);
        is_new
    }

    /// Until when it is left alone, if it is.
    pub fn lasts_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| now < *until)
    }
}
