//! The listener: accepts connections up to a cap, bounds their headers in bytes and time, and
//! lets those that are open finish when the server stops.
//!
//! A socket that is taken over by its response ([`SocketTakeover`]) keeps its [`ConnectionPermit`] for as
//! long as it lives; a connection above the cap is answered with 429 and closed.

mod takeover;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use turnwire_event::Clock as _;
use turnwire_session::SystemClock;

use crate::config::ServerConfig;

use takeover::LentSocket;
pub use takeover::{SocketTakeover, TakenSocket};

/// Connections that the kernel queues between two accepts: many clients reconnect at once after a
/// restart.
const BACKLOG: u32 = 4_096;

/// The pause after a failed accept: without file descriptors it would fail in a tight loop.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Connections above the cap that are answered with 429 at the same time, and the time limit of such
/// a response; further ones are closed without a response.
const TURNED_AWAY_MAX: usize = 64;
const TURNED_AWAY: Duration = Duration::from_millis(500);

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

/// The permit of one open connection; dropping it makes room for another.
#[derive(Debug)]
pub struct ConnectionPermit(#[allow(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

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

/// The head of a response, and the [`SocketTakeover`] of its socket.
type Handed = (Vec<u8>, SocketTakeover);

/// Accepts and serves connections until `stop`; returns when the last request has been answered.
/// Does not wait for sockets that were taken over.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    config: &ServerConfig,
    stop: CancellationToken,
) {
    let http = http(config);
    let stream = &config.stream;
    let silence = Duration::from_millis(stream.heartbeat_ms.max(stream.write_deadline_ms));
    let slots = Arc::new(Semaphore::new(config.http.connections_max));
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let open = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
            }
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&slots).try_acquire_owned() else {
                    tracing::warn!("the connection cap is reached; one was turned away");
                    if let Ok(leave) = Arc::clone(&turned_away).try_acquire_owned() {
                        open.spawn(turn_away(stream, leave));
                    }
                    continue;
                };
                let permit = ConnectionPermit(permit);
                let (http, app, stop) = (http.clone(), app.clone(), stop.clone());
                open.spawn(connection(stream, http, app, permit, silence, stop));
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

async fn connection(
    stream: TcpStream,
    http: http1::Builder,
    app: Router,
    permit: ConnectionPermit,
    silence: Duration,
    stop: CancellationToken,
) {
    // Small frames must leave at once; what is due together is written together anyway.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    // A peer that is gone without a word: heartbeats that nobody confirms end the connection.
    if let Err(error) = SockRef::from(&stream).set_tcp_user_timeout(Some(silence)) {
        tracing::debug!(%error, "no TCP_USER_TIMEOUT");
    }
    let blocked = Arc::new(AtomicBool::new(false));
    let handed: Arc<Mutex<Option<Handed>>> = Arc::default();
    let hand = handed.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let response = app.clone().oneshot(request.map(Body::new));
        let hand = hand.clone();
        async move {
            let mut response = response.await?;
            if let Some(takeover) = response.extensions_mut().remove::<SocketTakeover>() {
                *hand.lock() = Some((takeover::head(&response, date()), takeover));
                // The socket is taken from under this future: it is dropped here.
                std::future::pending::<()>().await;
            }
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let lent = LentSocket {
        io: TokioIo::new(stream),
        blocked: blocked.clone(),
    };
    let mut served = http.serve_connection(lent, service);
    let mut stopping = std::pin::pin!(stop.cancelled());
    let mut has_logged = false;
    let ended = std::future::poll_fn(|cx| {
        if !has_logged && stopping.as_mut().poll(cx).is_ready() {
            has_logged = true;
            Pin::new(&mut served).graceful_shutdown();
        }
        match Pin::new(&mut served).poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            // What the library had to write is out, and it waits for a response that never comes.
            Poll::Pending if !blocked.load(Ordering::Relaxed) && handed.lock().is_some() => {
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "a connection ended early");
        return;
    }
    let handed = handed.lock().take();
    if let Some((head, takeover)) = handed {
        let parts = served.into_parts();
        let socket = TakenSocket {
            io: parts.io.io.into_inner(),
            read: parts.read_buf,
            head,
            permit,
        };
        // A task of its own: this one is as large as the library needs it.
        takeover.hand(socket).map(tokio::spawn);
    }
}

/// The value of the `Date` header.
fn date() -> HeaderValue {
    let now = SystemClock.now().as_millis().max(0).unsigned_abs();
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(now));
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// Answers 429, and reads on for a moment so that a reset does not discard the response.
async fn turn_away(mut stream: TcpStream, _leave: OwnedSemaphorePermit) {
    const BODY: &str = "{\"type\":\"/problems/too_many_requests\",\"title\":\"Too many requests\",\
        \"status\":429,\"detail\":\"All connections of this server are taken; try again soon.\",\
        \"code\":\"too_many_requests\",\"trace_id\":\"\"}";
    let response = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/problem+json\r\n\
         retry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len(),
    );
    let goodbye = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        let mut buffer = [0; 1024];
        while stream.read(&mut buffer).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    let _ = tokio::time::timeout(TURNED_AWAY, goodbye).await;
}

#[cfg(test)]
mod tests;
