//! Whole turns over HTTP and WebSocket, so many at once in a closed loop: the next turn of a
//! session is posted when the last one ended.
//!
//! Told: from the post's first byte to the first event and to the first delta, events a second
//! over all sessions, and the server's processor time an event. The first turn of each session
//! is not counted.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{CpuSpan, READ_BYTES, Readiness, Stopwatch, Target, Watcher, subscribe_frame};
use crate::http::HttpConnection;
use crate::stat::percentile;

/// Bytes of a frame that are looked at: enough to hold the event's type.
const PREFIX_BYTES: usize = 96;

/// Command-line arguments of this role.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    sessions: usize,
    /// Turns of each session that count.
    #[arg(long)]
    turns: u64,
    /// How often all of it is done again with new sessions.
    #[arg(long)]
    generations: u64,
    /// What is said in each.
    #[arg(long)]
    message: String,
    /// The events of a turn, for a server whose events have no types (the floor).
    #[arg(long)]
    turn_events: Option<u64>,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub turns: u64,
    pub events: u64,
    /// How long, and at what cost.
    pub span: CpuSpan,
    /// Milliseconds from the post to the first event: p50, p95.
    pub first_event_ms: (f64, f64),
    /// Milliseconds from the post to the first delta: p50, p95.
    pub first_delta_ms: (f64, f64),
    /// Turns that were refused at first because the last one held its lock still.
    pub busy: u64,
}

/// One session: its watcher, the connection its turns are posted on, and where its turn stands.
struct Session {
    watcher: Watcher,
    post: TcpStream,
    request: Vec<u8>,
    posted: Instant,
    /// Events of the turn at hand.
    events: u64,
    begun: bool,
    delta: bool,
    /// Turns still to end.
    left: u64,
}

/// What a read found.
#[derive(Default)]
struct SessionProgress {
    first_event: bool,
    first_delta: bool,
    ended: bool,
    events: u64,
}

