//! Signatures against the vectors of the reference.

use super::*;
use crate::clouds::outscale::oapi::SecretKey;

const BODY: &str = r#"{"Filters":{"Tags":["karpenter.sh/managed-by=demo"]}}"#;

/// The signature of the reference's request: made by botocore for AWS' dialect, accepted by an independent verifier for Outscale's.
fn signed(dialect: Dialect) -> HeaderMap {
    let keys = Keys {
        access_key: "AKEXAMPLE0123456789".to_owned(),
        secret_key: SecretKey::new("SKEXAMPLE0123456789SKEXAMPLE0123456789AB"),
    };
    let endpoint = Endpoint::of_region("eu-west-2").unwrap();
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    headers(Some((&keys, dialect)), ("eu-west-2", &endpoint, "ReadVms"), BODY.as_bytes(), now).unwrap()
}

#[test]
fn the_bytes_of_the_vectors_are_those_that_are_signed() {
    assert_eq!(sha256(BODY.as_bytes()), "085b7816f7e22086d57674c29270173f2af5f85a8717e0877b70ce3accb59e7a");
}

#[test]
fn outscales_dialect_is_held_to_its_vector() {
    let headers = signed(Dialect::Osc4);
    assert_eq!(headers["x-osc-date"], "20260102T030405Z");
    assert_eq!(
        headers[AUTHORIZATION],
        "OSC4-HMAC-SHA256 Credential=AKEXAMPLE0123456789/20260102/eu-west-2/api/osc4_request, \
         SignedHeaders=content-type;host;x-osc-date, \
         Signature=ada9adcfc8d2fb8b3b20f84f94a2f8971d14c511aa925794762eb4504ef1138d"
    );
}

#[test]
fn aws_dialect_is_held_to_its_vector() {
    let headers = signed(Dialect::Aws4);
    assert_eq!(headers["x-amz-date"], "20260102T030405Z");
    assert_eq!(
        headers[AUTHORIZATION],
        "AWS4-HMAC-SHA256 Credential=AKEXAMPLE0123456789/20260102/eu-west-2/oapi/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date, \
         Signature=011f157013794b1ec031820971eb6eab28f68e9c44268e6b3c97bb2df8008e61"
    );
}

#[test]
fn nothing_is_signed_without_keys() {
    let endpoint = Endpoint::of_region("eu-west-2").unwrap();
    let headers = headers(None, ("eu-west-2", &endpoint, "ReadVmTypes"), b"{}", Timestamp::UNIX_EPOCH).unwrap();
    assert!(!headers.contains_key(AUTHORIZATION), "{headers:?}");
    assert_eq!(headers[HOST], "api.eu-west-2.outscale.com");
}
