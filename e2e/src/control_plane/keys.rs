//! Keys and certificates of the control plane: made per start, in files only their owner can read.

use std::path::Path;

use tokio::process::Command;

use super::Files;
use crate::error::{LabError, Result};
use crate::kubeconfig::write_private;
use crate::process::run;

/// Makes the service-account keys, the administrator's token and the audit policy's file.
pub async fn make(files: &Files) -> Result<()> {
    openssl(&["genrsa", "-out"], &[&files.at("sa.key"), Path::new("2048")]).await?;
    let public = files.at("sa.pub");
    openssl(&["rsa", "-pubout", "-in"], &[&files.at("sa.key"), Path::new("-out"), &public]).await?;
    let secret = run(Command::new("openssl").args(["rand", "-hex", "24"])).await?;
    let line = format!("{},admin,admin,\"system:masters\"\n", secret.trim());
    write_private(&files.at("tokens.csv"), &line)?;
    write_private(&files.at("audit-policy.yaml"), include_str!("audit_policy.yaml"))
}

async fn openssl(verbs: &[&str], paths: &[&Path]) -> Result<()> {
    run(Command::new("openssl").args(verbs).args(paths)).await.map(drop)
}

/// The administrator's token.
pub fn token(files: &Files) -> Result<String> {
    let path = files.at("tokens.csv");
    let text = std::fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
    Ok(text.split(',').next().unwrap_or_default().to_owned())
}

/// Takes the authority out of the file where the apiserver keeps its certificate and, after it,
/// the authority that signed it.
pub fn write_ca(files: &Files) -> Result<()> {
    let path = files.at("certs").join("apiserver.crt");
    let chain = std::fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
    let Some((_server, authority)) = chain.rsplit_once("-----BEGIN CERTIFICATE-----") else {
        return Err(LabError::missing("a certificate", "the apiserver has not written it yet"));
    };
    write_private(&files.ca(), &format!("-----BEGIN CERTIFICATE-----{authority}"))
}
