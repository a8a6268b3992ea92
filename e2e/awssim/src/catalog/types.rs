//! Instance types as `DescribeInstanceTypes` answered them: 1,395 types, read
//! once. Launch validation reads the same data the operator is told.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

const DATA: &[u8] = include_bytes!("../../data/instance-types.json.gz");

/// One network card of a type.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
pub struct Card {
    /// `NetworkCardIndex`.
    #[serde(rename = "NetworkCardIndex")]
    pub index: u32,
    /// `MaximumNetworkInterfaces`.
    #[serde(rename = "MaximumNetworkInterfaces")]
    pub max_interfaces: u32,
    /// `interface`, `efa`, `efa-only`. Absent in the data for types without
    /// EFA, which take plain interfaces.
    #[serde(default)]
    pub interface_types: Vec<String>,
}

/// One instance type.
#[derive(Debug, Clone)]
pub struct InstanceType {
    /// For example `c5n.18xlarge`.
    pub name: String,
    /// Hardware threads.
    pub vcpus: u32,
    /// Physical cores.
    pub cores: u32,
    /// Threads per core when the launch does not say.
    pub threads: u32,
    /// Core counts a launch may ask for; empty when it may not.
    pub valid_cores: Vec<u32>,
    /// Threads per core a launch may ask for; empty when it may not.
    pub valid_threads: Vec<u32>,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// `x86_64`, `arm64`, …
    pub architectures: Vec<String>,
    /// Network cards.
    pub cards: Vec<Card>,
    /// Interfaces over all cards.
    pub max_interfaces: u32,
    /// EFA interfaces over all cards; 0 without EFA.
    pub max_efa: u32,
    /// `on-demand`, `spot`, …
    pub usage_classes: Vec<String>,
    /// Placement strategies.
    pub strategies: Vec<String>,
    /// The description as AWS gave it.
    pub raw: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Raw {
    instance_type: String,
    v_cpu_info: CpuInfo,
    memory_info: MemoryInfo,
    processor_info: ProcessorInfo,
    network_info: NetworkInfo,
    #[serde(default)]
    placement_group_info: PlacementGroupInfo,
    #[serde(default)]
    supported_usage_classes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CpuInfo {
    #[serde(rename = "DefaultVCpus")]
    vcpus: u32,
    default_cores: Option<u32>,
    default_threads_per_core: Option<u32>,
    #[serde(default)]
    valid_cores: Vec<u32>,
    #[serde(default)]
    valid_threads_per_core: Vec<u32>,
}

#[derive(Deserialize)]
struct MemoryInfo {
    #[serde(rename = "SizeInMiB")]
    size_mib: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ProcessorInfo {
    #[serde(default)]
    supported_architectures: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkInfo {
    maximum_network_interfaces: u32,
    #[serde(default)]
    network_cards: Vec<Card>,
    efa_info: Option<EfaInfo>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EfaInfo {
    maximum_efa_interfaces: u32,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase")]
struct PlacementGroupInfo {
    #[serde(default)]
    supported_strategies: Vec<String>,
}

/// All types by name.
#[derive(Debug)]
pub struct Types {
    by_name: BTreeMap<String, InstanceType>,
}

impl Types {
    /// The data that is built in, read once per process.
    pub fn load() -> std::io::Result<Arc<Self>> {
        static READ: Mutex<Option<Arc<Types>>> = Mutex::new(None);
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(types) = &*read {
            return Ok(Arc::clone(types));
        }
        let types = Arc::new(Self::read()?);
        *read = Some(Arc::clone(&types));
        Ok(types)
    }

    fn read() -> std::io::Result<Self> {
        let mut text = String::new();
        GzDecoder::new(DATA).read_to_string(&mut text)?;
        let raw: BTreeMap<String, Value> = serde_json::from_str(&text)?;
        let by_name = raw
            .into_iter()
            .map(|(name, value)| Ok((name, parse(value)?)))
            .collect::<Result<_, serde_json::Error>>()?;
        Ok(Self { by_name })
    }

    /// The type of that name.
    pub fn get(&self, name: &str) -> Option<&InstanceType> {
        self.by_name.get(name)
    }

    /// All types, by name.
    pub fn all(&self) -> impl Iterator<Item = &InstanceType> {
        self.by_name.values()
    }
}

fn parse(raw: Value) -> Result<InstanceType, serde_json::Error> {
    let data = Raw::deserialize(&raw)?;
    let cpu = data.v_cpu_info;
    let threads = cpu.default_threads_per_core.unwrap_or(1);
    Ok(InstanceType {
        name: data.instance_type,
        vcpus: cpu.vcpus,
        cores: cpu.default_cores.unwrap_or(cpu.vcpus / threads.max(1)).max(1),
        threads,
        valid_cores: cpu.valid_cores,
        valid_threads: cpu.valid_threads_per_core,
        memory_mib: data.memory_info.size_mib,
        architectures: data.processor_info.supported_architectures,
        cards: data.network_info.network_cards,
        max_interfaces: data.network_info.maximum_network_interfaces,
        max_efa: data.network_info.efa_info.map_or(0, |efa| efa.maximum_efa_interfaces),
        usage_classes: data.supported_usage_classes,
        strategies: data.placement_group_info.supported_strategies,
        raw,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_are_read_and_the_odd_ones_are_odd() {
        let types = Types::load().unwrap();
        assert_eq!(types.all().count(), 1395);
        assert_eq!(types.all().filter(|t| t.max_efa > 0).count(), 303);
        let i7ie = types.get("i7ie.48xlarge").unwrap();
        assert_eq!((i7ie.cards.len(), i7ie.max_efa), (2, 1));
        let c5n = types.get("c5n.18xlarge").unwrap();
        assert_eq!((c5n.vcpus, c5n.cores, c5n.threads), (72, 36, 2));
        assert!(types.get("hpc7a.96xlarge").unwrap().valid_threads.is_empty());
    }
}
