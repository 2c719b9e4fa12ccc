//! All MCP servers of this process, by name and definition. A server whose definition has not
//! changed keeps its connection when a pack is loaded again; a server that no pack and no turn uses
//! any more is stopped.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;
use turnwire_dial::{Dialer, RequestHeaders, Url};
use turnwire_event::port::BoxFuture;
use turnwire_pack::{DataService, McpServer, McpTransport, ToolDef, ToolKind};

use crate::data_service::ServiceTransport;
use crate::mcp::connection::{ConnectError, Endpoint, ProgramLauncher};
use crate::mcp::deadline::Deadline;
use crate::mcp::enrich::{ENRICH, EnrichTransport};
use crate::mcp::error::McpServerError;
use crate::mcp::list::ListedTool;
use crate::mcp::program::ServerProgram;
use crate::mcp::server::ToolServer;
use crate::mcp::tool::McpTool;
use crate::program::runner::ProgramRunner;
use crate::secrets::Secrets;
use crate::tool::Tool;

/// Makes the launcher of a server from its name, command and environment.
pub(crate) type Launchers =
    dyn Fn(&str, &[String], &[(String, String)]) -> Arc<dyn ProgramLauncher> + Send + Sync;

/// The MCP servers of a process.
pub struct McpServers {
    dialer: Arc<Dialer>,
    launchers: Arc<Launchers>,
    /// The running servers; each belongs to the toolsets and tools that use it.
    running: Mutex<HashMap<String, (McpServer, Weak<ToolServer>)>>,
}

impl McpServers {
    /// Servers whose programs are started by `runner`, or which are reached through `dialer`.
    pub fn new(dialer: Arc<Dialer>, runner: Arc<ProgramRunner>) -> Self {
        let launchers = move |server: &str, command: &[String], env: &[(String, String)]| {
            Arc::new(ServerProgram {
                runner: Arc::clone(&runner),
                server: server.to_owned(),
                command: command.to_vec(),
                env: env.to_vec(),
            }) as Arc<dyn ProgramLauncher>
        };
        Self::with_launchers(dialer, Arc::new(launchers))
    }

    pub(crate) fn with_launchers(dialer: Arc<Dialer>, launchers: Arc<Launchers>) -> Self {
        Self {
            dialer,
            launchers,
            running: Mutex::default(),
        }
    }

    /// Starts every server of `defs` that does not run yet, and lists the tools of all.
    ///
    /// Boxed, so that the future is compiled in this crate and not in the crate of the caller.
    pub fn open<'a>(
        &'a self,
        defs: &'a BTreeMap<String, McpServer>,
    ) -> BoxFuture<'a, Result<Arc<McpToolset>, Vec<McpServerError>>> {
        Box::pin(self.open_all(defs))
    }

    async fn open_all(
        &self,
        defs: &BTreeMap<String, McpServer>,
    ) -> Result<Arc<McpToolset>, Vec<McpServerError>> {
        let opened = defs.iter().map(|(name, def)| async move {
            let opened = self.open_one(name, def).await;
            opened.map(|server| (name.clone(), server))
        });
        let mut toolset = McpToolset::default();
        let mut errors = Vec::new();
        for opened in join_all(opened).await {
            match opened {
                Ok((name, server)) => {
                    toolset.servers.insert(name, server);
                }
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut running = self.running.lock();
        running.retain(|_, (_, server)| server.strong_count() > 0);
        for (name, opened) in &toolset.servers {
            let server = Arc::downgrade(&opened.server);
            running.insert(name.clone(), (opened.def.clone(), server));
        }
        Ok(Arc::new(toolset))
    }

    /// Stops all servers for good and waits a few seconds for their ends.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_all())
    }

    async fn close_all(&self) {
        let running: Vec<_> = self.running.lock().drain().collect();
        let servers = running
            .iter()
            .filter_map(|(_, (_, server))| server.upgrade());
        join_all(servers.map(|server| async move { server.close().await })).await;
    }

    async fn open_one(&self, name: &str, def: &McpServer) -> Result<ServerTools, McpServerError> {
        let (server, tools) = match self.running(name, def) {
            Some(server) => {
                let tools = server.list_again().await;
                (server, tools)
            }
            None => {
                // One deadline for the program, the handshake and the list.
                let deadline = Deadline::after(Duration::from_millis(def.start_timeout_ms));
                let endpoint = self.endpoint(name, def);
                let endpoint = endpoint.map_err(|error| McpServerError::new(name, error))?;
                let server = ToolServer::start(name, endpoint, deadline).await;
                let server = server.map_err(|error| McpServerError::new(name, error))?;
                let tools = server.list(deadline).await;
                (server, tools)
            }
        };
        Ok(ServerTools {
            def: def.clone(),
            secrets: Arc::new(Secrets::of_server(&def.transport)),
            tools: tools.map_err(|error| McpServerError::new(name, error))?,
            server,
        })
    }

    fn running(&self, name: &str, def: &McpServer) -> Option<Arc<ToolServer>> {
        let running = self.running.lock();
        let (running_def, server) = running.get(name)?;
        (running_def == def).then(|| server.upgrade()).flatten()
    }

    fn endpoint(&self, name: &str, def: &McpServer) -> Result<Endpoint, String> {
        match &def.transport {
            McpTransport::Stdio { command, env } => {
                Ok(Endpoint::Program((self.launchers)(name, command, env)))
            }
            McpTransport::Http { url, headers } => {
                let url = Url::parse(url)
                    .ok()
                    .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
                    .ok_or_else(|| ConnectError::Unreachable.to_string())?;
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
                Ok(Endpoint::Http {
                    dialer: Arc::clone(&self.dialer),
                    headers: RequestHeaders::new(headers).map_err(|error| error.to_string())?,
                    url,
                })
            }
        }
    }
}

