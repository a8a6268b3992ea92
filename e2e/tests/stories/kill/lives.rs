//! The lives that a cluster without bodies can lead, told from the user's side alone: the operator
//! may die at any moment of them.

use std::sync::Arc;

use hpc_crds::ConditionType;
use hpc_e2e::Story;

use crate::runner::{Outcome, Running};
use crate::site::{await_told, cluster, delete, left_over};

/// A life, and what is known of it beforehand.
pub struct Life {
    /// Names its stories and its list.
    pub name: &'static str,
    /// The calls of a clean run that change AWS.
    pub points: &'static str,
    /// Instances it ever makes.
    pub launches: usize,
    /// Leads it to its end, and sees that nothing is left.
    pub lead: fn(Arc<Story>) -> Running,
}

/// All of them.
pub const LIVES: &[Life] = &[Life {
    name: "create_and_delete",
    points: include_str!("create_and_delete.txt"),
    launches: 3,
    lead: |story| Box::pin(create_and_delete(story)),
}];

async fn create_and_delete(story: Arc<Story>) -> Outcome {
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    delete(&story).await?;
    assert_eq!(left_over(&story).await?, Vec::<String>::new());
    Ok(())
}
