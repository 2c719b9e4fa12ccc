//! `tools.yaml` as it is written.

use serde::Deserialize;
use serde_json::Value;

use super::form::Pairs;
use crate::place::At;
#[cfg(feature = "schema")]
use crate::tool::{Function, Method, Output, Shape, Stdin};

/// The tools of the pack, and the tool servers behind some of them.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsSource {
    /// Tool servers (MCP) by name.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = { "pattern": "^[a-z][a-z0-9_]{0,47}$" })))]
    pub(crate) mcp_servers: Pairs<At<ServerSource>>,
    /// The tools.
    #[serde(default)]
    pub(crate) tools: Vec<At<ToolSource>>,
}

/// A tool server: a program, or a service.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSource {
    /// The program that it is and its arguments; `${NAME}` and `${NAME:-default}` are filled in
    /// from the environment.
    pub(crate) command: Option<At<Vec<At<String>>>>,
    /// Variables that the program is given; values may have `${NAME}`.
    pub(crate) env: Option<At<Pairs<At<String>>>>,
    /// Where it is, if it is a service; exactly one of `command` and `url`.
    pub(crate) url: Option<At<String>>,
    /// Headers of every request to a service; values may have `${NAME}`.
    pub(crate) headers: Option<At<Pairs<At<String>>>>,
    /// How long it may take until its tools are listed; 10000 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 60_000)))]
    pub(crate) start_timeout_ms: Option<At<u64>>,
    /// How long one call may take; 30000 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) call_timeout_ms: Option<At<u64>>,
}

/// What a tool is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Connector {
    /// An enricher, over HTTP.
    CcsRest,
    /// An enricher, through a tool server.
    CcsMcp,
    /// Shows data to the person.
    Render,
    /// A function that is built in.
    Direct,
    /// A service, over HTTP.
    Http,
    /// A program.
    Process,
    /// A tool of a tool server.
    Mcp,
    /// Work for a worker session.
    Delegate,
}

/// Whether a person must say yes before a tool acts.
#[cfg(feature = "schema")]
#[derive(Clone, Copy, Debug, schemars::JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum Approval {
    /// The turn pauses until somebody decides.
    Required,
    /// It acts at once.
    None,
}

/// What a program may take of the machine.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSource {
    /// Seconds of CPU; 30.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600)))]
    pub(crate) cpu_s: Option<At<u64>>,
    /// Megabytes of memory; 512.
    #[cfg_attr(feature = "schema", schemars(range(min = 16, max = 16_384)))]
    pub(crate) memory_mb: Option<At<u64>>,
    /// Megabytes of one file that it writes; 64.
    #[cfg_attr(feature = "schema", schemars(range(max = 4_096)))]
    pub(crate) file_mb: Option<At<u64>>,
    /// Files open at once; 64.
    #[cfg_attr(feature = "schema", schemars(range(min = 8, max = 1_024)))]
    pub(crate) open_files: Option<At<u64>>,
    /// Processes of the server's user at once; 64.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 4_096)))]
    pub(crate) processes: Option<At<u64>>,
}

/// One tool. Which fields it has depends on its connector.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSource {
    /// Its name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters; a render
    /// tool begins with `render_`, and none with `ask_`.
    #[cfg_attr(
        feature = "schema",
        schemars(required, regex(pattern = "^[a-z][a-z0-9_]{0,47}$"))
    )]
    pub(crate) name: Option<At<String>>,
    /// What it is made of.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<Connector>"))]
    pub(crate) connector: Option<At<String>>,
    /// What it does, for the model; a direct or mcp tool may leave it out and has its own.
    pub(crate) description: Option<At<String>>,
    /// `ccs_rest`, `ccs_mcp`, `http`, `process`: the JSON Schema of its input, an object: written
    /// here, or the path of a file of the pack.
    pub(crate) input_schema: Option<At<Value>>,
    /// `ccs_rest`, `ccs_mcp`: the enricher that is asked.
    pub(crate) enricher_id: Option<At<String>>,
    /// `ccs_rest`, `ccs_mcp`: the type of data that it is asked for.
    pub(crate) domain_type: Option<At<String>>,
    /// `render`: the type of data that is shown; the name without `render_` where it is left out.
    pub(crate) data_type: Option<At<String>>,
    /// `render`: many items, or one component.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Shape>"))]
    pub(crate) shape: Option<At<String>>,
    /// `direct`: the function that is called.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Function>"))]
    pub(crate) function: Option<At<String>>,
    /// `http`: by which method; `GET` where it is left out.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Method>"))]
    pub(crate) method: Option<At<String>>,
    /// `http`: where the service is; `{field}` in path or query stands for a field of the input,
    /// `${NAME}` and `${NAME:-default}` for a variable.
    pub(crate) url: Option<At<String>>,
    /// `http`: what is added to the query; values may have `{field}` and `${NAME}`.
    pub(crate) query: Option<At<Pairs<At<String>>>>,
    /// `http`: what is sent along; values may have `${NAME}`.
    pub(crate) headers: Option<At<Pairs<At<String>>>>,
    /// `http`: bytes of an answer at most; 262144 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_048_576)))]
    pub(crate) max_bytes: Option<At<u64>>,
    /// `http`: hops to other addresses at most; 3 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(max = 5)))]
    pub(crate) redirects_max: Option<At<u64>>,
    /// `process`: the program and its arguments, which no shell reads; `{field}` in an argument
    /// stands for a field of the input, `${NAME}` for a variable.
    pub(crate) command: Option<At<Vec<At<String>>>>,
    /// `process`: variables that the program is given; values may have `${NAME}`.
    pub(crate) env: Option<At<Pairs<At<String>>>>,
    /// `process`: what the program reads; `input` where it is left out.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Stdin>"))]
    pub(crate) stdin: Option<At<String>>,
    /// `process`: what the program writes; `text` where it is left out.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Output>"))]
    pub(crate) output: Option<At<String>>,
    /// `process`: bytes of what it writes at most; 65536 where it is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_048_576)))]
    pub(crate) output_bytes_max: Option<At<u64>>,
    /// `process`: what the program may take of the machine.
    pub(crate) limits: Option<At<LimitsSource>>,
    /// `mcp`: a name of `mcp_servers`.
    pub(crate) server: Option<At<String>>,
    /// `mcp`: what the server calls it; its own name where it is left out.
    pub(crate) tool: Option<At<String>>,
    /// `mcp`: the status id that it emits while the server tells of progress.
    pub(crate) progress_status: Option<At<String>>,
    /// `delegate`: who works: a worker, a sub-agent, or `orchestrator`.
    pub(crate) agent: Option<At<String>>,
    /// Whether a person must say yes before it acts; `none` where it is left out. Not for render.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Approval>"))]
    pub(crate) approval: Option<At<String>>,
    /// The status id that it emits before it works.
    pub(crate) status: Option<At<String>>,
    /// How long one call may take; of `ccs_rest` and `ccs_mcp` at most 10000, of `http` at most
    /// 60000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) timeout_ms: Option<At<u64>>,
    /// Whether its result is kept for later turns; false where it is left out.
    pub(crate) remember: Option<bool>,
}
