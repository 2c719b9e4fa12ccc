//! One [`Connection`] to an MCP server, over the standard streams of a program or over HTTP. The
//! supervisor of the server opens it, waits until it is closed, and opens the next one.

mod health;
mod intake;
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
use turnwire_fair::FairLimits;
use turnwire_pack::McpTransport;

use filter::FilteredTransport;
use handler::ClientHandler;
use health::MESSAGE_BYTES_MAX;
use http::HttpTransport;
use intake::MessageIntake;
use stdio::{BoundedReader, BoundedWriter};

use crate::data_service::http_url;
use crate::mcp::deadline::Deadline;

pub(crate) use error::{ConnectError, SendFailure};
pub(crate) use filter::{ProgressSender, ProgressStep};
pub(crate) use health::{ConnectionFault, ConnectionHealth};
#[cfg(feature = "fuzzing")]
pub(crate) use intake::reduce_answer;
pub(crate) use intake::{ResultSender, ResultSlot};
pub(crate) use probe::until_unresponsive;
pub(crate) use request::PendingRequest;

/// Concurrent HTTP requests of one connection besides its calls: pings, cancels and lists, which
/// must not queue behind calls.
const OTHER_REQUESTS_MAX: usize = 16;
/// The time for a connection to close cleanly, for example to delete its HTTP session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time for a program to exit after its standard input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A running program and its standard streams.
pub(crate) struct LaunchedProgram {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) program: Box<dyn RunningProgram>,
}

/// A handle to a running program. Dropping it ends the program.
pub(crate) trait RunningProgram: Send + Sync {
    /// Waits briefly for the exit. Returns its code or signal as the end of a sentence about the
    /// exit, for example " with code 1"; empty if they are not known.
    fn exit_suffix(&mut self) -> BoxFuture<'_, String>;

    /// Waits until no process of the program is left.
    fn exited(&mut self) -> BoxFuture<'_, ()>;
}

/// Starts the programs of MCP servers.
pub(crate) trait ProgramLauncher: Send + Sync {
    /// Starts `command` with the environment `env` as the program of the server named `server`.
    fn launch<'a>(
        &'a self,
        server: &'a str,
        command: &'a [String],
        env: &'a [(String, String)],
    ) -> BoxFuture<'a, std::io::Result<LaunchedProgram>>;
}

/// The means to reach servers: the launcher of their programs, and the dialer for HTTP.
#[derive(Clone)]
pub(crate) struct ServerAccess {
    pub(crate) launcher: Arc<dyn ProgramLauncher>,
    pub(crate) dialer: Arc<Dialer>,
    /// The limits of the calls of each server.
    pub(crate) call_limits: FairLimits,
}

/// The part of an open connection that tool calls use; cheap to clone.
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
    /// Starts to close the connection.
    close_token: RunningServiceCancellationToken,
    program: Option<Box<dyn RunningProgram>>,
}

impl Connection {
    /// Connects to the server named `server`, within `deadline`: starts its program or contacts its
    /// URL, and performs the MCP handshake.
    pub(crate) async fn open(
        server: &Arc<str>,
        transport: &McpTransport,
        access: &ServerAccess,
        deadline: Deadline,
    ) -> Result<Self, ConnectError> {
        let timed_out = || ConnectError::Timeout(deadline.timeout);
        let health = Arc::<ConnectionHealth>::default();
        let intake = MessageIntake::new(server);
        let (handshake, mut program): (BoxFuture<'_, _>, _) = match transport {
            McpTransport::Stdio { command, env } => {
                let launch = access.launcher.launch(server, command, env);
                let result = timeout_at(deadline.at, launch).await;
                let result = result.map_err(|_| timed_out())?;
                let failed = |error| ConnectError::Program(launch_error_text(&error));
                let launched = result.map_err(failed)?;
                let stdin = BoundedWriter::new(launched.stdin, &health);
                let stdout = BoundedReader::new(launched.stdout, &intake, &health);
                let transport = AsyncRwTransport::new_client(stdout, stdin)
                    .with_max_line_length(MESSAGE_BYTES_MAX + 2);
                let transport = FilteredTransport::new(transport, server, &health, &intake);
                (
                    Box::pin(ClientHandler.serve(transport)),
                    Some(launched.program),
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
                    intake: Arc::clone(&intake),
                    stream_restarts: Arc::default(),
                };
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .max_sse_event_size(MESSAGE_BYTES_MAX);
                // Reopens a broken stream without a delay, at most twice: `HttpTransport` has its
                // own delay between streams, and the supervisor reconnects to a server that is
                // down.
                let mut reopen = FixedInterval::default();
                (reopen.max_times, reopen.duration) = (Some(2), Duration::ZERO);
                config.retry_config = Arc::new(reopen);
                let calls_max = access.call_limits.total;
                config.max_concurrent_requests = calls_max.saturating_add(OTHER_REQUESTS_MAX);
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let transport = FilteredTransport::new(transport, server, &health, &intake);
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
                if let (ConnectError::Ended(suffix), Some(program)) = (&mut error, &mut program) {
                    *suffix = program.exit_suffix().await;
                }
                return Err(error);
            }
            (Err(_), _) if health.stray_output.load(Ordering::Relaxed) => {
                return Err(ConnectError::StrayOutput);
            }
            (Err(_), _) => return Err(timed_out()),
        };
        let peer = service.peer().clone();
        // Each load of a pack lists the tools again, whatever lifetime the server gives its list.
        let no_cache = ClientCacheConfig::disabled();
        peer.set_response_cache_config(no_cache).await;
        Ok(Self {
            handle: ConnectionHandle { peer, health },
            close_token: service.cancellation_token(),
            closed: Some(Box::pin(async move {
                let _ = service.waiting().await;
            })),
            program,
        })
    }

    /// Waits until the server closes the connection.
    pub(crate) async fn until_closed(&mut self) {
        if let Some(closed) = &mut self.closed {
            closed.await;
            self.closed = None;
        }
    }

    /// Closes the connection and ends its program: cleanly within [`CLOSE_TIMEOUT`] and
    /// [`EXIT_TIMEOUT`], then by force.
    pub(crate) async fn close(self) {
        self.close_token.cancel();
        if let Some(closed) = self.closed {
            let _ = timeout(CLOSE_TIMEOUT, closed).await;
        }
        // A program exits by itself when its standard input is closed; dropping it ends it by
        // force.
        if let Some(mut program) = self.program {
            let _ = timeout(EXIT_TIMEOUT, program.exited()).await;
        }
    }
}

/// Describes why a program did not start, for [`ConnectError::Program`].
fn launch_error_text(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it is not executable".to_owned(),
        _ => error.to_string(),
    }
}
