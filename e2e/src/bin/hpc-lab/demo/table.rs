//! The demo's last words: the run's cells, and the rows that one attempt of each measured.

use hpc_crds::{AttemptState, BenchmarkRunStatus};
use hpc_e2e::{LabError, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde::Deserialize;

use crate::progress::say;

/// The part of an attempt's record that is shown.
#[derive(Deserialize)]
struct Record {
    provenance: Provenance,
    table: Option<Table>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provenance {
    attempt: String,
    cell: String,
    hosts: Vec<String>,
}

#[derive(Deserialize)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    unit: String,
}

#[derive(Deserialize)]
struct Row {
    size: Option<u64>,
    values: Vec<Option<String>>,
}

/// One line per cell.
pub fn cells(status: &BenchmarkRunStatus) {
    say(&format!(
        "{:<16} {:>5} {:>14} {:>8} {:>4}  {}",
        "CELL", "NODES", "MEDIAN", "RSD %", "N", "VALID"
    ));
    for cell in &status.cells {
        let median = format!("{} {}", cell.median, cell.unit);
        let (name, nodes, n) = (&cell.name, cell.nodes, cell.n);
        let (rsd, validity) = (&cell.rsd_percent, cell.validity);
        say(&format!("{name:<16} {nodes:>5} {median:>14} {rsd:>8} {n:>4}  {validity}"));
    }
}

/// The rows of the first attempt of each cell that has any.
pub async fn rows(client: &Client, status: &BenchmarkRunStatus) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut shown = Vec::new();
    for reference in &status.results_refs {
        let map = maps.get(&reference.name).await;
        let map = map.map_err(LabError::kube(format!("read ConfigMap {}", reference.name)))?;
        let text = map.data.unwrap_or_default().remove("attempt.json").unwrap_or_default();
        let record: Record = serde_json::from_str(&text)
            .map_err(LabError::malformed(format!("attempt.json of {}", reference.name)))?;
        if let (Some(table), false) = (&record.table, shown.contains(&record.provenance.cell)) {
            print(&record.provenance, table);
            shown.push(record.provenance.cell);
        }
    }
    Ok(())
}

fn print(from: &Provenance, table: &Table) {
    say("");
    say(&format!("{} on {}", from.attempt, from.hosts.join(" and ")));
    let heads = table.columns.iter().map(|column| format!("{:>16}", heading(column)));
    say(&format!("{:>12}{}", "bytes", heads.collect::<String>()));
    for row in &table.rows {
        let size = row.size.map(|size| size.to_string()).unwrap_or_default();
        let values =
            row.values.iter().map(|value| format!("{:>16}", value.as_deref().unwrap_or("")));
        say(&format!("{size:>12}{}", values.collect::<String>()));
    }
    say("");
}

fn heading(column: &Column) -> String {
    format!("{} {}", column.name, column.unit)
}

/// A demo without a number has failed, whatever it printed.
pub fn verdict(status: &BenchmarkRunStatus) -> Result<()> {
    let good = |state: AttemptState| state == AttemptState::Succeeded;
    match status.attempts.iter().find(|attempt| !good(attempt.state)) {
        None if !status.attempts.is_empty() => Ok(()),
        None => Err(LabError::missing("a number", "the run has no attempts")),
        Some(bad) => {
            let hint =
                format!("attempt {} is {}: {} {}", bad.id, bad.state, bad.reason, bad.message);
            Err(LabError::missing("a number", hint))
        }
    }
}
