//! One WebSocket to the stream of one session: upgrade, frames in and out.
//!
//! A socket does not reconnect. It ends once, with a [`SocketEnd`] that says whether a reconnect
//! makes sense.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, ClientRequestBuilder, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use turnwire_wire::session::SessionCloseReason;

use crate::error::{Error, Result};
use crate::http::{HttpConnections, RestResponse, ServerStream};

/// The time limit for the connection and the upgrade.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The size limit of a frame: four times the hard limit of the server.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// An open WebSocket to one session.
#[derive(Debug)]
pub(crate) struct SessionSocket {
    stream: WebSocketStream<ServerStream>,
}

/// The reason why a [`SessionSocket`] ended.
#[derive(Debug)]
pub(crate) enum SocketEnd {
    /// The server closed the socket with a known close code.
    Closed(SessionCloseReason),
    /// The connection broke, or the server closed the socket with an unknown code.
    Broken(String),
}

impl SessionSocket {
    /// Opens the stream at `path`, which contains the session and an attach token.
    pub(crate) async fn open(http: &HttpConnections, path: &str) -> Result<Self> {
        tokio::time::timeout(CONNECT_TIMEOUT, Self::connect(http, path))
            .await
            .unwrap_or(Err(Error::Timeout(CONNECT_TIMEOUT)))
    }

    async fn connect(http: &HttpConnections, path: &str) -> Result<Self> {
        let stream = http.open_stream().await?;
        let url = http.address.websocket_url(path).parse();
        let url = url.map_err(|error| Error::Address(format!("the stream's URL: {error}")))?;
        let mut request = ClientRequestBuilder::new(url);
        for (name, value) in &http.headers {
            request = request.with_header(*name, value);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(tungstenite::Error::Http(response)) => {
                let status = response.status();
                let body = response.into_body().unwrap_or_default().into();
                Err(RestResponse { status, body }.error())
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
                        None => SocketEnd::Broken(format!("{code} {}", frame.reason)),
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
