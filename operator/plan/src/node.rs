//! What runs on a node, rendered: user data and the SSM document. The scripts are files in `node/`.
//!
//! Values never become code: they travel as one JSON file inside the payload, and as one base64
//! parameter of the document.

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use serde_json::{Value, json};

use crate::names::digest;
use crate::slots::Slots;

/// Most bytes EC2 takes as user data, before base64.
pub const USER_DATA_LIMIT: usize = 16_384;

const STUB: &str = include_str!("../node/stub.sh");
const MARKER: &str = "__PAYLOAD__";

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The head.
    Head,
    /// A compute node; its name is picked by its launch index.
    Compute(Launch),
}

/// The launch a compute node belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its queue.
    pub queue: String,
    /// Its gang; empty for nodes that always run.
    pub gang: String,
    /// Its attempt.
    pub attempt: i32,
    /// Numbers of its nodes, in launch order.
    pub slots: Slots,
    /// Whether a core counts as more than one CPU.
    pub multithreading: bool,
    /// Where the node's own disks are mounted.
    pub local_scratch: String,
}

/// Everything a node must know to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// What it is.
    pub role: Role,
    /// Uid of the cluster.
    pub cluster_uid: String,
    /// `namespace.name` of the cluster.
    pub cluster_name: String,
    /// AWS region.
    pub region: String,
    /// Address of the head.
    pub head_ip: String,
    /// The head's state volume.
    pub state_volume: Option<String>,
    /// File systems to mount.
    pub storage: Vec<Mount>,
    /// Queues, for the scheduler's configuration.
    pub queues: Vec<QueueNodes>,
    /// Image family, such as `AmazonLinux2023`.
    pub image_family: String,
}

/// One file system to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Its name in the spec.
    pub name: String,
    /// Its server.
    pub dns_name: String,
    /// Its Lustre name.
    pub mount_name: String,
    /// Where it goes.
    pub mount_path: String,
}

/// One queue as the scheduler is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueNodes {
    /// Its name and partition.
    pub name: String,
    /// Its nodes that always run.
    pub standing: Slots,
    /// Number of its last node.
    pub most: i32,
    /// Seconds after which a node that came for a job and has none leaves.
    pub idle_seconds: u64,
    /// CPUs per node.
    #[serde(rename = "cpus")]
    pub cpus: i32,
    /// MiB per node that jobs may use.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: i64,
    /// Whether its nodes carry EFA.
    pub efa: bool,
}

/// An SSM document: the name changes with the content, so an upgrade never edits one in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// `hpcops-<installation>-<hash>`.
    pub name: String,
    /// JSON of schema 2.2.
    pub content: String,
}

/// A family of images, from `node/images/`.
pub fn image_family(name: &str) -> Value {
    let text = match name {
        "AmazonLinux2023" => include_str!("../node/images/AmazonLinux2023.json"),
        _ => "{}",
    };
    serde_json::from_str(text).unwrap_or_default()
}

/// Pattern of the official image's name for an architecture (`x86_64`, `arm64`).
pub fn image_name_pattern(family: &str, architecture: &str) -> Option<String> {
    Some(image_family(family).get("imageNames")?.get(architecture)?.as_str()?.to_owned())
}

/// The folder of an MPI in an image family.
pub fn mpi_prefix(family: &str, implementation: &str) -> Option<String> {
    let family = image_family(family);
    Some(family.get("node")?.get("mpi")?.get(implementation)?.as_str()?.to_owned())
}

/// User data of a node as the API takes it: base64 of a compressed script, which cloud-init inflates.
/// The script is stub, marker, and the node's files as one JSON object.
pub fn user_data(boot: &Boot) -> String {
    let files = serde_json::to_string(&files(boot)).unwrap_or_default();
    STANDARD.encode(compress(format!("{}\n{MARKER}\n{files}\n", STUB.trim_end()).as_bytes()))
}

/// Bytes of user data that count against [`USER_DATA_LIMIT`].
pub fn user_data_len(encoded: &str) -> usize {
    STANDARD.decode(encoded).map_or(usize::MAX, |bytes| bytes.len())
}

fn files(boot: &Boot) -> BTreeMap<&'static str, String> {
    let mut files = scripts(boot);
    for (name, text) in &mut files {
        if let Some((_, "py" | "sh")) = name.split_once('.') {
            *text = without_comments(text);
        }
    }
    files
}

