//! The committed YAML is what the types say. `UPDATE=1` writes it anew.

use std::path::PathBuf;
use std::{env, fs};

#[test]
fn the_committed_yaml_equals_the_types() {
    for definition in hpc_crds::all() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("yaml")
            .join(format!("{}.yaml", definition.spec.names.plural));
        let generated = serde_saphyr::to_string(&hpc_crds::manifest(&definition)).unwrap();
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &generated).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == generated,
            "{} is out of date: run UPDATE=1 cargo test -p hpc-crds yaml",
            path.display()
        );
    }
}
