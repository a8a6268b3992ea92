//! What leaves this process, recorded: the clients talk to a scripted connector instead of AWS.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use hpc_plan::cloud::{Direction, Kind, Nic, NicKind, Peer, Rule, SubnetId, Tags, Token, Traffic};
use hpc_plan::cluster::{
    Body, FileSystemBody, InterfaceBody, LaunchBody, Resource, Step, VolumeBody,
};
use hpc_plan::names::Owner;

use crate::{Aws, Cloud, ImageQuery, Limits, Query, RunRequest, Scope};

/// One scripted answer: HTTP status and body.
type Answer = (u16, String);

/// One recorded call: action and parameters.
type Call = (String, BTreeMap<String, String>);

/// AWS as a script: per action the answers in order, the last one for ever; an empty success for
/// actions without any.
#[derive(Clone, Debug, Default)]
struct Script {
    answers: Arc<Mutex<HashMap<String, Vec<Answer>>>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Script {
    fn with(self, action: &str, status: u16, body: &str) -> Self {
        let mut answers = self.answers.lock().unwrap();
        answers.entry(action.to_owned()).or_default().push((status, body.to_owned()));
        drop(answers);
        self
    }

    fn refusing(self, action: &str, status: u16, code: &str) -> Self {
        let error = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
        let body = format!("<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>");
        self.with(action, status, &body)
    }

    fn aws(&self) -> Aws {
        let connector = SharedHttpConnector::new(self.clone());
        let credentials = Credentials::new("key", "secret", None, None, "test");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .retry_config(aws_config::retry::RetryConfig::standard().with_max_attempts(1))
            .http_client(http_client_fn(move |_, _| connector.clone()))
            .build();
        Aws::new(config, Arc::new(|_| ()))
    }

    /// The actions called so far, in order.
    fn actions(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(action, _)| action.clone()).collect()
    }

    /// The calls so far as text, one parameter a line.
    fn text(&self) -> String {
        let mut text = String::new();
        for (action, parameters) in self.calls.lock().unwrap().iter() {
            writeln!(text, "{action}").unwrap();
            for (name, value) in parameters {
                writeln!(text, "  {name} = {value}").unwrap();
            }
        }
        text
    }

    fn answer(&self, action: &str) -> Answer {
        let mut answers = self.answers.lock().unwrap();
        match answers.get_mut(action) {
            Some(list) if list.len() > 1 => list.remove(0),
            Some(list) => list[0].clone(),
            None => (200, String::new()),
        }
    }
}

impl HttpConnector for Script {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = String::from_utf8(request.body().bytes().unwrap().to_vec()).unwrap();
        let target = request.headers().get("x-amz-target").map(str::to_owned);
        let (action, parameters) = match &target {
            Some(target) => (target.rsplit('.').next().unwrap().to_owned(), json(&body)),
            None => query(&body),
        };
        self.calls.lock().unwrap().push((action.clone(), parameters));
        let (status, mut answer) = self.answer(&action);
        if answer.is_empty() {
            answer = match target {
                Some(_) => "{}".to_owned(),
                None => format!("<{action}Response></{action}Response>"),
            };
        }
        let response = HttpResponse::new(status.try_into().unwrap(), SdkBody::from(answer));
        HttpConnectorFuture::ready(Ok(response))
    }
}

/// The parameters of a query body.
fn query(body: &str) -> Call {
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    let mut all: BTreeMap<_, _> =
        pairs.map(|(name, value)| (name.to_owned(), unescape(value))).collect();
    all.remove("Version");
    (all.remove("Action").unwrap(), all)
}

fn unescape(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_at(2);
        plain.push(char::from(u8::from_str_radix(code, 16).unwrap()));
        plain.push_str(rest);
    }
    plain
}

