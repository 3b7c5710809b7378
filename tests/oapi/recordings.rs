//! Recorded traffic of the real API: our types read it without loss, our client understands its refusals, and the fake refuses the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use joiner::clouds::outscale::oapi::wire::*;
use joiner::clouds::outscale::oapi::{Action, Answer, Class, Client, Error, Post, Transport, Undelivered};
use serde_json::Value;

use super::shared::shared;
use super::spec::Spec;
use super::world::{client, fake, launch};

/// An exchange with the real API.
struct Exchange {
    /// File and line, to be found again.
    place: String,
    action: String,
    status: u16,
    request: Value,
    answer: Value,
}

fn recorded() -> Option<Vec<Exchange>> {
    let mut all = Vec::new();
    for file in ["catalogue", "lifecycle", "refusals"] {
        let path = shared(&format!("recordings/outscale/oapi-cli-{file}.jsonl"))?;
        let text = std::fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let body = |of: &str| line[of].get("body").cloned().unwrap_or_else(|| serde_json::json!({}));
            all.push(Exchange {
                place: format!("{file} {}", line["seq"]),
                action: line["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(),
                status: u16::try_from(line["status"].as_u64().unwrap()).unwrap(),
                request: body("req"),
                answer: body("res"),
            });
        }
    }
    Some(all)
}

/// What of `ours` is not in `theirs`. We may have read less than was sent, but nothing else.
fn invented(ours: &Value, theirs: &Value, place: &str, into: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in ours {
                match theirs.get(name) {
                    Some(other) => invented(value, other, &format!("{place}.{name}"), into),
                    // A list that was not sent is an empty one.
                    None if value.as_array().is_some_and(Vec::is_empty) => {}
                    // Nor is a state.
                    None if value == "unknown" => {}
                    None => into.push(format!("{place}.{name}: {value} was never sent")),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            if ours.len() != theirs.len() {
                into.push(format!("{place}: {} of {}", ours.len(), theirs.len()));
            }
            for (at, (value, other)) in ours.iter().zip(theirs).enumerate() {
                invented(value, other, &format!("{place}[{at}]"), into);
            }
        }
        // What was made unreadable is no state any more.
        (Value::String(ours), Value::String(theirs)) if ours == "unknown" && theirs.starts_with("redacted") => {}
        (Value::String(ours), Value::String(theirs)) => {
            let moment = |text: &str| text.parse::<jiff::Timestamp>().ok();
            if ours != theirs && (moment(ours).is_none() || moment(ours) != moment(theirs)) {
                into.push(format!("{place}: {ours} is not {theirs}"));
            }
        }
        (Value::Number(ours), Value::Number(theirs)) if ours.as_f64() == theirs.as_f64() => {}
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => into.push(format!("{place}: {ours} is not {theirs}")),
    }
}

/// Whether whoever cleaned the recording replaced a list by a word.
fn is_mutilated(answer: &Value) -> bool {
    answer.as_object().is_some_and(|fields| fields.values().any(|field| field.as_str().is_some()))
}

/// Reads an answer into our types and looks whether it comes out as it went in.
fn through<A: Action>(answer: &Value, place: &str, wrong: &mut Vec<String>) {
    match serde_json::from_value::<A::Answer>(answer.clone()) {
        Ok(read) => invented(&serde_json::to_value(&read).unwrap(), answer, place, wrong),
        Err(error) => wrong.push(format!("{place}: {error}")),
    }
}

/// Calls `$body` with `$action` as the type of the action of this name; nothing for actions that joiner does not use.
macro_rules! with_action {
    ($name:expr, $action:ident => $body:expr) => {
        with_action!(@ $name, $action => $body; CreateVms ReadVms ReadVmsState DeleteVms StopVms RebootVms UpdateVm ReadConsoleOutput
            CreateTags DeleteTags ReadTags ReadImages ReadSubnets ReadSecurityGroups ReadSubregions ReadKeypairs ReadQuotas ReadCatalog
            ReadPublicCatalog ReadUnitPrice ReadVmTypes ReadFlexibleGpuCatalog)
    };
    (@ $name:expr, $action:ident => $body:expr; $($type:ident)*) => {
        match $name {
            $(stringify!($type) => {
                type $action = $type;
                Some($body)
            })*
            _ => None,
        }
    };
}

