//! Tools, and the services and enrichers behind them, as the pack declares them.

use serde::Deserialize;
use serde_json::Value;

/// What stands before the name of a tool server in a list of tools: all of its tools.
pub(crate) const SERVER_PREFIX: &str = "mcp:";
/// What the tools that ask a sub-agent begin with; they are made, not written.
pub(crate) const ASK_PREFIX: &str = "ask_";

/// How many things a render tool shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Shape")
)]
#[serde(rename_all = "snake_case")]
pub enum RenderShape {
    /// A list of items.
    List,
    /// One component.
    Single,
}

/// A function that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Function")
)]
#[serde(rename_all = "snake_case")]
pub enum BuiltinFunction {
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
        shape: RenderShape,
    },
    /// Calls a function that is built in.
    Direct(BuiltinFunction),
    /// Asks a service.
    Http(HttpDef),
    /// Runs a program.
    Process(ProcessDef),
    /// Asks a tool server.
    Mcp {
        /// Which one, by its name in the pack.
        server: String,
        /// What the server calls the tool.
        tool: String,
    },
    /// Gives work to a worker session.
    Delegate {
        /// The agent that works: a worker or a sub-agent of the pack, or `orchestrator`.
        agent: String,
    },
}

/// How a service is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Method")
)]
#[serde(rename_all = "UPPERCASE")]
pub enum ToolMethod {
    /// To read.
    Get,
    /// To do.
    Post,
    /// Replaces a resource.
    Put,
    /// To change.
    Patch,
    /// To remove.
    Delete,
}

/// How an HTTP tool asks its service.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpDef {
    /// By which method.
    pub method: ToolMethod,
    /// Where, with variables filled in; `{field}` in path or query stands for a field of the input.
    pub url: String,
    /// What is added to the query; values may have `{field}` too.
    pub query: Vec<(String, String)>,
    /// What is sent along, with variables filled in: may hold secrets.
    pub headers: Vec<(String, String)>,
    /// Bytes of an answer at most.
    pub max_bytes: u64,
    /// Hops to other addresses at most.
    pub redirects_max: u32,
}

impl std::fmt::Debug for HttpDef {
    /// Without what a variable may have filled in: it may be a secret.
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

/// What a program is given on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "Stdin")
)]
#[serde(rename_all = "snake_case")]
pub enum ProcessStdin {
    /// The tool's input, as JSON.
    Input,
    /// Nothing.
    None,
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
    /// Words.
    Text,
    /// One JSON value.
    Json,
}

/// What a program may take of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Seconds of CPU.
    pub cpu_s: u64,
    /// Bytes of address space.
    pub memory_bytes: u64,
    /// Bytes of one file it writes.
    pub file_bytes: u64,
    /// Files open at once.
    pub open_files: u64,
    /// Processes of its user at once.
    pub processes: u64,
}

/// How a process tool runs its program.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessDef {
    /// The program and its arguments; `{field}` in an argument stands for a field of the input.
    pub command: Vec<String>,
    /// Its environment beside the few variables every program has: may hold secrets.
    pub env: Vec<(String, String)>,
    /// What it is given to read.
    pub stdin: ProcessStdin,
    /// What it writes.
    pub output: ProcessOutput,
    /// Bytes of what it writes at most.
    pub output_bytes_max: u64,
    /// What it may take.
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

/// The way to a tool server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that speaks on its standard streams.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its environment beside the few variables every program has: may hold secrets.
        env: Vec<(String, String)>,
    },
    /// A service.
    Http {
        /// Where, with variables filled in.
        url: String,
        /// What is sent along: may hold secrets.
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

/// A tool server (MCP). Its tools are listed when the pack is loaded, never in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// The way to it.
    pub transport: McpTransport,
    /// How long it may take until its tools are listed.
    pub start_timeout_ms: u64,
    /// How long one call may take, progress or not.
    pub call_timeout_ms: u64,
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDef {
    /// Its name.
    pub name: String,
    /// What it does, for the model. Empty for a direct or mcp tool that gives none: the function's
    /// or the server's own.
    pub description: String,
    /// What it does when called.
    pub kind: ToolKind,
    /// The JSON Schema of its input. Null for a direct, render, mcp or delegate tool: its own.
    pub input_schema: Value,
    /// The status id it emits before it works.
    pub status: Option<String>,
    /// How long a call may take; set for http, process and delegate tools.
    pub timeout_ms: Option<u64>,
    /// Whether its result is kept for later turns.
    pub remember: bool,
    /// Whether a person must say yes before it acts.
    pub approval: bool,
    /// The status id it emits while it tells of progress.
    pub progress_status: Option<String>,
}

/// A service that enrichers are asked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataService {
    /// Where it is, with variables filled in and without a slash at the end; empty for one behind
    /// a tool server.
    pub url: String,
    /// The tool server it is behind (`ccs_mcp`).
    pub mcp: Option<String>,
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
