//! Generates the committed JSON Schemas, the OpenAPI and the AsyncAPI document from the types and the
//! table of operations.
//!
//! A crate of its own because the generators exist only with the feature `schema`: neither the
//! server nor the test command (`xtask`) has to be compiled with it.

pub mod events_page;

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use turnwire_wire::pc3::{self, WireVersion};
use turnwire_wire::{asyncapi, openapi, session};

/// Each schema file by its path from the root of the repository, with its content.
pub fn files() -> Vec<(String, Value)> {
    let openapi = openapi::generate(openapi::DocumentLimits::default());
    let of_wires = [
        ("event", turnwire_event::schema::event()),
        ("message", turnwire_event::schema::message()),
        ("openapi", openapi),
        ("asyncapi", asyncapi::generate()),
    ];
    let of_wires = of_wires.map(|(name, schema)| (format!("schema/{name}.json"), schema));
    let session = [
        ("session-client", session::schema::client_frame()),
        ("session-server", session::schema::server_frame()),
        ("session-close", session::schema::close()),
    ];
    let session = session.map(|(name, frame)| (format!("schema/wires/{name}.json"), frame));
    let chat = WireVersion::ALL.map(|version| {
        let frame = pc3::schema::frame(version);
        (format!("schema/wires/pc3-{version}.json"), frame)
    });
    let relay = turnwire_relay::request_schema();
    let of_relay = [("schema/relay/request.json".to_owned(), relay)];
    let of_packs = turnwire_pack::schema::generate().into_iter();
    let of_packs = of_packs.map(|(name, schema)| (format!("schema/pack/{name}.json"), schema));
    of_wires
        .into_iter()
        .chain(session)
        .chain(chat)
        .chain(of_relay)
        .chain(of_packs)
        .collect()
}

/// Every generated file by its path from the root, with its text: the schemas, and the page of events.
fn texts() -> Vec<(String, String)> {
    let schemas = files().into_iter();
    let mut texts: Vec<_> = schemas
        .map(|(path, schema)| (path, text(&schema)))
        .collect();
    let page = events_page::page(&turnwire_event::schema::event());
    texts.push(("docs/events.md".to_owned(), page));
    texts
}

/// Writes the generated files below `root`.
pub fn write(root: &Path) -> Result<()> {
    for (path, text) in texts() {
        let file = root.join(&path);
        if let Some(dir) = file.parent() {
            std::fs::create_dir_all(dir)?;
        }
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// A schema as it is committed: indented, with a newline at the end.
fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests;
