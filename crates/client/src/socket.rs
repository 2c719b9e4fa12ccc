//! One WebSocket to the stream of one session: upgrade, frames in and out.
//!
//! A socket does not reconnect. It ends once, with a [`SocketEnd`] that says whether a reconnect
//! makes sense.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use turnwire_event::SessionId;
use turnwire_wire::session::SessionCloseReason;

use crate::error::Error;
use crate::http::HttpConnections;

/// The time limit for the connection and the upgrade.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The size limit of a frame: four times the hard limit of the server.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// An open WebSocket to one session.
#[derive(Debug)]
pub(crate) struct SessionSocket {
    stream: WebSocketStream<TcpStream>,
}

/// The reason why a socket ended.
#[derive(Debug)]
pub(crate) enum SocketEnd {
    /// The server closed the socket with a known close code.
    Closed(SessionCloseReason),
    /// The server closed the socket with an unknown code or reason.
    Unknown(String),
    /// The connection broke without a close frame.
    Broken(String),
}

impl SessionSocket {
    /// Opens the stream of `session` with an attach token.
    pub(crate) async fn open(
        http: &HttpConnections,
        session: SessionId,
        token: &str,
    ) -> Result<Self, Error> {
        match tokio::time::timeout(CONNECT_TIMEOUT, Self::connect(http, session, token)).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout(CONNECT_TIMEOUT)),
        }
    }

    async fn connect(
        http: &HttpConnections,
        session: SessionId,
        token: &str,
    ) -> Result<Self, Error> {
        let authority = http.address().authority();
        let stream = TcpStream::connect(&authority).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{authority}/sessions/{session}/stream?attach={token}");
        let invalid = |reason: String| Error::Address(reason);
        let mut request = url
            .into_client_request()
            .map_err(|error| invalid(error.to_string()))?;
        for (name, value) in http.headers() {
            let value = HeaderValue::from_str(value).map_err(|error| invalid(error.to_string()))?;
            request.headers_mut().insert(*name, value);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(tungstenite::Error::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err(match serde_json::from_slice(body) {
                    Ok(problem) => Error::Problem(Box::new(problem)),
                    Err(_) => Error::Status(response.status().as_u16()),
                })
            }
            Err(error) => Err(Error::Connection(error.to_string())),
        }
    }

    pub(crate) async fn send(&mut self, frame: &Value) -> Result<(), SocketEnd> {
        let result = self.stream.send(Message::text(frame.to_string())).await;
        result.map_err(|error| SocketEnd::Broken(error.to_string()))
    }

    /// The next text frame. Cancel safe: dropping the future loses no frame.
    pub(crate) async fn next(&mut self) -> Result<Bytes, SocketEnd> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.into()),
                Some(Ok(Message::Close(Some(frame)))) => {
                    let code = u16::from(frame.code);
                    return Err(match SessionCloseReason::parse(code, &frame.reason) {
                        Some(close) => SocketEnd::Closed(close),
                        None => SocketEnd::Unknown(format!("{code} {}", frame.reason)),
                    });
                }
                Some(Ok(Message::Close(None))) | None => {
                    return Err(SocketEnd::Broken("the connection ended".to_owned()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(SocketEnd::Broken(error.to_string())),
            }
        }
    }
}
