//! The shape of `tools.yaml`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form::Pairs;
#[cfg(feature = "schema")]
use super::form::{ID_PATTERN, NOT_BLANK, header_names, id_names, parameter_names, variable_names};
#[cfg(feature = "schema")]
use crate::pack::tool::{BuiltinFunction, ProcessOutput, RenderShape, ToolMethod};
use crate::yaml::Located;

/// The tools of the pack, and the MCP servers behind some of them.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsSource {
    /// MCP servers by name.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = id_names(), "maxProperties" = 32)))]
    pub(crate) mcp_servers: Pairs<Located<ServerSource>>,
    #[serde(default)]
    pub(crate) tools: Vec<Located<ToolSource>>,
}

/// An MCP server: a program, or a service.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSource {
    /// The program and its arguments; `${NAME}` and `${NAME:-default}` are filled in
    /// from the environment.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64)))]
    pub(crate) command: Option<Located<Vec<Located<String>>>>,
    /// Environment variables of the program; values may have `${NAME}`.
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = variable_names(), "maxProperties" = 64)))]
    pub(crate) env: Option<Located<Pairs<Located<String>>>>,
    /// The address of a service; exactly one of `command` and `url`.
    pub(crate) url: Option<Located<String>>,
    /// Headers of every request to a service; values may have `${NAME}`.
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = header_names(), "maxProperties" = 32)))]
    pub(crate) headers: Option<Located<Pairs<Located<String>>>>,
    /// The maximum time until the server's tools are listed, in milliseconds. The default is 10000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 60_000)))]
    pub(crate) start_timeout_ms: Option<Located<u64>>,
    /// The maximum time for one call, in milliseconds. The default is 30000.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) call_timeout_ms: Option<Located<u64>>,
}

/// The kind of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Connector {
    /// Calls an enricher over HTTP.
    CcsRest,
    /// Calls an enricher through an MCP server.
    CcsMcp,
    /// Shows data to the user.
    Render,
    /// Calls a built-in function.
    Direct,
    /// Calls a service over HTTP.
    Http,
    /// Runs a program of the pack.
    Process,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Delegates work to a worker session.
    Delegate,
}

/// Whether a person must approve each call of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Approval {
    /// The turn pauses until a person decides.
    Required,
    /// The tool runs at once.
    None,
}

/// Resource limits of a program.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSource {
    /// Seconds of CPU. The default is 30.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600)))]
    pub(crate) cpu_s: Option<Located<u64>>,
    /// Megabytes of memory. The default is 512.
    #[cfg_attr(feature = "schema", schemars(range(min = 16, max = 16_384)))]
    pub(crate) memory_mb: Option<Located<u64>>,
    /// Megabytes of one file that the program writes. The default is 64.
    #[cfg_attr(feature = "schema", schemars(range(max = 4_096)))]
    pub(crate) file_mb: Option<Located<u64>>,
    /// Files open at once. The default is 64.
    #[cfg_attr(feature = "schema", schemars(range(min = 8, max = 1_024)))]
    pub(crate) open_files: Option<Located<u64>>,
    /// Processes of the server's user at once. The default is 64.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 4_096)))]
    pub(crate) processes: Option<Located<u64>>,
}

