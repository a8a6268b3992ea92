//! Every example is an object the API server accepts, and has no field that it would drop.

use std::fs;
use std::path::PathBuf;

use kube::core::cel::Validator;
use serde_json::Value;

#[test]
fn every_example_is_accepted_whole() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            let schema = crate::schema(object["kind"].as_str().unwrap());
            let verdict = Validator::new().validate(&schema, &object, None);
            assert!(verdict.is_ok(), "{}: {verdict:?}", path.display());
            let spec = &schema["properties"]["spec"];
            assert_known(&format!("{}: spec", path.display()), &object["spec"], spec);
            seen += 1;
        }
    }
    assert!(seen >= 2, "only {seen} objects in examples");
}

/// Each value has a schema of its type, its required fields and one of its enum values.
fn assert_known(path: &str, value: &Value, schema: &Value) {
    let type_ = schema["type"].as_str().unwrap_or_else(|| panic!("{path} is unknown"));
    match value {
        Value::Object(fields) => {
            assert_eq!(type_, "object", "{path}");
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(required.as_str().unwrap()), "{path} lacks {required}");
            }
            for (name, field) in fields {
                let known = schema["properties"].get(name).or(schema.get("additionalProperties"));
                let known = known.unwrap_or_else(|| panic!("{path}.{name} is unknown"));
                assert_known(&format!("{path}.{name}"), field, known);
            }
        }
        Value::Array(items) => {
            assert_eq!(type_, "array", "{path}");
            for item in items {
                assert_known(&format!("{path}[]"), item, &schema["items"]);
            }
        }
        Value::String(_) => {
            assert_eq!(type_, "string", "{path}");
            let values = schema["enum"].as_array();
            assert!(values.is_none_or(|values| values.contains(value)), "{path}: {value}");
        }
        Value::Number(_) => assert_eq!(type_, "integer", "{path}"),
        Value::Bool(_) => assert_eq!(type_, "boolean", "{path}"),
        Value::Null => panic!("{path} is null"),
    }
}
