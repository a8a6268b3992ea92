//! How bodies end, and what survives them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::{Lab, no_loop_is_left, spec, traces_of, until};
use crate::host::locked;
use crate::machine::Machines as _;

const DISK: &str = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0aaaaaaaaaaaaaaaa";

async fn await_disk(lab: &Lab, id: &str, is_there: bool) {
    until("the volume", async || {
        let script = format!("if [ -b {DISK} ]; then echo true; else echo false; fi");
        let found = lab.output(id, &script).await;
        if found == is_there.to_string() { Ok(()) } else { Err(found) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_appears_when_attached_and_outlives_its_instance() {
    let Some(lab) = Lab::new().await else { return };
    let first = lab.start(spec(10)).await;
    await_disk(&lab, &first, false).await;
    lab.attach(&first);
    await_disk(&lab, &first, true).await;
    let write = format!("mkfs.ext4 -q {DISK} && mount {DISK} /mnt && echo kept >/mnt/file && sync");
    lab.output(&first, &write).await;
    lab.bodies.kill(&first).await.unwrap();
    locked(&lab.view.volumes).clear();

    let second = lab.start(spec(11)).await;
    lab.attach(&second);
    await_disk(&lab, &second, true).await;
    let read = format!("mount {DISK} /mnt && cat /mnt/file && umount /mnt");
    assert_eq!(lab.output(&second, &read).await, "kept");
    locked(&lab.view.volumes).clear();
    await_disk(&lab, &second, false).await;
    lab.bodies.kill(&second).await.unwrap();
    no_loop_is_left(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operating_system_that_ends_tells_the_simulator() {
    let Some(lab) = Lab::new().await else { return };
    let ending = spec(10);
    let asks = lab.start(ending.clone()).await;
    lab.output(&asks, "shutdown -h now").await;
    assert_eq!(*locked(&lab.view.stopped), std::slice::from_ref(&asks));
    lab.bodies.kill(&asks).await.unwrap();

    let crashes = lab.start(spec(11)).await;
    let pid = lab.bodies.host.body(&crashes).unwrap().pid();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    until("the end", async || {
        let stopped = locked(&lab.view.stopped).clone();
        if stopped.contains(&crashes) { Ok(()) } else { Err(format!("{stopped:?}")) }
    })
    .await
    .unwrap();
    assert_eq!(lab.bodies.running(), Vec::<String>::new());
    assert!(lab.bodies.start(ending).await.is_err(), "a killed id never starts again");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_simulator_of_a_prefix_ends_the_bodies_of_the_last() {
    let Some(lab) = Lab::new().await else { return };
    lab.start(spec(10)).await;
    let next = lab.again();
    next.bodies.start(spec(11)).await.unwrap();
    until("the end of the first", async || {
        let running = lab.bodies.running();
        if running.is_empty() { Ok(()) } else { Err(format!("{running:?}")) }
    })
    .await
    .unwrap();
    assert_eq!(next.bodies.running().len(), 1);
}

/// Started by the test below in a process of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a helper that waits to be killed"]
async fn a_simulator_to_be_killed() {
    let Some(lab) = Lab::new().await else { return };
    let id = lab.start(spec(10)).await;
    lab.attach(&id);
    await_disk(&lab, &id, true).await;
    lab.output(&id, &format!("mkfs.ext4 -q {DISK} && mount {DISK} /mnt")).await;
    println!("\nstands {}", lab.dir.display());
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_simulator_leaves_no_process_mount_or_disk() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: bodies need root");
        return;
    }
    let mut simulator = Process::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "host::tests::ending::a_simulator_to_be_killed",
            "--ignored",
            "--nocapture",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(simulator.stdout.take().unwrap()).lines().map_while(Result::ok);
    let stands = lines.find_map(|line| line.strip_prefix("stands ").map(str::to_owned));
    let dir = stands.unwrap();
    let dir = Path::new(&dir);
    assert!(traces_of(dir).len() >= 3, "rack, body and disk: {:?}", traces_of(dir));
    simulator.kill().unwrap();
    simulator.wait().unwrap();
    until("the end", async || {
        let left = traces_of(dir);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await
    .unwrap();
    fs::remove_dir_all(dir).unwrap();
}