/// A tool. The connector decides which fields it has.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSource {
    /// The tool's name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters. The
    /// name of a render tool begins with `render_`; no name begins with `ask_`.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = ID_PATTERN)))]
    pub(crate) name: Option<Located<String>>,
    /// The kind of the tool.
    #[cfg_attr(feature = "schema", schemars(required, with = "Option<Connector>"))]
    pub(crate) connector: Option<Located<String>>,
    /// What the tool does, for the model; optional for a direct or mcp tool, which has its own.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) description: Option<Located<String>>,
    /// `ccs_rest`, `ccs_mcp`, `http`, `process`: the JSON Schema of the input, an object: inline,
    /// or the path of a file of the pack.
    pub(crate) input_schema: Option<Located<Value>>,
    /// `ccs_rest`, `ccs_mcp`: the enricher to call.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) enricher_id: Option<Located<String>>,
    /// `ccs_rest`, `ccs_mcp`: the requested type of data.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) domain_type: Option<Located<String>>,
    /// `render`: the type of data that is shown. The default is the name without `render_`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = ID_PATTERN)))]
    pub(crate) data_type: Option<Located<String>>,
    /// `render`: many items, or one component.
    #[cfg_attr(feature = "schema", schemars(with = "Option<RenderShape>"))]
    pub(crate) shape: Option<Located<String>>,
    /// `render`: whether the model may write items of its own instead of naming found ones by id.
    /// The default is false; the type then needs an enricher with a `payload_schema`.
    pub(crate) model_items: Option<Located<bool>>,
    /// `direct`: the function to call.
    #[cfg_attr(feature = "schema", schemars(with = "Option<BuiltinFunction>"))]
    pub(crate) function: Option<Located<String>>,
    /// `http`: the method. The default is `GET`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ToolMethod>"))]
    pub(crate) method: Option<Located<String>>,
    /// `http`: the address; `{field}` in path or query stands for a field of the input,
    /// `${NAME}` and `${NAME:-default}` for a variable.
    pub(crate) url: Option<Located<String>>,
    /// `http`: additional query parameters; values may have `{field}` and `${NAME}`.
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = parameter_names(), "maxProperties" = 64)))]
    pub(crate) query: Option<Located<Pairs<Located<String>>>>,
    /// `http`: headers; values may have `${NAME}`.
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = header_names(), "maxProperties" = 32)))]
    pub(crate) headers: Option<Located<Pairs<Located<String>>>>,
    /// `http`: the maximum size of a response, in bytes. The default is 262144.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_048_576)))]
    pub(crate) max_bytes: Option<Located<u64>>,
    /// `http`: the maximum number of redirects. The default is 3.
    #[cfg_attr(feature = "schema", schemars(range(max = 5)))]
    pub(crate) redirects_max: Option<Located<u64>>,
    /// `process`: the program and its arguments, which no shell reads; `{field}` in an argument
    /// stands for a field of the input, `${NAME}` for a variable.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64)))]
    pub(crate) command: Option<Located<Vec<Located<String>>>>,
    /// `process`: environment variables of the program; values may have `${NAME}`.
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = variable_names(), "maxProperties" = 64)))]
    pub(crate) env: Option<Located<Pairs<Located<String>>>>,
    /// `process`: what the program reads: `input` (the default), the input as JSON; `none`; or a
    /// text with `{field}` for a field of the input.
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["input", "none", "{text}"])))]
    pub(crate) stdin: Option<Located<String>>,
    /// `process`: what the program writes. The default is `text`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ProcessOutput>"))]
    pub(crate) output: Option<Located<String>>,
    /// `process`: the maximum size of the output, in bytes. The default is 65536.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_048_576)))]
    pub(crate) output_bytes_max: Option<Located<u64>>,
    /// `process`: resource limits of the program.
    pub(crate) limits: Option<Located<LimitsSource>>,
    /// `mcp`: a name of `mcp_servers`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) server: Option<Located<String>>,
    /// `mcp`: the server's name for the tool, 1 to 128 characters. The default is the tool's name.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^\P{Cc}{1,128}$"), extend("title" = "tool name")))]
    pub(crate) tool: Option<Located<String>>,
    /// `mcp`: the status id that is emitted when the server reports progress.
    pub(crate) progress_status: Option<Located<String>>,
    /// `delegate`: the agent that works: a worker, a sub-agent, or `orchestrator`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) agent: Option<Located<String>>,
    /// Whether a person must approve each call. The default is `none`. Not for render.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Approval>"))]
    pub(crate) approval: Option<Located<String>>,
    /// The status id that is emitted before the tool runs.
    pub(crate) status: Option<Located<String>>,
    /// The maximum time for one call, in milliseconds; at most 10000 for `ccs_rest` and `ccs_mcp`,
    /// at most 60000 for `http`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub(crate) timeout_ms: Option<Located<u64>>,
    /// Whether the result is kept for later turns. The default is false.
    pub(crate) remember: Option<bool>,
}
