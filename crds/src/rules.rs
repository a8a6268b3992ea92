//! What the API server refuses at admission, beyond types and bounds.
//!
//! The rules lie in files beside this module, not in attributes on the fields, so that each has one
//! sentence from which both the fixed message and the one with the found value are made.

use serde::Deserialize;
use serde_json::{Value, json};

/// One thing that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Where in the object: fields joined by dots, `[]` for each item of a list, `{}` for each
    /// value of a map, empty for the object itself.
    pub at: String,
    /// The CEL expression that must hold of `self`.
    pub rule: String,
    /// The sentence that names the field, what it must be and the way out.
    pub message: String,
    /// What was found instead, if that helps: text with CEL expressions in braces.
    #[serde(default)]
    pub found: Option<String>,
    /// The field the refusal points to, relative to `at`.
    #[serde(default)]
    pub field: Option<String>,
    /// The machine-readable class of the refusal.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Rule {
    /// The rule as an item of `x-kubernetes-validations`.
    pub(crate) fn validation(&self) -> Value {
        let mut validation = json!({"rule": self.rule, "message": self.message});
        let optional = [
            ("messageExpression", self.message_expression()),
            ("fieldPath", self.field.clone()),
            ("reason", self.reason.clone()),
        ];
        for (key, value) in optional {
            if let (Some(value), Some(object)) = (value, validation.as_object_mut()) {
                object.insert(key.to_owned(), value.into());
            }
        }
        validation
    }

    /// `format`, and no `+` with `string(...)`: the API server bounds the cost of the former only.
    fn message_expression(&self) -> Option<String> {
        let found = self.found.as_deref()?;
        let mut text = String::new();
        let mut values = Vec::new();
        for (index, part) in found.split(['{', '}']).enumerate() {
            if index % 2 == 0 {
                text.push_str(part);
            } else {
                text.push_str("%s");
                values.push(part);
            }
        }
        Some(format!(r#""{}; found '{text}'".format([{}])"#, self.message, values.join(", ")))
    }
}

/// The rules of `HPCCluster`.
pub fn cluster_rules() -> Vec<Rule> {
    parse(include_str!("rules/hpccluster.json"))
}

/// The rules of `BenchmarkRun`.
pub fn run_rules() -> Vec<Rule> {
    parse(include_str!("rules/benchmarkrun.json"))
}

#[expect(clippy::expect_used, reason = "the text is compiled in, and tests parse it")]
fn parse(text: &str) -> Vec<Rule> {
    serde_json::from_str(text).expect("the rules are valid")
}
