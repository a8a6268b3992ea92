//! The door through which stand-ins in a body ask the simulator: a socket in the
//! body's share that only its root can open; one line of JSON each way.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;

use super::body::Body;
use super::disks::mount_below;
use super::failure::io_failed;
use super::rack::Act;
use super::{Host, locked};
use crate::machine::MachineError;

/// What a stand-in may ask.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Question {
    Lustre { dns_name: String, mount_name: String },
    Nfs { server: IpAddr, path: String },
    Export { paths: BTreeSet<String> },
    Nfsd,
    Init,
    Agent,
    Shutdown,
}

/// Answers a body's stand-ins until the task is aborted.
pub fn serve(host: &Arc<Host>, body: &Arc<Body>) -> Result<AbortHandle, MachineError> {
    let listener = UnixListener::bind(body.share().join("host.sock"))
        .map_err(io_failed(body.id(), "open its door"))?;
    let (host, body) = (Arc::downgrade(host), Arc::downgrade(body));
    let task = tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                continue;
            };
            let (Some(host), Some(body)) = (host.upgrade(), body.upgrade()) else {
                return;
            };
            tokio::spawn(async move {
                if let Err(error) = converse(&host, &body, stream).await {
                    tracing::debug!(%error, "a stand-in hung up");
                }
            });
        }
    });
    Ok(task.abort_handle())
}

async fn converse(host: &Host, body: &Body, stream: UnixStream) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(question) => host.reply(body, question).await,
        Err(error) => Err(error.to_string()),
    };
    let answer =
        answer.map_or_else(|why| json!({"refused": why}), |given| json!({"granted": given}));
    writer.write_all(format!("{answer}\n").as_bytes()).await
}

impl Host {
    async fn reply(&self, body: &Body, question: Question) -> Result<Value, String> {
        match question {
            Question::Lustre { dns_name, mount_name } => {
                let folder = self.view.may_mount_lustre(body.id(), &dns_name, &mount_name)?.path;
                self.show(body, &["folder", &folder.to_string_lossy()]).await.map(Value::String)
            }
            Question::Nfs { server, path } => {
                self.show_export(body, server, Path::new(&path)).await.map(Value::String)
            }
            Question::Export { paths } => {
                locked(body.exports()).paths = paths;
                Ok(Value::Null)
            }
            Question::Nfsd => {
                locked(body.exports()).is_serving = true;
                Ok(Value::Null)
            }
            Question::Init => {
                body.is_up();
                Ok(Value::Null)
            }
            Question::Agent => {
                self.view.agent_online(body.id());
                Ok(Value::Null)
            }
            Question::Shutdown => {
                self.view.shutdown(body.id());
                Ok(Value::Null)
            }
        }
    }

    /// Mounts something into the body's share and gives its path in the body.
    async fn show(&self, body: &Body, what: &[&str]) -> Result<String, String> {
        let rack = self.rack().ok_or("the rack is gone")?;
        let name = body.next_grant();
        let args: Vec<&str> = [body.id(), &name].into_iter().chain(what.iter().copied()).collect();
        rack.run(Act { who: body.id(), script: "grant.sh", args: &args, network: None })
            .await
            .map_err(|error| error.to_string())?;
        Ok(format!("/run/awssim/{name}"))
    }

    /// An export is shown by mounting the disk under it once more: the kernel
    /// keeps one file system per disk, so both sides see each other's writes.
    async fn show_export(&self, body: &Body, at: IpAddr, path: &Path) -> Result<String, String> {
        let id = self.view.may_mount_nfs(body.id(), at)?;
        let server = self.body(&id).ok_or("mount.nfs4: Connection timed out")?;
        if !is_exported(&server, path) {
            return Err(format!(
                "mount.nfs4: mounting {at}:{} failed, reason given by server: No such file or directory",
                path.display()
            ));
        }
        let below = mount_below(&server, path)
            .ok_or("only a file system on a volume can be exported here")?;
        self.disks.share(&below.device, body.id())?;
        let shown = self.show(body, &["disk", &below.device, &below.kind]).await?;
        Ok(PathBuf::from(shown).join(below.rest).to_string_lossy().into_owned())
    }
}

fn is_exported(server: &Body, path: &Path) -> bool {
    let exports = locked(server.exports());
    exports.is_serving && exports.paths.iter().any(|export| path.starts_with(export))
}
