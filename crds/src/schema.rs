//! Turns what kube derives into what the API server should get.
//!
//! The derive marks every optional field `nullable`, prints formats that the API server warns of,
//! cannot default the status and knows no rule with both a fixed and a computed message.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::cluster::HpcCluster;
use crate::rules::{Rule, cluster_rules, run_rules};
use crate::run::BenchmarkRun;

/// The formats the API server knows and we mean.
const FORMATS: [&str; 3] = ["int32", "int64", "date-time"];

/// The definitions of every kind, as they are installed. The only list of kinds.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![finish(&HpcCluster::crd(), &cluster_rules()), finish(&BenchmarkRun::crd(), &run_rules())]
}

/// The definition as JSON with whole numbers written as such, the way people write them.
pub fn manifest(definition: &CustomResourceDefinition) -> Value {
    let mut value = to_json(definition);
    visit(&mut value, &mut whole_numbers);
    value
}

fn finish(derived: &CustomResourceDefinition, rules: &[Rule]) -> CustomResourceDefinition {
    let mut definition = to_json(derived);
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    if let Some(root) = definition.pointer_mut(schema) {
        visit(root, &mut plain_types);
        default_status(root);
        for rule in rules {
            attach(root, rule);
        }
    }
    from_json(definition)
}

#[expect(clippy::expect_used, reason = "a definition has string keys only")]
fn to_json(definition: &CustomResourceDefinition) -> Value {
    serde_json::to_value(definition).expect("a definition is JSON")
}

#[expect(clippy::expect_used, reason = "it was a definition, and tests build every one")]
fn from_json(definition: Value) -> CustomResourceDefinition {
    serde_json::from_value(definition).expect("a finished definition is a definition")
}

fn visit(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    change(value);
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| visit(field, change)),
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn plain_types(value: &mut Value) {
    let Some(schema) = value.as_object_mut().filter(|object| is_schema(object)) else {
        return;
    };
    schema.remove("nullable");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = one_line_per_paragraph(text);
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|name| !FORMATS.contains(&name)) {
        schema.remove("format");
    }
}

/// `kubectl explain` wraps by itself.
fn one_line_per_paragraph(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// A schema has a `type` that is a text; a field called `type` has a schema there.
fn is_schema(object: &Map<String, Value>) -> bool {
    object.get("type").is_some_and(Value::is_string)
}

fn whole_numbers(value: &mut Value) {
    if let Some(whole) = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0) {
        #[expect(clippy::cast_possible_truncation, reason = "bounds are below 2^53, tested")]
        let whole = whole as i64;
        *value = whole.into();
    }
}

/// A brand-new object counts as not seen, instead of as finished, to whoever waits for it.
fn default_status(root: &mut Value) {
    if let Some(status) = root.pointer_mut("/properties/status").and_then(Value::as_object_mut) {
        status.insert("default".to_owned(), json!({"observedGeneration": -1}));
    }
}

#[expect(clippy::panic, reason = "the rules are compiled in, and tests attach every one")]
fn attach(root: &mut Value, rule: &Rule) {
    let Some(schema) = root.pointer_mut(&pointer(&rule.at)).and_then(Value::as_object_mut) else {
        panic!("a rule names no field: {}", rule.at);
    };
    let validations = schema.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
    if let Some(validations) = validations.as_array_mut() {
        validations.push(rule.validation());
    }
}

/// Where the schema of the field at a dotted path lies within the schema of the object.
fn pointer(path: &str) -> String {
    path.split('.').filter(|part| !part.is_empty()).map(step).collect()
}

fn step(part: &str) -> String {
    if let Some(list) = part.strip_suffix("[]") {
        return format!("/properties/{list}/items");
    }
    match part.strip_suffix("{}") {
        Some(map) => format!("/properties/{map}/additionalProperties"),
        None => format!("/properties/{part}"),
    }
}