impl Session {
    fn open(http: &mut HttpConnection, args: &Args) -> io::Result<Self> {
        let id = http.create_session()?;
        let mut watcher = Watcher::new(http.attach(&id)?, PREFIX_BYTES)?;
        watcher.subscribe(&subscribe_frame(r#""preset:full""#, None))?;
        let post = TcpStream::connect(args.target.server)?;
        post.set_nodelay(true)?;
        post.set_nonblocking(true)?;
        Ok(Self {
            watcher,
            post,
            request: HttpConnection::post_bytes(
                args.target.server,
                &format!("/sessions/{id}/turns"),
                &serde_json::json!({ "message": args.message }).to_string(),
            ),
            posted: Instant::now(),
            events: 0,
            begun: false,
            delta: false,
            left: 0,
        })
    }

    fn start(&mut self) -> io::Result<()> {
        (self.events, self.begun, self.delta) = (0, false, false);
        self.posted = Instant::now();
        self.post.write_all(&self.request)
    }

    fn read(&mut self, buffer: &mut [u8], turn_events: Option<u64>) -> io::Result<SessionProgress> {
        let mut progress = SessionProgress::default();
        let Self {
            watcher,
            events,
            begun,
            delta,
            ..
        } = self;
        watcher.read(buffer, |prefix| {
            let kind = event_type(prefix);
            if kind.is_empty() {
                return;
            }
            // A server without types tells the turn's shape by count alone.
            let first = turn_events.is_some() || kind == b"turn.started";
            if !*begun && !first {
                return;
            }
            progress.events += 1;
            *events += 1;
            if !*begun {
                (*begun, progress.first_event) = (true, true);
            }
            if !*delta && kind == b"text.delta" {
                (*delta, progress.first_delta) = (true, true);
            }
            progress.ended |= match turn_events {
                Some(count) => *events == count,
                None => kind == b"turn.completed",
            };
        })?;
        Ok(progress)
    }

    /// Reads answers on the posting connection; true if a turn was refused as one too many.
    fn refused(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let len = match self.post.read(&mut bytes) {
            Ok(len) if len > 0 => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            _ => return Err(io::Error::other("the posting connection broke")),
        };
        let answer = &bytes[..len];
        if answer.windows(12).any(|bytes| bytes == b"HTTP/1.1 409") {
            return Ok(true);
        }
        match answer.starts_with(b"HTTP/1.1 2") || !answer.starts_with(b"HTTP/") {
            true => Ok(false),
            false => Err(io::Error::other(format!(
                "a turn was refused: {}",
                String::from_utf8_lossy(answer)
            ))),
        }
    }
}

/// The type of the event in a frame that begins so; empty if it holds none.
fn event_type(prefix: &[u8]) -> &[u8] {
    const OPEN: &[u8] = br#"{"type":"event","event":{"id":""#;
    const KEY: &[u8] = br#"","type":""#;
    let Some(rest) = prefix.strip_prefix(OPEN) else {
        return b"";
    };
    let key = rest.windows(KEY.len()).position(|bytes| bytes == KEY);
    let kind = key.map_or(&b""[..], |at| &rest[at + KEY.len()..]);
    kind.split(|&byte| byte == b'"').next().unwrap_or_default()
}

/// What a round of turns gave.
#[derive(Default)]
struct Totals {
    first_event_ms: Vec<f64>,
    first_delta_ms: Vec<f64>,
    events: u64,
    busy: u64,
}

/// All sessions, and which of them have something to read: the watcher of session `n` is token
/// `2n`, its posting connection token `2n + 1`.
struct TurnSessions {
    sessions: Vec<Session>,
    readiness: Readiness,
    buffer: Vec<u8>,
    turn_events: Option<u64>,
}

impl TurnSessions {
    fn open(args: &Args) -> io::Result<Self> {
        let mut http = HttpConnection::connect(args.target.server)?;
        let readiness = Readiness::new()?;
        let mut sessions = Vec::with_capacity(args.sessions);
        for at in 0..args.sessions {
            let session = Session::open(&mut http, args)?;
            readiness.watch(&session.watcher, 2 * at)?;
            readiness.watch(&session.post, 2 * at + 1)?;
            sessions.push(session);
        }
        Ok(Self {
            sessions,
            readiness,
            buffer: vec![0; READ_BYTES],
            turn_events: args.turn_events,
        })
    }

    /// Every session does so many turns.
    fn round(&mut self, turns: u64, totals: &mut Totals) -> io::Result<()> {
        let mut running = self.sessions.len();
        for session in &mut self.sessions {
            session.left = turns;
            session.start()?;
        }
        while running > 0 {
            for &token in self.readiness.wait()? {
                let session = &mut self.sessions[token / 2];
                if token % 2 == 1 {
                    if session.refused()? {
                        totals.busy += 1;
                        session.start()?;
                    }
                    continue;
                }
                let progress = session.read(&mut self.buffer, self.turn_events)?;
                totals.events += progress.events;
                let since_post_ms = session.posted.elapsed().as_secs_f64() * 1e3;
                if progress.first_event {
                    totals.first_event_ms.push(since_post_ms);
                }
                if progress.first_delta {
                    totals.first_delta_ms.push(since_post_ms);
                }
                if progress.ended {
                    session.left -= 1;
                    match session.left {
                        0 => running -= 1,
                        _ => session.start()?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Runs the load and returns the figures.
pub fn run(args: &Args) -> io::Result<Outcome> {
    let mut totals = Totals::default();
    let mut span = CpuSpan::default();
    for _ in 0..args.generations {
        let mut open_streams = TurnSessions::open(args)?;
        open_streams.round(1, &mut Totals::default())?;
        let stopwatch = Stopwatch::start(args.target.pid)?;
        open_streams.round(args.turns, &mut totals)?;
        span = span.plus(stopwatch.span()?);
    }
    let both = |ms: &[f64]| (percentile(ms, 50.0), percentile(ms, 95.0));
    Ok(Outcome {
        turns: args.turns * args.generations * args.sessions as u64,
        events: totals.events,
        span,
        first_event_ms: both(&totals.first_event_ms),
        first_delta_ms: both(&totals.first_delta_ms),
        busy: totals.busy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_types_are_read_from_the_first_bytes() {
        let frame = crate::sample::delta_frame(1, "words");
        assert_eq!(event_type(&frame[4..100]), b"text.delta");
        assert_eq!(event_type(br#"{"type":"subscribe_ack"}"#), b"");
    }
}
