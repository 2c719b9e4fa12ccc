//! Turns that ask sub-agents: so many people at once, each in a session and a thread of its own,
//! who post the next question (`POST /chat/stream`) when the last answer ended.
//!
//! A turn counts from before the connect to the sentinel of its stream. Told besides: how many
//! ended as completed, what the server's own histogram says of the overhead of a dispatch, and the
//! server's memory. The first turn of each is not counted.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, Serialize};
use turnwire_event::metric;

use super::{CpuSpan, SILENCE_MAX, Stopwatch, Target};
use crate::histogram::Histogram;
use crate::http::HttpConnection;
use crate::machine;
use crate::service::PRINCIPAL;
use crate::stat::percentile;

/// The longest answer that is read; one of a run has some ten thousand bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// How often a question is put again to a session that is still busy, and how long between:
/// the last turn gives its lock back within a few milliseconds.
const BUSY_MAX: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// Command-line arguments of this role.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    at_once: usize,
    /// How many turns of each follow each other.
    #[arg(long)]
    turns: u64,
    /// The time over which their first questions are spread.
    #[arg(long)]
    spread_ms: u64,
    /// What is asked, in turn, as `LOCALE:WORDS`.
    #[arg(long, required = true)]
    ask: Vec<AgentTarget>,
}

/// A question and its language.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AgentTarget {
    locale: String,
    words: String,
}

impl FromStr for AgentTarget {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (locale, words) = text.split_once(':').ok_or("expected LOCALE:WORDS")?;
        Ok(Self {
            locale: locale.to_owned(),
            words: words.to_owned(),
        })
    }
}

/// The figures that the role prints as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub turns: u64,
    /// Those of them that ended as completed.
    pub completed: u64,
    /// Their pieces of text.
    pub texts: u64,
    /// Turns that were refused at first because the last one held its lock still.
    pub busy: u64,
    /// How long, and at what cost.
    pub span: CpuSpan,
    /// Milliseconds of a turn: p50, p95.
    pub turn_ms: (f64, f64),
    /// Sub-agents that were asked.
    pub dispatches: u64,
    /// Median of the overhead of a dispatch, by the server's histogram. Infinite without samples.
    #[serde(deserialize_with = "infinite_if_null")]
    pub overhead_p50_ms: f64,
    /// The 95th percentile of the overhead of a dispatch.
    #[serde(deserialize_with = "infinite_if_null")]
    pub overhead_p95_ms: f64,
    /// The 95th percentile of the time of one emit, by the server's histogram.
    #[serde(deserialize_with = "infinite_if_null")]
    pub writer_p95_ms: f64,
    /// The server's memory before and after, in KiB.
    pub resident_kb: (u64, u64),
    /// The most it ever was.
    pub peak_kb: u64,
    pub sessions: Vec<String>,
}

/// Reads a figure of [`Outcome`]: JSON writes infinite ones as `null`.
fn infinite_if_null<'de, D: Deserializer<'de>>(figure: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(figure)?.unwrap_or(f64::INFINITY))
}

/// One of those who ask.
struct DispatchClient {
    server: SocketAddr,
    asks: Vec<AgentTarget>,
    /// Which of the questions is next.
    next: usize,
    /// The session, once there is one.
    session: Option<String>,
}

#[derive(Default)]
struct Totals {
    turn_ms: Vec<f64>,
    completed: u64,
    texts: u64,
    busy: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.turn_ms.extend(other.turn_ms);
        self.completed += other.completed;
        self.texts += other.texts;
        self.busy += other.busy;
    }
}

/// How a post was answered.
enum TurnRead {
    /// With the whole stream of a turn.
    Stream { texts: u64, completed: bool },
    /// The session is busy.
    Busy,
}

impl DispatchClient {
    /// So many turns after a pause.
    fn talk(&mut self, turns: u64, pause: Duration) -> io::Result<Totals> {
        std::thread::sleep(pause);
        let mut totals = Totals::default();
        for _ in 0..turns {
            self.turn(&mut totals)?;
        }
        Ok(totals)
    }

    fn turn(&mut self, totals: &mut Totals) -> io::Result<()> {
        let ask = &self.asks[self.next % self.asks.len()];
        let mut body = serde_json::json!({ "message": ask.words, "locale": ask.locale });
        if let Some(session) = &self.session {
            body["session_id"] = session.as_str().into();
        }
        let body = body.to_string();
        self.next += 1;
        for _ in 0..BUSY_MAX {
            let started = Instant::now();
            match self.post(&body)? {
                TurnRead::Stream { texts, completed } => {
                    totals.turn_ms.push(started.elapsed().as_secs_f64() * 1e3);
                    totals.texts += texts;
                    totals.completed += u64::from(completed);
                    return Ok(());
                }
                TurnRead::Busy => {
                    totals.busy += 1;
                    std::thread::sleep(BUSY_PAUSE);
                }
            }
        }
        Err(io::Error::other("a session stayed busy"))
    }

