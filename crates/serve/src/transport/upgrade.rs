//! The upgrade: a token becomes a connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use turnwire_event::{Owner, SessionId};
use turnwire_session::Error;

use crate::listen::{Taken, Takeover};

use super::Streams;
use super::connection::Connection;
use super::pipe::Pipe;

/// Buffers of an idle connection: the smallest that still reads a subscribe in one go.
const READ_BUFFER: usize = 2048;

/// What the library may hold of its own answers (pongs, the close): they are small.
const WRITE_BUFFER_MAX: usize = 64 << 10;

/// Why a request is no upgrade.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is no WebSocket handshake, or not one of version 13.
    NotAnUpgrade,
    /// The token is not valid.
    Session(Error),
}

fn says(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    let values = headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(word))
}

/// The key of a proper handshake.
fn handshake(headers: &HeaderMap) -> Option<String> {
    let proper = says(headers, header::CONNECTION, "upgrade")
        && says(headers, header::UPGRADE, "websocket")
        && headers
            .get(header::SEC_WEBSOCKET_VERSION)
            .is_some_and(|v| v == "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| proper)?;
    Some(derive_accept_key(key.as_bytes()))
}

/// Answers an upgrade request; the connection goes on with its socket.
pub async fn stream(
    streams: Arc<Streams>,
    id: SessionId,
    token: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, Refused> {
    let accept = handshake(headers).ok_or(Refused::NotAnUpgrade)?;
    let owner = streams
        .sessions
        .redeem(id, token)
        .map_err(Refused::Session)?;
    let tasks = streams.tasks.clone();
    let run = move |taken| tasks.track_future(serve(streams, id, owner, taken));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.extensions_mut().insert(Takeover::new(run));
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    Ok(response)
}

async fn serve(streams: Arc<Streams>, id: SessionId, owner: Owner, taken: Taken) {
    let Taken {
        mut io,
        read,
        head,
        slot,
    } = taken;
    let deadline = streams.options.write_deadline;
    match tokio::time::timeout(deadline, io.write_all(&head)).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => return,
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER_MAX)
        .max_message_size(Some(streams.options.frame_in_max))
        .max_frame_size(Some(streams.options.frame_in_max));
    let pipe = Pipe::new(io);
    let socket =
        WebSocketStream::from_partially_read(pipe, read.to_vec(), Role::Server, Some(config)).await;
    // It is a piece of the HTTP library's buffer, which is larger than all that a socket holds.
    drop(read);
    // A session deleted after its token was given still gets an answer to its subscribe.
    let live = streams.sessions.open(&owner, id).await;
    let number = streams.next.fetch_add(1, Ordering::Relaxed);
    Connection::new(streams, live, socket, format!("ws-{number}"))
        .run()
        .await;
    drop(slot);
}
