//! `tools.yaml` as it is written.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::place::At;
use crate::tool::{Function, Shape};

/// The tools of the pack.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsSource {
    /// The tools.
    #[serde(default)]
    pub(crate) tools: Vec<At<ToolSource>>,
}

/// What a tool is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Connector {
    /// An enricher, over HTTP.
    CcsRest,
    /// Shows data to the person.
    Render,
    /// A function that is built in.
    Direct,
}

/// One tool. Which fields it has depends on its connector.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSource {
    /// Its name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters; a render
    /// tool begins with `render_`, and none with `ask_`.
    #[schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))]
    pub(crate) name: Option<At<String>>,
    /// What it is made of.
    #[schemars(required, with = "Option<Connector>")]
    pub(crate) connector: Option<At<String>>,
    /// What it does, for the model; a direct tool may leave it out.
    pub(crate) description: Option<At<String>>,
    /// `ccs_rest`: the JSON Schema of its input, an object: written here, or the path of a file of
    /// the pack.
    pub(crate) input_schema: Option<At<Value>>,
    /// `ccs_rest`: the enricher that is asked.
    pub(crate) enricher_id: Option<At<String>>,
    /// `ccs_rest`: the type of data that it is asked for.
    pub(crate) domain_type: Option<At<String>>,
    /// `render`: the type of data that is shown; the name without `render_` where it is left out.
    pub(crate) data_type: Option<At<String>>,
    /// `render`: many items, or one component.
    #[schemars(with = "Option<Shape>")]
    pub(crate) shape: Option<At<String>>,
    /// `direct`: the function that is called.
    #[schemars(with = "Option<Function>")]
    pub(crate) function: Option<At<String>>,
    /// The status id that it emits before it works.
    pub(crate) status: Option<At<String>>,
    /// How long one call may take; of `ccs_rest` at most 10000.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) timeout_ms: Option<At<u64>>,
    /// Whether its result is kept for later turns; false where it is left out.
    pub(crate) remember: Option<bool>,
}
