//! The listener: accepts connections up to a cap, bounds their headers in bytes and time, and
//! lets those that are open finish when the server stops.
//!
//! Every request carries a `Slot`. A connection that is upgraded keeps a clone of it, so that
//! WebSockets count against the cap for as long as they live.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::config::Config;

/// Connections the kernel holds for us between two accepts: many clients come back at once after
/// a restart.
const BACKLOG: u32 = 4_096;

/// How long accepting rests after it failed: without descriptors it would fail in a tight loop.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Why the address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program has it.
    #[error(
        "{address} is in use: is another turnwire running? Stop it, or listen elsewhere with \
         --listen ADDRESS:PORT"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The system says no.
    #[error("cannot listen on {address}: {why}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// What it says.
        why: io::Error,
    },
}

/// A place among the open connections; it is free again when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Slot(#[allow(dead_code, reason = "held, never read")] Arc<OwnedSemaphorePermit>);

/// Opens the listening socket.
pub fn bind(config: &Config) -> Result<TcpListener, BindError> {
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

/// Accepts and serves until `stop`; returns when the last request has been answered.
/// Connections that were upgraded are no longer looked after here.
pub async fn serve(listener: TcpListener, app: Router, config: &Config, stop: CancellationToken) {
    let http = http(config);
    let slots = Arc::new(Semaphore::new(config.http.connections_max));
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
                    continue;
                };
                let slot = Slot(Arc::new(permit));
                let (http, app, stop) = (http.clone(), app.clone(), stop.clone());
                open.spawn(connection(stream, http, app, slot, stop));
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

fn http(config: &Config) -> http1::Builder {
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
    slot: Slot,
    stop: CancellationToken,
) {
    // Small frames must leave at once; what is due together is written together anyway.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no TCP_NODELAY");
    }
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(slot.clone());
        app.clone().oneshot(request.map(Body::new))
    });
    let served = http
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
