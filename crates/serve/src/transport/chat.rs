//! The chat wire (pc3) over server-sent events: one stream a turn. `ChatFormat` is the wire;
//! `TurnStream` delivers it.

mod format;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, header};
use turnwire_event::row::TurnRow;
use turnwire_event::{EventType, ResponseId, SessionId, TurnId};
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::pc3::{self, FrameCursor, WireVersion};

use crate::listen::{SocketTakeover, TakenSocket};

use super::Streams;
use super::carrier::event_stream::EventStream;
use super::turn::{TurnRequest, TurnStream};
use format::ChatFormat;

/// Opens the stream of a turn that is bound to a `version` of the wire and to a version of the
/// agent's `definition`; gives the response that delivers it. From here on the client attends the
/// turn: dropping the response is leaving.
pub async fn open(
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    (version, definition): (WireVersion, &str),
    request: TurnRequest,
) -> Result<Response<Body>, ReplayError> {
    let counters = streams.chat_counters.get(definition);
    let retry_ms = jittered(streams.options.retry_ms);
    let tasks = streams.tasks.clone();
    let mut response = head(live.id, request.turn);
    let stream = TurnStream::open(streams, live, ChatFormat(version), counters, request).await?;
    let run = move |taken| tasks.track_future(run(stream, retry_ms, taken));
    response.extensions_mut().insert(SocketTakeover::new(run));
    Ok(response)
}

async fn run(stream: TurnStream<ChatFormat>, retry_ms: u32, taken: TakenSocket) {
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
    stream.carrier(EventStream::new(io), head).run().await;
    drop(permit);
}

/// True if the client has the turn's last frame: no frame will ever follow.
pub fn is_complete(row: &TurnRow, cursor: &FrameCursor) -> bool {
    let (Some(ended), Some((kind, _))) = (row.ended, &row.terminal) else {
        return false;
    };
    // `turn.completed` gives usage and then its terminal, `turn.cancelled` its terminal alone.
    let last = u8::from(*kind == EventType::TurnCompleted);
    cursor.covers(ended, last)
}

/// A time between `ms` and twice `ms`, so that clients cut together do not come back together.
fn jittered(ms: u32) -> u32 {
    let mut bytes = [0; 4];
    // Without randomness they come back together, and that is all.
    let _ = getrandom::fill(&mut bytes);
    ms + u32::from_le_bytes(bytes) % ms.max(1)
}

const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const RESPONSE: HeaderName = HeaderName::from_static("x-response-id");

/// Keeps proxies from buffering frames (S1-013).
const UNBUFFERED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// The response of a stream without its frames.
pub fn head(session: SessionId, turn: TurnId) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    let no_cache = HeaderValue::from_static("no-cache, no-transform");
    let media_type = HeaderValue::from_static(pc3::MEDIA_TYPE);
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CACHE_CONTROL, no_cache);
    headers.insert(UNBUFFERED.0, UNBUFFERED.1);
    let response_id = ResponseId::from(turn);
    for (name, id) in [
        (SESSION, session.to_string()),
        (RESPONSE, response_id.to_string()),
    ] {
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(name, id);
        }
    }
    response
}
