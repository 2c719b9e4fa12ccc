//! One server and the task that supervises it: when a connection ends, the task opens another one
//! after the next pause of the [`RestartPolicy`].
//!
//! ```text
//!            ╭──────── connected: calls are sent ────────╮
//! open ──▶ connection                        closed, ConnectionFault, unresponsive
//!            ╰── open ◀── pause 0.5 s … 30 s ◀── away ◀──╯
//! ```
//! Dropping the last [`ToolServer`] handle stops the task, which closes the connection.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::service::{Peer, RoleClient};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use turnwire_event::{Owner, TurnId, metric};
use turnwire_fair::FairSlots;
use turnwire_pack::{McpServer, McpTransport};

use crate::mcp::connection::{
    ConnectError, Connection, ConnectionFault, ConnectionHandle, ServerAccess, until_unresponsive,
};
use crate::mcp::deadline::Deadline;
use crate::mcp::list::{ListError, ListedTool, list_tools};
use crate::mcp::restart::RestartPolicy;
use crate::secrets::Secrets;

/// Turns of which a server remembers that they have used it.
const TURNS_MAX: usize = 1_024;
/// How long a pack that is loaded again waits for a server that is away.
const RELOAD_WAIT: Duration = Duration::from_secs(2);
/// Unanswered pings after which a program is unresponsive: it reads all messages from one pipe.
const PINGS: usize = 1;
/// The same over HTTP, where a server that handles one request at a time may still be busy with a
/// cancelled one.
const PINGS_OVER_HTTP: usize = 2;
/// The time for a server to stop: longer than its connection and its program have together.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A server with a [`Supervisor`] task that keeps it connected.
pub(crate) struct ToolServer {
    pub(crate) name: Arc<str>,
    pub(crate) def: McpServer,
    /// The keys that the server is given, which no result may contain.
    pub(crate) secrets: Secrets,
    /// One for each call, shared fairly by the owners of turns.
    pub(crate) slots: Arc<FairSlots<Owner>>,
    /// `None` while the server is away. The supervisor holds the sender until it has stopped.
    connection: watch::Receiver<Option<ConnectionHandle>>,
    /// The tools of the last load.
    tools: Arc<Mutex<Vec<ListedTool>>>,
    /// The turns that have used the server, the oldest first.
    turns: Mutex<VecDeque<TurnId>>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl ToolServer {
    /// Connects and supervises the connection. Every later connection has the same timeout.
    pub(crate) async fn start(
        name: &str,
        def: &McpServer,
        access: &Arc<ServerAccess>,
        deadline: Deadline,
    ) -> Result<Arc<Self>, ConnectError> {
        let name: Arc<str> = name.into();
        let connection = Connection::open(&name, &def.transport, access, deadline).await?;
        let (current, receiver) = watch::channel(None);
        let tools = Arc::new(Mutex::default());
        let stop = CancellationToken::new();
        let supervisor = Supervisor {
            name: Arc::clone(&name),
            def: def.clone(),
            access: Arc::clone(access),
            current,
            tools: Arc::clone(&tools),
            stop: stop.clone(),
        };
        supervisor.publish(&connection);
        tokio::spawn(supervisor.run(connection));
        Ok(Arc::new(Self {
            name,
            def: def.clone(),
            secrets: Secrets::of_server(&def.transport),
            slots: FairSlots::new(access.call_limits),
            connection: receiver,
            tools,
            turns: Mutex::default(),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }))
    }

    /// The current connection; waits for it until `deadline` if the server is away.
    pub(crate) async fn connection(&self, deadline: Instant) -> Option<ConnectionHandle> {
        let mut connection = self.connection.clone();
        let connected = connection.wait_for(Option::is_some);
        timeout_at(deadline, connected).await.ok()?.ok()?.clone()
    }

    /// Stops the server and waits for its end, [`STOP_TIMEOUT`] at most.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let mut connection = self.connection.clone();
        let stopped = async { while connection.changed().await.is_ok() {} };
        let _ = timeout(STOP_TIMEOUT, stopped).await;
    }

    /// Lists the tools and remembers them.
    pub(crate) async fn list(&self, deadline: Deadline) -> Result<Vec<ListedTool>, ListError> {
        let connection = self.connection(deadline.at).await;
        let connection = connection.ok_or(ListError::Disconnected)?;
        let tools = list_tools(&connection.peer, deadline).await?;
        self.tools.lock().clone_from(&tools);
        Ok(tools)
    }

    /// Lists the tools again; the remembered ones if the server is away, so that a reload of a pack
    /// does not fail for that.
    pub(crate) async fn list_again(&self) -> Result<Vec<ListedTool>, ListError> {
        let mut deadline = start_deadline(&self.def);
        if self.connection.borrow().is_none() {
            deadline = deadline.at_most(RELOAD_WAIT);
        }
        let listed = self.list(deadline).await;
        let remembered = self.tools.lock().clone();
        match listed {
            Err(ListError::Disconnected | ListError::Timeout(_)) if !remembered.is_empty() => {
                tracing::warn!(
                    server = %self.name,
                    "MCP server is away; the pack is loaded with the tools it listed before"
                );
                Ok(remembered)
            }
            listed => listed,
        }
    }

