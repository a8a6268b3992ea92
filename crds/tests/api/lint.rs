//! What a Kubernetes API reviewer checks, over the generated definitions.

use serde_json::{Map, Value, json};

const KINDS: [&str; 2] = ["HPCCluster", "BenchmarkRun"];

/// A field, list item or map value of a kind.
struct Field {
    /// Where it is, such as `HPCCluster.spec.aws.queues[].name`.
    path: String,
    schema: Map<String, Value>,
    /// Whether the parent requires it.
    required: bool,
}

impl Field {
    fn is(&self, type_: &str) -> bool {
        self.schema.get("type").and_then(Value::as_str) == Some(type_)
    }

    fn has(&self, key: &str) -> bool {
        self.schema.contains_key(key)
    }

    fn text(&self, key: &str) -> &str {
        self.schema.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The name of a named field; none for items and values.
    fn name(&self) -> Option<&str> {
        self.path.rsplit('.').next().filter(|name| !name.ends_with([']', '}']))
    }

    fn is_in(&self, part: &str) -> bool {
        KINDS.iter().any(|kind| self.path.starts_with(&format!("{kind}.{part}")))
    }

    fn items(&self) -> Map<String, Value> {
        self.schema["items"].as_object().unwrap().clone()
    }
}

fn fields() -> Vec<Field> {
    let mut found = Vec::new();
    for kind in KINDS {
        let schema = crate::schema(kind);
        for part in ["spec", "status"] {
            let schema = schema["properties"][part].as_object().unwrap().clone();
            walk(format!("{kind}.{part}"), schema, part == "spec", &mut found);
        }
    }
    found
}

fn walk(path: String, schema: Map<String, Value>, required: bool, found: &mut Vec<Field>) {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, child) in properties {
        let required = is_required(&schema, name);
        walk(format!("{path}.{name}"), child.as_object().unwrap().clone(), required, found);
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = schema.get(key).and_then(Value::as_object) {
            walk(format!("{path}{suffix}"), child.clone(), false, found);
        }
    }
    found.push(Field { path, schema, required });
}

fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.contains(&json!(name)))
}

/// No field may break the rule.
fn every(rule: &str, holds: impl Fn(&Field) -> bool) {
    let all = fields();
    assert!(all.len() > 100, "the walk found only {} fields", all.len());
    let broken: Vec<_> =
        all.iter().filter(|field| !holds(field)).map(|field| field.path.as_str()).collect();
    assert!(broken.is_empty(), "{rule}: {broken:#?}");
}

#[test]
fn every_field_has_a_plain_type() {
    every("type is one of six", |field| {
        ["object", "array", "string", "integer", "boolean"].iter().any(|type_| field.is(type_))
    });
    every("no open schema", |field| {
        [
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-int-or-string",
            "oneOf",
            "anyOf",
            "$ref",
        ]
        .iter()
        .all(|key| !field.has(key))
    });
    every("formats the API server knows", |field| {
        ["", "int32", "int64", "date-time"].contains(&field.text("format"))
    });
    every("no boolean in spec", |field| !(field.is("boolean") && field.is_in("spec")));
}

#[test]
fn everything_is_bounded() {
    every("integers have bounds and a format", |field| {
        !field.is("integer") || ["minimum", "maximum", "format"].iter().all(|key| field.has(key))
    });
    every("texts have a longest length or are enums", |field| {
        !field.is("string") || field.has("maxLength") || field.has("enum")
    });
    every("lists have a longest length", |field| !field.is("array") || field.has("maxItems"));
    every("objects have fields or are bounded maps of texts", |field| {
        !field.is("object")
            || field.has("properties")
            || (field.has("maxProperties")
                && field.schema["additionalProperties"]["type"] == "string")
    });
}

#[test]
fn lists_say_how_they_merge() {
    every(
        "lists of objects are maps by a required key, lists of scalars are sets or atomic",
        |field| {
            if !field.is("array") {
                return true;
            }
            let items = field.items();
            if items["type"] != "object" {
                return ["set", "atomic"].contains(&field.text("x-kubernetes-list-type"));
            }
            let keys = field.schema["x-kubernetes-list-map-keys"].as_array().unwrap();
            field.text("x-kubernetes-list-type") == "map"
                && keys.iter().all(|key| is_required(&items, key.as_str().unwrap()))
        },
    );
}

#[test]
fn required_fields_have_no_default() {
    every("required or defaulted, not both", |field| !(field.required && field.has("default")));
}

