//! The upgrade: a GET request with the WebSocket handshake becomes a [`WebSocket`] on its socket.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::WebSocket;
use crate::listen::{ConnectionPermit, SocketTakeover, TakenSocket};

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// The `Sec-WebSocket-Accept` of a valid handshake of version 13.
pub(crate) fn accept_key(headers: &HeaderMap) -> Option<String> {
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    let is_handshake = has_token(headers, header::CONNECTION, "upgrade")
        && has_token(headers, header::UPGRADE, "websocket")
        && version.is_some_and(|version| version == "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.filter(|_| is_handshake)?;
    Some(derive_accept_key(key.as_bytes()))
}

/// The response that switches protocols; the [`SocketTakeover`] gets the socket.
pub(crate) fn response(accept_key: &str, takeover: SocketTakeover) -> Response {
    let headers = [
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_ACCEPT, accept_key),
    ];
    let status = StatusCode::SWITCHING_PROTOCOLS;
    (status, headers, Extension(takeover), Body::empty()).into_response()
}

/// Writes the head of the response and opens the [`WebSocket`]; `None` if the client does not take
/// the head within `write_deadline`.
pub(crate) async fn open(
    taken: TakenSocket,
    write_deadline: Duration,
    frame_in_max: usize,
) -> Option<(WebSocket<TcpStream>, ConnectionPermit)> {
    let TakenSocket {
        mut io,
        read,
        head,
        permit,
    } = taken;
    let written = tokio::time::timeout(write_deadline, io.write_all(&head)).await;
    written.ok()?.ok()?;
    Some((WebSocket::new(io, read, frame_in_max).await, permit))
}
