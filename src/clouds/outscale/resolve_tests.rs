//! Selectors judged.

use super::*;

fn image(id: &str, name: &str, created: &str) -> wire::Image {
    wire::Image {
        image_id: id.to_owned(),
        image_name: Some(name.to_owned()),
        creation_date: Some(created.parse().unwrap()),
        state: Some("available".to_owned()),
        architecture: Some("x86_64".to_owned()),
        account_alias: Some("Outscale".to_owned()),
        account_id: Some("1".to_owned()),
        ..wire::Image::default()
    }
}

fn tags(all: &[(&str, &str)]) -> Tags {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn stars_stand_for_anything() {
    for (pattern, name, fit) in [
        ("Talos-*", "Talos-v1.11.5", true),
        ("*", "", true),
        ("Talos-v1.*.5", "Talos-v1.11.5", true),
        ("Talos-*-*5", "Talos-v1-11.5", true),
        ("Talos", "Talos-v1", false),
        ("*Talos", "xTalos", true),
        ("a*b*a", "aba", true),
        ("ab*ba", "aba", false),
        ("", "x", false),
    ] {
        assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
    }
}

#[test]
fn the_newest_image_comes_first_and_unfit_ones_do_not_count() {
    let term =
        ImageTerm { name: Some("Talos-*".to_owned()), owner: Some("Outscale".to_owned()), ..ImageTerm::default() };
    let old = image("ami-00000001", "Talos-1", "2026-01-01T00:00:00Z");
    let new = image("ami-00000002", "Talos-2", "2026-02-01T00:00:00Z");
    let foreign = wire::Image {
        account_alias: None,
        account_id: Some("2".to_owned()),
        ..image("ami-00000003", "Talos-3", "2026-03-01T00:00:00Z")
    };
    let pending =
        wire::Image { state: Some("pending".to_owned()), ..image("ami-00000004", "Talos-4", "2026-03-01T00:00:00Z") };
    let arm = wire::Image {
        architecture: Some("arm64".to_owned()),
        ..image("ami-00000005", "Talos-5", "2026-03-01T00:00:00Z")
    };
    let other = image("ami-00000006", "Ubuntu", "2026-03-01T00:00:00Z");
    let spec = OutscaleNodeClassSpec::default();
    let found = vec![(term.clone(), vec![old, foreign, pending.clone(), new, arm, other])];
    let ids: Vec<String> = images(&found, &spec).unwrap().into_iter().map(|image| image.id).collect();
    assert_eq!(ids, ["ami-00000002", "ami-00000001"]);
    let fault = images(&[(term.clone(), vec![pending])], &spec).unwrap_err();
    assert_eq!(
        (fault.reason, fault.message.as_str()),
        ("ImageUnfit", "spec.imageSelectorTerms: image ami-00000004 is pending; wait, or name another")
    );
    let fault = images(&[(term, Vec::new())], &spec).unwrap_err();
    assert!(
        fault.message.starts_with("spec.imageSelectorTerms: no image matches name Talos-* of Outscale;"),
        "{fault:?}"
    );
}

#[test]
fn an_image_that_is_larger_than_the_root_volume_is_unfit() {
    let root = wire::BsuToCreate { volume_size: Some(80), ..wire::BsuToCreate::default() };
    let device =
        wire::ImageDevice { bsu: Some(root), device_name: Some("/dev/sda1".to_owned()), virtual_device_name: None };
    let large =
        wire::Image { block_device_mappings: vec![device], ..image("ami-00000001", "x", "2026-01-01T00:00:00Z") };
    let term = ImageTerm { id: Some("ami-00000001".to_owned()), ..ImageTerm::default() };
    let spec = OutscaleNodeClassSpec { image_id: term.id.clone(), ..OutscaleNodeClassSpec::default() };
    let fault = images(&[(term, vec![large])], &spec).unwrap_err();
    assert!(fault.message.starts_with("spec.imageId: image ami-00000001 needs a root volume of 80 GiB"), "{fault:?}");
    assert!(fault.message.contains("raise spec.blockDeviceMappings[/dev/sda1].bsu.volumeSize from 50"), "{fault:?}");
}

#[test]
fn all_tags_of_a_term_must_be_there_although_the_api_means_any() {
    let subnet = |id: &str, all: &[(&str, &str)]| wire::Subnet {
        subnet_id: id.to_owned(),
        subregion_name: Some("eu-west-2a".to_owned()),
        state: Some("available".to_owned()),
        net_id: Some("vpc-1".to_owned()),
        tags: all.iter().map(|(key, value)| ResourceTag::new(*key, *value)).collect(),
        ..wire::Subnet::default()
    };
    let term = SubnetTerm { id: None, tags: Some(tags(&[("a", "1"), ("b", "*")])) };
    let all = vec![
        subnet("subnet-1", &[("a", "1")]),
        subnet("subnet-2", &[("a", "1"), ("b", "x")]),
        subnet("subnet-3", &[("a", "2"), ("b", "x")]),
    ];
    let found = subnets(&[(term.clone(), all)]).unwrap();
    assert_eq!(found.iter().map(|subnet| subnet.id.as_str()).collect::<Vec<_>>(), ["subnet-2"]);
    let filters = subnets_of(&term).filters.unwrap();
    assert_eq!((filters.tags, filters.tag_keys), (vec!["a=1".to_owned()], Vec::<String>::new()));
    let any = subnets_of(&SubnetTerm { id: None, tags: Some(tags(&[("b", "*")])) }).filters.unwrap();
    assert_eq!((any.tags, any.tag_keys), (Vec::<String>::new(), vec!["b".to_owned()]));
    let fault = subnets(&[(term, vec![subnet("subnet-1", &[("a", "1")])])]).unwrap_err();
    assert!(fault.message.contains("no available subnet for tags a=1, b=*"), "{fault:?}");
}

#[test]
fn no_request_is_made_without_a_filter() {
    // An empty filter would mean everything.
    for term in [
        ImageTerm { id: Some("ami-00000001".to_owned()), ..ImageTerm::default() },
        ImageTerm { name: Some("x".to_owned()), ..ImageTerm::default() },
        ImageTerm { tags: Some(tags(&[("a", "*")])), ..ImageTerm::default() },
    ] {
        assert_ne!(images_of(&term).filters, Some(wire::ImageFilters::default()));
    }
}
