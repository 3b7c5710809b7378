//! Each thing that a structure can say, and how it is told.

use serde_json::json;

use super::*;

fn definition(spec: &Value) -> Definition {
    let schema = json!({ "type": "object", "properties": { "spec": spec }, "required": ["spec"] });
    Definition::of(&json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] } }))
}

#[track_caller]
fn faults(schema: &Value, spec: &Value) -> Vec<String> {
    let all = definition(schema).faults(&json!({ "spec": spec }), None);
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn each_fault_names_its_field_and_what_to_write() {
    let text = json!({ "type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 3 });
    let list = json!({ "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "integer", "minimum": 1 } });
    let map = json!({ "type": "object", "maxProperties": 1, "additionalProperties": { "type": "boolean" } });
    for (schema, good, bad, told) in [
        (
            &text,
            json!("aa"),
            json!("aba"),
            r#"spec: "aba" does not have the form that it needs; write what ^a+$ matches"#,
        ),
        (&text, json!("aaa"), json!("a"), "spec: has 1 characters; write 2 to 3"),
        (&text, json!("aaa"), json!("aaaa"), "spec: has 4 characters; write 2 to 3"),
        (
            &text,
            json!("aaa"),
            json!(5),
            "spec: is a number; write a text, in quotes where it looks like something else",
        ),
        (
            &text,
            json!("aaa"),
            json!(null),
            "spec: is empty; write a text, in quotes where it looks like something else",
        ),
        (&list, json!([1]), json!([]), "spec: has 0 entries; write 1 to 2"),
        (&list, json!([1, 2]), json!([1, 2, 3]), "spec: has 3 entries; write 1 to 2"),
        (&list, json!([1]), json!([1, 0]), "spec[1]: 0 is out of bounds; write 1 at least"),
        (&list, json!([1]), json!(["1"]), "spec[0]: is a text; write a whole number, without quotes"),
        (&map, json!({ "x": true }), json!({ "x": "yes" }), "spec.x: is a text; write true or false, without quotes"),
        (&map, json!({}), json!({ "x": true, "y": true }), "spec: has 2 entries; write 1 at most"),
        (&map, json!({}), json!([]), "spec: is a list; write a map"),
        (&json!({ "enum": ["a", "b"] }), json!("b"), json!("c"), r#"spec: "c" is none of what there is; write a, b"#),
        (&json!({ "required": ["a"] }), json!({ "a": 1 }), json!({}), "spec.a: is missing; add it"),
        (
            &json!({ "x-kubernetes-int-or-string": true }),
            json!(1),
            json!(true),
            "spec: is true or false; write a number or a text",
        ),
    ] {
        assert_eq!(faults(schema, &good), Vec::<String>::new(), "{good}");
        assert_eq!(faults(schema, &bad), [told], "{bad}");
    }
}

#[test]
fn rules_are_run_on_what_defaults_make_of_it_and_not_on_what_has_no_end() {
    let rule = json!([{ "rule": "self.all(x, x != self[0] || x == 7)", "message": "only seven" }]);
    let list =
        json!({ "type": "array", "maxItems": 3, "items": { "type": "integer" }, "x-kubernetes-validations": rule });
    let mut schema = json!({ "type": "object", "properties": { "list": list } });
    assert_eq!(faults(&schema, &json!({ "list": [7] })), Vec::<String>::new());
    assert_eq!(faults(&schema, &json!({ "list": [1] })), ["spec.list: only seven"]);
    assert_eq!(faults(&schema, &json!({ "list": [1, 1, 1, 1] })), ["spec.list: has 4 entries; write 3 at most"]);
    // A rule that stumbles over the wrong type has nothing to add.
    assert_eq!(faults(&schema, &json!({ "list": "x" })), ["spec.list: is a text; write a list"]);
    schema["properties"]["list"]["default"] = json!([1]);
    assert_eq!(faults(&schema, &json!({})), ["spec.list: only seven"]);
}

#[test]
fn what_cannot_be_compiled_lets_nothing_through() {
    let pattern = faults(&json!({ "type": "string", "pattern": "(" }), &json!("x"));
    assert!(matches!(&pattern[..], [told] if told.contains("write what ( matches")), "{pattern:?}");
    let rule = json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self ==", "message": "m" }] });
    assert_eq!(faults(&rule, &json!("x")).len(), 1);
}
