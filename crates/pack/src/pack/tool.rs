//! Tools, and the services and enrichers behind them, as the pack declares them.

use serde::Deserialize;
use serde_json::Value;

use super::provider::ApiKeySource;

/// The prefix of an MCP server in a list of tools: stands for all tools of the server.
pub(crate) const SERVER_PREFIX: &str = "mcp:";
/// The prefix of the generated tools that call a sub-agent.
pub(crate) const ASK_PREFIX: &str = "ask_";

/// How many items a render tool shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Shape")
)]
#[serde(rename_all = "snake_case")]
pub enum RenderShape {
    /// Shows a list of items.
    List,
    /// Shows one single item.
    Single,
}

/// A built-in function of a direct tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Function")
)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinFunction {
    /// Returns the current time.
    Clock,
    /// Returns its own input.
    Echo,
    /// Waits for a given time.
    Sleep,
    /// Fails with a given error.
    Fail,
    /// Emits many events at once.
    Burst,
    /// Emits a status of the agent.
    EmitStatus,
    /// Records a note for support.
    LlmFeedback,
}

/// What a tool does when it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Calls an enricher of a data service.
    Ccs {
        enricher_id: String,
        /// The requested type of data.
        domain_type: String,
    },
    /// Shows data to the user.
    Render {
        /// The type of the data.
        data_type: String,
        /// Shows one item or many.
        shape: RenderShape,
        /// True if the model may write items of its own instead of naming found ones.
        model_items: bool,
    },
    /// Calls a function of the server itself.
    Direct(BuiltinFunction),
    /// Calls a service over HTTP.
    Http(HttpDef),
    Process(ProcessDef),
    /// Calls a tool of an MCP server.
    Mcp {
        /// The name of the [`McpServer`] in the pack.
        server: String,
        /// The server's name for the tool.
        tool: String,
    },
    /// Delegates work to a worker session.
    Delegate {
        /// The agent that works: a worker or a sub-agent of the pack, or `orchestrator`.
        agent: String,
    },
}

/// The HTTP method of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Method")
)]
#[serde(rename_all = "UPPERCASE")]
pub enum ToolMethod {
    /// The HTTP method `GET`.
    Get,
    /// The HTTP method `POST`.
    Post,
    /// The HTTP method `PUT`.
    Put,
    /// The HTTP method `PATCH`.
    Patch,
    /// The HTTP method `DELETE`.
    Delete,
}

/// The request of an HTTP tool.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpDef {
    pub method: ToolMethod,
    /// The address with variables filled in; `{field}` in path or query stands for a field of the
    /// input ([`template_parts`](crate::template_parts)).
    pub url: String,
    /// Additional query parameters; values may have `{field}` too.
    pub query: Vec<(String, String)>,
    /// Headers with variables filled in; they may hold secrets.
    pub headers: Vec<(String, String)>,
    /// The maximum size of a response.
    pub max_bytes: u64,
    /// The maximum number of redirects.
    pub redirects_max: u32,
}

impl std::fmt::Debug for HttpDef {
    /// Leaves out values that may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpDef")
            .field("method", &self.method)
            .field("query", &names(&self.query))
            .field("headers", &names(&self.headers))
            .field("max_bytes", &self.max_bytes)
            .field("redirects_max", &self.redirects_max)
            .finish_non_exhaustive()
    }
}

/// The names of pairs whose values may be secrets.
fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

/// What a program reads from its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessStdin {
    /// The tool's input, as JSON.
    Input,
    /// The standard input is empty.
    None,
    /// A text in which `{field}` stands for a field of the input
    /// ([`template_parts`](crate::template_parts)).
    Template(String),
}

/// What a program writes on its standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Output")
)]
#[serde(rename_all = "snake_case")]
pub enum ProcessOutput {
    /// The output is plain text.
    Text,
    /// The output is one JSON value.
    Json,
}

/// Resource limits of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Seconds of CPU time.
    pub cpu_s: u64,
    /// Bytes of address space.
    pub memory_bytes: u64,
    /// Bytes of one file that the program writes.
    pub file_bytes: u64,
    /// The maximum number of open files.
    pub open_files: u64,
    /// The maximum number of processes of the server's user.
    pub processes: u64,
}