    fn post(&mut self, body: &str) -> io::Result<TurnRead> {
        let mut stream = TcpStream::connect(self.server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let request = format!(
            "POST /chat/stream HTTP/1.1\r\nHost: {}\r\nX-Turnwire-Principal: {PRINCIPAL}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.server,
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream.take(ANSWER_BYTES_MAX));
        let (status, session) = head(&mut reader)?;
        match status {
            200 => {
                self.session = self.session.take().or(session);
                read_stream(&mut reader)
            }
            409 => Ok(TurnRead::Busy),
            other => Err(io::Error::other(format!(
                "a turn was refused: HTTP {other}"
            ))),
        }
    }
}

/// Reads the head of an answer: its status, and the session it names.
fn head(reader: &mut impl BufRead) -> io::Result<(u16, Option<String>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("not an HTTP answer"))?;
    let mut session = None;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("x-session-id") => {
                session = Some(value.trim().to_owned());
            }
            Some(_) => {}
            None => return Ok((status, session)),
        }
    }
}

/// Reads a stream up to its sentinel.
fn read_stream(reader: &mut impl BufRead) -> io::Result<TurnRead> {
    let mut line = Vec::new();
    let (mut texts, mut completed) = (0, false);
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Err(io::Error::other("a stream ended before its turn"));
        }
        match line.as_slice() {
            b"event: text\n" => texts += 1,
            b"event: completed\n" => completed = true,
            b"data: [DONE]\n" => return Ok(TurnRead::Stream { texts, completed }),
            _ => {}
        }
    }
}

/// Everyone does so many turns, the first ones spread over a time.
fn round(people: &mut [DispatchClient], turns: u64, spread: Duration) -> io::Result<Totals> {
    let step = spread.div_f64(people.len().max(1) as f64);
    std::thread::scope(|scope| {
        let people = people.iter_mut().zip(0..);
        let running: Vec<_> = people
            .map(|(person, at)| scope.spawn(move || person.talk(turns, step * at)))
            .collect();
        let mut totals = Totals::default();
        for thread in running {
            let outcome = thread.join();
            totals.add(outcome.map_err(|_| io::Error::other("a person left"))??);
        }
        Ok(totals)
    })
}

/// What the server has recorded of dispatches and of emits.
fn recorded(server: SocketAddr) -> io::Result<[Histogram; 2]> {
    let text = HttpConnection::connect(server)?.metrics()?;
    let names = [
        metric::DISPATCH_OVERHEAD_SECONDS,
        metric::STREAM_WRITER_OVERHEAD_SECONDS,
    ];
    Ok(names.map(|name| Histogram::read(&text, name)))
}

/// Runs the load and returns the figures.
pub fn run(args: &Args) -> io::Result<Outcome> {
    let Target { server, pid } = args.target;
    let person = |next| DispatchClient {
        server,
        asks: args.ask.clone(),
        next,
        session: None,
    };
    let mut people: Vec<DispatchClient> = (0..args.at_once).map(person).collect();
    let spread = Duration::from_millis(args.spread_ms);
    round(&mut people, 1, spread)?;
    let before = (recorded(server)?, machine::resident_kb(pid)?);
    let stopwatch = Stopwatch::start(pid)?;
    let totals = round(&mut people, args.turns, spread)?;
    let span = stopwatch.span()?;
    let after = recorded(server)?;
    let overhead = after[0].since(&before.0[0]);
    let writer = after[1].since(&before.0[1]);
    let turn = |percent| percentile(&totals.turn_ms, percent);
    Ok(Outcome {
        turns: totals.turn_ms.len() as u64,
        completed: totals.completed,
        texts: totals.texts,
        busy: totals.busy,
        span,
        turn_ms: (turn(50.0), turn(95.0)),
        dispatches: overhead.count(),
        overhead_p50_ms: overhead.percentile(50.0) * 1e3,
        overhead_p95_ms: overhead.percentile(95.0) * 1e3,
        writer_p95_ms: writer.percentile(95.0) * 1e3,
        resident_kb: (before.1, machine::resident_kb(pid)?),
        peak_kb: machine::peak_kb(pid)?,
        sessions: people.into_iter().filter_map(|one| one.session).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_read_to_its_sentinel() {
        let text = "retry: 5\nevent: text\ndata: {}\n\nevent: text\ndata: {}\n\n\
                    event: completed\ndata: {}\n\ndata: [DONE]\n\nmore";
        let read = read_stream(&mut text.as_bytes()).expect("a whole stream");
        assert!(matches!(
            read,
            TurnRead::Stream {
                texts: 2,
                completed: true
            }
        ));
        assert!(read_stream(&mut &text.as_bytes()[..40]).is_err());
    }

    #[test]
    fn response_head_names_the_session() {
        let text = "HTTP/1.1 200 OK\r\nX-Session-Id: sess_1\r\n\r\nbody";
        let read = head(&mut text.as_bytes()).expect("a head");
        assert_eq!(read, (200, Some("sess_1".to_owned())));
        assert!(head(&mut &text.as_bytes()[..30]).is_err());
    }

    #[test]
    fn question_carries_its_language() {
        let ask: AgentTarget = "de:Wie spät: 3?".parse().expect("a question");
        assert_eq!(
            (ask.locale.as_str(), ask.words.as_str()),
            ("de", "Wie spät: 3?")
        );
        assert!("nothing".parse::<AgentTarget>().is_err());
    }

    #[test]
    fn figure_without_samples_survives_json() {
        #[derive(Serialize, Deserialize)]
        struct Figure(#[serde(deserialize_with = "infinite_if_null")] f64);

        for figure in [f64::INFINITY, 4.5] {
            let json = serde_json::to_string(&Figure(figure)).expect("JSON");
            let read: Figure = serde_json::from_str(&json).expect("a figure");
            assert_eq!(read.0, figure);
        }
    }
}
