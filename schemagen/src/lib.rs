//! Generates the committed JSON Schemas and the OpenAPI document from the types and the table of
//! operations.
//!
//! A crate of its own because the generators exist only with the feature `schema`: neither the
//! server nor the test command (`xtask`) has to be compiled with it.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use turnwire_wire::openapi;

/// Each schema file by its path from the root of the repository, with its content.
pub fn files() -> Vec<(String, Value)> {
    let openapi = openapi::generate(openapi::DocumentLimits::default());
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

/// Writes the schema files below `root`.
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

/// A schema as it is committed: indented, with a newline at the end.
fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests;
