//! The listener: accepts connections up to a cap, bounds their headers in bytes and time and their
//! answers in time, and lets those that are open finish when the server stops.
//!
//! A socket that is taken over by its response ([`SocketTakeover`]) keeps its [`ConnectionPermit`] for as
//! long as it lives; a connection above the cap takes the place of an idle one, or is answered with
//! 429 and closed.

mod owner_share;
mod parse_slots;
mod refusal;
mod connections;
mod takeover;
pub mod descriptors;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use turnwire_event::Clock as _;
use turnwire_session::SystemClock;

use crate::config::ServerConfig;
use crate::config::http::Http;

use connections::{AnswerBody, ConnectionState, ConnectionTable, HeldByAnswer};
use refusal::RefusalLog;
use takeover::{LentSocket, SocketFlags};

pub use owner_share::{OwnerPermit, OwnerShares, TRANSFER_BYTES_MIN, TransferPermit};
pub use parse_slots::ParseSlots;
pub use takeover::{SocketTakeover, TakenSocket};

/// Connections that the kernel queues between two accepts: many clients reconnect at once after a
/// restart.
const BACKLOG: u32 = 4_096;

/// The pause after a failed accept: without file descriptors it would fail in a tight loop.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Refused connections whose clients may still read their 429; further ones get it too, and are
/// closed at once.
const LINGERING_MAX: usize = 64;

/// Why the server cannot listen on its address.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program listens there.
    #[error(
        "{address} is in use: is another turnwire running? Stop it, or listen elsewhere with \
         --listen ADDRESS:PORT"
    )]
    InUse { address: SocketAddr },
    /// The operating system refused the address.
    #[error("cannot listen on {address}: {why}")]
    Refused { address: SocketAddr, why: io::Error },
}

/// The permit of one open connection, with its owner's; dropping it makes room for another.
#[derive(Debug)]
pub struct ConnectionPermit {
    _slot: OwnedSemaphorePermit,
    _owner: Option<OwnerPermit>,
}

/// The address of the other end of the connection: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

/// Opens the listening socket.
pub fn bind(config: &ServerConfig) -> Result<TcpListener, BindError> {
    let address = config.listen.address;
    open(address, config.stream.send_buffer_bytes).map_err(|why| {
        if why.kind() == io::ErrorKind::AddrInUse {
            BindError::InUse { address }
        } else {
            BindError::Refused { address, why }
        }
    })
}

fn open(address: SocketAddr, send_buffer_bytes: u32) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it: what a frozen client can make the kernel hold.
    socket.set_send_buffer_size(send_buffer_bytes)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The head of a response, the [`SocketTakeover`] of its socket, and the permit of its owner.
type Handed = (Vec<u8>, SocketTakeover, Option<OwnerPermit>);

/// What all connections of the listener share.
struct ListenerContext {
    http: http1::Builder,
    app: Router,
    table: Arc<ConnectionTable>,
    silence: Duration,
    header_max_bytes: usize,
    answer_limit: AnswerLimit,
    connections_max: usize,
    refusals: Mutex<RefusalLog>,
    stop: CancellationToken,
}

impl ListenerContext {
    /// Refuses a connection because all are taken.
    fn refuse(&self, stream: &TcpStream) {
        self.refusals.lock().record(self.connections_max);
        refusal::send_too_many(stream);
    }
}

/// Accepts and serves connections until `stop`; returns when the last request has been answered.
/// Does not wait for sockets that were taken over.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    config: &ServerConfig,
    stop: CancellationToken,
) {
    let stream = &config.stream;
    let connections_max = config.http.connections_max;
    let context = Arc::new(ListenerContext {
        http: http(config),
        app,
        table: ConnectionTable::new(connections_max),
        silence: Duration::from_millis(stream.heartbeat_ms.max(stream.write_deadline_ms)),
        header_max_bytes: config.http.header_max_bytes,
        answer_limit: AnswerLimit::new(&config.http),
        connections_max,
        refusals: Mutex::default(),
        stop: stop.clone(),
    });
    let lingering = Arc::new(Semaphore::new(LINGERING_MAX));
    // A descriptor to accept and refuse with when the process has no other left.
    let mut spare = spare_descriptor();
    let open = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Err(error) if spare.is_some() && is_out_of_descriptors(&error) => {
                drop(spare.take());
                let accepted = tokio::time::timeout(ACCEPT_REST, listener.accept()).await;
                if let Ok(Ok((stream, _))) = accepted {
                    context.refuse(&stream);
                }
                spare = spare_descriptor();
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
                spare = spare.or_else(spare_descriptor);
            }
            Ok((stream, _)) => {
                let Some(slot) = context.table.admit().await else {
                    context.refuse(&stream);
                    if let Ok(permit) = Arc::clone(&lingering).try_acquire_owned() {
                        open.spawn(async move {
                            refusal::linger(stream).await;
                            drop(permit);
                        });
                    }
                    continue;
                };
                // Idle from now on, also while its task has not run.
                let state = ConnectionState::new(&context.table);
                open.spawn(connection(stream, context.clone(), slot, state));
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

fn http(config: &ServerConfig) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(config.http.header_timeout_ms))
        .max_header_size(config.http.header_max_bytes)
        .max_buf_size(config.http.header_max_bytes);
    http
}

fn spare_descriptor() -> Option<std::fs::File> {
    std::fs::File::open("/dev/null").ok()
}

/// True if the process or the system has no descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

