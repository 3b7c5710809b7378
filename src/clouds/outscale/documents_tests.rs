//! What patches make of a configuration.

use serde_json::json;

use super::*;

const CONFIGURATION: &str = r"
version: v1alpha1
machine: { type: worker, sysctls: { a: '1' } }
---
apiVersion: v1alpha1
kind: RegistryMirrorConfig
name: ghcr.io
endpoints: [{ url: https://one.example }]
---
apiVersion: v1alpha1
kind: HostnameConfig
auto: stable
";

/// What a patch makes of [`CONFIGURATION`].
fn patched(patch: &str) -> Result<Documents, String> {
    let mut documents = Documents::read(CONFIGURATION)?;
    documents.patch(patch).map(|()| documents)
}

fn mirror(name: &str, url: &str) -> Value {
    json!({ "apiVersion": "v1alpha1", "kind": "RegistryMirrorConfig", "name": name, "endpoints": [{ "url": url }] })
}

#[test]
fn a_patch_with_a_kind_goes_into_the_document_of_that_kind_and_name_or_becomes_one() {
    let before = Documents::read(CONFIGURATION).unwrap();
    let hostname = &before.others[1];
    let there = patched(&mirror("ghcr.io", "https://two.example").to_string()).unwrap();
    assert_eq!(there.others, [mirror("ghcr.io", "https://two.example"), hostname.clone()]);
    let new = patched(&mirror("docker.io", "https://two.example").to_string()).unwrap();
    assert_eq!(
        new.others,
        [before.others[0].clone(), hostname.clone(), mirror("docker.io", "https://two.example")],
        "another name is another document"
    );
    for documents in [there, new] {
        assert_eq!(documents.main, before.main, "the machine document stays as it was");
    }
}

#[test]
fn a_patch_may_have_several_documents_and_one_without_a_kind_is_the_machines() {
    let patch = "# sysctls, and a name\nmachine: { sysctls: { b: '2' }, type: null }\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: 'off'\nhostname: null\n";
    let documents = patched(patch).unwrap();
    assert_eq!(documents.main, json!({ "version": "v1alpha1", "machine": { "sysctls": { "a": "1", "b": "2" } } }));
    assert_eq!(documents.others[1], json!({ "apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off" }));
}

#[test]
fn a_document_can_be_deleted_as_a_whole() {
    let documents =
        patched("apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: ghcr.io\n$patch: delete\n").unwrap();
    let kinds: Vec<&Value> = documents.others.iter().map(|document| &document["kind"]).collect();
    assert_eq!(kinds, ["HostnameConfig"]);
}

#[test]
fn a_patch_that_cannot_be_meant_is_refused_and_its_document_is_named() {
    for (patch, fault) in [
        ("# nothing\n", "is empty; write the fields"),
        ("[{op: add}]", "is no map; write the fields"),
        ("a: [", "cannot be read"),
        ("machine: {}\n---\na: [", "document 2: cannot be read"),
        ("kind: HostnameConfig\nauto: stable", "has a kind and no apiVersion; write apiVersion: v1alpha1"),
        ("machine: { sysctls: { $patch: delete } }", "$patch is taken as `$patch: delete` of a whole document"),
        ("$patch: delete\nmachine: {}", "$patch is taken as `$patch: delete` of a whole document"),
        ("{apiVersion: v1alpha1, kind: HostnameConfig, $patch: replace}", "$patch is taken as `$patch: delete`"),
        (
            "{apiVersion: v1alpha1, kind: RegistryMirrorConfig, name: quay.io, $patch: delete}",
            "$patch: there is no RegistryMirrorConfig quay.io to delete; correct or remove it",
        ),
    ] {
        let said = patched(patch).err().unwrap_or_default();
        assert!(said.starts_with(fault), "{said:?} for {patch}");
    }
}
