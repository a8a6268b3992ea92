//! The chart as helm renders it: two sets of values, written out, so that a change is seen.

use std::sync::Arc;

use hpc_e2e::Story;
use hpc_e2e::helm::Release;
use serde_json::json;

use crate::runner::Outcome;
use crate::stories;

stories![
    it_passes_helms_lint,
    two_sets_of_values_render_as_reviewed,
    a_misspelt_value_is_refused,
    an_installation_without_a_name_is_refused,
];

async fn it_passes_helms_lint(story: Arc<Story>) -> Outcome {
    story.lab().helm().lint().await?;
    Ok(())
}

async fn two_sets_of_values_render_as_reviewed(story: Arc<Story>) -> Outcome {
    let values = [
        ("smallest", include_str!("chart/smallest.json")),
        ("everything", include_str!("chart/everything.json")),
    ];
    for (name, values) in values {
        let values = serde_json::from_str(values)?;
        let release = Release { name: "hpc".into(), namespace: "platform".into(), values };
        let text = story.lab().helm().template(&release, None).await?;
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("chart");
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!(name, without_crds(&text)));
    }
    Ok(())
}

/// The definitions are generated and proven equal elsewhere; here they would only be noise.
fn without_crds(text: &str) -> String {
    let documents = text.split("\n---\n");
    let others = documents.filter(|document| !document.contains("kind: CustomResourceDefinition"));
    others.collect::<Vec<_>>().join("\n---\n")
}

async fn refused(story: &Story, values: serde_json::Value) -> Result<String, String> {
    let release = Release { name: "hpc".into(), namespace: "platform".into(), values };
    match story.lab().helm().template(&release, None).await {
        Ok(_) => Err("it was accepted".to_owned()),
        Err(error) => Ok(error.chain()),
    }
}

async fn a_misspelt_value_is_refused(story: Arc<Story>) -> Outcome {
    let misspelt = json!({"installationId": "a", "limits": {"maxInstanzes": 3}});
    let message = refused(&story, misspelt).await?;
    assert!(message.contains("'maxInstanzes' not allowed"), "{message}");
    Ok(())
}

async fn an_installation_without_a_name_is_refused(story: Arc<Story>) -> Outcome {
    let message = refused(&story, json!({})).await?;
    assert!(message.contains("installationId must be set"), "{message}");
    Ok(())
}
