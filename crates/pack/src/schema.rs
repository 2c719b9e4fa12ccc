//! The JSON Schemas of the files of a pack, for editors and for `check`.
//!
//! The committed schema files are built in. `schemagen` generates them from the shapes in
//! `source` (feature `schema`), and a test compares the two.

mod instance;
mod field;
mod file;

use std::sync::LazyLock;

#[cfg(feature = "schema")]
use serde_json::Value;

use crate::source::agent::{AgentSource, OrchestratorSource, WorkerSource};
use crate::source::connector::ConnectorsSource;
use crate::source::manifest::ManifestSource;
use crate::source::provider::{PricesSource, ProvidersSource};
use crate::source::route::RoutingSource;
use crate::source::status::EntrySource;
use crate::source::text::{LocaleSource, OverridesSource};
use crate::source::tool::ToolsSource;
use crate::yaml::Located;

pub(crate) use file::{FileSchema, read};

/// The shape of a file that has a committed schema.
pub(crate) trait PackFile {
    /// The schema of the file, compiled once.
    fn schema() -> &'static FileSchema;
}

/// Lists the kinds of files: the shape, the name of its schema, where such a file lies in a pack.
macro_rules! kinds {
    ($($shape:ty, $name:literal, $file:literal;)*) => {
        $(impl PackFile for $shape {
            fn schema() -> &'static FileSchema {
                static SCHEMA: LazyLock<FileSchema> = LazyLock::new(|| {
                    FileSchema::new(include_str!(concat!("../../../schema/pack/", $name, ".json")))
                });
                &SCHEMA
            }
        })*

        /// Each kind of file with its schema, generated from the shape: name, schema.
        #[cfg(feature = "schema")]
        pub fn generate() -> Vec<(&'static str, Value)> {
            vec![$(($name, generated::<$shape>($file))),*]
        }

        /// The schema of a kind of file by its name.
        #[cfg(test)]
        pub(crate) fn named(name: &str) -> &'static FileSchema {
            match name {
                $($name => <$shape as PackFile>::schema(),)*
                other => panic!("no schema is named {other}"),
            }
        }
    };
}

kinds! {
    ManifestSource, "pack", "pack.yaml";
    OrchestratorSource, "orchestrator", "orchestrator.yaml";
    AgentSource, "agent", "verticals/<vertical>/agent.yaml";
    WorkerSource, "worker", "workers/<id>/agent.yaml";
    Vec<Located<EntrySource>>, "status_events", "status_events.yaml";
    ConnectorsSource, "connectors", "connectors.yaml";
    ToolsSource, "tools", "tools.yaml";
    OverridesSource, "overrides", "overrides.yaml";
    LocaleSource, "locale", "locales/<tag>.yaml";
    ProvidersSource, "providers", "providers.yaml";
    RoutingSource, "routing", "routing.yaml";
    PricesSource, "prices", "prices.yaml";
}

#[cfg(feature = "schema")]
fn generated<T: schemars::JsonSchema>(title: &str) -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let mut schema = schemars::SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let mut schema = schema.to_value();
    turnwire_event::schema::plain::drop_unknown_formats(&mut schema);
    schema
}

#[cfg(test)]
mod tests;
