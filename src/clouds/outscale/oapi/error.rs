//! How a call fails.

use std::fmt;
use std::time::Duration;

use super::codes::{Class, FOREIGN, LOCKED_FOR_A_WHILE, LOCKED_FOR_GOOD, NO_ADDRESSES, UNMATCHED_RULES};
use super::wire::ErrorEntry;
use crate::clouds;
use crate::clouds::LaunchRefused;

/// The most characters of what the API said that are passed on: it may repeat what it was sent.
const LONGEST_DETAIL: usize = 300;

/// A failed call.
#[derive(Clone, PartialEq, Debug)]
pub struct Error {
    /// The action.
    pub action: &'static str,
    /// What it means.
    pub class: Class,
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
    /// What the API said.
    pub entries: Vec<ErrorEntry>,
    /// What joiner says, where the API said nothing.
    pub message: String,
    /// The ID of the request, for the cloud's support.
    pub request_id: Option<String>,
    /// When to come back, if anybody knows.
    pub retry_after: Option<Duration>,
    /// Whether the call was never sent, so that repeating it at once is in vain.
    pub held_back: bool,
    /// Whether nothing can be reached where the API is to be.
    pub unreachable: bool,
}

impl std::error::Error for Error {}

impl Error {
    /// A failure of which the API said nothing.
    pub(in crate::clouds::outscale) fn silent(action: &'static str, class: Class, message: impl Into<String>) -> Self {
        Self {
            action,
            class,
            status: None,
            entries: Vec::new(),
            message: message.into(),
            request_id: None,
            retry_after: None,
            held_back: false,
            unreachable: false,
        }
    }

    /// A refusal in the API's words.
    pub(super) fn spoken(
        action: &'static str,
        (class, status): (Class, u16),
        entries: Vec<ErrorEntry>,
        id: Option<String>,
    ) -> Self {
        let entries = entries.into_iter().map(shortened).collect();
        Self { status: Some(status), entries, request_id: id, ..Self::silent(action, class, String::new()) }
    }

    /// The first code.
    pub fn code(&self) -> Option<&str> {
        self.entries.first().map(|entry| entry.code.as_str())
    }

    /// Whether any of the reasons has this code.
    pub fn has_code(&self, code: &str) -> bool {
        self.entries.iter().any(|entry| entry.code == code)
    }

    /// Whether it is certain that what the request names does not exist.
    pub fn is_not_found(&self) -> bool {
        self.class == Class::NotFound
    }

    /// Whether what the request names is refused for belonging to another account, and not the action by a policy.
    pub fn is_foreign(&self) -> bool {
        self.code() == Some(FOREIGN)
    }

    /// Whether the subnet has no free address, whatever is to be put into it.
    pub fn is_subnet_full(&self) -> bool {
        self.entries.iter().any(|entry| entry.code.trim().parse() == Ok(NO_ADDRESSES))
    }

    /// What was said, and what to do about it.
    pub fn words(&self) -> String {
        Words(self).to_string()
    }

    /// The same with the action, for objects: a text that stays the same as long as the trouble does, so that it is not written again and again.
    pub fn stable(&self) -> String {
        let held =
            if self.held_back && self.class == Class::Keys { "not called, as the keys were refused: " } else { "" };
        format!("{}: {held}{}", self.action, Words(self))
    }

    /// What to do about it, where that can be said.
    fn remedy(&self) -> Option<String> {
        match self.class {
            Class::Keys if self.has_code(UNMATCHED_RULES) => Some(
                "allow the address that joiner calls from in the account's API access rules, or give the client certificate that they ask for \
                 (OSC_X509_CLIENT_CERT, OSC_X509_CLIENT_KEY)"
                    .to_owned(),
            ),
            Class::Keys if self.has_code(LOCKED_FOR_GOOD) => {
                Some("ask Outscale's support to unlock the access; until then no keys help".to_owned())
            }
            Class::Keys if self.has_code(LOCKED_FOR_A_WHILE) => Some(
                "it ends by itself after a minute or some, joiner tries again then; find out who else signs with these keys and is refused"
                    .to_owned(),
            ),
            Class::Keys if !self.held_back => Some(
                "check the access key, the secret key and the region, and that this machine's clock is right; joiner reads keys of a Secret or a \
                 file again by itself, and has to be restarted for those in variables"
                    .to_owned(),
            ),
            Class::Denied if self.is_foreign() => Some(
                "what is named belongs to another account; name something of the keys' own account, or have its owner share it".to_owned(),
            ),
            Class::Denied => Some(format!(
                "allow the action api:{0} in an EIM policy of the keys' user: {{\"Effect\":\"Allow\",\"Action\":[\"api:{0}\"],\"Resource\":[\"*\"]}}",
                self.action
            )),
            _ => None,
        }
    }
}

fn shortened(mut entry: ErrorEntry) -> ErrorEntry {
    for text in [&mut entry.code, &mut entry.kind, &mut entry.details] {
        if text.chars().count() > LONGEST_DETAIL {
            *text = text.chars().take(LONGEST_DETAIL).chain(['…']).collect();
        }
    }
    entry
}

/// What was said and what to do about it, without what is another at every attempt.
struct Words<'a>(&'a Error);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entry) in self.0.entries.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{}", entry.code)?;
            for text in [&entry.kind, &entry.details].into_iter().filter(|text| !text.is_empty()) {
                write!(f, " {text}")?;
            }
        }
        f.write_str(&self.0.message)?;
        match self.0.remedy() {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stable())?;
        match (self.status, &self.request_id) {
            (Some(status), Some(id)) => write!(f, " (HTTP {status}, request {id})"),
            (Some(status), None) => write!(f, " (HTTP {status})"),
            (None, _) => Ok(()),
        }
    }
}

impl From<Error> for clouds::Error {
    /// In the classes of all clouds. Whoever knows which offering or which field was meant says so in place of this.
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error.class {
            Class::Throttled => Self::Throttled { said: format!(": {message}"), retry_after: error.retry_after },
            Class::SoldOut => Self::Launch(LaunchRefused::InsufficientCapacity { sold_out: Vec::new(), message }),
            Class::Quota => Self::Launch(LaunchRefused::Quota(message)),
            Class::NotFound | Class::Invalid => Self::Invalid { field: error.action.to_owned(), message },
            Class::Keys | Class::Denied => Self::Unauthorized { action: error.action, message },
            Class::Conflict | Class::Temporary => Self::Temporary(message),
            Class::Unknown => Self::Unknown(message),
        }
    }
}
