//! What is on the market: the API's list of fixed types and the price list, asked for now and then, and kept when they cannot be had.
//!
//! There are two price lists. The account's own (`ReadCatalog`) may have prices that somebody has negotiated, and takes a permission; the public one
//! is for anybody. The account's counts where it can be had.
//!
//! A list that does not come holds nobody up for long, and at most one caller at a time: the others go on with what is known, and so does everybody
//! once a list has been waited for in vain, until it is time to ask again.

use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::oapi::{Class, Client, Error, wire};
use super::prices::{PriceError, Prices};

/// How often the lists are asked for.
const FRESH_FOR: Duration = Duration::from_hours(12);
/// Pause after a failure.
const RETRY: Duration = Duration::from_mins(30);
/// Pause after a failure, as long as a list has never been had.
const FIRST_RETRY: Duration = Duration::from_mins(1);
/// How long a list is waited for. Two in a row (the account's price list and the public one) leave an actor's call, which may take two minutes,
/// time for what it is about.
const LISTED_WITHIN: Duration = Duration::from_secs(20);
/// Pause after the account's own price list was refused for good (a permission is missing, or this API has no such list) or was none: the public one
/// counts meanwhile.
const REFUSED_FOR: Duration = Duration::from_hours(24);

/// The market.
pub(super) struct Market {
    client: Arc<Client>,
    file: Option<PathBuf>,
    state: std::sync::Mutex<State>,
    /// Held by the one who asks for lists.
    turn: Mutex<()>,
}

struct State {
    offer: Offer,
    types: List,
    prices: List,
    /// When the account's own price list may be asked for again, after it was refused.
    own_due: Option<Instant>,
    /// Whether the prices in use are those of the account's own list.
    has_own: bool,
}

/// When a list is asked for.
#[derive(Default)]
struct List {
    due: Option<Instant>,
    /// Whether it has ever been had.
    had: bool,
}

impl List {
    /// Whether it is time to ask. If so it counts as asked for in vain until it comes: who asks may be dropped.
    fn begin(&mut self) -> bool {
        let is_time = is_due(self.due);
        if is_time {
            self.missed();
        }
        is_time
    }

    /// It is there, and good for so long.
    fn came(&mut self, good_for: Duration) {
        *self = Self { due: Some(Instant::now() + good_for), had: true };
    }

    /// It did not come.
    fn missed(&mut self) {
        self.due = Some(Instant::now() + if self.had { RETRY } else { FIRST_RETRY });
    }
}

/// What is known of the market.
#[derive(Clone)]
pub(super) struct Offer {
    /// Fixed types.
    pub(super) listed: Arc<Vec<wire::VmType>>,
    /// Prices.
    pub(super) prices: Arc<Prices>,
    /// When they were read of the API; nothing as long as only the built-in ones and those of the file are known.
    pub(super) read: Option<Timestamp>,
    /// Whether both lists have been had.
    pub(super) is_whole: bool,
    /// Rises with every change of the lists.
    pub(super) epoch: u64,
}

impl Offer {
    /// How soon a list that has never been had is asked for again; nothing when both have been.
    pub(super) fn lacks(&self) -> Option<Duration> {
        (!self.is_whole).then_some(FIRST_RETRY)
    }
}

