//! From what IOR said to metrics. Values come from the iterations; what IOR sums up is compared with them.

use super::run::{Run, Summary, Test};
use crate::facts::{Rule, count, measure};
use crate::parsed::Better::{Higher, Lower};
use crate::parsed::{Metric, Parsed};
use crate::stats;

const ROWS: &[(&str, Rule)] = &[
    ("bw_mib", measure("bw_mib", "MiB/s", Higher, "")),
    ("iops", measure("iops", "1/s", Higher, "")),
    ("latency_s", measure("latency_s", "s", Lower, "")),
    ("open_s", measure("open_s", "s", Lower, "")),
    ("transfer_s", measure("transfer_s", "s", Lower, "")),
    ("close_s", measure("close_s", "s", Lower, "")),
    ("total_s", measure("total_s", "s", Lower, "")),
];
const MEAN: Rule = measure("mean_mib", "MiB/s", Higher, "");
const MAX: Rule = measure("max_mib", "MiB/s", Higher, "");
const PRINTED: Rule = measure("stdev_printed", "MiB/s", Lower, "");
const DEVIATION: Rule = measure("stdev_sample_mib", "MiB/s", Lower, "");
const REPS: Rule = count("reps", "", "");

/// Adds the metrics of a run.
pub(super) fn report(run: &Run, labels: &[(&'static str, String)], parsed: &mut Parsed) {
    for (id, test) in &run.tests {
        let mut labels = labels.to_vec();
        if run.tests.len() > 1 {
            labels.push(("test", id.to_string()));
        }
        for operation in test.operations() {
            of_operation(test, operation, &labels, parsed);
        }
        facts(test, &labels, parsed);
    }
}

fn add(
    parsed: &mut Parsed,
    rule: &Rule,
    operation: &str,
    at: (&[(&'static str, String)], f64, u64),
) {
    let (labels, value, line) = at;
    let mut metric = rule.metric(value, line);
    metric.name = format!("{operation}_{}", metric.name);
    metric.labels = labels.to_vec();
    parsed.metrics.push(metric);
}

fn of_operation(
    test: &Test,
    operation: &str,
    labels: &[(&'static str, String)],
    parsed: &mut Parsed,
) {
    for row in test.of(operation) {
        let mut labels = labels.to_vec();
        labels.push(("iter", row.iteration.to_string()));
        for (name, rule) in ROWS {
            if let Some(value) = row.values.get(name) {
                add(parsed, rule, operation, (&labels, *value, row.line));
            }
        }
    }
    let rates: Vec<f64> =
        test.of(operation).filter_map(|row| row.values.get("bw_mib").copied()).collect();
    let summary = test.summary.get(operation);
    let line = test.of(operation).last().map_or(0, |row| row.line);
    let (mean, line) = mean(&rates, summary, (operation, line), parsed);
    if let Some(mean) = mean {
        add(parsed, &MEAN, operation, (labels, mean, line));
    }
    let most = rates.iter().copied().reduce(f64::max);
    if let Some(most) = most {
        add(parsed, &MAX, operation, (labels, most, line));
        compare_maximum(test, operation, most, parsed);
    }
    if let Some(stdev) = summary.and_then(|summary| summary.values.get("stdev")) {
        add(parsed, &PRINTED, operation, (labels, *stdev, line));
    }
    // IOR divides by n; this one, like every deviation here, divides by n - 1.
    if let Some(deviation) = stats::deviation(&rates) {
        add(parsed, &DEVIATION, operation, (labels, deviation, line));
    }
}

/// The mean IOR printed, if the iterations agree; else their own.
fn mean(
    rates: &[f64],
    summary: Option<&Summary>,
    (operation, line): (&str, u64),
    parsed: &mut Parsed,
) -> (Option<f64>, u64) {
    let own = stats::mean(rates);
    let printed = summary.and_then(|summary| Some((*summary.values.get("mean")?, summary.line)));
    match (own, printed) {
        (Some(own), Some((printed, at))) if !agree(own, printed) => {
            let message = format!(
                "{operation}: the summary says a mean of {printed} MiB/s, the iterations say {own:.2}"
            );
            parsed.warn(at, message);
            (Some(own), line)
        }
        (_, Some((printed, at))) => (Some(printed), at),
        (own, None) => (own, line),
    }
}

fn compare_maximum(test: &Test, operation: &str, most: f64, parsed: &mut Parsed) {
    let printed = test.maxima.get(operation).copied();
    let summed = test.summary.get(operation);
    let summed = summed.and_then(|summary| Some((*summary.values.get("max")?, summary.line)));
    for (value, line) in printed.into_iter().chain(summed).filter(|(value, _)| !agree(*value, most))
    {
        let message = format!(
            "{operation}: {value} MiB/s is said to be the maximum, the iterations say {most}"
        );
        parsed.warn(line, message);
    }
}

/// Whether two numbers are one, given that large ones are printed without decimals.
fn agree(one: f64, other: f64) -> bool {
    (one - other).abs() <= if other >= 3600.0 { 1.0 } else { 0.02 }
}

fn facts(test: &Test, labels: &[(&'static str, String)], parsed: &mut Parsed) {
    let line = test.rows.last().map_or(0, |row| row.line);
    let mut add = |rule: Rule, value: f64, line: u64| {
        parsed.metrics.push(Metric { labels: labels.to_vec(), ..rule.metric(value, line) });
    };
    if let Some(asked) = test.asked().and_then(|asked| u32::try_from(asked).ok()) {
        add(REPS, f64::from(asked), line);
    }
    let mut known = test.facts.clone();
    for summary in test.summary.values() {
        for name in ["tasks", "tasks_per_node"] {
            let value = summary.values.get(name).map(|value| (*value, summary.line));
            known.extend(
                value.filter(|_| !test.facts.contains_key(name)).map(|value| (name, value)),
            );
        }
    }
    for (name, (value, line)) in known {
        add(count(name, "", ""), value, line);
    }
}
