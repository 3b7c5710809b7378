//! What is on the market: the API's list of fixed types and the price list, asked for now and then, and kept when they cannot be had.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::oapi::{Client, wire};
use super::prices::{PriceError, Prices};

/// How often the lists are asked for.
const FRESH_FOR: Duration = Duration::from_hours(12);
/// Pause after a failure.
const RETRY: Duration = Duration::from_mins(30);
/// Pause after a failure, as long as a list has never been had.
const FIRST_RETRY: Duration = Duration::from_mins(1);

/// The market.
pub(super) struct Market {
    client: Arc<Client>,
    file: Option<PathBuf>,
    state: Mutex<State>,
    /// Whether both lists have been had.
    is_whole: AtomicBool,
}

struct State {
    offer: Offer,
    types_due: Option<Instant>,
    prices_due: Option<Instant>,
    has_types: bool,
    has_prices: bool,
}

/// What is known of the market.
#[derive(Clone)]
pub(super) struct Offer {
    /// Fixed types.
    pub(super) listed: Arc<Vec<wire::VmType>>,
    /// Prices.
    pub(super) prices: Arc<Prices>,
    /// Rises with every change.
    pub(super) epoch: u64,
}

impl Market {
    /// A market of which only the built-in prices are known, and those of the file.
    pub(super) fn new(client: Arc<Client>, file: Option<PathBuf>) -> Result<Self, PriceError> {
        let prices = over(Prices::built_in(), file.as_ref())?;
        let offer = Offer { listed: Arc::default(), prices: Arc::new(prices), epoch: 0 };
        let state = State { offer, types_due: None, prices_due: None, has_types: false, has_prices: false };
        Ok(Self { client, file, state: Mutex::new(state), is_whole: AtomicBool::new(false) })
    }

    /// What is known, after having asked if it is time to. Never fails: what was known stays in use.
    pub(super) async fn offer(&self) -> Offer {
        let mut state = self.state.lock().await;
        let is_due = |due: Option<Instant>| due.is_none_or(|due| due <= Instant::now());
        if is_due(state.types_due) {
            self.read_types(&mut state).await;
        }
        if is_due(state.prices_due) {
            self.read_prices(&mut state).await;
        }
        self.is_whole.store(state.has_types && state.has_prices, Relaxed);
        state.offer.clone()
    }

    /// How soon a list that has never been had is asked for again; nothing when both have been.
    pub(super) fn lacks(&self) -> Option<Duration> {
        (!self.is_whole.load(Relaxed)).then_some(FIRST_RETRY)
    }

    async fn read_types(&self, state: &mut State) {
        let pause = match self.client.all(&wire::ReadVmTypes::default()).await {
            // An empty list is a mishap of the cloud, not the end of all types.
            Ok(listed) if !listed.is_empty() => {
                if *state.offer.listed != listed {
                    tracing::info!(types = listed.len(), "read the list of VM types");
                    state.offer.listed = Arc::new(listed);
                    state.offer.epoch += 1;
                }
                state.has_types = true;
                FRESH_FOR
            }
            Ok(_) => {
                tracing::warn!("the API lists no VM types; what was known stays in use");
                again(state.has_types)
            }
            Err(error) => {
                tracing::warn!(%error, "VM types not read; custom types are offered, fixed ones as last known");
                again(state.has_types)
            }
        };
        state.types_due = Some(Instant::now() + pause);
    }

    async fn read_prices(&self, state: &mut State) {
        let source = self.client.access().endpoint.to_string();
        let read = match self.client.call(&wire::ReadPublicCatalog {}).await {
            Ok(answer) => Prices::read(&source, &answer.catalog.entries).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let read = read.and_then(|(prices, left_out)| {
            for row in left_out {
                tracing::warn!(row, "price left out");
            }
            over(prices, self.file.as_ref()).map_err(|error| error.to_string())
        });
        let pause = match read {
            Ok(prices) => {
                if *state.offer.prices != prices {
                    tracing::info!(source = prices.source, "read the price list");
                    state.offer.prices = Arc::new(prices);
                    state.offer.epoch += 1;
                }
                state.has_prices = true;
                FRESH_FOR
            }
            Err(error) => {
                tracing::warn!(
                    error,
                    in_use = state.offer.prices.source,
                    "prices not read; what was known stays in use"
                );
                again(state.has_prices)
            }
        };
        state.prices_due = Some(Instant::now() + pause);
    }
}

fn again(had_before: bool) -> Duration {
    if had_before { RETRY } else { FIRST_RETRY }
}

fn over(prices: Prices, file: Option<&PathBuf>) -> Result<Prices, PriceError> {
    match file {
        Some(path) => prices.overridden(path),
        None => Ok(prices),
    }
}
