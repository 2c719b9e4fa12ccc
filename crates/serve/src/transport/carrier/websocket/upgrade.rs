//! The upgrade: a GET request with the WebSocket handshake becomes a [`WebSocket`] on its socket.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
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

/// The response that switches protocols; `takeover` gets the socket.
pub(crate) fn response(accept_key: &str, takeover: SocketTakeover) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.extensions_mut().insert(takeover);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept_key) = HeaderValue::from_str(accept_key) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept_key);
    }
    response
}

/// Writes the head of the response and opens the WebSocket; none if the client does not take the
/// head within `write_deadline`.
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
