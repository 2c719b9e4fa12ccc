//! One connection to a server: how it is opened, that it has ended, how it is closed.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{
    ClientCacheConfig, Peer, RoleClient, RunningServiceCancellationToken, ServiceExt as _,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};
use turnwire_dial::{Dialer, Headers, Url};
use turnwire_event::port::BoxFuture;

use crate::mcp::error::NoConnection;
use crate::mcp::http::{Client, Twice};
use crate::mcp::link::Link;
use crate::mcp::meter::{MESSAGE_BYTES_MAX, Meter};
use crate::mcp::open::Open;
use crate::mcp::quiet::Quiet;
use crate::mcp::reader::Measured;
use crate::mcp::writer::Patient;

/// Requests over HTTP that wait for the head of their answer at once; more wait here, within their
/// time. As many as turns that a person would wait for, and not so many that a server is flooded.
const REQUESTS_MAX: usize = 64;

/// For a connection to end in peace: to tell a session's end to a server, say.
const CLOSE_MAX: Duration = Duration::from_secs(3);

/// For a program to go by itself when its input has ended.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// A program that runs, with what it reads and writes. Dropping `held` ends it.
pub(crate) struct Pipes {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) held: Held,
}

/// What keeps a program running.
pub(crate) trait Running: Send + Sync {
    /// How it ended and its last words, as far as anybody knows: for the person who runs it.
    fn last_words(&mut self) -> BoxFuture<'_, String>;

    /// Waits until nothing of it is left.
    fn gone(&mut self) -> BoxFuture<'_, ()>;
}

pub(crate) type Held = Box<dyn Running>;

/// Starts a server's program.
pub(crate) trait Start: Send + Sync {
    fn start(&self) -> BoxFuture<'_, std::io::Result<Pipes>>;
}

/// The way to a server.
#[derive(Clone)]
pub(crate) enum Way {
    Program(Arc<dyn Start>),
    Address {
        dialer: Arc<Dialer>,
        url: Url,
        headers: Headers,
    },
}

/// A connection that has been opened. Dropping it closes it without waiting.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) meter: Arc<Meter>,
    /// The calls that are under way on it.
    pub(crate) open: Arc<Open>,
    /// None once it has ended.
    over: Option<BoxFuture<'static, ()>>,
    token: RunningServiceCancellationToken,
    held: Option<Held>,
}

impl Connection {
    /// Opens one until `until`, which is `within` from now on or less.
    pub(crate) async fn open(
        server: &Arc<str>,
        way: &Way,
        (within, until): (Duration, Instant),
    ) -> Result<Self, NoConnection> {
        let meter = Arc::new(Meter::new());
        let (opening, held): (BoxFuture<'_, _>, _) = match way {
            Way::Program(program) => {
                let started = timeout_at(until, program.start()).await;
                let started = started.map_err(|_| NoConnection::Silent(within))?;
                let pipes = started.map_err(|why| NoConnection::Program(plain(&why)))?;
                let stdin = Patient::new(pipes.stdin, &meter);
                let stdout = Measured::new(pipes.stdout, &meter);
                let transport = AsyncRwTransport::new_client(stdout, stdin)
                    .with_max_line_length(MESSAGE_BYTES_MAX + 2);
                let link = Link::new(transport, server, &meter);
                (Box::pin(Quiet.serve(link)), Some(pipes.held))
            }
            Way::Address {
                dialer,
                url,
                headers,
            } => {
                let client = Client::new(dialer, url, headers, &meter);
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .max_sse_event_size(MESSAGE_BYTES_MAX);
                config.retry_config = Arc::new(Twice);
                config.max_concurrent_requests = REQUESTS_MAX;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let link = Link::new(transport, server, &meter);
                (Box::pin(Quiet.serve(link)), None)
            }
        };
        let mut held = held;
        let begun = tokio::select! {
            begun = timeout_at(until, opening) => begun,
            () = meter.flooded() => return Err(flooded(&meter)),
        };
        let service = match begun {
            Ok(Ok(service)) => service,
            Ok(Err(_)) if meter.flood().is_some() => return Err(flooded(&meter)),
            Ok(Err(error)) => {
                let mut why = NoConnection::from_start(error);
                if let (NoConnection::Ended(words), Some(held)) = (&mut why, &mut held) {
                    *words = held.last_words().await;
                }
                return Err(why);
            }
            Err(_) if meter.has_stray() => return Err(NoConnection::Stray),
            Err(_) => return Err(NoConnection::Silent(within)),
        };
        // What a server listed is asked for when it is wanted, and not remembered for it.
        let peer = service.peer().clone();
        let forgets = ClientCacheConfig::disabled();
        peer.set_response_cache_config(forgets).await;
        Ok(Self {
            peer,
            token: service.cancellation_token(),
            over: Some(Box::pin(async move {
                let _ = service.waiting().await;
            })),
            meter,
            open: Arc::default(),
            held,
        })
    }

    /// Waits until the other side has ended it.
    pub(crate) async fn ended(&mut self) {
        if let Some(over) = &mut self.over {
            over.await;
            self.over = None;
        }
    }

    /// Ends it, in peace if that does not take long.
    pub(crate) async fn close(self) {
        self.token.cancel();
        if let Some(over) = self.over {
            let _ = timeout(CLOSE_MAX, over).await;
        }
        // A program whose input has ended goes by itself, or is ended when this is dropped.
        if let Some(mut held) = self.held {
            let _ = timeout(LEAVE_MAX, held.gone()).await;
        }
    }
}

fn flooded(meter: &Meter) -> NoConnection {
    meter
        .flood()
        .map_or(NoConnection::Nonsense, NoConnection::Flood)
}

/// Why a program did not start, in a word.
fn plain(why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be run".to_owned(),
        _ => why.to_string(),
    }
}
