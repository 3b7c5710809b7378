//! Which proxy is meant, and that connections go through it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use jiff::Timestamp;

use super::*;
use crate::clouds::outscale::oapi::wire::ReadVmTypes;
use crate::clouds::outscale::oapi::{Access, Class, Client, Network, Options};

const API: &str = "https://api.eu-west-2.outscale.com/api/v1";

fn read(variables: &[(&str, &str)], endpoint: &str) -> Result<Option<(String, bool)>, AccessError> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let endpoint = Endpoint::parse(endpoint)?;
    let proxy = Proxy::read(|name| variables.get(name).map(|value| (*value).to_owned()), &endpoint)?;
    Ok(proxy.map(|proxy| (proxy.url.to_string(), proxy.auth.is_some())))
}

#[test]
fn the_usual_variables_say_which_proxy() {
    let through = |url: &str, auth| Ok(Some((url.to_owned(), auth)));
    assert_eq!(read(&[], API), Ok(None));
    assert_eq!(read(&[("HTTPS_PROXY", "http://proxy:3128")], API), through("http://proxy:3128/", false));
    assert_eq!(read(&[("https_proxy", " proxy:3128 ")], API), through("http://proxy:3128/", false));
    assert_eq!(read(&[("ALL_PROXY", "http://me:secret@proxy:3128")], API), through("http://proxy:3128/", true));
    assert_eq!(read(&[("HTTPS_PROXY", "")], API), Ok(None));
    let but = |list| read(&[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", list)], API);
    assert_eq!(but(".outscale.com,10.0.0.0/8"), Ok(None));
    assert_eq!(but("example.com"), through("http://proxy:3128/", false));
    assert_eq!(read(&[("HTTPS_PROXY", "http://proxy:3128")], "http://127.0.0.1:4510"), Ok(None));
}

#[test]
fn what_is_no_http_proxy_is_refused_without_being_repeated() {
    for wrong in ["socks5://me:secret@proxy:1080", "https://me:secret@proxy", "http://me:secret@ /"] {
        let error = read(&[("HTTPS_PROXY", wrong)], API).unwrap_err();
        assert_eq!(error.field, "HTTPS_PROXY");
        assert!(error.message.contains("give one like http://proxy.example.com:3128"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_call_asks_the_proxy_for_a_tunnel_and_says_who_it_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut heard, mut byte) = (Vec::new(), [0]);
        while !heard.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            heard.extend(byte);
        }
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").unwrap();
        String::from_utf8(heard).unwrap()
    });
    let variables: BTreeMap<&str, &str> =
        [("OSC_ACCESS_KEY", "AK"), ("OSC_SECRET_KEY", "SK"), ("OSC_REGION", "eu-west-2")].into();
    let access = Access::read(
        |name| variables.get(name).map(|value| (*value).to_owned()),
        |_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    );
    let access = access.unwrap();
    let told =
        Proxy::read(|name| (name == "HTTPS_PROXY").then(|| format!("http://me:secret@{address}")), &access.endpoint);
    let network = Network::through(&access, told.unwrap().as_ref()).unwrap();
    let options = Options { attempts: 1, ..Options::new(Arc::new(|| Timestamp::UNIX_EPOCH)) };
    let client = Client::new(access, Arc::new(network), options);
    let error = client.all(&ReadVmTypes::default()).await.unwrap_err();
    assert_eq!(error.class, Class::Temporary, "{error}");
    let heard = proxy.join().unwrap();
    assert!(heard.starts_with("CONNECT api.eu-west-2.outscale.com:443 HTTP/1.1\r\n"), "{heard}");
    assert!(heard.to_lowercase().contains("proxy-authorization: basic bwu6c2vjcmv0"), "{heard}");
}