#[test]
fn names_are_in_camel_case_and_mean_something_else_than_a_phase() {
    every("camelCase", |field| {
        field.name().is_none_or(|name| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric())
        })
    });
    every("no phase, no Timestamp, no isFoo, no Reference", |field| {
        field.name().is_none_or(|name| {
            name != "phase"
                && !name.ends_with("Timestamp")
                && !name.ends_with("Reference")
                && !name.strip_prefix("is").is_some_and(|rest| rest.starts_with(char::is_uppercase))
        })
    });
    every("enum values start with a capital or are numbers", |field| {
        let values = field.schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        values
            .filter_map(Value::as_str)
            .all(|value| value.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()))
    });
}

#[test]
fn descriptions_start_with_the_name_and_end_as_sentences() {
    every("starts with the name", |field| {
        field.name().is_none_or(|name| {
            let text = field.text("description");
            text.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', ',']))
        })
    });
    every("ends as a sentence, on one line", |field| {
        field.name().is_none()
            || (field.text("description").ends_with('.')
                && !field.text("description").contains('\n'))
    });
    every("defaults are told", |field| {
        !field.has("default")
            || !field.is_in("spec.")
            || field.is("object")
            || field.text("description").contains("Default: ")
    });
    every("required scalars say so", |field| {
        let scalar = !field.is("object") && !field.is("array");
        let must_say = field.required && field.is_in("spec.") && scalar;
        !must_say || field.text("description").contains("Required")
    });
    every("open enums say so", |field| {
        let single =
            field.schema.get("enum").and_then(Value::as_array).is_some_and(|v| v.len() == 1);
        !single || field.text("description").contains("Other values may appear")
    });
    for kind in KINDS {
        assert!(crate::schema(kind)["description"].as_str().unwrap().starts_with(kind));
    }
}

#[test]
fn a_new_object_does_not_count_as_finished() {
    for kind in KINDS {
        let schema = crate::schema(kind);
        let status = &schema["properties"]["status"];
        assert_eq!(status["default"], json!({"observedGeneration": -1}));
        assert_eq!(status["properties"]["observedGeneration"]["type"], "integer");
        assert!(!schema["required"].as_array().unwrap().contains(&json!("status")));
        assert!(status.get("required").is_none(), "all of status is optional");
        let version = &crate::manifest(kind)["spec"]["versions"][0];
        assert_eq!(version["subresources"], json!({"status": {}}));
    }
}

#[test]
fn a_definition_fits_into_an_annotation() {
    for kind in KINDS {
        let size = crate::manifest(kind).to_string().len();
        assert!(size < 256 * 1024, "{kind} has {size} bytes: kubectl apply would fail");
    }
}

#[test]
fn a_refusal_is_one_sentence_with_the_way_out() {
    for kind in KINDS {
        let schema = crate::schema(kind).to_string();
        assert!(!schema.contains("FieldValueDuplicate"), "the API server drops its message");
    }
    for rule in hpc_crds::rules::cluster_rules().iter().chain(&hpc_crds::rules::run_rules()) {
        let text = &rule.message;
        assert!(text.contains(" must "), "{text}");
        assert!(!text.contains(['"', '%', '\n']), "{text} breaks the message expression");
        assert!(!text.ends_with('.'), "{text}: what was found comes after it");
    }
}

/// The widest cell of each column, in the order of the table.
fn table_width(kind: &str, cells: &[(&str, usize)]) -> usize {
    let manifest = crate::manifest(kind);
    let columns = manifest["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    let names: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(names, cells.iter().map(|cell| cell.0).collect::<Vec<_>>());
    let longest_name = 14;
    let gap = 3;
    cells.iter().fold(longest_name, |sum, (name, width)| sum + gap + name.len().max(*width))
}

#[test]
fn both_tables_fit_eighty_columns() {
    let reason = hpc_crds::Reason::all().map(|reason| reason.to_string().len()).max().unwrap();
    assert_eq!(reason, 24);
    let longest_age = 6;
    let cluster = [("Ready", 7), ("Status", reason), ("Nodes", 7), ("Age", longest_age)];
    assert!(table_width("HPCCluster", &cluster) <= 80);
    let run = [("Status", reason), ("Progress", 7), ("Result", 9), ("Age", longest_age)];
    assert!(table_width("BenchmarkRun", &run) <= 80);
}