/// A script without whole-line comments and docstrings: user data is short, and nobody reads it
/// there. Lines that start a string in our scripts are docstrings.
fn without_comments(script: &str) -> String {
    let mut within = false;
    let kept = script.split_inclusive('\n').filter(|line| {
        let line = line.trim();
        let quotes = line.matches("\"\"\"").count();
        let is_doc = within || line.starts_with("\"\"\"");
        within = is_doc && (within == (quotes == 0) && quotes != 2);
        !is_doc && (!line.starts_with('#') || line.starts_with("#!"))
    });
    kept.collect()
}

fn scripts(boot: &Boot) -> BTreeMap<&'static str, String> {
    let mut files = BTreeMap::from([
        ("boot.sh", include_str!("../node/boot.sh").to_owned()),
        ("node.py", include_str!("../node/node.py").to_owned()),
        ("users.py", include_str!("../node/users.py").to_owned()),
        ("config.json", config(boot).to_string()),
    ]);
    if boot.role == Role::Head {
        files.insert("head.py", include_str!("../node/head.py").to_owned());
        files.insert("power.py", include_str!("../node/power.py").to_owned());
        files.insert("resume.sh", include_str!("../node/resume.sh").to_owned());
        files.insert("suspend.sh", include_str!("../node/suspend.sh").to_owned());
        files.insert("slurm.conf", include_str!("../node/slurm.conf").to_owned());
    }
    files
}

fn config(boot: &Boot) -> Value {
    let mut config = json!({
        "version": 1,
        "clusterUid": boot.cluster_uid,
        "clusterName": boot.cluster_name,
        "region": boot.region,
        "headIp": boot.head_ip,
        "storage": boot.storage,
        "queueNames": boot.queues.iter().map(|queue| &queue.name).collect::<Vec<_>>(),
        "image": image_family(&boot.image_family).get("node"),
    });
    let own = match &boot.role {
        Role::Head => json!({
            "role": "head",
            "stateVolumeId": boot.state_volume,
            "queues": boot.queues,
        }),
        Role::Compute(launch) => json!({
            "role": "compute",
            "queue": launch.queue,
            "gang": launch.gang,
            "attempt": launch.attempt,
            "slots": launch.slots,
            "multithreading": launch.multithreading,
            "localScratch": launch.local_scratch,
        }),
    };
    if let (Some(all), Value::Object(own)) = (config.as_object_mut(), own) {
        all.extend(own);
    }
    config
}

/// Most characters of a standard parameter.
const PARAMETER_LIMIT: usize = 4096;

/// A text as a parameter's value: compressed when it is long, nothing when it is still too long.
pub fn fit_parameter(text: String) -> Option<String> {
    if text.len() <= PARAMETER_LIMIT {
        return Some(text);
    }
    let packed = STANDARD.encode(compress(text.as_bytes()));
    (packed.len() <= PARAMETER_LIMIT).then_some(packed)
}

/// gzip without a time stamp.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let written = gzip.write_all(bytes).and_then(|()| gzip.finish());
    written.unwrap_or_default()
}

/// The one document through which the operator asks a head.
pub fn document(installation: &str) -> Document {
    let script = include_str!("../node/document.sh")
        .replace("#include job.sh\n", include_str!("../node/job.sh"))
        .replace("#include job.py\n", include_str!("../node/job.py"));
    let content = json!({
        "schemaVersion": "2.2",
        "description": "hpcops: submits, polls and fetches jobs on a head node",
        "parameters": {"payload": {
            "type": "String",
            "description": "base64 of gzipped JSON",
            "allowedPattern": "^[A-Za-z0-9+/=]{1,60000}$",
        }},
        "mainSteps": [{
            "action": "aws:runShellScript",
            "name": "answer",
            "inputs": {"timeoutSeconds": "60", "runCommand": [script]},
        }],
    })
    .to_string();
    let hash = digest(&[&content]);
    let name = format!("hpcops-{installation}-{}", hash.get(..12).unwrap_or_default());
    Document { name, content }
}