async fn connection(
    stream: TcpStream,
    context: Arc<ListenerContext>,
    slot: OwnedSemaphorePermit,
    state: Arc<ConnectionState>,
) {
    // Small frames must leave at once; what is due together is written together anyway.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    // A peer that is gone without a word: heartbeats that nobody confirms end the connection.
    if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(Some(context.silence)) {
        tracing::debug!(%error, "no TCP_USER_TIMEOUT");
    }
    let flags = Arc::new(SocketFlags::default());
    let handed: Arc<Mutex<Option<Handed>>> = Arc::default();
    let (hand, answering, app) = (handed.clone(), state.clone(), context.app.clone());
    let answer_limit = context.answer_limit;
    let peer = stream.peer_addr().ok().map(|peer| PeerAddress(peer.ip()));
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let (hand, busy) = (hand.clone(), answering.begin_request());
        let answering = answering.clone();
        let response = app.clone().oneshot(request.map(Body::new));
        async move {
            let Some(busy) = busy else {
                // The connection is being closed for another: its request must not run.
                return std::future::pending().await;
            };
            let mut response = response.await?;
            let owner = response.extensions_mut().remove::<OwnerPermit>();
            if let Some(takeover) = response.extensions_mut().remove::<SocketTakeover>() {
                *hand.lock() = Some((takeover::head(&response, date()), takeover, owner));
                // The socket is taken from under this future: it is dropped here.
                return std::future::pending().await;
            }
            let deadline = answer_limit.deadline(response.body().size_hint().lower());
            let held = HeldByAnswer {
                _busy: busy,
                _answer: answering.begin_answer(deadline),
                _owner: owner,
                _transfer: response.extensions_mut().remove::<TransferPermit>(),
            };
            Ok::<_, std::convert::Infallible>(response.map(|body| AnswerBody::new(body, held)))
        }
    });
    let lent = LentSocket {
        io: TokioIo::new(stream),
        flags: flags.clone(),
        connection: state.clone(),
    };
    let mut served = context.http.serve_connection(lent, service);
    let mut stopping = std::pin::pin!(context.stop.cancelled());
    let mut closing = std::pin::pin!(state.closed.cancelled());
    let mut has_logged = false;
    // Only for an answer that does not fit the send buffer: most connections need no timer.
    let mut answer_timer: Option<Pin<Box<Sleep>>> = None;
    // For heads of answers without a body, which hold nothing while they are written.
    let mut heads_deadline: Option<Instant> = None;
    let ended = std::future::poll_fn(|cx| {
        if !has_logged && stopping.as_mut().poll(cx).is_ready() {
            has_logged = true;
            Pin::new(&mut served).graceful_shutdown();
        }
        if closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut served).poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            // What the library had to write is out, and it waits for a response that never comes.
            Poll::Pending if !flags.is_blocked() && handed.lock().is_some() => Poll::Ready(None),
            Poll::Pending => {
                match flags.is_blocked() {
                    true => {
                        heads_deadline.get_or_insert_with(|| answer_limit.deadline(0));
                    }
                    false => heads_deadline = None,
                }
                let deadline = state.answer_deadline().or(heads_deadline);
                poll_deadline(deadline, &mut answer_timer, cx)
            }
        }
    })
    .await;
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "a connection ended early");
        if let Some(status) = flags.withheld_status() {
            let stream = served.into_parts().io.io.into_inner();
            let sent = refusal::send_unreadable(stream, status, context.header_max_bytes);
            // The connection is still idle for others, so it ends when one needs its place.
            tokio::select! {
                biased;
                () = sent => {}
                () = state.closed.cancelled() => {}
            }
        }
        return;
    }
    let handed = handed.lock().take();
    if state.closed.is_cancelled() {
        let parts = served.into_parts();
        let stream = parts.io.io.into_inner();
        // A request that is on its way, or was not begun, gets an answer.
        if state.awaits_answer() || !parts.read_buf.is_empty() || refusal::has_unread(&stream) {
            context.refuse(&stream);
            refusal::discard_unread(&stream);
        }
        return;
    }
    if let Some((head, takeover, owner)) = handed {
        state.retire();
        let parts = served.into_parts();
        let socket = TakenSocket {
            io: parts.io.io.into_inner(),
            read: parts.read_buf,
            head,
            permit: ConnectionPermit {
                _slot: slot,
                _owner: owner,
            },
        };
        // A task of its own: this one is as large as the library needs it.
        takeover.hand(socket).map(tokio::spawn);
    }
}

/// How long writing an answer may take.
#[derive(Clone, Copy)]
struct AnswerLimit {
    timeout: Duration,
    /// The bytes for which an answer has the timeout once more.
    bytes: u64,
}

impl AnswerLimit {
    fn new(http: &Http) -> Self {
        Self {
            timeout: Duration::from_millis(http.answer_timeout_ms),
            bytes: (http.answer_max_bytes as u64).max(1),
        }
    }

    /// The deadline of an answer of `bytes` that is ready to be written.
    fn deadline(&self, bytes: u64) -> Instant {
        let parts = u32::try_from(bytes.div_ceil(self.bytes).max(1)).unwrap_or(u32::MAX);
        Instant::now() + self.timeout.saturating_mul(parts)
    }
}

/// Ready when the answer that is being written is too late.
fn poll_deadline<T>(
    deadline: Option<Instant>,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Option<T>> {
    let Some(deadline) = deadline else {
        *timer = None;
        return Poll::Pending;
    };
    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
    if timer.deadline() != deadline {
        timer.as_mut().reset(deadline);
    }
    timer.as_mut().poll(cx).map(|()| {
        tracing::debug!("an answer was not read in time: the connection is closed");
        None
    })
}

/// The value of the `Date` header.
fn date() -> HeaderValue {
    let now = SystemClock.now().as_millis().max(0).unsigned_abs();
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(now));
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests;