#[test]
fn recorded_requests_and_answers_are_read_without_loss() {
    let Some(recorded) = recorded() else { return };
    let (mut wrong, mut seen) = (Vec::new(), BTreeMap::<String, u32>::new());
    for exchange in &recorded {
        let Exchange { place, action, status, request, answer } = exchange;
        let place = format!("{place} {action}");
        let read = with_action!(action.as_str(), Request => {
            match serde_json::from_value::<Request>(request.clone()) {
                // Cleaned recordings have words where lists were.
                Err(error) if !error.to_string().contains("expected a sequence") => wrong.push(format!("{place}: {error}")),
                Err(_) => {}
                Ok(read) => {
                    let written = serde_json::to_value(&read).unwrap();
                    if written != *request {
                        wrong.push(format!("{place}: {written} is not {request}"));
                    }
                }
            }
            if *status == 200 && !is_mutilated(answer) {
                through::<Request>(answer, &place, &mut wrong);
            }
        });
        if read.is_some() {
            *seen.entry(action.clone()).or_default() += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen.len() >= 15 && seen.values().sum::<u32>() >= 50, "{seen:?}");
}

#[test]
fn the_specifications_own_examples_are_read_without_loss() {
    let Some(spec) = Spec::load() else { return };
    let mut wrong = Vec::new();
    let mut count = 0;
    for action in [
        "CreateVms",
        "ReadVms",
        "ReadVmsState",
        "DeleteVms",
        "StopVms",
        "RebootVms",
        "UpdateVm",
        "ReadConsoleOutput",
        "CreateTags",
        "DeleteTags",
        "ReadTags",
        "ReadImages",
        "ReadSubnets",
        "ReadSecurityGroups",
        "ReadSubregions",
        "ReadKeypairs",
        "ReadQuotas",
        "ReadCatalog",
        "ReadPublicCatalog",
        "ReadUnitPrice",
        "ReadVmTypes",
        "ReadFlexibleGpuCatalog",
    ] {
        for answer in &spec.action(action).examples {
            count += 1;
            with_action!(action, Request => through::<Request>(answer, action, &mut wrong));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count >= 22, "{count}");
}

/// Says what was recorded.
struct Replay(Mutex<Option<(u16, String)>>);

impl Transport for Replay {
    fn post(&self, _: Post) -> BoxFuture<'_, Result<Answer, Undelivered>> {
        let (status, body) = self.0.lock().unwrap().take().expect("refusals like these are not repeated");
        async move { Ok(Answer { status, date: None, retry_after: None, body: body.into() }) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_refusals_are_understood() {
    let Some(recorded) = recorded() else { return };
    let mut classes = BTreeMap::<(String, u16), BTreeSet<Class>>::new();
    for exchange in recorded.iter().filter(|exchange| exchange.status != 200) {
        let replay = Replay(Mutex::new(Some((exchange.status, exchange.answer.to_string()))));
        // Any action will do: what a refusal means does not depend on who asks.
        let error = client(Arc::new(replay)).call(&CreateVms::default()).await.unwrap_err();
        let code = exchange.answer["Errors"][0]["Code"].as_str().unwrap().to_owned();
        assert_eq!(error.code(), Some(code.as_str()), "{}", exchange.place);
        assert!(error.request_id.is_some(), "{}", exchange.place);
        classes.entry((code, exchange.status)).or_default().insert(error.class);
    }
    for ((code, status), classes) in &classes {
        let expected = match code.chars().next() {
            Some('5') => Class::NotFound,
            Some('6' | '9') => Class::Conflict,
            Some('3' | '4' | '7') => Class::Invalid,
            _ => panic!("a code that nobody has thought about: {code} ({status}), read as {classes:?}"),
        };
        assert_eq!(classes.iter().collect::<Vec<_>>(), [&expected], "{code} ({status})");
    }
    assert!(classes.len() >= 10 && classes.contains_key(&("9085".to_owned(), 409)), "{classes:?}");
}

#[tokio::test(start_paused = true)]
async fn the_fake_refuses_as_the_real_one_did() {
    let Some(recorded) = recorded() else { return };
    let fake = fake();
    let mut compared = BTreeSet::new();
    for exchange in recorded.iter().filter(|exchange| exchange.status == 400) {
        let client = client(Arc::new(fake.clone()));
        let asked = with_action!(exchange.action.as_str(), Request => {
            let request: Request = serde_json::from_value(exchange.request.clone()).unwrap();
            refusal(&client, &request).await
        });
        let Some(error) = asked else { continue };
        let code = exchange.answer["Errors"][0]["Code"].as_str();
        assert_eq!((error.status, error.code()), (Some(400), code), "{}: {error}", exchange.place);
        compared.insert(exchange.action.clone());
    }
    // ReadVms, CreateVms, DeleteVms, StopVms, RebootVms, UpdateVm, CreateTags, DeleteTags.
    assert!(compared.len() >= 8, "{compared:?}");
}

async fn refusal<A: Action>(client: &Client, request: &A) -> Error {
    match client.call(request).await {
        Ok(_) => panic!("{} was not refused", A::NAME),
        Err(error) => error,
    }
}

/// The fields that an object has, those of what is in it included.
fn fields(value: &Value, place: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                into.insert(format!("{place}.{name}"));
                fields(value, &format!("{place}.{name}"), into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, place, into)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn vms_of_the_fake_have_the_fields_that_recorded_ones_have() {
    let Some(recorded) = recorded() else { return };
    let vms = |wanted: &str| {
        let mut all = BTreeSet::new();
        for exchange in recorded.iter().filter(|exchange| exchange.action == wanted && exchange.status == 200) {
            fields(&exchange.answer["Vms"], "", &mut all);
        }
        all
    };
    let mut theirs = vms("CreateVms");
    theirs.extend(vms("ReadVms"));
    // Recorded VMs were made without a token.
    theirs.insert(".ClientToken".to_owned());
    let client = client(Arc::new(fake()));
    let vm = client.call(&launch("t")).await.unwrap().vms.remove(0);
    let mut ours = BTreeSet::new();
    fields(&serde_json::to_value(&vm).unwrap(), "", &mut ours);
    let odd: Vec<_> = ours.difference(&theirs).collect();
    assert!(odd.is_empty(), "{odd:?}");
    // One that is gone has lost the same things.
    client.call(&DeleteVms { vm_ids: vec![vm.vm_id.clone()] }).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    let filters = VmFilters { vm_ids: vec![vm.vm_id], ..VmFilters::default() };
    let gone = client.call(&ReadVms { filters: Some(filters), ..ReadVms::default() }).await.unwrap().vms.remove(0);
    let gone = serde_json::to_value(&gone).unwrap();
    for lost in ["PrivateIp", "PrivateDnsName", "SubnetId", "NetId"] {
        assert!(gone.get(lost).is_none(), "{lost} is still there: {gone}");
    }
    assert_eq!(gone["Tags"], serde_json::json!([]));
}
