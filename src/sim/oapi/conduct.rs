//! How the fake behaves: how fast it is, and what goes wrong.

use std::time::Duration;

/// Something that is sold out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scarce {
    /// What the names of the types begin with; nothing means every type.
    pub vm_type: Option<String>,
    /// Where; nothing means everywhere.
    pub subregion: Option<String>,
}

/// How the fake behaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Conduct {
    /// How long an answer takes: least and most.
    pub latency: (Duration, Duration),
    /// How long a VM is pending, stops or is shut down: each of them takes this long.
    pub boots_within: Duration,
    /// How long a VM is shutting down or stopping.
    pub ends_within: Duration,
    /// How long a terminated VM can be read.
    pub forgets_after: Duration,
    /// How long a new VM is missing from what is read.
    pub lists_after: Duration,
    /// Which part of the answers is lost although the call had its effect.
    pub loses_answers: f64,
    /// Actions whose next answer is lost although the call had its effect; one that stands here twice loses two.
    pub loses_first: Vec<String>,
    /// Which part of the requests is lost before it has an effect.
    pub loses_requests: f64,
    /// Which part of the calls fails with an internal error, without effect.
    pub fails: f64,
    /// Actions whose next call fails so; one that stands here twice fails twice.
    pub fails_first: Vec<String>,
    /// How long a lost call leaves its caller waiting.
    pub silence: Duration,
    /// Calls a second of one action, beyond which the API throttles.
    pub limit_each: Option<u32>,
    /// Calls a second of the account, beyond which the API throttles.
    pub limit_account: Option<u32>,
    /// What is sold out.
    pub sold_out: Vec<Scarce>,
    /// Whether `tags.*` lines in the user data's section become tags. What the real API does with keys of one's own is not known outside.
    pub reads_section: bool,
    /// Whether a token that was used makes no second VM, as documented.
    pub honours_tokens: bool,
}

impl Default for Conduct {
    /// A good day: half a minute to boot, as users of the real API tell, and no trouble.
    fn default() -> Self {
        Self {
            latency: (Duration::from_millis(30), Duration::from_millis(150)),
            boots_within: Duration::from_secs(30),
            ends_within: Duration::from_secs(10),
            forgets_after: Duration::from_mins(10),
            lists_after: Duration::ZERO,
            loses_answers: 0.0,
            loses_first: Vec::new(),
            loses_requests: 0.0,
            fails: 0.0,
            fails_first: Vec::new(),
            silence: Duration::from_secs(5),
            limit_each: None,
            limit_account: None,
            sold_out: Vec::new(),
            reads_section: true,
            honours_tokens: true,
        }
    }
}
