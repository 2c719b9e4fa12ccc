//! The committed files are those of the types, and events satisfy their schema.

mod event;

use std::path::Path;

use super::{files, text, write};

/// The schema files below `root` that are missing or differ from the types.
fn outdated(root: &Path) -> Vec<String> {
    let current = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let files = files().into_iter();
    let outdated = files.filter(|(path, schema)| current(path) != text(schema));
    outdated.map(|(path, _)| path).collect()
}

#[test]
fn committed_schemas_match_the_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    assert_eq!(outdated(&root), [""; 0], "run `cargo xtask schema`");
}

#[test]
fn changed_and_missing_files_are_outdated() {
    let dir = std::env::temp_dir().join(format!("turnwire-schema-{}", std::process::id()));
    write(&dir).expect("a temporary folder can be written");
    assert_eq!(outdated(&dir), [""; 0]);
    std::fs::write(dir.join("schema/event.json"), "{}\n").expect("written before");
    std::fs::remove_file(dir.join("schema/openapi.json")).expect("written before");
    assert_eq!(outdated(&dir), ["schema/event.json", "schema/openapi.json"]);
    std::fs::remove_dir_all(&dir).expect("no one else uses it");
}