/// How a process tool runs its program.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessDef {
    /// The program and its arguments; `{field}` in an argument stands for a field of the input.
    pub command: Vec<String>,
    /// Environment variables besides the few that every program has; they may hold secrets.
    pub env: Vec<(String, String)>,
    /// What the program reads.
    pub stdin: ProcessStdin,
    /// What the program writes.
    pub output: ProcessOutput,
    /// The maximum size of the output.
    pub output_bytes_max: u64,
    /// Resource limits of the program.
    pub limits: ProcessLimits,
}

impl std::fmt::Debug for ProcessDef {
    /// Without what a variable may have filled in: it may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessDef")
            .field("env", &names(&self.env))
            .field("stdin", &self.stdin)
            .field("output", &self.output)
            .field("output_bytes_max", &self.output_bytes_max)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program, over its standard streams.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Environment variables besides the few that every program has; they may hold secrets.
        env: Vec<(String, String)>,
    },
    /// A service, over streamable HTTP.
    Http {
        /// The address with variables filled in.
        url: String,
        /// Headers with variables filled in; they may hold secrets.
        headers: Vec<(String, String)>,
    },
}

impl std::fmt::Debug for McpTransport {
    /// Without what a variable may have filled in: it may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { env, .. } => f.debug_tuple("Stdio").field(&names(env)).finish(),
            Self::Http { headers, .. } => f.debug_tuple("Http").field(&names(headers)).finish(),
        }
    }
}

/// An MCP server. Its tools are listed when the pack is loaded, never in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// How the server is reached.
    pub transport: McpTransport,
    /// The maximum time until the server's tools are listed.
    pub start_timeout_ms: u64,
    /// The maximum time for one call, with or without progress.
    pub call_timeout_ms: u64,
}

/// A tool that agents may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    /// The name, an id.
    pub name: String,
    /// What the tool does, for the model. Empty for a direct or mcp tool that takes the description
    /// of its function or server.
    pub description: String,
    /// What a call of the tool does.
    pub kind: ToolKind,
    /// The JSON Schema of the input. Null for a direct, render, mcp or delegate tool, which has a
    /// fixed one.
    pub input_schema: Value,
    /// The status id that is emitted before the tool runs.
    pub status: Option<String>,
    /// The maximum time for one call; set for http, process and delegate tools.
    pub timeout_ms: Option<u64>,
    /// True if the result is kept for later turns.
    pub remember: bool,
    /// True if a person must approve each call.
    pub approval: bool,
    /// The status id that is emitted when an MCP server reports progress.
    pub progress_status: Option<String>,
}

/// A data service of `connectors.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataService {
    /// The address with variables filled in and without a slash at the end; empty for a service
    /// behind an MCP server.
    pub url: String,
    /// The [`McpServer`] that the service is behind (`ccs_mcp`).
    pub mcp: Option<String>,
    /// The maximum time for one request.
    pub timeout_ms: u64,
    /// The maximum size of a response.
    pub max_bytes: u64,
    /// Headers of every request, names in lower case; none of them is a secret.
    pub headers: Vec<(String, String)>,
    /// Headers of every request whose values are read where their keys are.
    pub key_headers: Vec<KeyHeader>,
    /// The certificate with which the server identifies itself; `None` for none.
    pub client_certificate: Option<ClientCertificate>,
}

/// A header with a key. The key is never part of a pack, only the place where the server finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHeader {
    /// The name in lower case.
    pub name: String,
    /// What stands before the key.
    pub prefix: String,
    pub key: ApiKeySource,
    /// The line and the column of the header in `connectors.yaml`.
    pub position: (u64, u64),
}

/// A client certificate, in files of the PEM format at absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate and the intermediate ones after it.
    pub cert_file: String,
    pub key_file: String,
    /// The line and the column of the block in `connectors.yaml`.
    pub position: (u64, u64),
}

/// A kind of data that a [`DataService`] returns, by enricher id and domain type.
#[derive(Clone, Debug, PartialEq)]
pub struct Enricher {
    /// The id that the service knows.
    pub enricher_id: String,
    /// The type of the data.
    pub domain_type: String,
    /// The name of the service in [`crate::Pack::services`].
    pub service: String,
    pub version: String,
    /// The field of the payload that has the items.
    pub items: String,
    /// The field of an item that has its id.
    pub item_id: String,
    /// The JSON Schema of the payload; `None` if it is not checked.
    pub payload_schema: Option<Value>,
}
