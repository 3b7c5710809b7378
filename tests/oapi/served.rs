//! `joiner fake outscale` as a process: it says how to reach it, answers, and ends on a signal.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;

use jiff::Timestamp;
use joiner::clouds::outscale::oapi::wire::{ReadImages, ReadVms};
use joiner::clouds::outscale::oapi::{Access, Client, Network, Options};

#[tokio::test]
async fn a_fake_can_be_rehearsed_with() {
    let program = env!("CARGO_BIN_EXE_joiner");
    let mut fake = Command::new(program)
        .args(["fake", "outscale", "--port", "0", "--sold-out", "tinav5"])
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
    let access = Access::read(|name| words.get(name).cloned(), |_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    let network = Arc::new(Network::new(&access).unwrap());
    let client = Client::new(access, network, Options::new(Arc::new(now)));
    assert_eq!(client.all(&ReadImages::default()).await.unwrap().len(), 1);
    assert!(client.all(&ReadVms::default()).await.unwrap().is_empty());
    // Its connections do not keep it from ending.
    drop(client);
    let killed = Command::new("kill").arg(fake.id().to_string()).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(fake.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("# ReadImages: 1 calls, 1 in the busiest second, 0 throttled"), "{rest}");
}

#[expect(clippy::disallowed_methods, reason = "the fake is another process, which has the machine's clock")]
fn now() -> Timestamp {
    Timestamp::now()
}
