//! UIDs of pods are read as numbers, and nobody can tell.

use proptest::prelude::*;

use super::{PodUid, Uid};

#[test]
fn what_an_api_server_gives_is_kept_as_a_number() {
    let uid = PodUid::from("0c9f5d1e-82ab-4f60-9b1c-00a7e3d45f6b");
    assert!(matches!(uid.0, Uid::Uuid(..)));
    assert_eq!(uid.to_string(), "0c9f5d1e-82ab-4f60-9b1c-00a7e3d45f6b");
}

#[test]
fn whatever_else_there_is_stays_as_it_is_written() {
    for text in [
        "",
        "shop/web",
        "0C9F5D1E-82AB-4F60-9B1C-00A7E3D45F6B",
        "0c9f5d1e82ab-4f60-9b1c-00a7-e3d45f6b",
        "0c9f5d1e-82ab-4f60-9b1c-00a7e3d45f6",
        "0c9f5d1e-82ab-4f60-9b1c-00a7e3d45f6b-1",
        "+c9f5d1e-82ab-4f60-9b1c-00a7e3d45f6b",
    ] {
        let uid = PodUid::from(text);
        assert!(matches!(uid.0, Uid::Text(_)), "{text}");
        assert_eq!(uid.to_string(), text);
    }
}

fn uuids() -> impl Strategy<Value = String> {
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
}

proptest! {
    #[test]
    fn texts_come_back_and_keep_their_order(one in uuids(), other in uuids()) {
        let (a, b) = (PodUid::from(one.as_str()), PodUid::from(other.as_str()));
        prop_assert_eq!(a.to_string(), one.as_str());
        prop_assert_eq!(a.cmp(&b), one.cmp(&other));
    }
}
