//! Keys that are exchanged under a client.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use jiff::Timestamp;
use tokio::time::sleep;

use super::*;
use crate::clouds::outscale::oapi::wire::ReadVms;
use crate::clouds::outscale::oapi::{Answer, Class, Client, Options, Post, SecretKey, Transport, Undelivered};
use crate::sim::Seed;
use crate::sim::oapi::{Account, Fake};

fn keys(name: &str) -> Keys {
    Keys { access_key: format!("AK{name}"), secret_key: SecretKey::new(format!("SK{name}")) }
}

/// An account that knows these keys only, a client with its first ones, and what is kept where keys are read again.
struct Scene {
    fake: Fake,
    line: Arc<Line>,
    client: Client,
    kept: Arc<Mutex<Result<Keys, String>>>,
    read: Arc<AtomicUsize>,
}

/// The fake, some of whose answers come late.
struct Line {
    fake: Fake,
    /// How late the next answers come.
    late: Mutex<Vec<Duration>>,
}

impl Transport for Line {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        let late = self.late.lock().unwrap().pop();
        async move {
            let answer = self.fake.post(post).await;
            sleep(late.unwrap_or_default()).await;
            answer
        }
        .boxed()
    }
}

fn scene(kept: Result<Keys, String>) -> Scene {
    let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let began = Instant::now();
    let now = Arc::new(move || start + began.elapsed());
    let fake = Fake::new(Account::sample(), now.clone(), Seed(1));
    let access = Account::sample().access("http://127.0.0.1:1/api/v1").unwrap();
    let (kept, read) = (Arc::new(Mutex::new(kept)), Arc::new(AtomicUsize::new(0)));
    let mut options = Options::new(now);
    let (place, counted) = (Arc::clone(&kept), Arc::clone(&read));
    options.reread = Some(Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let kept = place.lock().unwrap().clone();
        async move { kept }.boxed()
    }));
    let line = Arc::new(Line { fake: fake.clone(), late: Mutex::default() });
    let client = Client::new(access, Arc::clone(&line) as _, options);
    Scene { fake, line, client, kept, read }
}

impl Scene {
    /// The account knows these keys and no others from now on.
    fn knows(&self, keys: &Keys) {
        let known = [(keys.access_key.clone(), keys.secret_key.clone())].into();
        self.fake.account(|account| account.keys = known);
    }

    async fn call(&self) -> Result<(), Class> {
        self.client.call(&ReadVms::default()).await.map(drop).map_err(|error| error.class)
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_were_exchanged_are_used_by_the_very_call_that_finds_the_old_ones_refused() {
    let scene = scene(Ok(keys("NEW")));
    assert_eq!(scene.call().await, Ok(()), "the old ones are good, and nobody asks for others");
    assert_eq!(scene.read.load(Ordering::Relaxed), 0);
    scene.knows(&keys("NEW"));
    assert_eq!(scene.call().await, Ok(()));
    assert_eq!(scene.call().await, Ok(()));
    assert_eq!(scene.read.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_refusal_of_keys_that_were_exchanged_is_not_held_against_the_new_ones() {
    let scene = scene(Ok(keys("NEW")));
    assert_eq!(scene.call().await, Ok(()));
    scene.knows(&keys("NEW"));
    *scene.line.late.lock().unwrap() = vec![Duration::ZERO, Duration::from_secs(5)];
    let late = scene.call();
    let soon = async {
        let outcome = scene.call().await;
        (outcome, scene.read.load(Ordering::Relaxed))
    };
    assert_eq!(tokio::join!(late, soon), (Ok(()), (Ok(()), 1)));
    assert_eq!(scene.call().await, Ok(()), "and nothing is held back");
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_mended_later_are_found_without_a_restart_and_nothing_is_tried_with_refused_ones() {
    let scene = scene(Err("Secret kube-system/outscale-keys does not exist; create it".to_owned()));
    scene.knows(&keys("NEW"));
    assert_eq!(scene.call().await, Err(Class::Keys));
    let sent = scene.client.sent()["ReadVms"];
    *scene.kept.lock().unwrap() = Ok(keys("NEW"));
    assert_eq!(scene.call().await, Err(Class::Keys), "they were read a moment ago");
    assert_eq!(scene.client.sent()["ReadVms"], sent);
    sleep(EVERY).await;
    assert_eq!(scene.call().await, Ok(()), "long before refused keys would be tried again");
}

#[tokio::test(start_paused = true)]
async fn other_keys_that_are_refused_too_are_not_tried_in_a_row() {
    let scene = scene(Ok(keys("WRONG")));
    scene.knows(&keys("NEW"));
    assert_eq!(scene.call().await, Err(Class::Keys));
    let sent = scene.client.sent()["ReadVms"];
    assert_eq!(sent, 2, "once with each");
    for _ in 0..5 {
        sleep(EVERY).await;
        assert_eq!(scene.call().await, Err(Class::Keys));
    }
    assert_eq!(scene.client.sent()["ReadVms"], sent, "the account would be locked");
}
