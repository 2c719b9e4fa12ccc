//! One connection to a server: [`Connection::open`], [`Connection::ended`], [`Connection::close`].

mod health;
mod stdio;
mod http;
mod filter;
mod handler;
mod error;
mod request;
mod probe;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::service::{
    ClientCacheConfig, Peer, RoleClient, RunningServiceCancellationToken, ServiceExt as _,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{timeout, timeout_at};
use turnwire_dial::{Dialer, RequestHeaders};
use turnwire_event::port::BoxFuture;
use turnwire_pack::McpTransport;

use filter::FilteredTransport;
use handler::ClientHandler;
use health::MESSAGE_BYTES_MAX;
use http::HttpTransport;
use stdio::{BoundedReader, BoundedWriter};

use crate::data_service::http_url;
use crate::mcp::deadline::Deadline;

pub(crate) use error::{ConnectError, SendFailure};
pub(crate) use filter::{ProgressSender, ProgressStep};
pub(crate) use health::{ConnectionFault, ConnectionHealth};
pub(crate) use probe::until_unresponsive;
pub(crate) use request::PendingRequest;

/// Concurrent HTTP requests that wait for the head of their response; further ones queue, within
/// their deadlines. Enough for the turns of many people, and few enough not to flood a server.
const REQUESTS_MAX: usize = 64;
/// The time for a connection to close cleanly, for example to send the end of an HTTP session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time for a program to exit after its standard input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A running program and its standard streams.
pub(crate) struct ProgramPipes {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) program: Box<dyn RunningProgram>,
}

/// A running program. Dropping it ends the program.
pub(crate) trait RunningProgram: Send + Sync {
    /// Waits briefly for the exit and describes it, for the operator; empty if it is not known.
    fn exit_text(&mut self) -> BoxFuture<'_, String>;

    /// Waits until no process of the program is left.
    fn exited(&mut self) -> BoxFuture<'_, ()>;
}

/// Starts the programs of servers.
pub(crate) trait ProgramLauncher: Send + Sync {
    /// Starts `command` with the environment `env` as the program of `server`.
    fn launch<'a>(
        &'a self,
        server: &'a str,
        command: &'a [String],
        env: &'a [(String, String)],
    ) -> BoxFuture<'a, std::io::Result<ProgramPipes>>;
}

/// How servers are reached: as programs, or over HTTP.
pub(crate) struct ServerAccess {
    pub(crate) launcher: Arc<dyn ProgramLauncher>,
    pub(crate) dialer: Arc<Dialer>,
}

/// An open connection, as calls use it.
#[derive(Clone)]
pub(crate) struct ConnectionHandle {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) health: Arc<ConnectionHealth>,
}

/// An open connection. Dropping it closes it without waiting.
pub(crate) struct Connection {
    pub(crate) handle: ConnectionHandle,
    /// Completes when the server closes the connection; `None` after that.
    closed: Option<BoxFuture<'static, ()>>,
    close: RunningServiceCancellationToken,
    program: Option<Box<dyn RunningProgram>>,
}

impl Connection {
    /// Starts the program of `server`, if it has one, and makes the handshake.
    pub(crate) async fn open(
        server: &Arc<str>,
        transport: &McpTransport,
        access: &ServerAccess,
        deadline: Deadline,
    ) -> Result<Self, ConnectError> {
        let late = || ConnectError::Timeout(deadline.timeout);
        let health = Arc::<ConnectionHealth>::default();
        let (handshake, mut program): (BoxFuture<'_, _>, _) = match transport {
            McpTransport::Stdio { command, env } => {
                let launched = access.launcher.launch(server, command, env);
                let launched = timeout_at(deadline.at, launched).await;
                let launched = launched.map_err(|_| late())?;
                let pipes = launched.map_err(|error| ConnectError::Program(start_text(&error)))?;
                let stdin = BoundedWriter::new(pipes.stdin, &health);
                let stdout = BoundedReader::new(pipes.stdout, &health);
                let transport = AsyncRwTransport::new_client(stdout, stdin)
                    .with_max_line_length(MESSAGE_BYTES_MAX + 2);
                let transport = FilteredTransport::new(transport, server, &health);
                (
                    Box::pin(ClientHandler.serve(transport)),
                    Some(pipes.program),
                )
            }
            McpTransport::Http { url, headers } => {
                let url = http_url(url).ok_or(ConnectError::Unreachable)?;
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.as_str(), value.as_str()));
                let client = HttpTransport {
                    dialer: Arc::clone(&access.dialer),
                    url: url.clone(),
                    headers: RequestHeaders::new(headers)?,
                    health: Arc::clone(&health),
                    stream_restarts: Arc::default(),
                };
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .max_sse_event_size(MESSAGE_BYTES_MAX);
                // Reopens a broken stream at once, and once more if that fails: the pauses are those
                // of the transport, and a server that stays away is for the supervisor.
                let mut reopen = FixedInterval::default();
                (reopen.max_times, reopen.duration) = (Some(2), Duration::ZERO);
                config.retry_config = Arc::new(reopen);
                config.max_concurrent_requests = REQUESTS_MAX;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let transport = FilteredTransport::new(transport, server, &health);
                (Box::pin(ClientHandler.serve(transport)), None)
            }
        };
        let handshake = tokio::select! {
            handshake = timeout_at(deadline.at, handshake) => handshake,
            fault = health.failed() => return Err(ConnectError::Fault(fault)),
        };
        let service = match (handshake, health.fault()) {
            (Ok(Ok(service)), _) => service,
            (Ok(Err(_)), Some(fault)) => return Err(ConnectError::Fault(fault)),
            (Ok(Err(error)), None) => {
                let mut error = ConnectError::from(error);
                if let (ConnectError::Ended(exit), Some(program)) = (&mut error, &mut program) {
                    *exit = program.exit_text().await;
                }
                return Err(error);
            }
            (Err(_), _) if health.stray_output.load(Ordering::Relaxed) => {
                return Err(ConnectError::StrayOutput);
            }
            (Err(_), _) => return Err(late()),
        };
        let peer = service.peer().clone();
        // Each pack load lists the tools anew, whatever lifetime the server gives its list.
        let no_cache = ClientCacheConfig::disabled();
        peer.set_response_cache_config(no_cache).await;
        Ok(Self {
            handle: ConnectionHandle { peer, health },
            close: service.cancellation_token(),
            closed: Some(Box::pin(async move {
                let _ = service.waiting().await;
            })),
            program,
        })
    }

    /// Waits until the server closes the connection.
    pub(crate) async fn ended(&mut self) {
        if let Some(closed) = &mut self.closed {
            closed.await;
            self.closed = None;
        }
    }

    /// Closes the connection, cleanly if that takes [`CLOSE_TIMEOUT`] at most.
    pub(crate) async fn close(self) {
        self.close.cancel();
        if let Some(closed) = self.closed {
            let _ = timeout(CLOSE_TIMEOUT, closed).await;
        }
        // The program exits when its input is closed, or is ended when it is dropped here.
        if let Some(mut program) = self.program {
            let _ = timeout(EXIT_TIMEOUT, program.exited()).await;
        }
    }
}

/// Why a program did not start.
fn start_text(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
        _ => error.to_string(),
    }
}
