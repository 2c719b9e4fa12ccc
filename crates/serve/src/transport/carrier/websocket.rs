//! A WebSocket of the server. The protocol library reads, answers pings and does the closing
//! handshake; frames are written past it, because a server's frames carry no mask and are the
//! same bytes for every client.
//!
//! ```text
//!   pending writes ─────────────────────────▶ Pipe ──▶ socket     frames, shared and coalesced
//!   client frames ◀── tungstenite ◀────────── Pipe ◀── socket     checked
//! ```

pub(crate) mod header;
mod pipe;
pub(crate) mod upgrade;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink as _, SinkExt as _, Stream as _, StreamExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use turnwire_wire::session::SessionCloseReason;

use super::close::CloseReason;
use super::framing::{ByteStream, FinalWrites, Framing};
use pipe::Pipe;

/// How long the closing handshake may take after the close frame is out.
const CLOSING: Duration = Duration::from_secs(2);

/// The read buffer: the smallest that takes a subscribe in one read, as most connections idle.
const READ_BUFFER: usize = 2048;

/// Bound of the library's own frames (pongs, the close), which are small.
const WRITE_BUFFER_MAX: usize = 64 << 10;

/// The [`Framing`] of a WebSocket after its handshake.
pub(crate) struct WebSocket<S> {
    socket: WebSocketStream<Pipe<S>>,
    /// True if the library has read all bytes of the socket.
    is_drained: bool,
}

impl<S: ByteStream> WebSocket<S> {
    /// A WebSocket on `io`, from which the client's first bytes `read` were read already.
    pub(crate) async fn new(io: S, read: Bytes, frame_in_max: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BUFFER_MAX)
            .max_message_size(Some(frame_in_max))
            .max_frame_size(Some(frame_in_max));
        let first = read.to_vec();
        let pipe = Pipe {
            io,
            mid_frame: false,
            has_control: false,
        };
        // `read` is a piece of the HTTP library's buffer, which is larger than all of a socket.
        drop(read);
        let socket = WebSocketStream::from_partially_read(pipe, first, Role::Server, Some(config));
        Self {
            socket: socket.await,
            is_drained: false,
        }
    }
}

impl<S: ByteStream> Framing for WebSocket<S> {
    type Inbound = Message;
    type Io = S;

    fn poll_ready(&mut self, cx: &mut Context<'_>, mid_frame: bool) -> Poll<io::Result<bool>> {
        if !self.has_control() || mid_frame {
            return Poll::Ready(Ok(false));
        }
        match Pin::new(&mut self.socket).poll_flush(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(io::Error::other(error))),
            Poll::Ready(Ok(())) => {
                self.socket.get_mut().has_control = false;
                Poll::Ready(Ok(true))
            }
        }
    }

    fn has_control(&self) -> bool {
        self.socket.get_ref().has_control
    }

    fn io(&mut self) -> &mut S {
        &mut self.socket.get_mut().io
    }

    fn set_mid_frame(&mut self, mid_frame: bool) {
        self.socket.get_mut().mid_frame = mid_frame;
    }

    /// The library is polled only when the socket has something: it has read all there was when
    /// it was last pending.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Message, CloseReason>> {
        if self.is_drained && self.socket.get_ref().io.poll_readable(cx).is_pending() {
            return Poll::Pending;
        }
        let message = Pin::new(&mut self.socket).poll_next(cx);
        self.is_drained = message.is_pending();
        message.map(|message| match message {
            None => Err(CloseReason::PeerGone),
            Some(Ok(Message::Close(_))) => Err(CloseReason::PeerClosed),
            Some(Ok(message)) => Ok(message),
            Some(Err(error)) => Err(read_failure(&error)),
        })
    }

    fn frame_end(frames: &[u8], offset: usize) -> usize {
        header::frame_end(frames, offset)
    }

    fn begin_close(&mut self, reason: CloseReason, write_deadline: Duration) -> FinalWrites {
        match reason {
            CloseReason::PeerGone => FinalWrites::Nothing,
            CloseReason::PeerClosed => FinalWrites::PartialFrame(CLOSING),
            _ => FinalWrites::PartialFrame(write_deadline),
        }
    }

    async fn close(&mut self, reason: CloseReason) {
        let Some(frame) = close_frame(reason) else {
            // The library has the answer to the client's close frame ready.
            let _ = self.socket.flush().await;
            return;
        };
        if self.socket.send(Message::Close(Some(frame))).await.is_ok() {
            let discard = async { while let Some(Ok(_)) = self.socket.next().await {} };
            let _ = tokio::time::timeout(CLOSING, discard).await;
        }
    }
}

/// The close frame for a [`CloseReason`]; `None` if the client has closed the connection.
fn close_frame(reason: CloseReason) -> Option<CloseFrame> {
    let close = match reason {
        CloseReason::PeerClosed | CloseReason::PeerGone => return None,
        CloseReason::Complete => {
            return Some(CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            });
        }
        // Subscribing again is answered with the reason.
        CloseReason::TooSlow | CloseReason::CursorExpired => SessionCloseReason::TooSlow,
        CloseReason::Draining => SessionCloseReason::Draining,
        CloseReason::SessionDeleted => SessionCloseReason::SessionDeleted,
        CloseReason::Quarantined => SessionCloseReason::Quarantined,
        CloseReason::Busy => SessionCloseReason::Busy,
        CloseReason::IdentityExpired => SessionCloseReason::IdentityExpired,
        CloseReason::IdentityRevoked => SessionCloseReason::IdentityRevoked,
        CloseReason::FrameTooLarge | CloseReason::Internal => SessionCloseReason::Internal,
        CloseReason::Rejected(close) => close,
    };
    Some(CloseFrame {
        code: close.code().into(),
        reason: close.reason_json().into(),
    })
}

/// The [`CloseReason`] of a frame that cannot be read.
fn read_failure(error: &Error) -> CloseReason {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            CloseReason::Rejected(SessionCloseReason::FrameTooLarge)
        }
        Error::Utf8(_) => CloseReason::Rejected(SessionCloseReason::NotJson),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => CloseReason::PeerGone,
        Error::Protocol(_) => CloseReason::Rejected(SessionCloseReason::Protocol),
        _ => CloseReason::PeerGone,
    }
}
