//! All tool servers of this process, by name and definition. One whose definition has not changed
//! keeps its connection when a pack is read again; one that no pack and no turn has any more is
//! left.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use turnwire_dial::{Dialer, Headers, Url};
use turnwire_event::port::BoxFuture;
use turnwire_pack::{DataService, McpServer, McpTransport, ToolDef, ToolKind};

use crate::connector::Transport;
use crate::mcp::connection::{Start, Way};
use crate::mcp::enrich::{ENRICH, Enrich};
use crate::mcp::error::{BadServer, NoConnection};
use crate::mcp::list::Found;
use crate::mcp::program::Program;
use crate::mcp::server::Server;
use crate::mcp::tool::Mcp;
use crate::secrets::Secrets;
use crate::tool::Tool;
use crate::workshop::Workshop;

/// What makes a program of its command and environment.
pub(crate) type Programs =
    dyn Fn(&str, &[String], &[(String, String)]) -> Arc<dyn Start> + Send + Sync;

/// The servers of a process.
pub struct Servers {
    dialer: Arc<Dialer>,
    programs: Arc<Programs>,
    /// Those that somebody still has.
    kept: Mutex<HashMap<String, (McpServer, Weak<Server>)>>,
}

impl Servers {
    /// Servers whose programs run in `workshop` and whose services are asked through `dialer`.
    pub fn new(dialer: Arc<Dialer>, workshop: Arc<Workshop>) -> Self {
        let programs = move |server: &str, command: &[String], env: &[(String, String)]| {
            Arc::new(Program {
                workshop: Arc::clone(&workshop),
                server: server.to_owned(),
                command: command.to_vec(),
                env: env.to_vec(),
            }) as Arc<dyn Start>
        };
        Self::over(dialer, Arc::new(programs))
    }

    pub(crate) fn over(dialer: Arc<Dialer>, programs: Arc<Programs>) -> Self {
        Self {
            dialer,
            programs,
            kept: Mutex::default(),
        }
    }

    /// Starts every server of `defs` that does not run yet, and lists the tools of all.
    ///
    /// Boxed, so that the machinery below it is compiled in this crate and not in its caller's.
    pub fn open<'a>(
        &'a self,
        defs: &'a BTreeMap<String, McpServer>,
    ) -> BoxFuture<'a, Result<Arc<Listed>, Vec<BadServer>>> {
        Box::pin(self.open_all(defs))
    }

    async fn open_all(
        &self,
        defs: &BTreeMap<String, McpServer>,
    ) -> Result<Arc<Listed>, Vec<BadServer>> {
        let opened = defs.iter().map(|(name, def)| async move {
            let opened = self.one(name, def).await;
            opened.map(|listing| (name.clone(), listing))
        });
        let mut listed = Listed::default();
        let mut bad = Vec::new();
        for opened in join_all(opened).await {
            match opened {
                Ok((name, listing)) => {
                    listed.servers.insert(name, listing);
                }
                Err(why) => bad.push(why),
            }
        }
        if !bad.is_empty() {
            return Err(bad);
        }
        let mut kept = self.kept.lock();
        kept.retain(|_, (_, server)| server.strong_count() > 0);
        for (name, listing) in &listed.servers {
            let def = listing.def.clone();
            kept.insert(name.clone(), (def, Arc::downgrade(&listing.server)));
        }
        Ok(Arc::new(listed))
    }

    /// Ends all servers, in peace where that does not take long. They do not come back.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_all())
    }

    async fn close_all(&self) {
        let kept: Vec<_> = self.kept.lock().drain().collect();
        let left = kept.iter().filter_map(|(_, (_, server))| server.upgrade());
        join_all(left.map(|server| async move { server.close().await })).await;
    }

    async fn one(&self, name: &str, def: &McpServer) -> Result<Listing, BadServer> {
        let within = Duration::from_millis(def.start_timeout_ms);
        // One time for all that a start is: the program, the greeting and the list.
        let until = Instant::now() + within;
        let (server, tools) = match self.running(name, def) {
            Some(server) => {
                let tools = server.list_again(until).await;
                (server, tools)
            }
            None => {
                let way = self
                    .way(name, def)
                    .map_err(|why| BadServer::new(name, why))?;
                let started = Server::start(name, way, (within, until)).await;
                let server = started.map_err(|why| BadServer::new(name, why))?;
                let tools = server.list(until).await;
                (server, tools)
            }
        };
        let tools = tools.map_err(|why| BadServer::new(name, why))?;
        Ok(Listing {
            def: def.clone(),
            secrets: Arc::new(Secrets::of_server(&def.transport)),
            server,
            tools,
        })
    }

    fn running(&self, name: &str, def: &McpServer) -> Option<Arc<Server>> {
        let kept = self.kept.lock();
        let (known, server) = kept.get(name)?;
        (known == def).then(|| server.upgrade()).flatten()
    }

    fn way(&self, name: &str, def: &McpServer) -> Result<Way, String> {
        match &def.transport {
            McpTransport::Stdio { command, env } => {
                Ok(Way::Program((self.programs)(name, command, env)))
            }
            McpTransport::Http { url, headers } => {
                let url = Url::parse(url)
                    .ok()
                    .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
                    .ok_or_else(|| NoConnection::Unreachable.to_string())?;
                let pairs = headers.iter();
                let pairs = pairs.map(|(name, value)| (name.as_str(), value.as_str()));
                Ok(Way::Address {
                    dialer: Arc::clone(&self.dialer),
                    headers: Headers::new(pairs).map_err(|why| why.to_string())?,
                    url,
                })
            }
        }
    }
}

