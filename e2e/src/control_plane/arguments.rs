//! The command lines of the control plane's programs.

use super::Files;

/// The ports of one start.
#[derive(Debug)]
pub struct Ports {
    /// Where etcd answers the apiserver.
    pub etcd: u16,
    /// Where etcd would answer other members.
    pub peer: u16,
    /// Where the apiserver answers.
    pub api: u16,
}

/// etcd that trades durability for speed: its data never outlives the lab.
pub fn etcd(files: &Files, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.peer);
    vec![
        format!("--data-dir={}", files.at("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

/// The apiserver with the rules of a careful cluster: RBAC, audit, owner references that need
/// permission, bound service-account tokens.
pub fn apiserver(files: &Files, ports: &Ports) -> Vec<String> {
    let at = |name: &str| files.at(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.api),
        format!("--cert-dir={}", at("certs")),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", at("tokens.csv")),
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", at("sa.pub")),
        format!("--service-account-signing-key-file={}", at("sa.key")),
        format!("--audit-policy-file={}", at("audit-policy.yaml")),
        format!("--audit-log-path={}", at("audit.log")),
        // An answer is never seen before its line, and no line is rotated away.
        "--audit-log-mode=blocking".to_owned(),
        "--audit-log-maxsize=65536".to_owned(),
    ]
}

/// The controllers whose work stories see; the rest would wait for nodes that never come.
pub fn controllers(files: &Files) -> Vec<String> {
    let at = |name: &str| files.at(name).display().to_string();
    let names = [
        "namespace-controller",
        "garbage-collector-controller",
        "serviceaccount-controller",
        "serviceaccount-token-controller",
        "clusterrole-aggregation-controller",
        "root-ca-certificate-publisher-controller",
    ];
    vec![
        format!("--kubeconfig={}", files.kubeconfig().display()),
        format!("--controllers={}", names.join(",")),
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", at("sa.key")),
        format!("--root-ca-file={}", files.ca().display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
