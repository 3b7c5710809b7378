//! User data, byte for byte.

use super::*;

fn text(data: &UserData) -> String {
    String::from_utf8(data.bytes().unwrap()).unwrap()
}

fn tags(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_private_section_stands_in_front_of_clean_yaml() {
    let tags = tags(&[
        ("karpenter.sh/managed-by", "demo"),
        ("karpenter.sh/nodeclaim", "default-abcde"),
        ("OscK8sClusterID/demo", "owned"),
        ("team", "a=b c"),
    ]);
    let data = user_data(&tags, None, "version: v1alpha1\nmachine: {}\n").unwrap();
    assert_eq!(
        text(&data),
        "-----BEGIN OUTSCALE SECTION-----\nfilter_private_section=true\ntags.OscK8sClusterID/demo=owned\ntags.karpenter.sh/managed-by=demo\n\
         tags.karpenter.sh/nodeclaim=default-abcde\ntags.team=a=b c\n-----END OUTSCALE SECTION-----\nversion: v1alpha1\nmachine: {}\n"
    );
}

#[test]
fn placement_is_said_in_the_same_section() {
    let placement = Placement {
        repulse_server: Some("web".to_owned()),
        attract_cluster: Some("x".to_owned()),
        ..Placement::default()
    };
    let said = text(&user_data(&BTreeMap::new(), Some(&placement), "a: 1\n").unwrap());
    assert!(said.contains("\ntags.osc.fcu.repulse_server=web\ntags.osc.fcu.attract_cluster=x\n-----END"), "{said}");
}

#[test]
fn a_tag_that_would_end_its_line_is_refused() {
    for (key, value) in [("a\nb", "c"), ("a", "b\nfilter_private_section=false"), ("a=b", "c"), ("a", "b\r")] {
        let error = user_data(&tags(&[(key, value)]), None, "").unwrap_err();
        assert_eq!(error, Unfit::Tag { key: key.to_owned() });
    }
}

#[test]
fn what_is_too_long_is_refused_before_it_is_sent() {
    let fits = UserData::LONGEST / 4 * 3 - user_data(&BTreeMap::new(), None, "").unwrap().bytes().unwrap().len();
    assert!(user_data(&BTreeMap::new(), None, &"x".repeat(fits)).is_ok());
    let error = user_data(&BTreeMap::new(), None, &"x".repeat(fits + 1)).unwrap_err();
    assert!(matches!(error, Unfit::TooLong { length } if length > UserData::LONGEST), "{error}");
}
