//! The committed JSON Schemas and the OpenAPI document: written from the types and the table of
//! operations, and compared with them.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use turnwire_wire::openapi;

use crate::finding::Finding;

/// Each schema file with what it must hold.
pub fn files() -> Vec<(String, Value)> {
    let openapi = openapi::generate(openapi::Limits::default());
    let of_wires = [
        ("event", turnwire_event::schema::event()),
        ("message", turnwire_event::schema::message()),
        ("openapi", openapi),
    ];
    let of_wires = of_wires.map(|(name, schema)| (format!("schema/{name}.json"), schema));
    let of_packs = turnwire_pack::schema::generate().into_iter();
    let of_packs = of_packs.map(|(name, schema)| (format!("schema/pack/{name}.json"), schema));
    of_wires.into_iter().chain(of_packs).collect()
}

/// A schema as it is committed: indented, with a newline at the end.
pub fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// Writes the schema files.
pub fn write(root: &Path) -> Result<()> {
    for (path, schema) in files() {
        let file = root.join(&path);
        if let Some(dir) = file.parent() {
            std::fs::create_dir_all(dir)?;
        }
        std::fs::write(&file, text(&schema))
            .with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// Schema files that do not say what the types say.
pub fn drifted(root: &Path) -> Vec<Finding> {
    files()
        .into_iter()
        .filter(|(path, schema)| {
            let committed = std::fs::read_to_string(root.join(path)).unwrap_or_default();
            committed != text(schema)
        })
        .map(|(path, _)| Finding::about(&path, "differs from the types: run `cargo xtask schema`"))
        .collect()
}