/// The members of a JSON body.
fn json(body: &str) -> BTreeMap<String, String> {
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    let members = value.as_object().unwrap().iter();
    members.map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn scope() -> Scope {
    Scope {
        region: "us-east-1".to_owned(),
        owner: Owner {
            installation: "lab".to_owned(),
            uid: "u1".to_owned(),
            namespace: "cfd".to_owned(),
            name: "wing".to_owned(),
        },
        limits: Limits { max_instances: 20, max_hourly_cost: 100_000_000 },
    }
}

fn our_tags() -> Tags {
    scope().owner.tags("queue-compute", &Tags::new())
}

fn token() -> Token {
    scope().owner.token("queue/compute", "us-east-1a", 1)
}

fn launch() -> LaunchBody {
    LaunchBody {
        count: 2,
        instance_type: "c5n.18xlarge".to_owned(),
        image: "ami-1".to_owned(),
        subnet: "subnet-1".into(),
        groups: vec!["sg-1".into()],
        interface: None,
        nics: vec![
            Nic { card: 0, device: 0, kind: NicKind::Interface },
            Nic { card: 0, device: 1, kind: NicKind::EfaOnly },
        ],
        single_threaded: Some(36),
        placement_group: Some("hpcops-u1-queue-compute".to_owned()),
        profile: "node".to_owned(),
        key_name: None,
        user_data: "IyEvYmluL2Jhc2gK".to_owned(),
        tags: our_tags(),
    }
}

fn create(body: Body) -> Step {
    Step::Create { token: token(), thing: "thing".to_owned(), body }
}

fn delete(resource: Resource) -> Step {
    Step::Delete { resource, because: "test".to_owned() }
}

/// EC2's words for our tags, or for those of somebody else.
fn tag_set(tags: &Tags) -> String {
    let item = |(key, value): (&String, &String)| {
        format!("<item><key>{key}</key><value>{value}</value></item>")
    };
    format!("<tagSet>{}</tagSet>", tags.iter().map(item).collect::<String>())
}

/// Applies one step and tells the last call it made.
async fn sent(step: Step) -> String {
    let script = Script::default();
    script.aws().apply(&scope(), &step).await.unwrap();
    let calls = script.calls.lock().unwrap().pop();
    let last = Script::default();
    last.calls.lock().unwrap().extend(calls);
    last.text()
}

#[tokio::test]
async fn a_gang_is_one_call_with_its_token_equal_counts_all_tags_and_its_interfaces() {
    insta::assert_snapshot!(sent(create(Body::Launch(launch()))).await);
}

#[tokio::test]
async fn a_head_takes_its_own_interface_and_keeps_it() {
    let head = LaunchBody {
        count: 1,
        interface: Some("eni-1".into()),
        nics: Vec::new(),
        single_threaded: None,
        placement_group: None,
        key_name: Some("key".to_owned()),
        ..launch()
    };
    insta::assert_snapshot!(sent(create(Body::Launch(head))).await);
}

#[tokio::test]
async fn single_things_carry_their_token_and_tags_in_the_create_call() {
    let subnet = SubnetId::from("subnet-1");
    let groups = vec!["sg-1".into()];
    let bodies = [
        Body::Interface(InterfaceBody {
            subnet: subnet.clone(),
            groups: groups.clone(),
            description: "head of cfd.wing".to_owned(),
            tags: our_tags(),
        }),
        Body::Volume(VolumeBody { zone: "us-east-1a".to_owned(), size_gib: 50, tags: our_tags() }),
        Body::FileSystem(FileSystemBody {
            subnet,
            groups,
            deployment_type: "PERSISTENT_2".to_owned(),
            capacity_gib: 1200,
            per_unit_throughput: Some(125),
            version: "2.15".to_owned(),
            tags: our_tags(),
        }),
    ];
    let mut all = String::new();
    for body in bodies {
        all += &sent(create(body)).await;
    }
    insta::assert_snapshot!(all);
}

#[tokio::test]
async fn things_without_a_token_carry_their_name_and_tags() {
    let mut all = String::new();
    for step in [
        Step::CreateGroup {
            name: "hpcops-u1-head".to_owned(),
            vpc: "vpc-1".to_owned(),
            description: "head of cfd.wing".to_owned(),
            tags: our_tags(),
        },
        Step::CreatePlacementGroup { name: "hpcops-u1-queue".to_owned(), tags: our_tags() },
        Step::CreateDocument {
            name: "hpcops-lab-0123".to_owned(),
            content: "{}".to_owned(),
            tags: our_tags(),
        },
        Step::AttachVolume {
            volume: "vol-1".into(),
            instance: "i-1".into(),
            device: "/dev/sdf".to_owned(),
        },
        Step::Authorize { group: "sg-1".into(), rules: vec![self_rule(Direction::Egress)] },
        Step::Revoke { group: "sg-1".into(), rules: vec![self_rule(Direction::Ingress)] },
    ] {
        all += &sent(step).await;
    }
    insta::assert_snapshot!(all);
}

fn self_rule(direction: Direction) -> Rule {
    Rule { direction, traffic: Traffic::All, peer: Peer::Group("sg-1".into()) }
}

#[tokio::test]
async fn a_launch_without_capacity_is_sent_once_and_is_capacity_though_it_is_an_http_500() {
    let script = Script::default().refusing("RunInstances", 500, "InsufficientInstanceCapacity");
    let step = create(Body::Launch(launch()));
    let failure = script.aws().apply(&scope(), &step).await.unwrap_err();
    assert_eq!((failure.kind, failure.operation.as_str()), (Kind::Capacity, "RunInstances"));
    assert_eq!(script.actions(), ["DescribeInstances", "RunInstances"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_tried_three_times_when_the_outcome_is_unknown_and_then_listed_as_failed() {
    let caller = "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account>\
                  <Arn>arn:aws-cn:sts::123456789012:x</Arn></GetCallerIdentityResult>\
                  </GetCallerIdentityResponse>";
    let script = Script::default().with("GetCallerIdentity", 200, caller).refusing(
        "DescribeVolumes",
        503,
        "Unavailable",
    );
    let observed = script.aws().observe(&question()).await;
    let failed: Vec<_> = observed.failures.iter().map(|one| one.operation.as_str()).collect();
    assert_eq!(failed, ["DescribeVolumes"]);
    let tries = script.actions().iter().filter(|action| *action == "DescribeVolumes").count();
    assert_eq!(tries, 3);
    let account = observed.account.unwrap();
    assert_eq!((account.id.as_str(), account.partition.as_str()), ("123456789012", "aws-cn"));
}

fn question() -> Query {
    Query {
        scope: scope(),
        subnets: vec!["subnet-1".into()],
        types: vec!["c5n.18xlarge".to_owned()],
        image: ImageQuery::Id("ami-1".to_owned()),
        document: "hpcops-lab-0123".to_owned(),
        parameter: scope().owner.parameter(),
        file_systems: Vec::new(),
        list_file_systems: true,
        status_poll: std::time::Duration::from_mins(1),
        fresh: false,
    }
}

#[tokio::test]
async fn two_clusters_share_one_reading_and_an_act_makes_it_stale_for_its_own_cluster_only() {
    let script = Script::default();
    let aws = script.aws();
    let count = || script.actions().iter().filter(|name| *name == "DescribeVolumes").count();
    let mut other = question();
    other.scope.owner.uid = "u2".to_owned();
    aws.observe(&question()).await;
    aws.observe(&other).await;
    assert_eq!(count(), 1);
    aws.apply(&scope(), &create(Body::Launch(launch()))).await.unwrap();
    aws.observe(&other).await;
    assert_eq!(count(), 1);
    aws.observe(&question()).await;
    assert_eq!(count(), 2);
    aws.observe(&Query { fresh: true, ..question() }).await;
    assert_eq!(count(), 3);
}

#[tokio::test]
async fn every_page_of_a_listing_is_read() {
    let page = |id: &str, next: &str| {
        format!(
            "<DescribeVolumesResponse><volumeSet><item><volumeId>{id}</volumeId>{}</item></volumeSet>\
             <nextToken>{next}</nextToken></DescribeVolumesResponse>",
            tag_set(&our_tags())
        )
    };
    let script = Script::default().with("DescribeVolumes", 200, &page("vol-1", "more")).with(
        "DescribeVolumes",
        200,
        &page("vol-2", ""),
    );
    let observed = script.aws().observe(&question()).await;
    let ids: Vec<_> = observed.volumes.iter().map(|volume| volume.id.0.as_str()).collect();
    assert_eq!(ids, ["vol-1", "vol-2"]);
}

#[tokio::test]
async fn clusters_that_listen_at_the_same_time_cost_one_read_and_nothing_else() {
    let value = r#"{\"v\":1,\"instanceId\":\"i-1\",\"state\":\"Ready\"}"#;
    let answer = format!(r#"{{"Parameters":[{{"Name":"/hpcops/u1/demand","Value":"{value}"}}]}}"#);
    let script = Script::default().with("GetParametersByPath", 200, &answer);
    let aws = script.aws();
    let own = aws.report("us-east-1", "/hpcops/u1/demand").await.unwrap();
    assert_eq!(own.map(|report| report.instance_id), Some("i-1".to_owned()));
    assert_eq!(aws.report("us-east-1", "/hpcops/u2/demand").await, Ok(None));
    assert_eq!(script.actions(), ["GetParametersByPath"]);
}

#[tokio::test]
async fn a_taken_name_is_success_only_when_the_tags_are_ours() {
    let step = Step::CreateGroup {
        name: "hpcops-u1-head".to_owned(),
        vpc: "vpc-1".to_owned(),
        description: String::new(),
        tags: our_tags(),
    };
    for (tags, expected) in
        [(our_tags(), Ok(vec!["sg-9".to_owned()])), (Tags::new(), Err(Kind::Exists))]
    {
        let found = format!(
            "<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-9</groupId>{}</item>\
             </securityGroupInfo></DescribeSecurityGroupsResponse>",
            tag_set(&tags)
        );
        let script = Script::default()
            .refusing("CreateSecurityGroup", 400, "InvalidGroup.Duplicate")
            .with("DescribeSecurityGroups", 200, &found);
        let made = script.aws().apply(&scope(), &step).await.map_err(|failure| failure.kind);
        assert_eq!(made, expected);
    }
}

#[tokio::test]
async fn one_existing_rule_does_not_keep_the_others_out() {
    let script = Script::default()
        .refusing("AuthorizeSecurityGroupIngress", 400, "InvalidPermission.Duplicate")
        .with("AuthorizeSecurityGroupIngress", 200, "")
        .refusing("AuthorizeSecurityGroupIngress", 400, "InvalidPermission.Duplicate");
    let rules = vec![
        self_rule(Direction::Ingress),
        Rule { traffic: Traffic::Tcp(22, 22), ..self_rule(Direction::Ingress) },
    ];
    let step = Step::Authorize { group: "sg-1".into(), rules };
    script.aws().apply(&scope(), &step).await.unwrap();
    assert_eq!(script.actions().len(), 3);
}

#[tokio::test]
async fn instances_of_somebody_else_are_never_terminated() {
    let mut foreign = our_tags();
    foreign.insert("hpcops.dev:cluster-uid".to_owned(), "u2".to_owned());
    for (tags, expected) in [(our_tags(), None), (foreign, Some("NotOurs"))] {
        let found = format!(
            "<DescribeInstancesResponse><reservationSet><item><instancesSet><item>\
             <instanceId>i-1</instanceId><instanceState><name>running</name></instanceState>{}\
             </item></instancesSet></item></reservationSet></DescribeInstancesResponse>",
            tag_set(&tags)
        );
        let script = Script::default().with("DescribeInstances", 200, &found);
        let step = Step::Terminate { instances: vec!["i-1".into()], because: "test".to_owned() };
        let refusal = script.aws().apply(&scope(), &step).await.err();
        assert_eq!(refusal.as_ref().map(|failure| failure.code.as_str()), expected);
        let ended = script.actions().contains(&"TerminateInstances".to_owned());
        assert_eq!(ended, expected.is_none());
    }
}

#[tokio::test]
async fn deleting_what_is_gone_is_success_and_deleting_what_is_not_ours_is_refused() {
    let gone = Script::default();
    let made = gone.aws().apply(&scope(), &delete(Resource::Volume("vol-1".into()))).await;
    assert_eq!(made, Ok(Vec::new()));
    let foreign = "<DescribeVolumesResponse><volumeSet><item><volumeId>vol-1</volumeId></item>\
                   </volumeSet></DescribeVolumesResponse>";
    let script = Script::default().with("DescribeVolumes", 200, foreign);
    let made = script.aws().apply(&scope(), &delete(Resource::Volume("vol-1".into()))).await;
    assert_eq!(made.unwrap_err().code, "NotOurs");
    assert_eq!(script.actions(), ["DescribeVolumes"]);
    let parameter = Resource::Parameter("/hpcops/u2/demand".to_owned());
    let made = gone.aws().apply(&scope(), &delete(parameter)).await;
    assert_eq!(made.unwrap_err().code, "NotOurs");
}

#[tokio::test]
async fn the_tags_of_a_file_system_are_read_before_it_is_deleted() {
    let system = r#"{"FileSystems":[{"FileSystemId":"fs-1","ResourceARN":"arn:1","Lifecycle":"AVAILABLE",
        "Tags":[{"Key":"hpcops.dev:installation","Value":"lab"},{"Key":"hpcops.dev:cluster-uid","Value":"u1"}]}]}"#;
    let script = Script::default().with("DescribeFileSystems", 200, system);
    let resource = Resource::FileSystem("fs-1".into(), token());
    script.aws().apply(&scope(), &delete(resource)).await.unwrap();
    assert_eq!(script.actions(), ["DescribeFileSystems", "DeleteFileSystem"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_is_sent_once_and_its_answer_awaited_past_ssms_own_lag() {
    let early = r#"{"__type":"InvocationDoesNotExist","message":""}"#;
    let script = Script::default()
        .with("SendCommand", 200, r#"{"Command":{"CommandId":"c-1"}}"#)
        .with("GetCommandInvocation", 400, early)
        .with("GetCommandInvocation", 200, r#"{"Status":"InProgress","StatusDetails":"InProgress","ResponseCode":-1}"#)
        .with(
            "GetCommandInvocation",
            200,
            r#"{"Status":"Success","StatusDetails":"Success","ResponseCode":0,"StandardOutputContent":"{}"}"#,
        );
    let request = RunRequest {
        region: "us-east-1".to_owned(),
        instances: vec!["i-1".into()],
        document: "hpcops-lab-0123".to_owned(),
        payload_base64: "e30=".to_owned(),
        timeout: std::time::Duration::from_secs(30),
    };
    let answers = script.aws().run(&request).await.unwrap();
    assert!(answers[0].succeeded());
    assert_eq!(answers[0].stdout, "{}");
    let sent = script.actions().iter().filter(|action| *action == "SendCommand").count();
    assert_eq!(sent, 1);
}
