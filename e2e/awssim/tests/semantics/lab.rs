//! A simulator per test and a client that signs nothing but looks signed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use awssim::machine::MachinesFactory;
use awssim::{Config, Running, Simulator};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The first default subnet of us-east-1.
pub const SUBNET: &str = "subnet-0a1b2c3d4e5f60718";
/// The second.
pub const OTHER_SUBNET: &str = "subnet-0a1b2c3d4e5f60719";
/// The tag by which calls are named.
pub const ROLE: &str = "hpcops.dev:role";

const DEADLINE: Duration = Duration::from_mins(1);

/// A simulator whose delays are all zero until a test sets some, as one
/// account sees it.
#[derive(Clone)]
pub struct Lab {
    pub running: Arc<Running>,
    pub key: String,
    pub image: String,
    _state: Arc<TempDir>,
}

/// An answer of a service.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// One service as one caller uses it.
#[derive(Debug, Clone)]
pub struct Client {
    pub url: String,
    pub key: String,
    pub service: &'static str,
    pub region: &'static str,
}

impl Lab {
    pub async fn start() -> Self {
        Self::with(None).await
    }

    /// With machines, instances have bodies.
    pub async fn with(machines: Option<MachinesFactory>) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut config = Config::bodiless(state.path().to_path_buf(), 7);
        config.time_scale = 1.0;
        config.bodies = machines.is_some();
        config.machines = machines;
        let running = Simulator::start(config).await.unwrap();
        let mut lab = Self {
            running: Arc::new(running),
            key: "AKIATEST".into(),
            image: String::new(),
            _state: Arc::new(state),
        };
        lab.delays(json!({})).await;
        lab.image = lab.image_named("aws-parallelcluster-3.16.1-amzn2023-hvm-x86_64-").await;
        lab
    }

    /// The same simulator as another account sees it.
    pub fn other(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    async fn image_named(&self, prefix: &str) -> String {
        let config = self.control("GET", "config", json!(null)).await;
        let images = config["images"].as_array().unwrap();
        let named = |image: &&Value| image["name"].as_str().unwrap().starts_with(prefix);
        images.iter().find(named).unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// All delays zero but these (name: seconds), and no call throttled: a test
    /// that polls is quicker than any bucket.
    pub async fn delays(&self, set: Value) {
        let config = self.control("GET", "config", json!(null)).await;
        let mut delays = serde_json::Map::new();
        for name in config["delays"].as_object().unwrap().keys() {
            let seconds = set.get(name).cloned().unwrap_or(json!(0.0));
            let forgotten = if name == "Forgotten" { json!(3600.0) } else { seconds };
            delays.insert(name.clone(), json!([forgotten, forgotten]));
        }
        self.control("POST", "config", json!({"delays": delays, "throttling": false})).await;
    }

    pub fn client(&self, service: &'static str) -> Client {
        Client {
            url: self.running.url.clone(),
            key: self.key.clone(),
            service,
            region: "us-east-1",
        }
    }

    pub async fn ec2(&self, action: &str, parameters: &[(&str, &str)]) -> Answer {
        self.client("ec2").query(action, parameters).await
    }

    pub async fn fsx(&self, action: &str, request: Value) -> Answer {
        self.client("fsx").json(action, request).await
    }

    pub async fn ssm(&self, action: &str, request: Value) -> Answer {
        self.client("ssm").json(action, request).await
    }

    /// A request to the control API for this lab's account; must succeed.
    pub async fn control(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, value) = self.try_control(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {value}");
        value
    }

    pub async fn try_control(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let join = if path.contains('?') { '&' } else { '?' };
        let target = format!("/_sim/{path}{join}account={}", self.key);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = http(&self.running.url, method, &target, &[], &body).await.unwrap();
        (answer.status, serde_json::from_str(&answer.body).unwrap())
    }

    /// Living resources of a kind, by id.
    pub async fn living(&self, kind: &str) -> Vec<String> {
        let ledger = self.control("GET", "ledger", json!(null)).await;
        let lives = |entry: &&Value| entry["kind"] == kind && entry["deletedAt"].is_null();
        let all = ledger.as_array().unwrap().iter().filter(lives);
        all.map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    }

    /// All resources ever made of a kind.
    pub async fn ever(&self, kind: &str) -> usize {
        let ledger = self.control("GET", "ledger", json!(null)).await;
        ledger.as_array().unwrap().iter().filter(|entry| entry["kind"] == kind).count()
    }

    /// A security group that allows everything to and from itself.
    pub async fn open_group(&self, name: &str) -> String {
        let group = self.group(name).await;
        for action in ["AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress"] {
            let answer = self
                .ec2(
                    action,
                    &[
                        ("GroupId", &group),
                        ("IpPermissions.1.IpProtocol", "-1"),
                        ("IpPermissions.1.Groups.1.GroupId", &group),
                    ],
                )
                .await;
            assert_eq!(answer.code(), "OK");
        }
        group
    }

    pub async fn group(&self, name: &str) -> String {
        let made = self
            .ec2("CreateSecurityGroup", &[("GroupName", name), ("GroupDescription", name)])
            .await;
        made.first("groupId")
    }

    /// `RunInstances` of c5n.18xlarge in the first subnet, with more or other
    /// parameters.
    pub async fn launch(&self, more: &[(&str, &str)]) -> Answer {
        let mut all = vec![
            ("ImageId", self.image.as_str()),
            ("InstanceType", "c5n.18xlarge"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("SubnetId", SUBNET),
        ];
        all.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        all.extend(more.iter().filter(|(_, value)| *value != "-"));
        self.ec2("RunInstances", &all).await
    }

    pub async fn state(&self, id: &str) -> String {
        let answer = self.ec2("DescribeInstances", &[("InstanceId.1", id)]).await;
        answer.first("name")
    }

    /// Asks again and again until it holds; fails after the deadline.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let end = Instant::now() + DEADLINE;
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        while !holds().await {
            assert!(Instant::now() < end, "gave up waiting until {what}");
            ticks.tick().await;
        }
    }
}

impl Client {
    pub async fn query(&self, action: &str, parameters: &[(&str, &str)]) -> Answer {
        self.try_query(action, parameters).await.unwrap()
    }

    /// `None` when the connection broke without an answer.
    pub async fn try_query(&self, action: &str, parameters: &[(&str, &str)]) -> Option<Answer> {
        let version = if self.service == "sts" { "2011-06-15" } else { "2016-11-15" };
        let all = [("Action", action), ("Version", version)];
        let pairs = all.iter().chain(parameters);
        let body: Vec<String> =
            pairs.map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect();
        let headers = [
            ("authorization", self.authorization()),
            ("content-type", "application/x-www-form-urlencoded".to_owned()),
        ];
        http(&self.url, "POST", "/", &headers, &body.join("&")).await
    }

    pub async fn json(&self, action: &str, request: Value) -> Answer {
        let prefix =
            if self.service == "fsx" { "AWSSimbaAPIService_v20180301" } else { "AmazonSSM" };
        let headers = [
            ("authorization", self.authorization()),
            ("content-type", "application/x-amz-json-1.1".to_owned()),
            ("x-amz-target", format!("{prefix}.{action}")),
        ];
        http(&self.url, "POST", "/", &headers, &request.to_string()).await.unwrap()
    }

    fn authorization(&self) -> String {
        format!(
            "AWS4-HMAC-SHA256 Credential={}/20261001/{}/{}/aws4_request, \
             SignedHeaders=host, Signature={}",
            self.key,
            self.region,
            self.service,
            "0".repeat(64)
        )
    }
}

impl Answer {
    /// `OK` or the error code.
    pub fn code(&self) -> String {
        if self.status < 300 {
            return "OK".to_owned();
        }
        if let Ok(value) = serde_json::from_str::<Value>(&self.body) {
            return value["__type"].as_str().unwrap_or_default().to_owned();
        }
        self.first("Code")
    }

    /// Texts of all elements of that name.
    pub fn all(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let parts = self.body.split(&open).skip(1);
        parts.map(|part| part.split(&close).next().unwrap().to_owned()).collect()
    }

    pub fn first(&self, name: &str) -> String {
        self.all(name).into_iter().next().unwrap_or_else(|| panic!("no {name} in {}", self.body))
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }
}

fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// One request on a connection of its own; `None` when it broke.
pub async fn http(
    url: &str,
    method: &str,
    target: &str,
    headers: &[(&str, String)],
    body: &str,
) -> Option<Answer> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = vec![
        format!("{method} {target} HTTP/1.1"),
        format!("host: {address}"),
        "connection: close".to_owned(),
        format!("content-length: {}", body.len()),
    ];
    head.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    let head = head.join("\r\n");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}
