//! A whole cluster in bodies: the real user data, the real document, a real job.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::lab::{DNS_NAME, Lab, inode, members, no_loop_is_left, until};
use crate::machine::Machines as _;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../operator/plan/node")
}

fn render(arguments: &[&str]) -> Vec<u8> {
    let output = Process::new("python3")
        .arg(scripts().join("tests/render.py"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// The real user data of a role.
fn user_data(lab: &Lab, role: &str) -> Vec<u8> {
    let names = json!(["compute-1", "compute-2"]);
    let config = json!({
        "version": 1, "role": role, "clusterUid": "11111111-2222-3333-4444-555555555555",
        "clusterName": "test.quickstart", "region": "us-east-1", "headIp": "10.0.0.10",
        "user": {"name": "hpc", "uid": 4001}, "stateVolumeId": "vol-0aaaaaaaaaaaaaaaa",
        "storage": [{"name": "fsx", "dnsName": DNS_NAME, "mountName": "abcd1234", "mountPath": "/fsx"}],
        "queues": [{"name": "compute", "nodes": names, "cpus": 36, "memoryMiB": 180_000, "efa": false}],
        "queue": "compute", "nodeNames": names,
        "image": {"slurmPrefix": "/opt/slurm", "mpi": {"OpenMPI": "/opt/amazon/openmpi"}, "defaultUser": "ec2-user"},
    });
    let path = lab.dir.join(format!("{role}.json"));
    fs::write(&path, config.to_string()).unwrap();
    render(&["userdata", path.to_str().unwrap()])
}

/// Asks a head through the real document, as Run Command would.
async fn ask(lab: &Lab, head: &str, question: Value) -> Value {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, question.to_string().as_bytes()).unwrap();
    let payload = BASE64.encode(packed.finish().unwrap());
    let document = String::from_utf8(render(&["document"]))
        .unwrap()
        .replace("{{ payload }}", &payload);
    serde_json::from_str(&lab.output(head, &document).await).unwrap()
}

async fn boot_cluster(lab: &Lab) -> Vec<String> {
    let begin = Instant::now();
    let mut head = lab.spec(10);
    head.user_data = Some(user_data(lab, "head"));
    lab.attach(&head.instance_id);
    let head = lab.start(head).await;
    let is_ready = async || {
        let report = lab.report();
        if report["state"] == "Ready" {
            Ok(())
        } else {
            Err(report.to_string())
        }
    };
    if let Err(why) = until("the head", is_ready).await {
        panic!("{why}\n{}", lab.evidence().await);
    }
    println!("head ready after {:.1} s", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    let mut ids = vec![head];
    for index in 0..2 {
        let mut node = lab.spec(11 + index);
        node.launch_index = u32::from(index);
        node.user_data = Some(user_data(lab, "compute"));
        ids.push(lab.start(node).await);
    }
    let are_ready = async || {
        let report = lab.report();
        if report["queues"][0]["ready"] == 2 {
            Ok(())
        } else {
            Err(report.to_string())
        }
    };
    if let Err(why) = until("the nodes", are_ready).await {
        panic!("{why}\n{}", lab.evidence().await);
    }
    println!("2 nodes ready after {:.1} s", begin.elapsed().as_secs_f64());
    println!(
        "{}",
        lab.output(&ids[0], include_str!("data/steps.sh")).await
    );
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_job_runs_between_two_bodies_and_nothing_is_left_of_them() {
    let Some(lab) = Lab::new().await else { return };
    let ids = boot_cluster(&lab).await;
    let head = &ids[0];
    let attempt = json!({
        "id": "run-1-a1", "folder": "/fsx/.hpcops/run-1/a1", "user": "hpc", "queue": "compute",
        "nodes": 2, "ranksPerNode": 1, "timeLimitMinutes": 5, "environment": {"GREETING": "it's $(id) \"here\""},
        "script": include_str!("data/run.sh"),
    });
    let submit = json!({"op": "submit", "attempts": [attempt]});
    let first = ask(&lab, head, submit.clone()).await;
    assert_eq!(first["attempts"][0]["state"], "Submitted", "{first}");
    let second = ask(&lab, head, submit).await;
    assert_eq!(second["attempts"][0]["state"], "Exists", "{second}");
    assert_eq!(
        second["attempts"][0]["jobId"],
        first["attempts"][0]["jobId"]
    );

    let mut heads = serde_json::Map::new();
    heads.insert(
        head.clone(),
        json!([{"id": "run-1-a1", "folder": "/fsx/.hpcops/run-1/a1"}]),
    );
    let poll = json!({"op": "poll", "heads": heads});
    let finished = async || {
        let answer = ask(&lab, head, poll.clone()).await;
        let one = answer["attempts"][0].clone();
        if one["phase"] == "Finished" {
            Ok(one)
        } else {
            Err(answer.to_string())
        }
    };
    let one = match until("the job", finished).await {
        Ok(one) => one,
        Err(why) => panic!("{why}\n{}", lab.evidence().await),
    };
    let page = ask(
        &lab,
        head,
        json!({"op": "fetch", "id": "run-1-a1", "folder": "/fsx/.hpcops/run-1/a1", "offset": 0}),
    )
    .await;
    let packed = BASE64.decode(page["data"].as_str().unwrap()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*packed), &mut text).unwrap();
    println!("{one}\n{text}");
    assert_eq!(
        (&one["exit"]["code"], &page["next"]),
        (&json!(0), &Value::Null),
        "{text}"
    );
    assert_eq!(one["exit"]["hosts"], json!(["compute-1", "compute-2"]));
    assert!(one["exit"]["mpirunStartedAt"].as_f64() >= one["exit"]["startedAt"].as_f64());
    for line in [
        "rank 0 of 2 on ip-10-0-0-11.ec2.internal as 4001",
        "rank 1 of 2 on ip-10-0-0-12.ec2.internal as 4001",
        "it's $(id) \"here\"",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }

    let pids: Vec<i32> = ids
        .iter()
        .map(|id| lab.bodies.host.body(id).unwrap().pid())
        .collect();
    let spaces: Vec<(&str, u64)> = pids
        .iter()
        .flat_map(|pid| ["mnt", "net", "pid", "uts", "ipc"].map(|kind| (kind, inode(*pid, kind))))
        .collect();
    for id in &ids {
        lab.bodies.kill(id).await.unwrap();
        lab.bodies.kill(id).await.unwrap();
    }
    assert_eq!(lab.bodies.running(), Vec::<String>::new());
    for (kind, inode) in spaces {
        assert_eq!(members(kind, inode), 0, "{kind}");
    }
    let folder = lab.bodies.host.rack().unwrap().folder();
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("i-")),
        "{left:?}"
    );
    no_loop_is_left(&lab).await;
}
