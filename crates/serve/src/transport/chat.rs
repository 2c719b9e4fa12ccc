//! The chat wire (pc3) as server-sent events: one stream a turn, on a socket of its own.
//!
//! ```text
//!   store ──▶ events of the turn ──▶ pc3::project_after ──▶ Due ──▶ socket        (the past)
//!   ring  ──▶ runs of frames, shared by all streams of a version ──▶ Due ──▶ socket   (live)
//! ```

mod connection;
mod counted;
mod due;
mod feed;
mod places;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, header};
use tokio::time::Instant;
use turnwire_event::row::TurnRow;
use turnwire_event::{EventType, Position, ResponseId, Seq, SessionId, Sub, TurnId};
use turnwire_session::StreamGuard;
use turnwire_session::{LiveSession, ReplayError};
use turnwire_wire::pc3::{self, Cursor, Version};

use crate::listen::{Taken, Takeover};

use super::Streams;
use counted::Counters;
use feed::Feed;

pub use counted::Counted;
pub use places::{Place, Places};

/// A stream that is ready to be sent.
pub struct Stream {
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    feed: Feed,
    attendance: Option<StreamGuard>,
    counters: Arc<Counters>,
    /// When its turn was asked for; none once its first frame is out.
    began: Option<Instant>,
    retry_ms: u32,
    turn: TurnId,
    _place: Place,
}

/// What a stream is opened with.
pub struct Opening {
    /// The turn.
    pub turn: TurnId,
    /// A place before everything of the turn.
    pub start: Position,
    /// The version of the wire it is bound to.
    pub version: Version,
    /// The version of the agent's definition it is bound to.
    pub definition: String,
    /// What the client has.
    pub cursor: Option<Cursor>,
    /// When a request that made the turn came; none for one that comes back.
    pub began: Option<Instant>,
    /// The client's attendance, if it attends already.
    pub attendance: Option<StreamGuard>,
    /// The client's place among the open streams.
    pub place: Place,
}

/// Whether the client has the turn's last frame: there is nothing more to come, ever.
pub fn is_over(row: &TurnRow, cursor: &Cursor) -> bool {
    let (Some(ended), Some((kind, _))) = (row.ended, &row.terminal) else {
        return false;
    };
    // `turn.completed` gives usage and then its terminal, `turn.cancelled` its terminal alone.
    let last = u8::from(*kind == EventType::TurnCompleted);
    cursor.covers(ended, last)
}

/// Whether the session has no event where the cursor stands. Transient events are not asked for:
/// those after the last stored one are forgotten by a restart.
pub fn is_ahead(live: &LiveSession, cursor: &Cursor) -> bool {
    let tail = live.ring.look(|_, tail, _| tail);
    let at = cursor.position;
    at.epoch != tail.epoch || at.seq > tail.seq
}

/// A place before everything of a turn: the last there can be before its first event.
pub fn before(started: Position) -> Position {
    Position {
        epoch: started.epoch,
        seq: Seq(started.seq.0.saturating_sub(1)),
        sub: if started.seq.0 > 1 { Sub::LAST } else { Sub(0) },
    }
}

/// Opens the stream of a turn, from the cursor on or from its start. From here on the client
/// attends the turn: dropping the stream is leaving.
pub async fn open(
    streams: Arc<Streams>,
    live: Arc<LiveSession>,
    opening: Opening,
) -> Result<Stream, ReplayError> {
    let Opening {
        turn,
        start,
        version,
        definition,
        cursor,
        began,
        attendance,
        place,
    } = opening;
    let tail = live.ring.look(|_, tail, _| tail);
    let foreign = |cursor: Cursor| {
        let at = cursor.position;
        at.epoch != tail.epoch || at > tail
    };
    if cursor.is_some_and(foreign) {
        return Err(ReplayError::Expired);
    }
    let attendance = attendance.unwrap_or_else(|| StreamGuard::new(&live, turn));
    // A cursor from before the turn, as a submit gives, means all of it; a turn that waits will
    // start after the tail.
    let since = cursor.map_or(start, |cursor| cursor.since());
    let since = since.max(start).min(tail);
    let feed = Feed::open(&live, turn, version, since, cursor).await?;
    Ok(Stream {
        counters: streams.counted.of(&definition),
        retry_ms: jittered(streams.options.retry_ms),
        streams,
        live,
        feed,
        attendance: Some(attendance),
        began,
        turn,
        _place: place,
    })
}

/// A wait between once and twice `ms`, so that clients cut together do not come back together.
fn jittered(ms: u32) -> u32 {
    let mut bytes = [0; 4];
    // Without randomness they come back together, and that is all.
    let _ = getrandom::fill(&mut bytes);
    ms + u32::from_le_bytes(bytes) % ms.max(1)
}

const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const RESPONSE: HeaderName = HeaderName::from_static("x-response-id");

/// Says that nothing between here and the client may keep frames back (S1-013).
const UNBUFFERED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// The head of a stream's answer.
pub fn head(session: SessionId, turn: TurnId) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    let no_cache = HeaderValue::from_static("no-cache, no-transform");
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(pc3::MEDIA_TYPE),
    );
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

impl Stream {
    /// The answer: its head, and the stream on its socket.
    pub fn answer(self) -> Response<Body> {
        let mut response = head(self.live.id, self.turn);
        let tasks = self.streams.tasks.clone();
        let run = move |taken| tasks.track_future(connection::run(self, taken));
        response.extensions_mut().insert(Takeover::new(run));
        response
    }
}