    /// True the first time that `turn_id` uses the server.
    pub(crate) fn begin_turn(&self, turn_id: TurnId) -> bool {
        let mut turns = self.turns.lock();
        if turns.contains(&turn_id) {
            return false;
        }
        if turns.len() == TURNS_MAX {
            turns.pop_front();
        }
        turns.push_back(turn_id);
        true
    }
}

/// The task behind a [`ToolServer`].
struct Supervisor {
    name: Arc<str>,
    def: McpServer,
    access: Arc<ServerAccess>,
    current: watch::Sender<Option<ConnectionHandle>>,
    tools: Arc<Mutex<Vec<ListedTool>>>,
    stop: CancellationToken,
}

impl Supervisor {
    async fn run(self, mut connection: Connection) {
        let mut restarts = RestartPolicy::default();
        loop {
            restarts.connected();
            let fault = self.watch(&mut connection).await;
            self.current.send_replace(None);
            self.count_connections(-1.0);
            connection.close().await;
            let Some(fault) = fault else {
                tracing::debug!(server = %self.name, "MCP server stopped");
                return;
            };
            tracing::warn!(server = %self.name, reason = %fault, "MCP server disconnected");
            let reconnected = self.reconnect(&mut restarts);
            let Some(reconnected) = self.stop.run_until_cancelled(reconnected).await else {
                return;
            };
            connection = reconnected;
            self.publish(&connection);
            tracing::info!(server = %self.name, "MCP server reconnected");
            let compared = self.compare_tools(&connection.handle.peer);
            self.stop.run_until_cancelled(compared).await;
        }
    }

    /// Waits for the end of the connection; `None` if the server is to stop.
    async fn watch(&self, connection: &mut Connection) -> Option<ConnectionFault> {
        let ConnectionHandle { peer, health } = connection.handle.clone();
        let pings = match self.def.transport {
            McpTransport::Stdio { .. } => PINGS,
            McpTransport::Http { .. } => PINGS_OVER_HTTP,
        };
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = connection.until_closed() => {
                Some(health.fault().unwrap_or(ConnectionFault::Closed))
            }
            fault = health.failed() => Some(fault),
            () = until_unresponsive(peer, pings, &health) => Some(ConnectionFault::Unresponsive),
        }
    }

    /// Opens a connection, after as many attempts as it takes.
    async fn reconnect(&self, restarts: &mut RestartPolicy) -> Connection {
        loop {
            tokio::time::sleep(restarts.next_pause()).await;
            metrics::counter!(
                metric::MCP_SERVER_RESTARTS_TOTAL,
                "server" => self.name.to_string()
            )
            .increment(1);
            let (transport, deadline) = (&self.def.transport, start_deadline(&self.def));
            match Connection::open(&self.name, transport, &self.access, deadline).await {
                Ok(connection) => return connection,
                Err(error) => {
                    tracing::warn!(server = %self.name, %error, "MCP server did not restart");
                }
            }
        }
    }

    fn publish(&self, connection: &Connection) {
        self.current.send_replace(Some(connection.handle.clone()));
        self.count_connections(1.0);
    }

    /// The gauge counts connections: while a pack is replaced, two servers may have one name.
    fn count_connections(&self, change: f64) {
        let gauge = metrics::gauge!(metric::MCP_SERVER_UP, "server" => self.name.to_string());
        gauge.increment(change);
    }

    /// Warns if a restarted server has other tools. The tools of the last load stay: a turn keeps
    /// the tools that it began with (S2-001).
    async fn compare_tools(&self, peer: &Peer<RoleClient>) {
        let Ok(tools) = list_tools(peer, start_deadline(&self.def)).await else {
            tracing::warn!(server = %self.name, "MCP server did not list its tools after a restart");
            return;
        };
        let current = names(&tools);
        let loaded = names(&self.tools.lock());
        if current != loaded {
            let removed: Vec<&String> = loaded.difference(&current).collect();
            let added: Vec<&String> = current.difference(&loaded).collect();
            tracing::warn!(
                server = %self.name, ?removed, ?added,
                "MCP server has other tools after a restart; reload the pack to use them"
            );
        }
    }
}

/// How long a server may take to connect, or to list its tools.
pub(crate) fn start_deadline(def: &McpServer) -> Deadline {
    Deadline::after(Duration::from_millis(def.start_timeout_ms))
}

fn names(tools: &[ListedTool]) -> BTreeSet<String> {
    tools.iter().map(|tool| tool.name.clone()).collect()
}
