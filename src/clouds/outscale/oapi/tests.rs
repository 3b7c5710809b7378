//! The client against answers that are laid down beforehand.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;

use super::wire::{CreateTags, CreateVms, DeleteVms, ReadVmTypes, ReadVms, ResourceTag, UserData, VmFilters};
use super::*;
use crate::licence;
use crate::sim::oapi::Account;

const SECRET: &str = "SKEXAMPLE0123456789SKEXAMPLE0123456789AB";

/// Says what it was told to say, and what it was asked.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<(u16, String), Undelivered>>>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Scripted {
    fn of(answers: impl IntoIterator<Item = Result<(u16, &'static str), Undelivered>>) -> Arc<Self> {
        let answers = answers.into_iter().map(|answer| answer.map(|(status, body)| (status, body.to_owned())));
        Arc::new(Self { answers: Mutex::new(answers.collect()), asked: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Transport for Scripted {
    fn post(&self, post: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        let body = String::from_utf8(post.body).unwrap();
        self.asked.lock().unwrap().push((post.url.to_string(), body));
        let next = self.answers.lock().unwrap().pop_front();
        async move {
            let (status, body) = next.expect("nothing more was to be asked")?;
            Ok(Answer { status, date: None, retry_after: None, body: Bytes::from(body) })
        }
        .boxed()
    }
}

fn access() -> Access {
    let words = [("OSC_ACCESS_KEY", "AKEXAMPLE0123456789"), ("OSC_SECRET_KEY", SECRET), ("OSC_REGION", "eu-west-2")];
    read(&words, None).unwrap()
}

fn read(words: &[(&str, &str)], file: Option<&str>) -> Result<Access, AccessError> {
    let words: BTreeMap<&str, &str> = words.iter().copied().collect();
    let file = file.map(str::to_owned);
    Access::read(
        |name| words.get(name).map(|&word| word.to_owned()),
        |_: &Path| file.clone().ok_or_else(|| std::io::ErrorKind::NotFound.into()),
    )
}

fn client(script: &Arc<Scripted>) -> Client {
    Client::new(access(), Arc::clone(script) as Arc<dyn Transport>, Options::new(Arc::new(|| Timestamp::UNIX_EPOCH)))
}

fn refusal(code: &str, kind: &str) -> String {
    format!(
        r#"{{"Errors":[{{"Code":"{code}","Type":"{kind}","Details":"d"}}],"ResponseContext":{{"RequestId":"r-1"}}}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn refusals_are_told_apart_by_their_code() {
    let table = [
        (400, "5063", "InvalidResource", Class::NotFound),
        (400, "5023", "InvalidResource", Class::NotFound),
        (400, "3001", "InvalidParameter", Class::Invalid),
        (400, "4047", "InvalidParameterValue", Class::Invalid),
        (400, "4104", "InvalidParameterValue", Class::Invalid),
        (400, "7000", "MissingParameter", Class::Invalid),
        (404, "12000", "InvalidAction", Class::Invalid),
        (401, "1", "AccessDenied", Class::Keys),
        (405, "2", "AccessDenied", Class::Keys),
        (401, "4", "AccessDenied", Class::Denied),
        (401, "5", "AccessDenied", Class::Denied),
        (401, "7", "AccessDenied", Class::Denied),
        (401, "11", "AccessDenied", Class::Keys),
        (401, "13", "AccessDenied", Class::Keys),
        (401, "14", "AccessDenied", Class::Keys),
        (401, "4120", "InvalidParameterValue", Class::Keys),
        (409, "9085", "ResourceConflict", Class::Conflict),
        (400, "6007", "InvalidState", Class::Conflict),
        (400, "8018", "OperationNotSupported", Class::Conflict),
        (400, "10001", "InsufficientCapacity", Class::SoldOut),
        (400, "10021", "TooManyResources (QuotaExceded)", Class::SoldOut),
        (400, "10046", "TooManyResources (QuotaExceded)", Class::Quota),
        (429, "24", "ErrorOperationThrottledPerAccount", Class::Throttled),
        (429, "25", "ErrorOperationThrottledPerCall", Class::Throttled),
        (503, "6", "ErrorOperationThrottledWholePlatform", Class::Throttled),
        (500, "2000", "InternalError", Class::Unknown),
        (400, "99999", "New", Class::Invalid),
        (400, "word", "New", Class::Invalid),
    ];
    for (status, code, kind, class) in table {
        let script = Scripted::default();
        for _ in 0..4 {
            script.answers.lock().unwrap().push_back(Ok((status, refusal(code, kind))));
        }
        let error = client(&Arc::new(script)).call(&CreateVms::default()).await.unwrap_err();
        assert_eq!(error.class, class, "{status} {code}");
        assert_eq!((error.code(), error.request_id.as_deref()), (Some(code), Some("r-1")), "{status} {code}");
        // Also in the words of all clouds, whatever it is.
        for text in [error.to_string(), crate::clouds::Error::from(error.clone()).to_string()] {
            assert!(text.contains(code) && text.contains("r-1") && text.contains("CreateVms"), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_another_accounts_no_policy_opens() {
    for (code, remedy, other) in [("4", "EIM policy", "another account"), ("5", "another account", "EIM policy")] {
        let script = Scripted::default();
        script.answers.lock().unwrap().push_back(Ok((401, refusal(code, "AccessDenied"))));
        let error = client(&Arc::new(script)).call(&CreateVms::default()).await.unwrap_err();
        assert!(error.words().contains(remedy) && !error.words().contains(other), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_let_in_is_told_what_to_do_about_that_very_thing() {
    let remedies = [
        ("1", "check the access key"),
        ("14", "API access rules"),
        ("13", "it ends by itself"),
        ("11", "Outscale's support"),
    ];
    for (code, remedy) in remedies {
        let script = Scripted::of([Ok((401, refusal_of(code)))]);
        let error = client(&script).call(&CreateVms::default()).await.unwrap_err();
        let told = error.words();
        for (other, words) in remedies {
            assert_eq!(told.contains(words), other == code, "{code} {remedy}: {told}");
        }
    }
    // What one user may not do closes nothing else.
    let script = Scripted::of([Ok((401, refusal_of("7"))), Ok((200, "{}"))]);
    let client = client(&script);
    let error = client.call(&CreateVms::default()).await.unwrap_err();
    assert!(error.words().contains("allow the action api:CreateVms in an EIM policy"), "{error}");
    client.call(&super::wire::ReadVms::default()).await.unwrap();
}

/// A refusal that lives as long as the test.
fn refusal_of(code: &str) -> &'static str {
    refusal(code, "AccessDenied").leak()
}

#[tokio::test(start_paused = true)]
async fn of_several_reasons_the_first_that_is_known_counts_and_all_are_shown() {
    let body =
        r#"{"Errors":[{"Code":"x","Type":"Odd"},{"Code":"5057","Type":"InvalidResource","Details":"no subnet"}]}"#;
    let error = client(&Scripted::of([Ok((400, body))])).call(&CreateVms::default()).await.unwrap_err();
    assert_eq!(error.class, Class::NotFound);
    assert!(error.has_code("5057") && error.request_id.is_none());
    assert!(error.to_string().contains("x Odd; 5057 InvalidResource no subnet"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_cannot_be_read_leave_a_launch_open() {
    for (status, body) in [
        (200, r#"{"Vms":[{"VmId":"i-1"#),
        (200, "<html>"),
        (200, ""),
        (502, "<html>Bad Gateway</html>"),
        (503, ""),
        (504, ""),
        (500, "{}"),
    ] {
        let script = Scripted::of([Ok((status, body))]);
        let error = client(&script).call(&CreateVms::default()).await.unwrap_err();
        assert_eq!(error.class, Class::Unknown, "{status} {body}");
        assert_eq!(script.asked(), 1, "a launch was sent twice after {status} {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_and_what_only_sets_a_state_is_sent_again() {
    let lost = || Err(Undelivered::NoAnswer("lost".to_owned()));
    let script = Scripted::of([lost(), Ok((502, "<html>")), Ok((200, "cut {")), Ok((200, "{}"))]);
    client(&script).call(&ReadVms::default()).await.unwrap();
    let script = Scripted::of([lost(), lost(), lost(), Ok((200, "{}"))]);
    let tags = CreateTags { resource_ids: vec!["i-1".to_owned()], tags: vec![ResourceTag::new("k", "")] };
    client(&script).call(&tags).await.unwrap();
    let asked = script.asked.lock().unwrap();
    let body = r#"{"ResourceIds":["i-1"],"Tags":[{"Key":"k","Value":""}]}"#;
    assert!(asked.iter().all(|(_, sent)| sent == body), "{asked:?}");
    assert_eq!(asked[0].0, "https://api.eu-west-2.outscale.com/api/v1/CreateTags");
}

#[tokio::test(start_paused = true)]
async fn a_launch_is_sent_again_only_when_it_certainly_did_not_happen() {
    let never_sent = || Err(Undelivered::NotSent("connection refused".to_owned()));
    let throttled = r#"{"Errors":[{"Code":"25","Type":"ErrorOperationThrottledPerCall"}]}"#;
    let script = Scripted::of([never_sent(), Ok((429, throttled)), Ok((200, r#"{"Vms":[]}"#))]);
    client(&script).call(&CreateVms::default()).await.unwrap();
    assert_eq!(script.asked(), 3);
    let script = Scripted::of([Err(Undelivered::NoAnswer("reset".to_owned()))]);
    let error = client(&script).call(&CreateVms::default()).await.unwrap_err();
    assert_eq!((error.class, script.asked()), (Class::Unknown, 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_come_to_an_end_and_take_their_time() {
    let script = Scripted::of((0..4).map(|_| Err(Undelivered::NotSent("no route".to_owned()))));
    let began = Instant::now();
    let error = client(&script).call(&DeleteVms { vm_ids: vec!["i-1".to_owned()] }).await.unwrap_err();
    assert_eq!((error.class, script.asked()), (Class::Temporary, 4));
    assert_eq!(
        error.to_string(),
        "DeleteVms: https://api.eu-west-2.outscale.com/api/v1 cannot be reached (no route); check the region (OSC_REGION, or region \
         of the Secret or the profile), the address (OSC_ENDPOINT_API, or endpoint of the Secret or the profile) and the proxy (HTTPS_PROXY)"
    );
    let waited = began.elapsed();
    assert!((Duration::from_millis(3_500)..=Duration::from_secs(7)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_reached_is_not_waited_for_again_and_again() {
    let no_route = || Err(Undelivered::NotSent("no route".to_owned()));
    let done = || Ok((200, r#"{"Vms":[]}"#));
    let script = Scripted::of((0..10).map(|_| no_route()).chain([done()]).chain((0..4).map(|_| no_route())));
    let client = client(&script);
    let asked = async || {
        let before = script.asked();
        let is_done = client.call(&ReadVms::default()).await.is_ok();
        (script.asked() - before, is_done)
    };
    assert_eq!(asked().await, (4, false));
    assert_eq!(asked().await, (1, false), "that was tried a moment ago");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(asked().await, (4, false));
    assert_eq!(asked().await, (1, false));
    assert_eq!(asked().await, (1, true));
    assert_eq!(asked().await, (4, false), "it could be reached");
}

/// A network in which nobody refuses a connection, and none comes about.
struct Hole(Mutex<u32>);

impl Transport for Hole {
    fn post(&self, _: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        *self.0.lock().unwrap() += 1;
        async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Err(Undelivered::NotSent("deadline has elapsed".to_owned()))
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_never_come_about_are_given_up_soon() {
    let hole = Arc::new(Hole(Mutex::new(0)));
    let client = Client::new(access(), Arc::clone(&hole) as _, Options::new(Arc::new(|| Timestamp::UNIX_EPOCH)));
    let began = Instant::now();
    client.call(&ReadVms::default()).await.unwrap_err();
    assert_eq!((*hole.0.lock().unwrap(), began.elapsed().as_secs()), (1, 10));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_way_to_the_api_has_a_remedy() {
    let told = async |answer| {
        let script = Scripted::of([answer]);
        let client =
            Client::new(access(), script, Options { attempts: 1, ..Options::new(Arc::new(|| Timestamp::UNIX_EPOCH)) });
        client.call(&ReadVms::default()).await.unwrap_err().to_string()
    };
    let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    let said = told(Err(Undelivered::NotSent(format!("client error (Connect): {unknown}")))).await;
    assert!(said.contains("UnknownIssuer") && said.contains("SSL_CERT_FILE"), "{said}");
    let said = told(Ok((502, "<html>"))).await;
    assert!(
        said.contains("without a reason from https://api.eu-west-2.outscale.com/api/v1")
            && said.contains("OSC_ENDPOINT_API"),
        "{said}"
    );
}

/// Never answers.
struct Silent;

impl Transport for Silent {
    fn post(&self, _: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        std::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let options = Options::new(Arc::new(|| Timestamp::UNIX_EPOCH));
    let client = Client::new(access(), Arc::new(Silent), options);
    let began = Instant::now();
    let create = CreateVms::default();
    let (first, second) = futures::join!(client.call(&create), client.call(&create));
    assert_eq!(first.unwrap_err().class, Class::Unknown);
    // The second one waited for what would become of the first, and was not sent.
    let second = second.unwrap_err();
    assert!(second.held_back || second.class == Class::Unknown, "{second}");
    assert!(began.elapsed() <= Duration::from_mins(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_one_to_the_api_and_safe_to_repeat() {
    let script = Scripted::of([Ok((502, "")), Ok((200, r#"{"ResponseContext":{"RequestId":"r"}}"#))]);
    let create = CreateVms { image_id: "ami-1".to_owned(), ..CreateVms::default() };
    client(&script).rehearse(&create).await.unwrap();
    let asked = script.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].1, r#"{"DryRun":true,"ImageId":"ami-1"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_complete_or_it_is_none() {
    let first = r#"{"Vms":[{"VmId":"i-1"}],"NextPageToken":"dA=="}"#;
    let script = Scripted::of([Ok((200, first)), Ok((200, r#"{"Vms":[{"VmId":"i-2"}]}"#))]);
    let filters = VmFilters { tag_keys: vec!["k".to_owned()], ..VmFilters::default() };
    let request = ReadVms { filters: Some(filters), ..ReadVms::default() };
    let vms = client(&script).all(&request).await.unwrap();
    assert_eq!(vms.iter().map(|vm| vm.vm_id.as_str()).collect::<Vec<_>>(), ["i-1", "i-2"]);
    let last = script.asked.lock().unwrap().pop().unwrap();
    assert_eq!(last.1, r#"{"Filters":{"TagKeys":["k"]},"NextPageToken":"dA==","ResultsPerPage":200}"#);
    let script = Scripted::of([Ok((200, first)), Ok((400, "{}"))]);
    assert_eq!(client(&script).all(&request).await.unwrap_err().class, Class::Invalid);
}

#[tokio::test(start_paused = true)]
async fn turns_of_one_action_do_not_hold_up_another() {
    let script = Scripted::of((0..60).map(|_| Ok((200, "{}"))));
    let client = Arc::new(client(&script));
    client.call(&ReadVms::default()).await.unwrap();
    let began = Instant::now();
    let launches: Vec<_> = (0..50).map(|_| Arc::clone(&client)).collect();
    let launches = futures::future::join_all(launches.into_iter().map(|client| async move {
        client.call(&CreateVms::default()).await.unwrap();
        began.elapsed()
    }));
    let deletion = async {
        client.call(&DeleteVms { vm_ids: vec!["i-1".to_owned()] }).await.unwrap();
        began.elapsed()
    };
    let (launches, deletion) = futures::join!(launches, deletion);
    assert_eq!(deletion, Duration::ZERO);
    // Ten at once, and then five a second.
    assert_eq!(launches.iter().filter(|at| at.is_zero()).count(), 10);
    let last = launches.iter().max().unwrap();
    assert!((Duration::from_millis(7_900)..=Duration::from_millis(8_100)).contains(last), "{last:?}");
    assert_eq!(client.sent()["CreateVms"], 50);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_too_long_refuses_at_once_and_says_when_to_come_back() {
    let script = Scripted::of((0..2).map(|_| Ok((200, "{}"))));
    let mut options = Options::new(Arc::new(|| Timestamp::UNIX_EPOCH));
    options.limits.of.insert("ReadVms", Rate::new(0.01, 1));
    let client = Client::new(access(), Arc::clone(&script) as Arc<dyn Transport>, options);
    client.call(&ReadVms::default()).await.unwrap();
    let began = Instant::now();
    let error = client.call(&ReadVms::default()).await.unwrap_err();
    assert_eq!((error.class, error.held_back, began.elapsed()), (Class::Throttled, true, Duration::ZERO));
    assert_eq!(error.retry_after.map(|after| after.as_secs()), Some(100));
    client.call(&ReadVmTypes::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_turn_comes_after_the_lease_is_lost_is_not_sent_and_a_read_is() {
    let script = Scripted::of([Ok((200, "{}")), Ok((503, "")), Ok((200, "{}"))]);
    let mut options = Options::new(Arc::new(|| Timestamp::UNIX_EPOCH));
    options.limits.of.insert("DeleteVms", Rate::new(0.1, 1));
    let client = Client::new(access(), Arc::clone(&script) as Arc<dyn Transport>, options);
    let until = Instant::now() + Duration::from_secs(9);
    let licence: licence::Licence = Arc::new(move || Instant::now() < until);
    let deletion = DeleteVms { vm_ids: vec!["i-1".to_owned()] };
    licence::under(Arc::clone(&licence), client.call(&deletion)).await.unwrap();
    let held = licence::under(Arc::clone(&licence), client.call(&deletion)).await.unwrap_err();
    assert_eq!((held.class, held.held_back, held.message.as_str()), (Class::Temporary, true, licence::WITHDRAWN));
    // Nor is one repeated; what is said then is how the attempt ended that was made.
    let until = Instant::now() + Duration::from_millis(100);
    let short: licence::Licence = Arc::new(move || Instant::now() < until);
    let tags = CreateTags { resource_ids: vec!["i-1".to_owned()], tags: Vec::new() };
    let open = licence::under(short, client.call(&tags)).await.unwrap_err();
    assert_eq!((open.class, open.held_back), (Class::Unknown, false), "{open}");
    licence::under(licence, client.call(&ReadVms::default())).await.unwrap();
    assert_eq!(script.asked(), 3);
}

#[test]
fn secrets_are_never_shown() {
    let user_data = UserData::of(b"machine: {token: very-secret}");
    let request = CreateVms { user_data: Some(user_data), ..CreateVms::default() };
    let client = client(&Scripted::of([]));
    for shown in [format!("{client:?}"), format!("{:?}", access()), format!("{request:?}")] {
        assert!(!shown.contains(SECRET) && !shown.contains("bWFjaGluZT"), "{shown}");
    }
    // Nor in complaints about a file that holds them.
    for file in [
        format!(r#"{{"default":{{"access_key":"A","secret_key":["{SECRET}"]}}}}"#),
        format!(r#"{{"default":{{"secret_key":"{SECRET}" "#),
        format!(r#"{{"default":"{SECRET}"}}"#),
    ] {
        let error = read(&[("HOME", "/h"), ("OSC_REGION", "eu-west-2")], Some(&file)).unwrap_err();
        assert!(!error.to_string().contains(SECRET), "{error}");
        assert_eq!(error.field, "OSC_CONFIG_FILE", "{error}");
    }
}

#[test]
fn keys_are_read_where_outscales_tools_read_them() {
    let file = r#"{
        "default": {"access_key": "FILEKEY", "secret_key": "filesecret", "region_name": "us-east-2", "host": "outscale.com"},
        "other": {"access_key": "OTHER", "secret_key": "s", "region": "eu-west-2", "protocol": "https",
                  "endpoints": {"api": "api.eu-west-2.outscale.com/api/v1", "fcu": "fcu.eu-west-2.outscale.com"}}
    }"#;
    let home = ("HOME", "/h");
    let access = read(&[home], Some(file)).unwrap();
    assert_eq!((access.keys.access_key.as_str(), access.region.as_str()), ("FILEKEY", "us-east-2"));
    assert_eq!(access.endpoint.to_string(), "https://api.us-east-2.outscale.com/api/v1");
    let access = read(&[home, ("OSC_PROFILE", "other"), ("OSC_ACCESS_KEY", "OWN")], Some(file)).unwrap();
    assert_eq!((access.keys.access_key.as_str(), access.keys.secret_key.expose()), ("OWN", "s"));
    assert_eq!(access.endpoint.to_string(), "https://api.eu-west-2.outscale.com/api/v1");
    let words = [
        ("OSC_ACCESS_KEY", "A"),
        ("OSC_SECRET_KEY", " s "),
        ("OSC_REGION", "eu-west-2"),
        ("OSC_ENDPOINT_API", "http://127.0.0.1:4000"),
    ];
    let access = read(&words, None).unwrap();
    assert_eq!(
        (access.endpoint.to_string().as_str(), access.endpoint.host()),
        ("http://127.0.0.1:4000/api/v1", "127.0.0.1:4000")
    );
    let data = [("access_key", "A"), ("secret_key", "s\n"), ("region", "eu-west-2")];
    let data = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    let access = Access::of_secret(&data.into(), |_| None).unwrap();
    assert_eq!((access.keys.secret_key.expose(), access.region.as_str()), ("s", "eu-west-2"));
}

#[test]
fn a_secret_says_who_we_are_and_variables_the_way_where_it_does_not() {
    let told = |data: &[(&str, &str)], variables: &[(&str, &str)]| {
        let keys = [("access_key", "SECRETKEY"), ("secret_key", "s")];
        let data = keys.iter().chain(data).map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Access::of_secret(&data, variable)
    };
    let (fake, here) = ("http://127.0.0.1:4510/api/v1", ("region", "eu-west-2"));
    let endpoint =
        |data: &[(&str, &str)], variables: &[(&str, &str)]| told(data, variables).unwrap().endpoint.to_string();
    assert_eq!(endpoint(&[here], &[]), "https://api.eu-west-2.outscale.com/api/v1");
    assert_eq!(endpoint(&[here], &[("OSC_ENDPOINT_API", fake)]), fake);
    assert_eq!(endpoint(&[here, ("endpoint", fake)], &[("OSC_ENDPOINT_API", "http://127.0.0.1:1")]), fake);
    assert_eq!(endpoint(&[], &[("OSC_REGION", "us-east-2")]), "https://api.us-east-2.outscale.com/api/v1");
    assert_eq!(told(&[here], &[("OSC_REGION", "us-east-2")]).unwrap().region, "eu-west-2");
    // Keys are never mixed: those of the environment are somebody else's.
    let access = told(&[here], &[("OSC_ACCESS_KEY", "OTHER"), ("OSC_SECRET_KEY", "o")]).unwrap();
    assert_eq!((access.keys.access_key.as_str(), access.keys.secret_key.expose()), ("SECRETKEY", "s"));
    let pair = [("OSC_X509_CLIENT_CERT", "/c.pem"), ("OSC_X509_CLIENT_KEY", "/k.pem")];
    assert_eq!(told(&[here], &pair).unwrap().client_certificate, Some(("/c.pem".into(), "/k.pem".into())));
    assert_eq!(told(&[here], &pair[..1]).unwrap_err().field, "OSC_X509_CLIENT_KEY");
    // An endpoint of another region is somebody's mistake.
    let elsewhere = told(&[here], &[("OSC_ENDPOINT_API", "https://api.us-east-2.outscale.com")]).unwrap_err();
    assert_eq!(elsewhere.field, "region");
}

#[test]
fn what_is_wrong_with_a_secret_is_told_by_its_key_and_with_a_remedy_for_secrets() {
    let told = |data: &[(&str, &str)], variables: &[(&str, &str)]| {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Access::of_secret(&data, variable).unwrap_err().to_string()
    };
    let (id, secret, region) = (("access_key", "A"), ("secret_key", "s"), ("region", "eu-west-2"));
    for (data, variables, message) in [
        (&[secret, region][..], &[][..], "access_key: is missing; store it in the Secret under this key"),
        (&[id, region], &[("OSC_SECRET_KEY", "x")], "secret_key: is missing; store it in the Secret under this key"),
        (
            &[("OSC_ACCESS_KEY", "'A'"), secret, region],
            &[],
            "OSC_ACCESS_KEY: has other characters than letters and digits; give the AccessKeyId alone, without quotes or line breaks",
        ),
        (&[id, secret], &[], "region: is missing; give the account's region"),
        (&[id, secret, ("region", "Paris")], &[], r#"region: "Paris" is no region"#),
        (&[id, secret], &[("OSC_REGION", "Paris")], r#"OSC_REGION: "Paris" is no region"#),
        (&[id, secret, ("endpoint", "ftp://x")], &[], r#"endpoint: "ftp://x" is neither https nor http"#),
    ] {
        let said = told(data, variables);
        assert!(said.starts_with(message), "{said}");
    }
}

#[test]
fn the_secret_of_the_example_leads_to_the_fake_and_nowhere_else() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/outscale/secrets.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let secret: serde_json::Value = serde_saphyr::from_str(text.split("\n---\n").next().unwrap()).unwrap();
    let entries = secret["stringData"].as_object().unwrap();
    let data = entries.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap().as_bytes().to_vec())).collect();
    let access = Access::of_secret(&data, |_| None).unwrap();
    assert_eq!(access, Account::sample().access("http://127.0.0.1:4510/api/v1").unwrap());
}

#[test]
fn profiles_of_all_of_outscales_tools_are_read() {
    let home = ("HOME", "/h");
    let profile = |rest: &str| format!(r#"{{"default": {{"access_key": " FILEKEY ", "secret_key": "s\n", {rest}}}}}"#);
    let paths = |file: &str| read(&[home], Some(&profile(file))).unwrap().client_certificate;
    let pair = |certificate: &str, key: &str| Some((certificate.into(), key.into()));
    // osc-cli's certificate has its key beside it.
    assert_eq!(paths(r#""region": "eu-west-2", "client_certificate": " /both.pem ""#), pair("/both.pem", "/both.pem"));
    let apart = r#""region": "eu-west-2", "client_certificate": "/both.pem", "x509_client_cert": "/c.pem", "x509_client_key": "/k.pem""#;
    assert_eq!(paths(apart), pair("/c.pem", "/k.pem"));
    assert_eq!(paths(r#""region": "eu-west-2", "client_certificate": null"#), None);
    for place in [
        r#""region": "eu-west-2", "region_name": "us-east-2""#,
        r#""region_name": "eu-west-2", "region": "eu-west-2", "endpoints": null"#,
        r#""region_name": " eu-west-2\n", "region": "", "endpoints": {"api": null}"#,
        r#""region_name": "eu-west-2", "region": null, "endpoints": {"api": " https://api.eu-west-2.outscale.com "}"#,
    ] {
        let access = read(&[home], Some(&profile(place))).unwrap();
        assert_eq!((access.keys.access_key.as_str(), access.keys.secret_key.expose()), ("FILEKEY", "s"), "{place}");
        assert_eq!(access.region, "eu-west-2", "{place}");
        assert_eq!(access.endpoint.to_string(), "https://api.eu-west-2.outscale.com/api/v1", "{place}");
    }
}

#[test]
fn a_profile_is_followed_or_what_is_not_supported_is_named() {
    let home = ("HOME", "/h");
    let told = |rest: &str, more: &[(&str, &str)]| {
        let file = format!(r#"{{"default": {{"access_key": "A", "secret_key": "s", "region": "eu-west-2", {rest}}}}}"#);
        read(&[&[home], more].concat(), Some(&file))
    };
    // Certificates may stand in the file itself, or in variables, and are not shown.
    let given = told(r#""x509_client_cert_b64": "YQ==", "x509_client_key_b64": " Yg== ""#, &[]).unwrap();
    let pair = |one: &[u8], other: &[u8]| Some((Pem::Given(one.to_vec()), Pem::Given(other.to_vec())));
    assert_eq!(given.client_certificate, pair(b"a", b"b"));
    assert!(!format!("{given:?}").contains("[98]"), "{given:?}");
    let variables = [("OSC_X509_CLIENT_CERT_B64", "Yw=="), ("OSC_X509_CLIENT_KEY_B64", "ZA==")];
    let over = told(r#""x509_client_cert_b64": "YQ==", "x509_client_key_b64": "Yg==""#, &variables).unwrap();
    assert_eq!(over.client_certificate, pair(b"c", b"d"));
    // The protocol is that of an endpoint that names none.
    let endpoint = |rest: &str| told(rest, &[]).map(|access| access.endpoint.to_string());
    let here = r#""protocol": "http", "endpoints": {"api": "127.0.0.1:4510"}"#;
    assert_eq!(endpoint(here).unwrap(), "http://127.0.0.1:4510/api/v1");
    assert_eq!(endpoint(r#""protocol": "https""#).unwrap(), "https://api.eu-west-2.outscale.com/api/v1");
    assert_eq!(endpoint(r#""tls_skip_verify": false"#).unwrap(), "https://api.eu-west-2.outscale.com/api/v1");
    for (rest, field, hint) in [
        (r#""protocol": "http""#, "OSC_PROTOCOL", "https alone"),
        (
            r#""protocol": "http", "endpoints": {"api": "api.eu-west-2.outscale.com"}"#,
            "OSC_ENDPOINT_API",
            "not encrypted",
        ),
        (r#""tls_skip_verify": true"#, "OSC_TLS_SKIP_VERIFY", "SSL_CERT_FILE"),
        (r#""x509_client_cert_b64": "?""#, "x509_client_cert_b64", "base64"),
        (r#""x509_client_cert_b64": "YQ==""#, "OSC_X509_CLIENT_KEY", "missing"),
    ] {
        let error = told(rest, &[]).unwrap_err();
        assert_eq!(error.field, field, "{rest}: {error}");
        assert!(error.message.contains(hint), "{rest}: {error}");
    }
    assert_eq!(
        told(r#""protocol": null"#, &[("OSC_TLS_SKIP_VERIFY", "True")]).unwrap_err().field,
        "OSC_TLS_SKIP_VERIFY"
    );
}

#[test]
fn variables_that_say_all_are_not_mixed_with_a_profile_that_nobody_asked_for() {
    let words = [("HOME", "/h"), ("OSC_ACCESS_KEY", "A"), ("OSC_SECRET_KEY", "s"), ("OSC_REGION", "eu-west-2")];
    for file in [
        "no JSON",
        r#"{"default": {"access_key": 7}}"#,
        r#"{"default": {"endpoints": {"api": "https://api.us-east-2.outscale.com"}, "client_certificate": "/c"}}"#,
    ] {
        let access = read(&words, Some(file)).unwrap();
        assert_eq!(access.endpoint.to_string(), "https://api.eu-west-2.outscale.com/api/v1", "{file}");
        assert_eq!(access.client_certificate, None, "{file}");
        // Whoever asks for it means it.
        let asked = [&words[..], &[("OSC_PROFILE", "default")]].concat();
        assert!(read(&asked, Some(file)).is_err(), "{file}: combined and no fault");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_come_is_given_up_long_before_actors_give_it_up() {
    let options = Options::new(Arc::new(|| Timestamp::UNIX_EPOCH));
    let client = Client::new(access(), Arc::new(Silent), options);
    let began = Instant::now();
    let error = client.all(&super::wire::ReadVmTypes::default()).await.unwrap_err();
    assert_eq!(error.class, Class::Temporary);
    assert!(began.elapsed() <= Duration::from_secs(75), "{:?}", began.elapsed());
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let keys = [("OSC_ACCESS_KEY", "A"), ("OSC_SECRET_KEY", "s")];
    let with = |more: &[(&'static str, &'static str)]| keys.iter().chain(more).copied().collect::<Vec<_>>();
    let file = Some(r#"{"one": {}, "two": {}}"#);
    let table: [(Vec<(&str, &str)>, _, _, _); 15] = [
        (vec![], None, "OSC_REGION", "eu-west-2"),
        (vec![("OSC_REGION", "eu-west-2")], None, "OSC_ACCESS_KEY", "OSC_PROFILE"),
        (vec![("OSC_REGION", "eu-west-2"), ("OSC_ACCESS_KEY", "A")], None, "OSC_SECRET_KEY", "missing"),
        (with(&[("OSC_REGION", "Paris!")]), None, "OSC_REGION", "Paris!"),
        (with(&[("OSC_PROFILE", "mine"), ("HOME", "/h")]), file, "OSC_PROFILE", "one, two"),
        (with(&[("OSC_PROFILE", "mine"), ("HOME", "/h")]), None, "OSC_CONFIG_FILE", "/h/.osc/config.json"),
        (with(&[("OSC_CONFIG_FILE", "/c")]), None, "OSC_CONFIG_FILE", "/c cannot be read"),
        (
            with(&[("OSC_REGION", "us-east-2"), ("OSC_ENDPOINT_API", "api.eu-west-2.outscale.com")]),
            None,
            "OSC_REGION",
            "one region",
        ),
        (with(&[("OSC_ENDPOINT_API", "http://api.eu-west-2.outscale.com")]), None, "OSC_ENDPOINT_API", "not encrypted"),
        (with(&[("OSC_ENDPOINT_API", "ftp://127.0.0.1")]), None, "OSC_ENDPOINT_API", "neither https nor http"),
        (with(&[("OSC_ENDPOINT_API", "https://a:b@host/")]), None, "OSC_ENDPOINT_API", "OSC_SECRET_KEY"),
        (with(&[("OSC_ENDPOINT_API", "https://host/?x=1")]), None, "OSC_ENDPOINT_API", "query"),
        (with(&[("OSC_ENDPOINT_API", "::")]), None, "OSC_ENDPOINT_API", "no URL"),
        (
            vec![("OSC_REGION", "eu-west-2"), ("OSC_ACCESS_KEY", "A/B"), ("OSC_SECRET_KEY", "s")],
            None,
            "OSC_ACCESS_KEY",
            "letters",
        ),
        (with(&[("OSC_REGION", "eu-west-2"), ("OSC_X509_CLIENT_CERT", "/c")]), None, "OSC_X509_CLIENT_KEY", "missing"),
    ];
    for (words, file, field, hint) in table {
        let error = read(&words, file).unwrap_err();
        assert_eq!(error.field, field, "{words:?}: {error}");
        assert!(error.message.contains(hint), "{words:?}: {error}");
    }
}

#[test]
fn endpoints_on_this_machine_may_be_plain() {
    for (text, host, shown) in [
        ("http://localhost:8080/api/v1/", "localhost:8080", "http://localhost:8080/api/v1"),
        ("http://127.3.2.1:80", "127.3.2.1", "http://127.3.2.1:80/api/v1"),
        ("http://[::1]:9", "[::1]:9", "http://[::1]:9/api/v1"),
        ("https://api.example.com:443/base", "api.example.com", "https://api.example.com:443/base"),
    ] {
        let endpoint = Endpoint::parse(text).unwrap();
        assert_eq!((endpoint.host(), endpoint.to_string().as_str()), (host, shown));
    }
}

#[test]
fn clients_reach_networks_as_an_access_says() {
    let mut access = access();
    access.endpoint = Endpoint::parse("http://127.0.0.1:9").unwrap();
    Network::new(&access).unwrap();
    access.client_certificate = Some(("/nowhere/cert.pem".into(), "/nowhere/key.pem".into()));
    let error = Network::new(&access).unwrap_err();
    assert_eq!(error.field, "OSC_X509_CLIENT_CERT");
    assert!(error.message.contains("/nowhere/cert.pem"), "{error}");
}