/// One server and the tools that it listed.
struct ServerTools {
    def: McpServer,
    secrets: Arc<Secrets>,
    server: Arc<ToolServer>,
    tools: Vec<ListedTool>,
}

impl ServerTools {
    fn tool(&self, def: &ToolDef, listed: &ListedTool) -> Result<Arc<dyn Tool>, String> {
        let call_timeout = Duration::from_millis(self.def.call_timeout_ms);
        let tool = McpTool::build(def, listed, (&self.server, &self.secrets), call_timeout)?;
        Ok(Arc::new(tool))
    }
}

/// The MCP servers of one pack and their tools. The servers run as long as this, or one of the
/// tools, exists.
#[derive(Default)]
pub struct McpToolset {
    servers: BTreeMap<String, ServerTools>,
}

impl McpToolset {
    /// The tool `remote_name` of `server` as `def` defines it.
    pub(crate) fn tool(
        &self,
        def: &ToolDef,
        server: &str,
        remote_name: &str,
    ) -> Result<Arc<dyn Tool>, String> {
        let tools = self.tools(server)?;
        let listed = tools.tools.iter().find(|tool| tool.name == remote_name);
        let Some(listed) = listed else {
            let names: Vec<&str> = tools.tools.iter().map(|t| t.name.as_str()).collect();
            let names = turnwire_pack::quoted_list(names);
            return Err(format!(
                "the MCP server `{server}` has no tool `{remote_name}`; write: one of {names}"
            ));
        };
        let tool = tools.tool(def, listed);
        tool.map_err(|error| format!("tool `{remote_name}` of the MCP server `{server}`: {error}"))
    }

    /// Every tool of `server`, under a name made of both. A tool that cannot be used is left out.
    pub(crate) fn all(&self, server: &str) -> Result<Vec<Arc<dyn Tool>>, String> {
        let tools = self.tools(server)?;
        let usable = tools.tools.iter().filter_map(|listed| {
            let tool = tools.tool(&generated_def(server, listed), listed);
            tool.inspect_err(|error| {
                let tool = &listed.name;
                tracing::warn!(server, tool, error, "tool of an MCP server left out");
            })
            .ok()
        });
        Ok(usable.collect())
    }

    fn tools(&self, server: &str) -> Result<&ServerTools, String> {
        let names = self.servers.keys().map(String::as_str);
        self.servers.get(server).ok_or_else(|| {
            let names = turnwire_pack::quoted_list(names);
            format!("there is no MCP server `{server}`; write: one of {names}")
        })
    }

    /// The transport to a data service behind `server`.
    pub fn service(
        &self,
        server: &str,
        service: &DataService,
    ) -> Result<Arc<dyn ServiceTransport>, String> {
        let tools = self.tools(server)?;
        if tools.tools.iter().any(|tool| tool.name == ENRICH) {
            let server = (&tools.server, &tools.secrets);
            return Ok(Arc::new(EnrichTransport::new(server, service)));
        }
        Err(format!(
            "the MCP server `{server}` has no tool `{ENRICH}`, so no data service is behind it"
        ))
    }

    /// The name and the number of tools of each server.
    pub fn servers(&self) -> impl Iterator<Item = (&str, usize)> {
        let servers = self.servers.iter();
        servers.map(|(name, tools)| (name.as_str(), tools.tools.len()))
    }
}

/// Of the name of a tool; every provider allows as many.
const NAME_CHARS_MAX: usize = 64;

/// The definition of a tool that the pack does not define. Its name begins with the server's and
/// has only characters that every provider allows.
fn generated_def(server: &str, listed: &ListedTool) -> ToolDef {
    let name = format!("{server}_{}", listed.name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = name.chars().map(|c| if plain(c) { c } else { '_' });
    ToolDef {
        name: name.take(NAME_CHARS_MAX).collect(),
        description: String::new(),
        kind: ToolKind::Mcp {
            server: server.to_owned(),
            tool: listed.name.clone(),
        },
        input_schema: Value::Null,
        status: None,
        timeout_ms: None,
        remember: false,
        approval: false,
        progress_status: None,
    }
}
