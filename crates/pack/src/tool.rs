//! Tools, and the services and enrichers behind them, as the pack declares them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// How many things a render tool shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// A list of items.
    List,
    /// One component.
    Single,
}

/// A function that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// Says the time.
    Clock,
    /// Says its input back.
    Echo,
    /// Waits.
    Sleep,
    /// Fails.
    Fail,
    /// Emits many events.
    Burst,
    /// Emits a status id.
    EmitStatus,
    /// Takes a note for support.
    LlmFeedback,
}

/// What a tool does when it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Asks an enricher.
    Ccs {
        /// Which one.
        enricher_id: String,
        /// For which type of data.
        domain_type: String,
    },
    /// Shows data to the person.
    Render {
        /// The type of the data.
        data_type: String,
        /// One or many.
        shape: Shape,
    },
    /// Calls a function that is built in.
    Direct(Function),
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    /// Its name.
    pub name: String,
    /// What it does, for the model. Empty for a direct tool that gives none: the function's own.
    pub description: String,
    /// What it does when called.
    pub kind: ToolKind,
    /// The JSON Schema of its input. Null for a direct or render tool: its own.
    pub input_schema: Value,
    /// The status id it emits before it works.
    pub status: Option<String>,
    /// How long a call may take.
    pub timeout_ms: Option<u64>,
    /// Whether its result is kept for later turns.
    pub remember: bool,
}

/// A service that enrichers are asked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Where it is, with variables filled in and without a slash at the end.
    pub url: String,
    /// How long one request may take.
    pub timeout_ms: u64,
    /// Bytes of an answer at most.
    pub max_bytes: u64,
}

/// An enricher: what a service answers to (enricher id, domain type).
#[derive(Clone, Debug, PartialEq)]
pub struct Enricher {
    /// Its id.
    pub enricher_id: String,
    /// The type of its data.
    pub domain_type: String,
    /// The service it is asked at.
    pub service: String,
    /// The version it is asked for.
    pub version: String,
    /// The field of the payload that has the items.
    pub items: String,
    /// The field of an item that has its id.
    pub item_id: String,
    /// The JSON Schema of its payload.
    pub payload_schema: Option<Value>,
}
