//! Account quotas: vCPU per instance family and counts of the rest. Generous
//! by default, settable through the control API.

use std::collections::BTreeMap;

/// Quotas by name.
#[derive(Debug, Clone)]
pub struct Quotas {
    limits: BTreeMap<String, u64>,
}

/// Names and defaults. `vcpu:*` are on-demand vCPU per family group.
pub const DEFAULTS: [(&str, u64); 15] = [
    ("vcpu:standard", 1_000_000),
    ("vcpu:hpc", 1_000_000),
    ("vcpu:p", 1_000_000),
    ("vcpu:g", 1_000_000),
    ("vcpu:trn", 1_000_000),
    ("vcpu:inf", 1_000_000),
    ("vcpu:x", 1_000_000),
    ("vcpu:other", 1_000_000),
    ("security-groups", 2_500),
    ("rules-per-security-group", 60),
    ("placement-groups", 500),
    ("network-interfaces", 100_000),
    ("volumes", 100_000),
    ("file-systems", 100),
    ("file-system-storage-gib", 100_800),
];

impl Default for Quotas {
    fn default() -> Self {
        let limits = DEFAULTS.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect();
        Self { limits }
    }
}

impl Quotas {
    /// The limit of that name.
    pub fn limit(&self, name: &str) -> u64 {
        self.limits.get(name).copied().unwrap_or(u64::MAX)
    }

    /// Sets a limit; `false` when there is no quota of that name.
    pub fn set(&mut self, name: &str, limit: u64) -> bool {
        self.limits.get_mut(name).map(|slot| *slot = limit).is_some()
    }

    /// All limits.
    pub fn all(&self) -> &BTreeMap<String, u64> {
        &self.limits
    }
}

/// The vCPU quota an instance type counts against.
pub fn vcpu_quota(instance_type: &str) -> &'static str {
    let family = instance_type.split('.').next().unwrap_or_default();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| family.starts_with(prefix));
    if starts(&["hpc"]) {
        "vcpu:hpc"
    } else if starts(&["trn"]) {
        "vcpu:trn"
    } else if starts(&["inf"]) {
        "vcpu:inf"
    } else if starts(&["p"]) {
        "vcpu:p"
    } else if starts(&["g", "vt"]) {
        "vcpu:g"
    } else if starts(&["x"]) {
        "vcpu:x"
    } else if starts(&["a", "c", "d2", "d3", "h", "i", "m", "r", "t", "z"]) {
        "vcpu:standard"
    } else {
        "vcpu:other"
    }
}

#[cfg(test)]
mod tests {
    use super::vcpu_quota;

    #[test]
    fn families_count_against_their_quota() {
        for (instance_type, quota) in [
            ("c5n.18xlarge", "vcpu:standard"),
            ("hpc7a.96xlarge", "vcpu:hpc"),
            ("p5.48xlarge", "vcpu:p"),
            ("trn1.32xlarge", "vcpu:trn"),
            ("g5.48xlarge", "vcpu:g"),
            ("x2iezn.12xlarge", "vcpu:x"),
            ("u7i-8tb.112xlarge", "vcpu:other"),
            ("dl1.24xlarge", "vcpu:other"),
        ] {
            assert_eq!(vcpu_quota(instance_type), quota, "{instance_type}");
        }
    }
}
