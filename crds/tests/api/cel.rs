//! Every rule of admission, with one object it accepts and one it refuses, compared literally.

use std::collections::{BTreeMap, BTreeSet};

use hpc_crds::rules::{Rule, cluster_rules, run_rules};
use kube::core::cel::{CompiledSchema, ValidationError, Validator, compile_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    base: Value,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Whether the base object exists and is changed.
    #[serde(default)]
    update: bool,
    accept: BTreeMap<String, Value>,
    refuse: BTreeMap<String, Value>,
    field: String,
    message: String,
    /// What else the refused object is refused for.
    #[serde(default)]
    also: Vec<String>,
}

#[test]
fn every_rule_of_a_cluster_accepts_one_object_and_refuses_another() {
    check(include_str!("cel/hpccluster.yaml"), "HPCCluster", &cluster_rules());
}

#[test]
fn every_rule_of_a_run_accepts_one_object_and_refuses_another() {
    check(include_str!("cel/benchmarkrun.yaml"), "BenchmarkRun", &run_rules());
}

#[test]
fn mount_paths_of_the_system_are_refused_and_others_are_not() {
    let rules = Rules::of("HPCCluster");
    let base = table(include_str!("cel/hpccluster.yaml")).base;
    let refused = |path: &str| {
        let change = BTreeMap::from([("/spec/aws/storage/0/mountPath".to_owned(), path.into())]);
        !rules.refusals(&base, &change, false).is_empty()
    };
    for path in include_str!("cel/refused-mount-paths.txt").lines() {
        assert!(refused(path), "{path} is accepted");
    }
    for path in include_str!("cel/accepted-mount-paths.txt").lines() {
        assert!(!refused(path), "{path} is refused");
    }
}

#[test]
fn ranges_that_open_the_head_to_the_internet_are_refused_and_others_are_not() {
    let rules = Rules::of("HPCCluster");
    let base = table(include_str!("cel/hpccluster.yaml")).base;
    let refused = |range: &str| {
        let ssh = serde_json::json!({"allowedCidrs": [range]});
        let change = BTreeMap::from([("/spec/aws/ssh".to_owned(), ssh)]);
        !rules.refusals(&base, &change, false).is_empty()
    };
    for range in ["0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/7", "::/0", "::/1", "8000::/1"]
    {
        assert!(refused(range), "{range} is accepted");
    }
    for range in ["10.0.0.0/8", "192.0.2.7/32", "2001::/16", "2001:db8::1/128"] {
        assert!(!refused(range), "{range} is refused");
    }
}

#[test]
fn tag_keys_that_instance_metadata_cannot_show_are_refused() {
    let rules = Rules::of("HPCCluster");
    let base = table(include_str!("cel/hpccluster.yaml")).base;
    let refused = |key: &str| {
        let change = BTreeMap::from([("/spec/aws/tags".to_owned(), serde_json::json!({key: "x"}))]);
        !rules.refusals(&base, &change, false).is_empty()
    };
    let long = "k".repeat(129);
    for key in ["", &long, "a b", "a/b", "Größe", ".", "..", "_index", "aws:a", "Aws:a", "AWS:"] {
        assert!(refused(key), "{key} is accepted");
    }
    for key in [&long[1..], "CostCenter", "a.b_c+d=e,f@g:h-i", "awsome"] {
        assert!(!refused(key), "{key} is refused");
    }
}

fn table(text: &str) -> Table {
    serde_saphyr::from_str(text).unwrap()
}

fn check(text: &str, kind: &str, listed: &[Rule]) {
    let table = table(text);
    let rules = Rules::of(kind);
    assert_eq!(table.rows.len(), listed.len(), "rows and rules of {kind}");
    let mut met = BTreeSet::new();
    for row in &table.rows {
        let accepted = rules.refusals(&table.base, &row.accept, row.update);
        assert!(accepted.is_empty(), "{:?} is refused: {accepted:?}", row.accept);
        let refused = rules.refusals(&table.base, &row.refuse, row.update);
        let found = refused.iter().map(|error| &error.message).collect::<BTreeSet<_>>();
        let expected = row.also.iter().chain([&row.message]).collect::<BTreeSet<_>>();
        assert_eq!(found, expected, "{:?}", row.refuse);
        let first = refused.iter().find(|error| error.message == row.message).unwrap();
        assert_eq!(first.field_path, row.field, "{}", row.message);
        met.insert((without_indexes(&first.field_path), &row.message, first.rule.clone()));
    }
    assert_eq!(met.len(), listed.len(), "each row is about another rule");
}

fn without_indexes(path: &str) -> String {
    path.replace(|character: char| character.is_ascii_digit(), "")
}

/// The rules of a kind, compiled once.
struct Rules(CompiledSchema);

impl Rules {
    fn of(kind: &str) -> Self {
        let compiled = compile_schema(&crate::schema(kind));
        assert!(!compiled.has_errors(), "{:?}", compiled.compilation_errors());
        Self(compiled)
    }

    /// What the base object with `changes` is refused for, on update or on creation.
    fn refusals(
        &self,
        base: &Value,
        changes: &BTreeMap<String, Value>,
        update: bool,
    ) -> Vec<ValidationError> {
        let mut object = base.clone();
        for (pointer, value) in changes {
            change(&mut object, pointer, value);
        }
        let old = update.then_some(base);
        match Validator::new().validate_compiled(&self.0, &object, old) {
            Ok(()) => Vec::new(),
            Err(errors) => errors.into_vec(),
        }
    }
}

/// Sets the field at `pointer`; null takes it away.
fn change(object: &mut Value, pointer: &str, value: &Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    if object.pointer(parent).is_none() {
        change(object, parent, &Value::Object(Map::new()));
    }
    let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(field);
    } else {
        parent.insert(field.to_owned(), value.clone());
    }
}
