//! What the real apiserver lets in, and what it says when it does not: the examples pass, each
//! mistake is answered with a sentence that names the way out.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use hpc_e2e::{Story, places};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::runner::Outcome;
use crate::stories;

stories![
    every_example_is_admitted_and_applying_it_again_changes_nothing,
    each_mistake_is_refused_with_a_way_out,
    an_unknown_field_is_refused,
    the_kinds_explain_themselves,
];

/// The examples, by file name.
fn examples() -> Result<Vec<(PathBuf, String)>, std::io::Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(places::root().join("examples"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path)?;
            files.push((path, text));
        }
    }
    files.sort();
    Ok(files)
}

async fn every_example_is_admitted_and_applying_it_again_changes_nothing(
    story: Arc<Story>,
) -> Outcome {
    let examples = examples()?;
    assert!(!examples.is_empty(), "there are no examples");
    for (path, text) in examples {
        let said = story.apply(&text).await?;
        assert!(said.lines().all(|line| line.ends_with(" created")), "{}: {said}", path.display());
        let said = story.apply(&text).await?;
        assert!(
            said.lines().all(|line| line.ends_with(" unchanged")),
            "{}: {said}",
            path.display()
        );
    }
    Ok(())
}

/// One mistake in an otherwise good object.
#[derive(Deserialize)]
struct Refusal {
    /// Which object of the quickstart is changed.
    kind: String,
    /// JSON pointers and the values put there; null removes.
    set: Map<String, Value>,
    /// What the answer must contain.
    says: String,
}

async fn each_mistake_is_refused_with_a_way_out(story: Arc<Story>) -> Outcome {
    let refusals: Vec<Refusal> = serde_json::from_str(include_str!("admission/refusals.json"))?;
    let good: Vec<Value> = serde_saphyr::from_multiple(&quickstart()?)?;
    let mut wrong = String::new();
    for refusal in &refusals {
        let changed = refusal.applied_to(&good)?;
        let answer = dry_run(&story, &refusal.kind, changed).await?;
        if !answer.as_ref().is_some_and(|answer| answer.contains(&refusal.says)) {
            let answer = answer.unwrap_or_else(|| "it was accepted".to_owned());
            writeln!(
                wrong,
                "\n{:?}\n  should say: {}\n  said: {answer}",
                refusal.set, refusal.says
            )?;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}

async fn an_unknown_field_is_refused(story: Arc<Story>) -> Outcome {
    let misspelt = quickstart()?.replace("minNodes", "minNodez");
    let refused = story.apply(&misspelt).await.unwrap_err().to_string();
    assert!(refused.contains("unknown field \"spec.aws.queues[0].minNodez\""), "{refused}");
    Ok(())
}

async fn the_kinds_explain_themselves(story: Arc<Story>) -> Outcome {
    for path in ["hpccluster.spec.aws.queues", "benchmarkrun.spec.matrix", "hpccluster.status"] {
        let text = story.kubectl(&["explain", path], "").await?;
        assert!(text.contains("DESCRIPTION") && !text.contains("<empty>"), "{text}");
    }
    Ok(())
}

fn quickstart() -> Result<String, std::io::Error> {
    std::fs::read_to_string(places::root().join("examples/quickstart.yaml"))
}

impl Refusal {
    fn applied_to(&self, good: &[Value]) -> Result<Value, String> {
        let object = good.iter().find(|object| object["kind"] == self.kind.as_str());
        let mut object = object.ok_or_else(|| format!("no {} to change", self.kind))?.clone();
        for (pointer, value) in &self.set {
            put(&mut object, pointer, value).ok_or_else(|| format!("no place {pointer}"))?;
        }
        Ok(object)
    }
}

/// Sets what a JSON pointer names; the place just behind an array's end appends.
fn put(object: &mut Value, pointer: &str, value: &Value) -> Option<()> {
    let (parent, key) = pointer.rsplit_once('/')?;
    match object.pointer_mut(parent)? {
        Value::Object(map) if value.is_null() => drop(map.remove(key)),
        Value::Object(map) => drop(map.insert(key.to_owned(), value.clone())),
        Value::Array(list) => {
            let index: usize = key.parse().ok()?;
            list.resize(list.len().max(index + 1), Value::Null);
            list[index] = value.clone();
        }
        _ => return None,
    }
    Some(())
}

/// What the apiserver answers to a create; nothing if it accepts.
async fn dry_run(
    story: &Story,
    kind: &str,
    object: Value,
) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
    let resource = ApiResource {
        group: hpc_crds::GROUP.to_owned(),
        version: hpc_crds::VERSION.to_owned(),
        api_version: format!("{}/{}", hpc_crds::GROUP, hpc_crds::VERSION),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    let mut object: DynamicObject = serde_json::from_value(object)?;
    object.metadata.namespace = Some(story.namespace().to_owned());
    let api: Api<DynamicObject> =
        Api::namespaced_with(story.client(), story.namespace(), &resource);
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&params, &object).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}