/// One server and what it listed.
struct Listing {
    def: McpServer,
    secrets: Arc<Secrets>,
    server: Arc<Server>,
    tools: Vec<Found>,
}

impl Listing {
    fn made(&self, def: &ToolDef, found: &Found) -> Result<Mcp, String> {
        let call_timeout = Duration::from_millis(self.def.call_timeout_ms);
        Mcp::new(def, found, (&self.server, &self.secrets), call_timeout)
    }
}

/// The servers of one pack and their tools. Whoever holds it holds the servers up.
#[derive(Default)]
pub struct Listed {
    servers: BTreeMap<String, Listing>,
}

impl Listed {
    /// The tool that `def` says is tool `theirs` of `server`.
    pub(crate) fn tool(
        &self,
        def: &ToolDef,
        server: &str,
        theirs: &str,
    ) -> Result<Arc<dyn Tool>, String> {
        let listing = self.listing(server)?;
        let found = listing.tools.iter().find(|found| found.name == theirs);
        let Some(found) = found else {
            let names: Vec<&str> = listing.tools.iter().map(|t| t.name.as_str()).collect();
            let names = turnwire_pack::quoted_list(names);
            return Err(format!(
                "the MCP server `{server}` has no tool `{theirs}`; write: one of {names}"
            ));
        };
        let tool = listing.made(def, found);
        tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>)
            .map_err(|why| format!("tool `{theirs}` of the MCP server `{server}`: {why}"))
    }

    /// Every tool of `server` under a name of its own: what an agent has that is given all of
    /// them. One that cannot be used is left out.
    pub(crate) fn all(&self, server: &str) -> Result<Vec<Arc<dyn Tool>>, String> {
        let listing = self.listing(server)?;
        let made = listing.tools.iter().filter_map(|found| {
            let def = wild(server, found);
            let tool = listing.made(&def, found);
            tool.inspect_err(|why| {
                let tool = &found.name;
                tracing::warn!(server, tool, why, "a tool of an MCP server is left out");
            })
            .ok()
            .map(|tool| Arc::new(tool) as Arc<dyn Tool>)
        });
        Ok(made.collect())
    }

    fn listing(&self, server: &str) -> Result<&Listing, String> {
        let names = self.servers.keys().map(String::as_str);
        self.servers.get(server).ok_or_else(|| {
            let names = turnwire_pack::quoted_list(names);
            format!("there is no MCP server `{server}`; write: one of {names}")
        })
    }

    /// The way to a data service behind `server`.
    pub fn service(
        &self,
        server: &str,
        service: &DataService,
    ) -> Result<Arc<dyn Transport>, String> {
        let listing = self.listing(server)?;
        if listing.tools.iter().any(|found| found.name == ENRICH) {
            return Ok(Arc::new(Enrich::new(
                (&listing.server, &listing.secrets),
                service,
            )));
        }
        Err(format!(
            "the MCP server `{server}` has no tool `{ENRICH}`, so no data service is behind it"
        ))
    }

    /// Each server with how many tools it has.
    pub fn servers(&self) -> impl Iterator<Item = (&str, usize)> {
        let servers = self.servers.iter();
        servers.map(|(name, listing)| (name.as_str(), listing.tools.len()))
    }
}

/// Of a tool's name; every provider takes as many.
const NAME_CHARS_MAX: usize = 64;

/// A tool that nobody wrote down but its server: its name has the server's before it, in letters
/// that every provider takes.
fn wild(server: &str, found: &Found) -> ToolDef {
    let name = format!("{server}_{}", found.name);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = name.chars().map(|c| if plain(c) { c } else { '_' });
    ToolDef {
        name: name.take(NAME_CHARS_MAX).collect(),
        description: String::new(),
        kind: ToolKind::Mcp {
            server: server.to_owned(),
            tool: found.name.clone(),
        },
        input_schema: Value::Null,
        status: None,
        timeout_ms: None,
        remember: false,
        approval: false,
        progress_status: None,
    }
}
