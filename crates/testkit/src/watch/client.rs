//! One WebSocket connection: opens with an attach token, subscribes, reads frames, answers pings.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use turnwire_event::{Event, Position, SessionId, TurnId};

use super::limited_stream::ByteLimitedStream;
use super::options::SubscribeOptions;
use crate::api::ApiClient;
use crate::history::SubscribeRecord;
use crate::journal::ConnectionRecorder;

/// Deadline for a frame. Servers under load, under `strace` or after a kill are slow.
const DEADLINE: Duration = Duration::from_secs(60);

/// The server refused the connection.
#[derive(Debug, thiserror::Error)]
#[error("the connection was refused ({status}): {body}")]
pub struct ConnectRefused {
    /// The HTTP status; 0 if there was no response.
    pub status: u16,
    /// The response body, or the error.
    pub body: String,
}

/// How a WebSocket connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// The server closed the connection with a code and a reason.
    #[error("closed by the server: {0} {1}")]
    Closed(u16, String),
    #[error("cut: {0}")]
    Cut(String),
    /// Nothing arrived within the deadline; the connection may be alive.
    #[error("nothing came within the deadline")]
    TimedOut,
}

impl WatchEnd {
    /// The `code` in the close reason; empty for other ends.
    pub fn code(&self) -> String {
        let Self::Closed(_, reason) = self else {
            return String::new();
        };
        let reason: Value = serde_json::from_str(reason).unwrap_or(Value::Null);
        reason["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A received frame, parsed.
#[derive(Clone, Debug)]
pub enum WatchFrame {
    Event(Box<Event>),
    Frame(Value),
}

#[derive(Deserialize)]
struct EventFrame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
}

/// A WebSocket client of one session, over one connection.
#[derive(Debug)]
pub struct WatchClient {
    socket: WebSocketStream<ByteLimitedStream>,
    session: SessionId,
    recorder: ConnectionRecorder,
    last: Option<Position>,
    /// False leaves pings unanswered.
    pub answers: bool,
    /// Deadline for the next frame.
    pub deadline: Duration,
}

impl WatchClient {
    /// Requests an attach token and connects.
    pub async fn connect(
        api: &ApiClient,
        name: &str,
        session: SessionId,
    ) -> Result<Self, ConnectRefused> {
        Self::connect_with_buffer(api, name, session, None).await
    }

    /// Connects with a receive buffer of `buffer` bytes.
    pub(super) async fn connect_with_buffer(
        api: &ApiClient,
        name: &str,
        session: SessionId,
        buffer: Option<u32>,
    ) -> Result<Self, ConnectRefused> {
        let lost = |why: String| ConnectRefused {
            status: 0,
            body: why,
        };
        let attached = api
            .get(&format!("/sessions/{session}"))
            .await
            .map_err(|why| lost(why.to_string()))?;
        if attached.status != 200 {
            return Err(ConnectRefused {
                status: attached.status,
                body: attached.body,
            });
        }
        let url = attached.json()["ws_url"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        Self::open(api, name, session, &url, buffer).await
    }

    /// Connects to a `ws_url` of the server, token included.
    pub async fn open(
        api: &ApiClient,
        name: &str,
        session: SessionId,
        url: &str,
        buffer: Option<u32>,
    ) -> Result<Self, ConnectRefused> {
        let opened = tokio::time::timeout(DEADLINE, handshake(api.addr(), url, buffer)).await;
        let socket = match opened {
            Ok(Ok(socket)) => socket,
            Ok(Err(Error::Http(response))) => {
                let body = response.body().clone().unwrap_or_default();
                return Err(ConnectRefused {
                    status: response.status().as_u16(),
                    body: String::from_utf8_lossy(&body).into_owned(),
                });
            }
            Ok(Err(why)) => {
                return Err(ConnectRefused {
                    status: 0,
                    body: why.to_string(),
                });
            }
            Err(_) => {
                return Err(ConnectRefused {
                    status: 0,
                    body: "no answer in time".into(),
                });
            }
        };
        Ok(Self {
            socket,
            session,
            recorder: api.journal().connection(name, session),
            last: None,
            answers: true,
            deadline: DEADLINE,
        })
    }

    /// The id of the last received event, or the cursor of the subscribe.
    pub fn last(&self) -> Option<Position> {
        self.last
    }

    /// Ends the connection after `bytes` more bytes.
    pub fn end_after(&mut self, bytes: u64) {
        self.socket.get_mut().end_after(bytes);
    }

    /// Sends a subscribe frame.
    pub async fn subscribe(&mut self, ask: &SubscribeOptions) -> Result<(), WatchEnd> {
        if let Some(filter) = ask.resolved() {
            self.recorder.subscribed(SubscribeRecord {
                filter,
                since: ask.since,
                workers: ask.workers.clone(),
                snapshot: ask.snapshot,
            });
        }
        self.last = ask.since.or(self.last);
        self.send(&ask.frame_for(self.session)).await
    }

    /// Subscribes and waits for the acknowledgement; panics on a subscribe error.
    pub async fn subscribed(&mut self, ask: &SubscribeOptions) -> Result<Value, WatchEnd> {
        self.subscribe(ask).await?;
        loop {
            match self.next().await? {
                WatchFrame::Frame(frame) if frame["type"] == "subscribe_ack" => return Ok(frame),
                WatchFrame::Frame(frame) => assert_ne!(frame["type"], "subscribe_error", "{frame}"),
                WatchFrame::Event(_) => {}
            }
        }
    }

    /// Sends a JSON text frame.
    pub async fn send(&mut self, frame: &Value) -> Result<(), WatchEnd> {
        self.send_message(Message::text(frame.to_string())).await
    }

    /// Sends any WebSocket message.
    pub async fn send_message(&mut self, message: Message) -> Result<(), WatchEnd> {
        self.socket
            .send(message)
            .await
            .map_err(|why| WatchEnd::Cut(why.to_string()))
    }

    /// The next frame; skips the pings that it answers.
    pub async fn next(&mut self) -> Result<WatchFrame, WatchEnd> {
        loop {
            let seen = self.receive().await;
            if let Err(end) = &seen {
                self.recorder.ended(end.to_string());
            }
            match seen? {
                WatchFrame::Frame(frame) if self.answers && frame["type"] == "ping" => {
                    self.send(&json!({"type": "pong", "nonce": frame["nonce"]}))
                        .await?;
                }
                seen => return Ok(seen),
            }
        }
    }

    async fn receive(&mut self) -> Result<WatchFrame, WatchEnd> {
        let message = match tokio::time::timeout(self.deadline, self.socket.next()).await {
            Err(_) => return Err(WatchEnd::TimedOut),
            Ok(None) => return Err(WatchEnd::Cut("the stream is over".into())),
            Ok(Some(Err(why))) => return Err(WatchEnd::Cut(why.to_string())),
            Ok(Some(Ok(message))) => message,
        };
        match message {
            Message::Text(text) => {
                self.recorder.received(&text);
                Ok(self.read(&text))
            }
            Message::Close(frame) => {
                let (code, reason) = frame.map_or((1005, String::new()), |f| {
                    (f.code.into(), f.reason.to_string())
                });
                Err(WatchEnd::Closed(code, reason))
            }
            other => Err(WatchEnd::Cut(format!("not a text frame: {other:?}"))),
        }
    }

    fn read(&mut self, text: &str) -> WatchFrame {
        let event = serde_json::from_str::<EventFrame<'_>>(text)
            .ok()
            .filter(|frame| frame.kind == "event");
        let event = event.and_then(|frame| Event::read(frame.event?.get().as_bytes()).ok());
        match event {
            Some(event) => {
                if event.session_id == self.session {
                    self.last = Some(event.id);
                }
                WatchFrame::Event(Box::new(event))
            }
            None => {
                let frame: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
                let position = [&frame["snapshot_at_event_id"], &frame["position"]];
                let position = position
                    .into_iter()
                    .find_map(|id| id.as_str()?.parse::<Position>().ok());
                self.last = self.last.max(position);
                WatchFrame::Frame(frame)
            }
        }
    }

    /// The next event; skips other frames.
    pub async fn event(&mut self) -> Result<Event, WatchEnd> {
        loop {
            if let WatchFrame::Event(event) = self.next().await? {
                return Ok(*event);
            }
        }
    }

    /// Events up to and including the first for which `wanted` is true.
    pub async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Vec<Event>, WatchEnd> {
        let mut events = Vec::new();
        loop {
            let event = self.event().await?;
            let done = wanted(&event);
            events.push(event);
            if done {
                return Ok(events);
            }
        }
    }

    /// All events of a turn, to its terminal.
    pub async fn turn(&mut self, turn: TurnId) -> Result<Vec<Event>, WatchEnd> {
        let ends = |e: &Event| e.turn_id == Some(turn) && e.body.kind().is_terminal();
        let mut events = self.until(ends).await?;
        events.retain(|event| event.turn_id == Some(turn));
        Ok(events)
    }

    /// Reads until the connection ends, and returns how.
    pub async fn end(&mut self) -> WatchEnd {
        loop {
            if let Err(end) = self.next().await {
                return end;
            }
        }
    }

    /// True if [`Self::end_after`] ended the connection.
    pub(super) fn was_cut(&self) -> bool {
        self.socket.get_ref().is_at_limit()
    }
}

async fn handshake(
    addr: SocketAddr,
    url: &str,
    buffer: Option<u32>,
) -> Result<WebSocketStream<ByteLimitedStream>, Error> {
    let stream = match buffer {
        None => TcpStream::connect(addr).await?,
        Some(bytes) => {
            let socket = TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(bytes)?;
            socket.connect(addr).await?
        }
    };
    stream.set_nodelay(true)?;
    let request = url.into_client_request()?;
    let (socket, _) =
        tokio_tungstenite::client_async(request, ByteLimitedStream::new(stream)).await?;
    Ok(socket)
}