impl Market {
    /// A market of which only the built-in prices are known, and those of the file.
    pub(super) fn new(client: Arc<Client>, file: Option<PathBuf>) -> Result<Self, PriceError> {
        let prices = over(Prices::built_in(), file.as_ref())?;
        let offer = Offer { listed: Arc::default(), prices: Arc::new(prices), read: None, is_whole: false, epoch: 0 };
        let state = State { offer, types: List::default(), prices: List::default(), own_due: None, has_own: false };
        Ok(Self { client, file, state: std::sync::Mutex::new(state), turn: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, after having asked if it is time to. Never fails: what was known stays in use. Who comes while another one asks gets what is
    /// known; before both lists have been had, that one is waited for.
    pub(super) async fn offer(&self) -> Offer {
        let (is_whole, is_due) = {
            let state = self.state();
            (state.offer.is_whole, state.is_due())
        };
        if !is_whole || is_due {
            let turn =
                if is_whole { self.turn.try_lock().ok() } else { timeout(LISTED_WITHIN, self.turn.lock()).await.ok() };
            if turn.is_some() {
                tokio::join!(self.read_types(), self.read_prices());
            }
        }
        self.known()
    }

    /// What is known, without asking.
    pub(super) fn known(&self) -> Offer {
        self.state().offer.clone()
    }

    async fn read_types(&self) {
        if !self.state().types.begin() {
            return;
        }
        match within("ReadVmTypes", self.client.all(&wire::ReadVmTypes::default())).await {
            // An empty list is a mishap of the cloud, not the end of all types.
            Ok(listed) if !listed.is_empty() => {
                let mut state = self.state();
                if *state.offer.listed != listed {
                    tracing::info!(types = listed.len(), "read the list of VM types");
                    state.offer.listed = Arc::new(listed);
                    state.offer.epoch += 1;
                }
                state.types.came(FRESH_FOR);
                state.offer.is_whole = state.prices.had;
                return;
            }
            Ok(_) => tracing::warn!("the API lists no VM types; what was known stays in use"),
            Err(error) => {
                tracing::warn!(%error, "VM types not read; custom types are offered, fixed ones as last known");
            }
        }
        self.state().types.missed();
    }

    async fn read_prices(&self) {
        let had_own = {
            let mut state = self.state();
            if !state.prices.begin() {
                return;
            }
            state.has_own
        };
        let read = match self.own_prices().await {
            Own::Read(prices) => Some((prices, true, FRESH_FOR)),
            // Prices that somebody has negotiated are not given up for those of everybody because of one bad hour.
            Own::Failed if had_own => None,
            missed => {
                let read = match within("ReadPublicCatalog", self.client.call(&wire::ReadPublicCatalog {})).await {
                    Ok(answer) => self
                        .read("public price list", &answer)
                        .and_then(|prices| over(prices, self.file.as_ref()))
                        .map_err(|error| error.to_string()),
                    Err(error) => Err(error.to_string()),
                };
                match read {
                    Ok(prices) if matches!(missed, Own::Failed) => Some((prices, false, RETRY)),
                    Ok(prices) => Some((prices, false, FRESH_FOR)),
                    Err(error) => {
                        let in_use = &self.known().prices.source;
                        tracing::warn!(error, in_use, "prices not read; what was known stays in use");
                        None
                    }
                }
            }
        };
        let mut state = self.state();
        let Some((prices, is_own, good_for)) = read else {
            state.prices.missed();
            return;
        };
        if *state.offer.prices != prices {
            tracing::info!(source = prices.source, "read the price list");
            if let Some(doubt) = &prices.doubt {
                tracing::warn!("{doubt}");
            }
            state.offer.prices = Arc::new(prices);
            state.offer.epoch += 1;
        }
        state.offer.read = Some(self.client.now());
        state.has_own = is_own;
        state.prices.came(good_for);
        state.offer.is_whole = state.types.had;
    }

    /// The account's own prices. Who is refused them for good does not ask again for a while.
    async fn own_prices(&self) -> Own {
        if !is_due(self.state().own_due) {
            return Own::Refused;
        }
        let why = match within("ReadCatalog", self.client.call(&wire::ReadCatalog {})).await {
            Ok(answer) => match self.read("account's price list", &answer) {
                Ok(prices) => match over(prices, self.file.as_ref()) {
                    Ok(prices) => return Own::Read(prices),
                    // The file has been edited since joiner began: that says nothing of the list.
                    Err(error) => {
                        tracing::warn!(%error, "the account's own prices not used, trying again");
                        return Own::Failed;
                    }
                },
                Err(why) => why.to_string(),
            },
            Err(error) if is_for_good(&error) => error.stable(),
            Err(error) => {
                tracing::warn!(%error, "the account's own price list not read, trying again");
                return Own::Failed;
            }
        };
        tracing::info!(
            why,
            "the account's own price list cannot be had, the public one counts; not asked again for a day"
        );
        self.state().own_due = Some(Instant::now() + REFUSED_FOR);
        Own::Refused
    }

    /// The prices of a list.
    fn read(&self, list: &str, answer: &wire::TheCatalog) -> Result<Prices, PriceError> {
        let source = format!("{list} of {}", self.client.access().endpoint);
        let (prices, left_out) = Prices::read(&source, &answer.catalog.entries)?;
        for row in left_out {
            tracing::warn!(source, row, "price left out");
        }
        Ok(prices)
    }
}

/// What came of asking for the account's own prices.
enum Own {
    /// These are they.
    Read(Prices),
    /// They cannot be had.
    Refused,
    /// They could not be had this time.
    Failed,
}

/// Whether asking again is in vain, as long as nobody changes a policy or the API. What cannot be read although the API calls it an answer is none.
fn is_for_good(error: &Error) -> bool {
    let is_answered = error.status.is_some_and(|status| (200..300).contains(&status));
    is_answered || matches!(error.class, Class::Denied | Class::Invalid | Class::NotFound)
}

impl State {
    fn is_due(&self) -> bool {
        is_due(self.types.due) || is_due(self.prices.due)
    }
}

/// A list that comes in time, or none.
async fn within<T>(action: &'static str, list: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = || Error::silent(action, Class::Temporary, format!("no list within {} s", LISTED_WITHIN.as_secs()));
    timeout(LISTED_WITHIN, list).await.unwrap_or_else(|_| Err(late()))
}

fn is_due(due: Option<Instant>) -> bool {
    due.is_none_or(|due| due <= Instant::now())
}

fn over(prices: Prices, file: Option<&PathBuf>) -> Result<Prices, PriceError> {
    match file {
        Some(path) => prices.overridden(path),
        None => Ok(prices),
    }
}

#[cfg(test)]
#[path = "market_tests.rs"]
mod tests;
