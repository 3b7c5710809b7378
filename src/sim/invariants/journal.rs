//! The journal of one history: what happened to which object. Kept only when somebody will read it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When, from the start.
    pub at: Duration,
    /// To which object; empty when it concerns the world as a whole.
    pub object: String,
    /// What.
    pub what: String,
}

/// The journal. Clones are handles to the same one.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<(Instant, Mutex<Vec<Entry>>)>>);

impl Journal {
    /// A journal that begins now.
    pub fn kept() -> Self {
        Self(Some(Arc::new((Instant::now(), Mutex::default()))))
    }

    /// Whether anything is written down at all.
    pub fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Writes something down.
    pub fn note(&self, object: &str, what: impl FnOnce() -> String) {
        if let Some(kept) = &self.0 {
            let entry = Entry { at: kept.0.elapsed(), object: object.to_owned(), what: what() };
            kept.1.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        }
    }

    /// The last so many things that happened to some objects or to the world as a whole (from the first mention of the objects on), as
    /// lines, up to a time. What happens to an object again and again is one line.
    pub fn trace(&self, objects: &[String], until: Duration, most: usize) -> Vec<String> {
        let Some(kept) = &self.0 else { return Vec::new() };
        let entries = kept.1.lock().unwrap_or_else(PoisonError::into_inner);
        let mentioned = |entry: &Entry| objects.contains(&entry.object);
        let Some(first) = entries.iter().find(|entry| mentioned(entry)).map(|entry| entry.at) else {
            return Vec::new();
        };
        let concerns =
            |entry: &&Entry| (first..=until).contains(&entry.at) && (entry.object.is_empty() || mentioned(entry));
        let mut last: Vec<(&Entry, usize)> = Vec::new();
        for entry in entries.iter().rev().filter(concerns) {
            let again = |(later, _): &(&Entry, usize)| later.object == entry.object && later.what == entry.what;
            if let Some(same) = last.pop_if(|later| again(later)) {
                last.push((entry, same.1 + 1));
            } else if last.len() < most {
                last.push((entry, 1));
            } else {
                break;
            }
        }
        let line = |(entry, times): &(&Entry, usize)| match times {
            1 => entry.to_string(),
            times => format!("{entry} (from then on {times} times)"),
        };
        last.iter().rev().map(line).collect()
    }

    /// Everything, as lines.
    pub fn lines(&self) -> Vec<String> {
        let Some(kept) = &self.0 else { return Vec::new() };
        kept.1.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Entry::to_string).collect()
    }
}

/// A time from the start, as hours, minutes and seconds.
pub fn time_of_day(at: Duration) -> String {
    let seconds = at.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{rest:02}.{:03}", at.subsec_millis())
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", time_of_day(self.at))?;
        if self.object.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.object, self.what) }
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
