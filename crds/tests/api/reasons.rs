//! The page of all reasons is written from the enum, so that no reason is without its way out.

use std::fmt::Write;
use std::path::Path;

use hpc_crds::Reason;

const HEAD: &str = "\
# Reasons

Every reason a condition of an `HPCCluster` or a `BenchmarkRun` can have, what it means, and the way
out. The condition's message names the field, the resource and the AWS code.

| reason | what it means | the way out |
|---|---|---|
";

#[test]
fn the_page_of_reasons_equals_the_enum() {
    let mut page = HEAD.to_owned();
    for reason in Reason::all() {
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let (means, way) = (cell(reason.description()), cell(reason.way_out()));
        writeln!(page, "| `{reason}` | {means} | {way} |").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reasons.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, page, "run: UPDATE=1 cargo test -p hpc-crds reasons");
}
