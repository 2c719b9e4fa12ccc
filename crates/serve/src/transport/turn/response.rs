//! The HTTP response that delivers a turn as server-sent events: its head, and the stream that takes
//! over its socket.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpStream;
use turnwire_event::metric::TurnDimensions;
use turnwire_event::{ResponseId, SessionId, TurnId};
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::pc3;

use crate::listen::{SocketTakeover, TakenSocket};

use super::super::Streams;
use super::super::carrier::event_stream::EventStream;
use super::{TurnFormat, TurnRequest, TurnStream};

/// Opens the [`TurnStream`] of a turn in a [`TurnFormat`], counted under `dimensions`; returns the response that delivers it. The client attends the turn until the
/// response is dropped.
pub(crate) async fn open<F: TurnFormat<Framing = EventStream<TcpStream>>>(
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    (format, dimensions): (F, &TurnDimensions),
    request: TurnRequest,
) -> Result<Response, ReplayError> {
    let (tasks, retry_ms) = (streams.tasks.clone(), jittered(streams.settings.retry_ms));
    let mut response = head(live.id, request.turn);
    let stream = TurnStream::open(streams, live, (format, dimensions), request).await?;
    let run = move |taken| tasks.track_future(run(stream, retry_ms, taken));
    response.extensions_mut().insert(SocketTakeover::new(run));
    Ok(response)
}

async fn run<F>(stream: TurnStream<F>, retry_ms: u32, taken: TakenSocket)
where
    F: TurnFormat<Framing = EventStream<TcpStream>>,
{
    let TakenSocket {
        io,
        read,
        mut head,
        permit,
    } = taken;
    // A stream reads nothing; and the HTTP library's buffer, which this is a piece of, is larger
    // than all that a stream holds.
    drop(read);
    pc3::write_retry(retry_ms, &mut head);
    stream.carrier(EventStream(io), head).run().await;
    drop(permit);
}

/// A random time between `ms` and twice `ms`, so that clients that lost their connections together
/// do not reconnect together.
fn jittered(ms: u32) -> u32 {
    // Without randomness they reconnect together, and no harm is done.
    ms + getrandom::u32().unwrap_or_default() % ms.max(1)
}

/// The head of the response of a stream.
pub(crate) fn head(session: SessionId, turn: TurnId) -> Response {
    let (session_id, response_id) = (session.to_string(), ResponseId::from(turn).to_string());
    let headers = [
        ("content-type", pc3::MEDIA_TYPE),
        ("cache-control", "no-cache, no-transform"),
        // Keeps proxies from buffering frames (S1-013).
        ("x-accel-buffering", "no"),
        ("x-session-id", &session_id),
        ("x-response-id", &response_id),
    ];
    (headers, Body::empty()).into_response()
}
