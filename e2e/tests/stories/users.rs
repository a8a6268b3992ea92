//! Accounts of a cluster, with instances that are alive: who may log in where, and until when.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hpc_e2e::{LabError, Login, Restart, Result, Story, eventually, process};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::runner::Outcome;
use crate::site::{NAME, await_ready_for, end_of_bodies, quick};
use crate::stories;

stories![users_log_in_on_every_node_and_leave_with_the_spec];

/// Boots are real here.
const PATIENCE: Duration = Duration::from_mins(4);

/// The story's cluster, with its nodes and these users.
fn manifest(users: &Value) -> String {
    let mut cluster: Value = serde_saphyr::from_str(include_str!("cluster.yaml")).unwrap();
    cluster["spec"]["users"] = users.clone();
    cluster.to_string()
}

/// A new key pair of ssh: the secret's file, and the public line.
async fn key_pair(folder: &Path) -> Result<(std::path::PathBuf, String)> {
    let secret = folder.join("laptop");
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "alice@laptop", "-f"]).arg(&secret);
    process::run(&mut command).await?;
    let public = secret.with_extension("pub");
    let line = std::fs::read_to_string(&public).map_err(LabError::io("read", &public))?;
    Ok((secret, line.trim().to_owned()))
}

async fn users_log_in_on_every_node_and_leave_with_the_spec(story: Arc<Story>) -> Outcome {
    let folder = tempfile::tempdir()?;
    let (secret, public) = key_pair(folder.path()).await?;
    let both = json!([
        {"name": "alice", "uid": 4001, "sshPublicKeys": [public]}, {"name": "bob", "uid": 4002},
    ]);
    let operator = story.operator(&quick(), Restart::Never).await?;
    story.apply(&manifest(&both)).await?;
    let head = await_ready_for(PATIENCE, &story).await?.status.and_then(|it| it.head).unwrap();
    assert_eq!(head.login_user, "alice");
    let sim = story.sim().await?;
    let alice = Login::new(&sim, &head.instance_id, "alice").await?;
    let bob = Login::new(&sim, &head.instance_id, "bob").await?;

    // From node to node without a question, with the same number everywhere.
    let there = alice.run("ssh -o BatchMode=yes compute-2 'echo $(id -un) $(id -u)'");
    assert_eq!(there.await?, "alice 4001\n");
    assert_eq!(bob.run("srun --partition=compute --nodes=1 id --user").await?, "4002\n");

    // From outside, with the key of the spec, for as long as the spec has it.
    let secret = std::fs::read_to_string(&secret)?;
    bob.run(&format!("umask 077; cat > laptop <<'END'\n{secret}END")).await?;
    let come_in = format!(
        "ssh -i laptop -o BatchMode=yes -o StrictHostKeyChecking=no -o IdentitiesOnly=yes alice@{} id -un",
        head.private_ip
    );
    assert_eq!(bob.run(&come_in).await?, "alice\n");
    story
        .apply(&manifest(&json!([{"name": "bob", "uid": 4002}, {"name": "carol", "uid": 4003}])))
        .await?;
    eventually("alice is kept out", PATIENCE, async || {
        Ok(bob.run(&come_in).await.is_err().then_some(()))
    })
    .await?;
    let carol = "srun --partition=compute --nodes=2 --ntasks-per-node=1 id --user carol";
    eventually("carol is known on every node", PATIENCE, async || {
        Ok(bob.run(carol).await.ok().filter(|told| told == "4003\n4003\n"))
    })
    .await?;

    end_of_bodies(NAME, &story, operator).await
}
