//! The `/sys` of a body: the processors of its instance type as plain files.
//! A script that switches one off writes to a file and to nothing else.

use std::io;
use std::path::Path;

use super::rack::place;

/// Files outside the processors that boot scripts read or set.
const FIXED: [(&str, &str); 6] = [
    ("class/nvme/nvme0/model", "Amazon Elastic Block Store\n"),
    ("class/nvme/nvme0/transport", "pcie\n"),
    ("block/nvme0n1/queue/scheduler", "[none] mq-deadline\n"),
    ("block/nvme0n1/queue/read_ahead_kb", "128\n"),
    ("kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("fs/cgroup/cgroup.controllers", "cpu memory pids\n"),
];

/// Processors of an instance type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processors {
    /// Hardware threads.
    pub threads: u32,
    /// Physical cores.
    pub cores: u32,
}

impl Processors {
    /// Name of the tree: equal processors share one.
    pub fn key(self) -> String {
        format!("{}-{}", self.threads, self.cores)
    }

    /// Writes the tree. Thread `i` and `i + cores` are siblings, as on EC2.
    pub fn write(self, root: &Path) -> io::Result<()> {
        let all = format!("0-{}\n", self.threads.saturating_sub(1));
        for name in ["online", "possible", "present"] {
            put(root, name, &all)?;
        }
        for cpu in 0..self.threads {
            let core = cpu % self.cores.max(1);
            let siblings: Vec<u32> =
                (core..self.threads).step_by(self.cores.max(1) as usize).collect();
            if cpu > 0 {
                put(root, &format!("cpu{cpu}/online"), "1\n")?;
            }
            for (name, value) in [
                ("core_id", format!("{core}\n")),
                ("physical_package_id", "0\n".to_owned()),
                ("thread_siblings_list", list(&siblings)),
                ("core_cpus_list", list(&siblings)),
                // Scripts read the lists. hwloc reads the masks, compares them with what the
                // machine's own processor says, and finds no contradiction in a lone thread.
                ("thread_siblings", self.mask(|id| id == cpu)),
                ("core_cpus", self.mask(|id| id == cpu)),
                ("core_siblings_list", all.clone()),
                ("package_cpus_list", all.clone()),
                ("core_siblings", self.mask(|_| true)),
                ("package_cpus", self.mask(|_| true)),
            ] {
                put(root, &format!("cpu{cpu}/topology/{name}"), &value)?;
            }
        }
        for (path, text) in FIXED {
            place(root, path, text.as_bytes(), 0o644)?;
        }
        Ok(())
    }

    /// The kernel's bit mask: words of 32 bits, the highest first.
    fn mask(self, is_set: impl Fn(u32) -> bool) -> String {
        let word = |first: u32| {
            let bits = (first..first + 32).filter(|id| *id < self.threads && is_set(*id));
            format!("{:08x}", bits.fold(0_u32, |word, id| word | 1 << (id - first)))
        };
        let words: Vec<String> = (0..self.threads).step_by(32).map(word).collect();
        words.into_iter().rev().collect::<Vec<_>>().join(",") + "\n"
    }
}

fn list(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    ids.join(",") + "\n"
}

fn put(root: &Path, name: &str, text: &str) -> io::Result<()> {
    place(root, &format!("devices/system/cpu/{name}"), text.as_bytes(), 0o644)
}
