//! All MCP servers of this process, by name and definition. A server whose definition has not
//! changed keeps its connection when a pack is loaded again; a server that no pack and no turn uses
//! any more is stopped.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use parking_lot::Mutex;
use turnwire_dial::Dialer;
use turnwire_event::port::BoxFuture;
use turnwire_fair::FairLimits;
use turnwire_pack::{DataService, McpServer, ToolDef, ToolKind};

use crate::data_service::ServiceTransport;
use crate::mcp::connection::{ProgramLauncher, ServerAccess};
use crate::mcp::enrich::{ENRICH, enrich_transport};
use crate::mcp::error::McpServerError;
use crate::mcp::list::ListedTool;
use crate::mcp::server::{ToolServer, start_deadline};
use crate::mcp::tool::McpTool;
use crate::pack_tool::plain_def;
use crate::program::runner::ProgramRunner;
use crate::secrets::Secrets;
use crate::tool::Tool;

/// The default limits of the calls of one server.
const CALL_LIMITS: FairLimits = FairLimits {
    total: 64,
    per_owner: 16,
    waiting: 1_024,
    waiting_per_owner: 128,
};

/// The MCP servers of a process.
pub struct McpServers {
    access: Arc<ServerAccess>,
    /// The running servers; each belongs to the toolsets and tools that use it.
    running: Mutex<HashMap<String, Weak<ToolServer>>>,
    /// The keys of this process, for the tools of the next load.
    keys: Mutex<Secrets>,
}

impl McpServers {
    /// Servers whose programs are started by `runner`, or which are reached through `dialer`.
    pub fn new(dialer: Arc<Dialer>, runner: Arc<ProgramRunner>) -> Self {
        Self::with_launcher(dialer, runner)
    }

    pub(crate) fn with_launcher(dialer: Arc<Dialer>, launcher: Arc<dyn ProgramLauncher>) -> Self {
        Self {
            access: Arc::new(ServerAccess {
                launcher,
                dialer,
                call_limits: CALL_LIMITS,
            }),
            running: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    /// Limits the calls of each server: in all, per owner, and waiting.
    #[must_use]
    pub fn with_call_limits(mut self, call_limits: FairLimits) -> Self {
        self.access = Arc::new(ServerAccess {
            call_limits,
            ..self.access.as_ref().clone()
        });
        self
    }

    /// Removes `keys` from the results of all tools that are loaded from now on.
    pub fn hide(&self, keys: &Secrets) {
        *self.keys.lock() = keys.clone();
    }

    /// Starts every server of `defs` that does not run yet, and lists the tools of all.
    ///
    /// Boxed, so that the future is compiled in this crate and not in the crate of the caller.
    pub fn open<'a>(
        &'a self,
        defs: &'a BTreeMap<String, McpServer>,
    ) -> BoxFuture<'a, Result<Arc<McpToolset>, Vec<McpServerError>>> {
        Box::pin(async move {
            let opened = defs.iter().map(|(name, def)| async move {
                let (server, opened) = (name.clone(), self.open_one(name, def).await);
                match opened {
                    Ok(tools) => Ok((server, tools)),
                    Err(reason) => Err(McpServerError { server, reason }),
                }
            });
            let mut toolset = McpToolset {
                keys: self.keys.lock().clone(),
                ..McpToolset::default()
            };
            let mut errors = Vec::new();
            for opened in join_all(opened).await {
                match opened {
                    Ok(opened) => toolset.servers.extend([opened]),
                    Err(error) => errors.push(error),
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let mut running = self.running.lock();
            running.retain(|_, server| server.strong_count() > 0);
            let servers = toolset.servers.iter();
            running.extend(
                servers.map(|(name, opened)| (name.clone(), Arc::downgrade(&opened.server))),
            );
            Ok(Arc::new(toolset))
        })
    }

    /// Stops all servers for good and waits a few seconds for their ends.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let running: Vec<_> = self.running.lock().drain().collect();
            let servers = running.iter().filter_map(|(_, server)| server.upgrade());
            join_all(servers.map(|server| async move { server.close().await })).await;
        })
    }

    async fn open_one(&self, name: &str, def: &McpServer) -> Result<ServerTools, String> {
        let running = self.running.lock().get(name).and_then(Weak::upgrade);
        let (server, tools) = match running.filter(|server| server.def == *def) {
            Some(server) => {
                let tools = server.list_again().await;
                (server, tools)
            }
            None => {
                // One deadline for the program, the handshake and the list.
                let deadline = start_deadline(def);
                let server = ToolServer::start(name, def, &self.access, deadline).await;
                let server = server.map_err(|error| error.to_string())?;
                let tools = server.list(deadline).await;
                (server, tools)
            }
        };
        let tools = tools.map_err(|error| error.to_string())?;
        Ok(ServerTools { server, tools })
    }
}

/// One server and the tools that it listed.
pub(super) struct ServerTools {
    server: Arc<ToolServer>,
    pub(super) tools: Vec<ListedTool>,
}

/// The MCP servers of one pack and their tools. The servers run as long as this, or one of the
/// tools, exists.
#[derive(Default)]
pub struct McpToolset {
    pub(super) servers: BTreeMap<String, ServerTools>,
    /// The keys of this process, which no result may contain.
    keys: Secrets,
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
        let tool = McpTool::build(def, listed, &tools.server, &self.keys);
        tool.map_err(|error| format!("tool `{remote_name}` of the MCP server `{server}`: {error}"))
    }

    /// Every tool of `server`, named `<server>_<tool>`. A tool whose definition is not valid is left
    /// out with a warning.
    pub(crate) fn all_tools(&self, server: &str) -> Result<Vec<Arc<dyn Tool>>, String> {
        let tools = self.tools(server)?;
        let usable = tools.tools.iter().filter_map(|listed| {
            let def = generated_def(server, listed);
            let tool = McpTool::build(&def, listed, &tools.server, &self.keys);
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
    ) -> Result<Arc<ServiceTransport>, String> {
        let tools = self.tools(server)?;
        if tools.tools.iter().any(|tool| tool.name == ENRICH) {
            return Ok(enrich_transport(&tools.server, service));
        }
        Err(format!(
            "the MCP server `{server}` has no tool `{ENRICH}`, so no data service is behind it"
        ))
    }
}

/// The limit of the name of a tool, which every provider accepts.
const NAME_CHARS_MAX: usize = 64;

/// The definition of a tool that the pack does not define. Its name begins with the server's and
/// has only characters that every provider allows.
fn generated_def(server: &str, listed: &ListedTool) -> ToolDef {
    let name = format!("{server}_{}", listed.name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = name.chars().map(|c| if plain(c) { c } else { '_' });
    let kind = ToolKind::Mcp {
        server: server.to_owned(),
        tool: listed.name.clone(),
    };
    plain_def(name.take(NAME_CHARS_MAX).collect(), String::new(), kind)
}
