//! Which of the two price lists counts.

use std::sync::Mutex as Lock;

use futures::future::{BoxFuture, FutureExt};

use super::*;
use crate::clouds::outscale::VmType;
use crate::clouds::outscale::oapi::wire::{Catalog, CatalogEntry};
use crate::clouds::outscale::oapi::{Answer, Options, Post, Transport, Undelivered};
use crate::sim::Seed;
use crate::sim::oapi::{Account, Fake};

const PUBLIC: &str = "0.180";
const OWN: &str = "0.120";

/// The fake, with other answers to `ReadCatalog` when there are some.
struct Line {
    fake: Fake,
    says: Lock<Option<(u16, &'static str)>>,
    /// How often the account's own list was asked for.
    asked: Lock<u32>,
    /// What is never answered.
    silent: Lock<Vec<&'static str>>,
}

impl Transport for Line {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        if self.silent.lock().unwrap().iter().any(|action| post.url.path().ends_with(action)) {
            return std::future::pending().boxed();
        }
        if post.url.path().ends_with("/ReadCatalog") {
            *self.asked.lock().unwrap() += 1;
            if let Some((status, body)) = *self.says.lock().unwrap() {
                return async move { Ok(Answer::of(status, &http::HeaderMap::new(), body.into())) }.boxed();
            }
        }
        self.fake.post(post)
    }
}

