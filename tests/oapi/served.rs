//! `joiner fake outscale` as a process: it says how to reach it, answers, and ends on a signal.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use jiff::Timestamp;
use joiner::clouds::outscale::oapi::wire::{
    CreateTags, CreateVms, ReadImages, ReadQuotas, ReadVms, ResourceTag, StopVms,
};
use joiner::clouds::outscale::oapi::{Access, Class, Client, Network, Options};
use joiner::sim::oapi::Account;

/// A fake with these flags, and a client that believes what it says.
fn serve(flags: &[&str]) -> (Child, Client) {
    let program = env!("CARGO_BIN_EXE_joiner");
    let mut fake = Command::new(program)
        .args(["fake", "outscale", "--port", "0"])
        .args(flags)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(fake.stdout.take().unwrap());
    let mut words = std::collections::BTreeMap::new();
    while words.len() < 4 {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended without a word");
        if let Some((name, value)) = line.trim().strip_prefix("export ").and_then(|rest| rest.split_once('=')) {
            words.insert(name.to_owned(), value.to_owned());
        }
    }
    fake.stdout = Some(said.into_inner());
    let access = Access::read(|name| words.get(name).cloned(), |_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    let network = Arc::new(Network::new(&access).unwrap());
    (fake, Client::new(access, network, Options::new(Arc::new(now))))
}

#[tokio::test]
async fn a_fake_can_be_rehearsed_with() {
    let (mut fake, client) = serve(&["--sold-out", "tinav5"]);
    assert_eq!(client.all(&ReadImages::default()).await.unwrap().len(), 1);
    assert!(client.all(&ReadVms::default()).await.unwrap().is_empty());
    // Its connections do not keep it from ending.
    drop(client);
    let killed = Command::new("kill").arg(fake.id().to_string()).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    fake.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(fake.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("# ReadImages: 1 calls, 1 in the busiest second\n"), "{rest}");
}

#[tokio::test]
async fn missing_permissions_and_used_up_quotas_can_be_rehearsed() {
    let flags =
        ["--deny", "ReadImages", "--deny", "StopVms", "--quota", "vms=1", "--quota", "memory=64", "--quota", "tags=1"];
    let (mut fake, client) = serve(&flags);
    for error in [
        client.all(&ReadImages::default()).await.unwrap_err(),
        client.call(&StopVms { vm_ids: vec!["i-00000000".to_owned()], force_stop: None }).await.unwrap_err(),
    ] {
        assert_eq!(error.class, Class::Denied);
        let statement = format!(r#"{{"Effect":"Allow","Action":["api:{}"],"Resource":["*"]}}"#, error.action);
        assert!(error.to_string().contains(&statement), "{error}");
    }
    let launch = CreateVms {
        image_id: Account::IMAGE.to_owned(),
        subnet_id: Some("subnet-00000001".to_owned()),
        ..CreateVms::default()
    };
    let vms = client.call(&launch).await.unwrap().vms;
    let mark = CreateTags {
        resource_ids: vec![vms[0].vm_id.clone()],
        tags: ["a", "b"].map(|key| ResourceTag::new(key, "")).into(),
    };
    let error = client.call(&mark).await.unwrap_err();
    assert!(error.class == Class::Quota && error.to_string().contains("may have 1 tags"), "{error}");
    let error = client.call(&launch).await.unwrap_err();
    assert!(error.class == Class::Quota && error.to_string().contains("may have 1 VMs"), "{error}");
    let quotas = client.all(&ReadQuotas::default()).await.unwrap().remove(0).quotas;
    let most: Vec<_> = quotas.into_iter().filter_map(|quota| Some((quota.name, quota.max_value?))).collect();
    assert!(most.contains(&("vm_limit".to_owned(), 1)) && most.contains(&("memory_limit".to_owned(), 64)), "{most:?}");
    fake.kill().unwrap();
    fake.wait().unwrap();
}

#[test]
fn a_fake_that_cannot_be_meant_says_so() {
    for (flags, said) in [
        (["--deny", "ReadImage"], "--deny ReadImage: no such action needs keys here; there are CreateVms, ReadVms, "),
        (["--deny", "ReadVmTypes"], "--deny ReadVmTypes: no such action"),
        (["--quota", "disks=3"], "vms=N, cores=N, memory=N (GiB) or tags=N (of one resource) are accepted"),
        (["--quota", "vms"], "vms=N, cores=N, memory=N (GiB) or tags=N (of one resource) are accepted"),
    ] {
        let program = env!("CARGO_BIN_EXE_joiner");
        let output = Command::new(program).args(["fake", "outscale", "--port", "0"]).args(flags).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains(said), "{flags:?}: {words}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the fake is another process, which has the machine's clock")]
fn now() -> Timestamp {
    Timestamp::now()
}
