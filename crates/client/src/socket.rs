//! One WebSocket to one session: attach, upgrade, frames in and out.
//!
//! The socket knows nothing of resuming: it ends once, with a reason that says whether coming
//! back makes sense.

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
use turnwire_wire::session::Close;

use crate::error::Error;
use crate::http::Http;

/// How long connecting and upgrading may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How large a frame may be; the server's hard limit is a quarter of it.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<TcpStream>,
}

/// Why a socket ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The server closed it and said why.
    Closed(Close),
    /// The server closed it with a code and reason that are not in the table.
    Unknown(String),
    /// The connection broke.
    Broken(String),
}

impl Socket {
    /// Opens the stream of `session` with an attach token.
    pub(crate) async fn open(http: &Http, session: SessionId, token: &str) -> Result<Self, Error> {
        match tokio::time::timeout(CONNECT_MAX, Self::connect(http, session, token)).await {
            Ok(opened) => opened,
            Err(_) => Err(Error::Silence(CONNECT_MAX)),
        }
    }

    async fn connect(http: &Http, session: SessionId, token: &str) -> Result<Self, Error> {
        let authority = http.address().authority();
        let stream = TcpStream::connect(&authority).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{authority}/sessions/{session}/stream?attach={token}");
        let address = |what: String| Error::Address(what);
        let mut request = url
            .into_client_request()
            .map_err(|error| address(error.to_string()))?;
        for (name, value) in http.headers() {
            let value = HeaderValue::from_str(value).map_err(|error| address(error.to_string()))?;
            request.headers_mut().insert(*name, value);
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(tungstenite::Error::Http(answer)) => {
                let body = answer.body().as_deref().unwrap_or_default();
                Err(match serde_json::from_slice(body) {
                    Ok(problem) => Error::Problem(Box::new(problem)),
                    Err(_) => Error::Status(answer.status().as_u16()),
                })
            }
            Err(error) => Err(Error::Connection(error.to_string())),
        }
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &Value) -> Result<(), End> {
        let sent = self.stream.send(Message::text(frame.to_string())).await;
        sent.map_err(|error| End::Broken(error.to_string()))
    }

    /// The next text frame. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Bytes, End> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.into()),
                Some(Ok(Message::Close(Some(frame)))) => {
                    let code = u16::from(frame.code);
                    return Err(match Close::read(code, &frame.reason) {
                        Some(close) => End::Closed(close),
                        None => End::Unknown(format!("{code} {}", frame.reason)),
                    });
                }
                Some(Ok(Message::Close(None))) | None => {
                    return Err(End::Broken("the connection ended".to_owned()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(End::Broken(error.to_string())),
            }
        }
    }
}