impl Line {
    fn says(&self, says: Option<(u16, &'static str)>) {
        *self.says.lock().unwrap() = says;
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().unwrap()
    }

    fn public(&self) -> u64 {
        self.fake.load().get("ReadPublicCatalog").map_or(0, |load| load.calls)
    }
}

/// A market of an account that has negotiated its own prices.
fn market() -> (Arc<Line>, Market) {
    market_with(None)
}

/// The same with a file of prices.
fn market_with(file: Option<PathBuf>) -> (Arc<Line>, Market) {
    let (began, start) = (Instant::now(), "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap());
    let now = Arc::new(move || start + began.elapsed());
    let mut account = Account::sample();
    let negotiated = |row: &CatalogEntry| match row.kind.as_deref() {
        Some("CustomCore:v6-p2") => CatalogEntry { unit_price: Some(0.02), ..row.clone() },
        _ => row.clone(),
    };
    account.own_catalog = Some(Catalog { entries: account.catalog.entries.iter().map(negotiated).collect() });
    let access = account.access("http://127.0.0.1:1/api/v1").unwrap();
    let fake = Fake::new(account, Arc::clone(&now) as _, Seed(1));
    let line = Arc::new(Line { fake, says: Lock::default(), asked: Lock::default(), silent: Lock::default() });
    let client = Client::new(access, Arc::clone(&line) as _, Options::new(now));
    (line, Market::new(Arc::new(client), file).unwrap())
}

async fn price(market: &Market) -> String {
    let price = market.offer().await.prices.of(&VmType::parse("tinav6.c4r8p2").unwrap(), false).unwrap();
    format!("{price:.3}")
}

async fn sleep_hours(hours: u64) {
    tokio::time::sleep(Duration::from_hours(hours)).await;
}

#[tokio::test(start_paused = true)]
async fn the_accounts_own_prices_count_where_they_can_be_had() {
    let (line, market) = market();
    assert!(market.known().lacks().is_some());
    assert_eq!(price(&market).await, OWN);
    let offer = market.offer().await;
    assert_eq!(offer.prices.source, "account's price list of http://127.0.0.1:1/api/v1");
    assert_eq!(offer.read.map(|read| read.strftime("%F").to_string()).as_deref(), Some("2026-01-02"));
    assert_eq!((market.known().lacks(), line.asked(), line.public()), (None, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_them_gets_the_public_ones_and_does_not_ask_again_before_a_day_is_over() {
    let denied = r#"{"Errors":[{"Code":"4","Type":"AccessDenied","Details":"policy"}]}"#;
    let no_such_action = r#"{"Errors":[{"Code":"12000","Type":"InvalidAction","Details":""}]}"#;
    let nonsense = r#"{"Catalogs":[{"Entries":[{"UnitPrice":-1}]}]}"#;
    let negative = r#"{"Catalog":{"Entries":[
        {"Service":"TinaOS-FCU","Operation":"RunInstances-OD","Type":"CustomCore:v6-p2","UnitPrice":-1},
        {"Service":"TinaOS-FCU","Operation":"RunInstances-OD","Type":"CustomRam","UnitPrice":-1}]}}"#;
    let no_vms = r#"{"Catalog":{"Entries":[
        {"Service":"TinaOS-LBU","Operation":"CreateLoadBalancer","Type":"LBU","UnitPrice":0.03}]}}"#;
    for (status, body) in [
        (401, denied),
        (404, ""),
        (404, no_such_action),
        (200, nonsense),
        (200, negative),
        (200, no_vms),
        (200, "<html>"),
    ] {
        let (line, market) = market();
        line.says(Some((status, body)));
        assert_eq!(price(&market).await, PUBLIC, "{status} {body}");
        let source = market.offer().await.prices.source.clone();
        assert_eq!(source, "public price list of http://127.0.0.1:1/api/v1");
        // Nothing is missing: a refusal is an answer.
        assert_eq!((market.known().lacks(), line.public()), (None, 1), "{status} {body}");
        let asked = line.asked();
        line.says(None);
        sleep_hours(13).await;
        assert_eq!((&*price(&market).await, line.asked(), line.public()), (PUBLIC, asked, 2), "{status} {body}");
        sleep_hours(13).await;
        assert_eq!(
            (&*price(&market).await, line.asked()),
            (OWN, asked + 1),
            "somebody has allowed it: {status} {body}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_hour_does_not_turn_negotiated_prices_into_public_ones() {
    let (line, market) = market();
    assert_eq!(price(&market).await, OWN);
    line.says(Some((500, "")));
    sleep_hours(13).await;
    assert_eq!((&*price(&market).await, line.public(), market.known().lacks()), (OWN, 0, None));
    // Somebody takes the permission away.
    line.says(Some((401, r#"{"Errors":[{"Code":"4","Type":"AccessDenied","Details":""}]}"#)));
    sleep_hours(1).await;
    assert_eq!(price(&market).await, PUBLIC);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_broken_for_an_hour_does_not_turn_negotiated_prices_into_public_ones() {
    let path = std::env::temp_dir().join(format!("joiner-market-{}.json", std::process::id()));
    std::fs::write(&path, "{}").unwrap();
    let (line, market) = market_with(Some(path.clone()));
    assert_eq!(price(&market).await, OWN);
    std::fs::write(&path, "{").unwrap();
    sleep_hours(13).await;
    assert_eq!((&*price(&market).await, line.public()), (OWN, 0));
    let asked = line.asked();
    std::fs::write(&path, r#"{"cores": {"v6-p2": 0.05}}"#).unwrap();
    sleep_hours(1).await;
    assert_ne!(price(&market).await, OWN, "what the file says now is over the account's list");
    assert_eq!((line.asked(), line.public()), (asked + 1, 0));
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_prices_that_were_missed_at_the_start_are_asked_for_soon() {
    let (line, market) = market();
    line.says(Some((500, "")));
    assert_eq!((&*price(&market).await, market.known().lacks()), (PUBLIC, None));
    line.says(None);
    sleep_hours(1).await;
    assert_eq!(price(&market).await, OWN);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_comes_holds_up_one_caller_a_while_and_the_rest_is_had() {
    let (line, market) = market();
    *line.silent.lock().unwrap() = vec!["/ReadVmTypes"];
    let began = Instant::now();
    // One that is dropped while it waits is no reason for the next to wait, too.
    assert!(timeout(Duration::from_secs(1), market.offer()).await.is_err());
    let (one, other) = tokio::join!(market.offer(), market.offer());
    assert!(one.listed.is_empty() && other.listed.is_empty());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!((price(&market).await.as_str(), market.known().lacks()), (OWN, Some(FIRST_RETRY)));
    tokio::time::sleep(FIRST_RETRY).await;
    let again = Instant::now();
    let (without, _) = tokio::join!(market.offer(), market.offer());
    assert_eq!(again.elapsed().as_secs(), LISTED_WITHIN.as_secs(), "nobody waits twice");
    line.silent.lock().unwrap().clear();
    tokio::time::sleep(FIRST_RETRY).await;
    let whole = market.offer().await;
    // Whoever makes a list of what was known before knows what that lacks, whatever has come since.
    let is_had = [&without, &whole].map(|offer| (offer.listed.is_empty(), offer.lacks()));
    assert_eq!(is_had, [(true, Some(FIRST_RETRY)), (false, None)]);
    // Neither price list comes: what was known stays in use.
    *line.silent.lock().unwrap() = vec!["/ReadVmTypes", "/ReadCatalog", "/ReadPublicCatalog"];
    sleep_hours(13).await;
    let again = Instant::now();
    let (_, waited) = tokio::join!(market.offer(), async {
        market.offer().await;
        again.elapsed()
    });
    assert!(waited < Duration::from_secs(1) && again.elapsed() <= 2 * LISTED_WITHIN, "{waited:?}");
    assert_eq!(price(&market).await, OWN);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_while_the_first_lists_are_asked_for_waits_for_them() {
    let (line, market) = market();
    line.fake.conduct(|conduct| conduct.latency = (Duration::from_secs(2), Duration::from_secs(3)));
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        market.offer().await
    };
    let (first, late) = tokio::join!(market.offer(), late);
    assert!(first.prices.source.starts_with("account's price list"), "{}", first.prices.source);
    assert_eq!((first.listed.len(), first.epoch), (late.listed.len(), late.epoch));
}

#[tokio::test(start_paused = true)]
async fn a_list_in_yen_takes_the_place_of_the_built_in_one_as_a_whole() {
    let (line, market) = market();
    line.fake.account(|account| {
        let in_yen = |row: &mut CatalogEntry| row.unit_price = row.unit_price.map(|price| price * 165.0);
        account.catalog.entries.iter_mut().for_each(in_yen);
        account.own_catalog = None;
    });
    *line.silent.lock().unwrap() = vec!["/ReadCatalog", "/ReadPublicCatalog"];
    assert_eq!(price(&market).await, "0.180");
    line.silent.lock().unwrap().clear();
    tokio::time::sleep(FIRST_RETRY).await;
    assert_eq!(price(&market).await, "29.700");
    let (built_in, prices) = (Prices::built_in(), market.known().prices);
    for (generation, performance) in built_in.generations() {
        let kind = VmType::parse(&format!("tinav{generation}.c2r4p{}", performance.number())).unwrap();
        let times = prices.of(&kind, false).unwrap() / built_in.of(&kind, false).unwrap();
        assert!((times - 165.0).abs() < 1e-6, "{}: {times}", kind.name);
    }
    assert!(prices.source.contains("is in another currency than EUR"), "{}", prices.source);
}
