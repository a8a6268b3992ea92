//! What a body is to the programs in it.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::lab::{Lab, command, spec, until};
use crate::host::locked;
use crate::machine::{BodySpec, Command, ExecEnd, MachineError, Machines as _};

/// What the machine's own kernel says; a body must not change it.
fn machine() -> Vec<String> {
    let mut files = vec!["/sys/devices/system/cpu/online".to_owned()];
    files.push("/sys/kernel/mm/transparent_hugepage/enabled".to_owned());
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        files.push(format!("{}/queue/read_ahead_kb", entry.path().display()));
    }
    files.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_script_reaches_neither_processors_nor_disks_of_the_machine() {
    let Some(lab) = Lab::new().await else { return };
    let id = lab.start(spec(10)).await;
    let before = machine();
    let mut reach = command(include_str!("data/reach.sh"));
    reach.environment = vec![("FOLDER".to_owned(), lab.dir.display().to_string())];
    let got = lab.bodies.exec(&id, reach).await.unwrap();
    assert_eq!((got.end, String::from_utf8_lossy(&got.stdout).as_ref()), (ExecEnd::Exited(0), ""));
    assert_eq!(machine(), before);
    // The script did find processors to switch off: those of its instance type.
    let off = "cat /sys/devices/system/cpu/cpu[1-9]*/online | sort | uniq -c | tr -s ' '";
    assert_eq!(lab.output(&id, off).await, "71 0");
    let siblings = "cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    assert_eq!(lab.output(&id, siblings).await, "0,36");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_as_the_agent_runs_it() {
    let Some(lab) = Lab::new().await else { return };
    let id = lab.start(spec(10)).await;
    let script =
        "echo $SSM_COMMAND_ID $(id -u) $PWD ${HOME-none} $GREETING\necho err >&2\nexit 3\n";
    let mut asked = command(script);
    asked.environment = vec![("GREETING".to_owned(), "a \"b\"".to_owned())];
    let left = lab.bodies.exec(&id, asked.clone()).await.unwrap();
    assert_eq!(left.end, ExecEnd::Exited(3));
    let expected = format!("{} 0 /usr/bin none a \"b\"\n", asked.command_id);
    assert_eq!(String::from_utf8(left.stdout).unwrap(), expected);
    assert_eq!(left.stderr, b"err\n");

    let python = "#!/usr/bin/python3\nimport os\nprint(os.getpid() > 1, os.getuid())\n";
    assert_eq!(lab.output(&id, python).await, "True 0");

    let elsewhere = Command { working_directory: Some("/tmp".to_owned()), ..command("pwd") };
    assert_eq!(lab.bodies.exec(&id, elsewhere).await.unwrap().stdout, b"/tmp\n");
    let nobody = lab.bodies.exec("i-0", command("true")).await;
    assert!(matches!(nobody, Err(MachineError::NoBody { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_killed_with_its_group_at_its_timeout_or_when_nobody_waits() {
    let Some(lab) = Lab::new().await else { return };
    let id = lab.start(spec(10)).await;
    let script = "echo begun\nsetsid sleep 4242 &\nsleep 1111 &\nsleep 1112\n";
    let since = Instant::now();
    let asked = Command { timeout: Duration::from_secs(4), ..command(script) };
    let left = lab.bodies.exec(&id, asked).await.unwrap();
    assert_eq!((left.end, left.stdout), (ExecEnd::TimedOut, b"begun\n".to_vec()));
    assert!(since.elapsed() < Duration::from_mins(1), "the sleeps are longer");
    sleepers(&lab, &id, "4242").await;

    let endless = lab.bodies.exec(&id, command("echo $$ >/run/begun; sleep 1113"));
    let mark = until("a command", async || {
        let left = lab.exec(&id, "cat /run/begun").await;
        if left.end == ExecEnd::Exited(0) { Ok(()) } else { Err(format!("{:?}", left.end)) }
    });
    tokio::select! {
        left = endless => panic!("{left:?}"),
        begun = mark => begun.unwrap(),
    }
    sleepers(&lab, &id, "4242").await;
}

/// Waits until these sleeps, and no others, are left.
async fn sleepers(lab: &Lab, id: &str, expected: &str) {
    let script = "for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$file 2>/dev/null | sed -n 's/^sleep //p'; done | sort | xargs";
    until("sleepers", async || {
        let found = lab.output(id, script).await;
        if found == expected { Ok(()) } else { Err(found) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_boots_from_compressed_user_data_and_asks_imds_v2() {
    let Some(lab) = Lab::new().await else { return };
    let mut spec = spec(10);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(b"#!/bin/bash\nid -un >/run/booted\necho from $0\n").unwrap();
    spec.user_data = Some(packed.finish().unwrap());
    let id = lab.start(spec).await;
    until("the boot", async || {
        let left = lab.exec(&id, "cat /run/booted").await;
        if left.stdout == b"root\n" { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await
    .unwrap();
    until("the agent", async || {
        let online = locked(&lab.view.online).clone();
        if online == [id.clone()] { Ok(()) } else { Err(format!("{online:?}")) }
    })
    .await
    .unwrap();
    let answers = lab.output(&id, include_str!("data/imds.sh")).await;
    let expected = format!("401\n400\n{id} 200\n10.0.0.10 200\nhpc 200\n404\ngzip");
    assert_eq!(answers, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_without_a_profile_has_no_agent_online() {
    let Some(lab) = Lab::new().await else { return };
    let mut spec = spec(10);
    spec.credentials = None;
    let id = lab.start(spec).await;
    until("a hibernating agent", async || {
        let log = lab.exec(&id, "cat /var/log/units/amazon-ssm-agent.log").await;
        if log.stdout.is_empty() { Err("no word".to_owned()) } else { Ok(()) }
    })
    .await
    .unwrap();
    assert!(locked(&lab.view.online).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn simulators_and_accounts_use_the_same_addresses_and_never_meet() {
    let Some(one) = Lab::new().await else { return };
    let Some(two) = Lab::new().await else { return };
    let mut pairs = Vec::new();
    for (lab, account) in [(&one, "111122223333"), (&one, "444455556666"), (&two, "111122223333")] {
        let of = |last| BodySpec { account: account.to_owned(), ..spec(last) };
        let server = lab.start(of(11)).await;
        let serve = format!(
            "echo {server} >/run/name; cd /run; setsid python3 -m http.server 8080 >/dev/null 2>&1 &"
        );
        lab.output(&server, &serve).await;
        pairs.push((lab, lab.start(of(10)).await, server));
    }
    for (lab, client, server) in pairs {
        let ask = "curl -sS --max-time 5 http://ip-10-0-0-11.ec2.internal:8080/name";
        until("a neighbour", async || {
            let left = lab.exec(&client, ask).await;
            let name = String::from_utf8_lossy(&left.stdout).trim().to_owned();
            if name == server { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await
        .unwrap();
        let outside =
            "curl -s --max-time 5 http://192.0.2.1/; echo $?; getent hosts example.com; echo $?";
        assert_eq!(lab.output(&client, outside).await, "7\n2", "no way out, no name outside");
    }
}