/// A question to a head as the document's parameter.
pub fn payload(question: &Value) -> String {
    STANDARD.encode(compress(question.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    use flate2::read::GzDecoder;

    fn boot(role: Role, queues: usize, nodes: i32, storages: usize) -> Boot {
        let long = |name: &str, index: usize| format!("{name}-{index}-{}", "x".repeat(20));
        Boot {
            role,
            cluster_uid: "0f2b6c1e-7f0a-4a52-9f63-a1f0d9f0c001".into(),
            cluster_name: format!("{}.{}", "n".repeat(63), "c".repeat(40)),
            region: "ap-southeast-2".into(),
            head_ip: "10.100.200.201".into(),
            state_volume: Some("vol-0a1b2c3d4e5f60718".into()),
            storage: (0..storages)
                .map(|index| Mount {
                    name: long("storage", index),
                    dns_name: format!("fs-{index:017x}.fsx.ap-southeast-2.amazonaws.com"),
                    mount_name: format!("m{index:07x}"),
                    mount_path: format!("/{}", "m".repeat(100)),
                })
                .collect(),
            queues: (0..queues)
                .map(|index| QueueNodes {
                    name: long("queue", index),
                    standing: Slots::span(1, nodes),
                    most: 1000,
                    idle_seconds: 604_800,
                    cpus: 192,
                    memory_mib: 786_432,
                    efa: true,
                })
                .collect(),
            image_family: "AmazonLinux2023".into(),
        }
    }

    #[test]
    fn user_data_of_the_largest_admissible_cluster_fits_ec2() {
        let launch = Launch {
            queue: "queue-7-xxxxxxxxxxxxxxxxxxxxxxxx".into(),
            gang: "4294967294-4294967294".into(),
            attempt: 999_999,
            slots: (1..1000).step_by(2).collect(),
            multithreading: false,
            local_scratch: format!("/{}", "l".repeat(100)),
        };
        for role in [Role::Head, Role::Compute(launch)] {
            let size = user_data_len(&user_data(&boot(role.clone(), 8, 16, 4)));
            println!("{role:?}: {size} bytes");
            assert!(size <= USER_DATA_LIMIT, "{role:?}: {size}");
        }
    }

    #[test]
    fn equal_clusters_boot_from_equal_bytes() {
        assert_eq!(user_data(&boot(Role::Head, 2, 4, 1)), user_data(&boot(Role::Head, 2, 4, 1)));
    }

    #[test]
    fn user_data_is_a_compressed_script_that_ends_in_its_files() {
        let bytes = STANDARD.decode(user_data(&boot(Role::Head, 1, 2, 1))).unwrap();
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        let (stub, files) = text.split_once(&format!("\n{MARKER}\n")).unwrap();
        assert!(stub.starts_with("#!/bin/bash\n"));
        let files: BTreeMap<String, String> = serde_json::from_str(files).unwrap();
        for file in ["boot.sh", "config.json", "head.py", "node.py", "power.py", "slurm.conf"] {
            assert!(files.contains_key(file), "{file}");
        }
    }

    #[test]
    fn scripts_travel_without_their_comments() {
        let check = |script: &str, expected: &str| assert_eq!(without_comments(script), expected);
        check("#!/bin/sh\n# why\nset -e # kept\n", "#!/bin/sh\nset -e # kept\n");
        check("\"\"\"One line.\"\"\"\na = 1\n", "a = 1\n");
        check("\"\"\"Two\nlines.\"\"\"\nimport a\n", "import a\n");
        check("\"\"\"Three\n\nlines.\n\"\"\"\na\n", "a\n");
        check("x = 'say \"\"\"'\n", "x = 'say \"\"\"'\n");
    }

    #[test]
    fn the_document_carries_every_script_and_one_checked_parameter() {
        let document = document("lab");
        assert!(!document.content.contains("#include"));
        assert!(document.name.starts_with("hpcops-lab-") && document.name.len() == 23);
        let parsed: Value = serde_json::from_str(&document.content).unwrap();
        assert_eq!(parsed["parameters"]["payload"]["allowedPattern"], "^[A-Za-z0-9+/=]{1,60000}$");
        assert!(document.content.len() <= 64 * 1024, "SSM takes 64 KiB");
    }

    #[test]
    fn every_image_family_of_the_api_has_its_data() {
        let family = hpc_crds::OperatingSystem::default().to_string();
        assert_eq!(mpi_prefix(&family, "OpenMPI").as_deref(), Some("/opt/amazon/openmpi"));
        for architecture in ["x86_64", "arm64"] {
            assert!(image_name_pattern(&family, architecture).unwrap().contains(architecture));
        }
    }
}
