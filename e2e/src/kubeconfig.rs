//! Kubeconfig files, written as JSON (which is YAML).

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{LabError, Result};

/// How a kubeconfig proves who it speaks for.
#[derive(Debug, Clone)]
pub enum Identity {
    /// A bearer token in the file itself.
    Token(String),
    /// A bearer token in a file of its own that is renewed under the reader's hands, as a
    /// projected service-account token is.
    TokenFile(PathBuf),
}

/// Where an apiserver is and how to trust it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `https://127.0.0.1:<port>`.
    pub url: String,
    /// The certificate authority's PEM file.
    pub ca: PathBuf,
}

/// Writes a kubeconfig that only its owner can read.
pub fn write(path: &Path, endpoint: &Endpoint, who: &Identity, namespace: &str) -> Result<()> {
    write_private(path, &render(endpoint, who, namespace).to_string())
}

fn render(endpoint: &Endpoint, who: &Identity, namespace: &str) -> Value {
    let user = match who {
        Identity::Token(token) => json!({"token": token}),
        Identity::TokenFile(file) => json!({"tokenFile": file}),
    };
    let cluster = json!({"server": endpoint.url, "certificate-authority": endpoint.ca});
    let context = json!({"cluster": "lab", "user": "lab", "namespace": namespace});
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "lab", "user": user}],
        "contexts": [{"name": "lab", "context": context}],
        "current-context": "lab",
    })
}

/// Writes a file with mode 0600 by rename, so that a reader never sees half of it.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    let open =
        std::fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(&new);
    let mut file = open.map_err(LabError::io("create", &new))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(LabError::io("write", &new))?;
    std::fs::rename(&new, path).map_err(LabError::io("rename", path))
}
