//! Turns whose words come from a provider that keeps time: so many readers at once, each of which
//! asks again when the last answer ended.
//!
//! A reader is what most programs have: `reqwest`, `sse-stream`, `serde_json`, one thread for all.
//! It asks Turnwire (`POST /chat/stream`), or the provider itself, which is the reference. Every
//! word says when the provider wrote it, so its delay is known when it is read.

use std::borrow::Cow;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use reqwest::{Client, Response};
use serde::{Deserialize, Serialize};
use sse_stream::SseByteStream;
use tokio::task::JoinSet;

use super::{CpuSpan, SILENCE_MAX, Stopwatch, Target};
use crate::machine;
use crate::stamp;
use crate::stat::{median, percentile};

/// How often a turn is put again to a session that is still busy, and how long between: the last
/// turn gives its lock back within a few milliseconds.
const BUSY_MAX: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// How often the server's memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Command-line arguments of this role.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// What the target speaks.
    #[arg(long)]
    reads: StreamKind,
    #[arg(long)]
    at_once: u32,
    /// Turns of each that are not counted.
    #[arg(long)]
    warm: u64,
    /// Turns of each that are.
    #[arg(long)]
    turns: u64,
    /// The time over which their first turns are spread.
    #[arg(long)]
    spread_ms: u64,
    /// The time, once everyone reads, that is not part of the thirds.
    #[arg(long)]
    settle_ms: u64,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub turns: u64,
    /// Those of them that ended as completed.
    pub completed: u64,
    pub words: u64,
    /// Turns that were refused at first because the last one held its lock still.
    pub busy: u64,
    /// How long, and at what cost.
    pub span: CpuSpan,
    /// Microseconds of the first word of a turn, from when it was written: p50, p95.
    pub first_us: (f64, f64),
    /// Microseconds of the first word of a turn, from when it was asked for: p50, p95.
    pub asked_us: (f64, f64),
    /// The server's memory in KiB before the first turn.
    pub before_kb: f64,
    /// The time in which everyone was reading, in three equal parts.
    pub thirds: [ThirdStats; 3],
}

/// A third of the time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ThirdStats {
    /// Words that were read, a second.
    pub rate: f64,
    /// Microseconds of a word: p50, p95, p99.
    pub delay_us: (f64, f64, f64),
    /// The server's memory in KiB, the median of many looks.
    pub resident_kb: f64,
}

/// A word that was read: when, and how long after it was written.
#[derive(Clone, Copy, Debug)]
struct TokenTime {
    at_us: u64,
    delay_us: u64,
}

/// What a reader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StreamKind {
    /// The chat wire of Turnwire.
    Chat,
    /// Chat Completions, of the provider itself.
    Completions,
    /// The inner vocabulary, of an agent elsewhere.
    Inner,
}

/// One of those who read.
struct StreamReader {
    client: Client,
    server: String,
    kind: StreamKind,
    /// The session, once there is one.
    session: Option<String>,
}

#[derive(Default)]
struct StreamTimes {
    words: Vec<TokenTime>,
    first_us: Vec<f64>,
    asked_us: Vec<f64>,
    completed: u64,
    busy: u64,
}

/// A frame of Turnwire's `text`.
#[derive(Deserialize)]
struct DeltaText<'a> {
    #[serde(borrow)]
    chunk: Cow<'a, str>,
}

/// An event of an agent elsewhere.
#[derive(Deserialize)]
struct InnerText<'a> {
    #[serde(borrow, default)]
    content: Cow<'a, str>,
}

/// A chunk of the provider.
#[derive(Deserialize)]
struct CompletionChunk<'a> {
    #[serde(borrow)]
    choices: Vec<CompletionChoice<'a>>,
}

#[derive(Deserialize)]
struct CompletionChoice<'a> {
    #[serde(borrow)]
    delta: ChunkDelta<'a>,
}

#[derive(Deserialize)]
struct ChunkDelta<'a> {
    #[serde(borrow, default)]
    content: Cow<'a, str>,
}

impl StreamReader {
    /// So many turns after a pause.
    async fn read(mut self, turns: u64, pause: Duration) -> io::Result<(Self, StreamTimes)> {
        tokio::time::sleep(pause).await;
        let mut stream = StreamTimes::default();
        for _ in 0..turns {
            let (answer, asked_us) = self.ask(&mut stream).await?;
            self.hear(answer, asked_us, &mut stream).await?;
        }
        Ok((self, stream))
    }

    /// The head of an answer, and when it was asked for.
    async fn ask(&mut self, heard: &mut StreamTimes) -> io::Result<(Response, u64)> {
        for _ in 0..BUSY_MAX {
            let asked_us = stamp::now_us();
            let answer = self.post().await?;
            match answer.status().as_u16() {
                200 => {
                    let session = answer.headers().get("x-session-id");
                    let session = session.and_then(|id| id.to_str().ok());
                    self.session = self.session.take().or(session.map(str::to_owned));
                    return Ok((answer, asked_us));
                }
                409 => {
                    heard.busy += 1;
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                other => {
                    let text = answer.text().await.unwrap_or_default();
                    return Err(io::Error::other(format!("HTTP {other}: {text}")));
                }
            }
        }
        Err(io::Error::other("a session stayed busy"))
    }

    async fn post(&self) -> io::Result<Response> {
        const MESSAGE: &str = "How late is it?";
        let (path, mut body) = match self.kind {
            StreamKind::Completions => (
                "/v1/chat/completions",
                serde_json::json!({
                    "model": "clock", "stream": true,
                    "messages": [{"role": "user", "content": MESSAGE}],
                }),
            ),
            StreamKind::Inner => ("/turns", serde_json::json!({ "content": MESSAGE })),
            StreamKind::Chat => ("/chat/stream", serde_json::json!({ "message": MESSAGE })),
        };
        if let Some(session) = &self.session {
            body["session_id"] = session.as_str().into();
        }
        let request = self
            .client
            .post(format!("{}{path}", self.server))
            .header("content-type", "application/json")
            .body(body.to_string());
        request.send().await.map_err(io::Error::other)
    }

    /// Reads an answer to the end of its body, so that its connection can be used again.
    async fn hear(
        &self,
        answer: Response,
        asked_us: u64,
        heard: &mut StreamTimes,
    ) -> io::Result<()> {
        let mut events = pin!(SseByteStream::new(answer.bytes_stream()));
        let (mut is_first, mut is_done) = (true, false);
        while let Some(event) = events.next().await {
            let event = event.map_err(io::Error::other)?;
            let data = event.data.unwrap_or_default();
            if data == "[DONE]" {
                is_done = true;
                continue;
            }
            let text = match (self.kind, event.event.as_deref()) {
                (StreamKind::Completions, _) => chunk(&data)?,
                (StreamKind::Inner, _) => serde_json::from_str::<InnerText<'_>>(&data)?.content,
                (StreamKind::Chat, Some("text")) => {
                    serde_json::from_str::<DeltaText<'_>>(&data)?.chunk
                }
                (StreamKind::Chat, Some("completed")) => {
                    heard.completed += 1;
                    continue;
                }
                (StreamKind::Chat, _) => continue,
            };
            let at_us = stamp::now_us();
            for written_us in stamp::times(&text) {
                let delay_us = at_us.saturating_sub(written_us);
                heard.words.push(TokenTime { at_us, delay_us });
                if std::mem::take(&mut is_first) {
                    heard.first_us.push(delay_us as f64);
                    let since_us = at_us.saturating_sub(asked_us);
                    heard.asked_us.push(since_us as f64);
                }
            }
        }
        heard.completed += u64::from(self.kind != StreamKind::Chat && is_done);
        match is_done {
            true => Ok(()),
            false => Err(io::Error::other("a stream ended before its turn")),
        }
    }
}

/// The words of a chunk of the provider.
fn chunk(data: &str) -> io::Result<Cow<'_, str>> {
    let chunk: CompletionChunk<'_> = serde_json::from_str(data)?;
    let first = chunk.choices.into_iter().next();
    Ok(first.map(|choice| choice.delta.content).unwrap_or_default())
}

/// Runs the same number of turns with every reader, the first ones spread over a time, and returns
/// what each reader received.
async fn round(
    readers: Vec<StreamReader>,
    turns: u64,
    spread: Duration,
) -> io::Result<(Vec<StreamReader>, Vec<StreamTimes>)> {
    let step = spread.div_f64(readers.len().max(1) as f64);
    let mut running = JoinSet::new();
    for (reader, at) in readers.into_iter().zip(0..) {
        running.spawn(reader.read(turns, step * at));
    }
    let (mut readers, mut all) = (Vec::new(), Vec::new());
    while let Some(done) = running.join_next().await {
        let (reader, heard) = done.map_err(io::Error::other)??;
        readers.push(reader);
        all.push(heard);
    }
    Ok((readers, all))
}

/// The server's memory: when, and how much.
type MemorySamples = Arc<Mutex<Vec<(u64, f64)>>>;

async fn look(pid: u32, looks: MemorySamples) {
    while let Ok(kb) = machine::resident_kb(pid) {
        looks.lock().push((stamp::now_us(), kb as f64));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The time in which everyone was reading, without its beginning, cut in three.
fn thirds(all: &[StreamTimes], looks: &[(u64, f64)], settle: Duration) -> [ThirdStats; 3] {
    let began = all.iter().filter_map(|heard| heard.words.first());
    let ended = all.iter().filter_map(|heard| heard.words.last());
    let from = began.map(|word| word.at_us).max().unwrap_or_default();
    let from = from + settle.as_micros() as u64;
    let to = ended.map(|word| word.at_us).min().unwrap_or_default();
    let length = to.saturating_sub(from) / 3;
    [0, 1, 2].map(|third| {
        let span = from + third * length..from + (third + 1) * length;
        let words = all.iter().flat_map(|heard| &heard.words);
        let delays: Vec<f64> = words
            .filter(|word| span.contains(&word.at_us))
            .map(|word| word.delay_us as f64)
            .collect();
        let seen = looks.iter().filter(|(at, _)| span.contains(at));
        let delay = |percent| percentile(&delays, percent);
        ThirdStats {
            rate: delays.len() as f64 / (length.max(1) as f64 / 1e6),
            delay_us: (delay(50.0), delay(95.0), delay(99.0)),
            resident_kb: median(&seen.map(|(_, kb)| *kb).collect::<Vec<_>>()),
        }
    })
}

/// Runs the load and returns the figures.
pub async fn run(args: &Args) -> io::Result<Outcome> {
    let Target { server, pid } = args.target;
    // The client asks for the TLS provider of the process, though it speaks plain HTTP here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().tcp_nodelay(true);
    let client = client.read_timeout(SILENCE_MAX).build();
    let client = client.map_err(io::Error::other)?;
    let reader = |_| StreamReader {
        client: client.clone(),
        server: format!("http://{server}"),
        kind: args.reads,
        session: None,
    };
    let readers: Vec<StreamReader> = (0..args.at_once).map(reader).collect();
    let spread = Duration::from_millis(args.spread_ms);
    let (readers, _) = round(readers, args.warm, spread).await?;
    let before_kb = machine::resident_kb(pid)? as f64;
    let looks = MemorySamples::default();
    let looking = tokio::spawn(look(pid, Arc::clone(&looks))).abort_handle();
    let stopwatch = Stopwatch::start(pid)?;
    let (_, all) = round(readers, args.turns, spread).await?;
    let span = stopwatch.span()?;
    looking.abort();
    let spent = |of: fn(&StreamTimes) -> &Vec<f64>| {
        let all: Vec<f64> = all.iter().flat_map(of).copied().collect();
        (percentile(&all, 50.0), percentile(&all, 95.0))
    };
    Ok(Outcome {
        turns: args.turns * u64::from(args.at_once),
        completed: all.iter().map(|heard| heard.completed).sum(),
        words: all.iter().map(|heard| heard.words.len() as u64).sum(),
        busy: all.iter().map(|heard| heard.busy).sum(),
        span,
        first_us: spent(|heard| &heard.first_us),
        asked_us: spent(|heard| &heard.asked_us),
        before_kb,
        thirds: thirds(&all, &looks.lock(), Duration::from_millis(args.settle_ms)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_text_is_extracted() {
        let data = r#"{"choices":[{"index":0,"delta":{"content":"a\nb"}}],"usage":null}"#;
        assert_eq!(chunk(data).expect("a chunk"), "a\nb");
        for silent in [r#"{"choices":[]}"#, r#"{"choices":[{"delta":{}}]}"#] {
            assert_eq!(chunk(silent).expect("a chunk"), "");
        }
        assert!(chunk("nonsense").is_err());
    }

    #[test]
    fn only_the_common_reading_window_is_split_in_three() {
        let stream = |from: u64, to: u64, delay_us| StreamTimes {
            words: (from..to)
                .map(|at_us| TokenTime { at_us, delay_us })
                .collect(),
            ..StreamTimes::default()
        };
        // Both read from 90 to 400, and the first tenth is not looked at.
        let all = [stream(0, 401, 5), stream(90, 1_000, 7)];
        let looks = [(50, 9.0), (150, 1.0), (250, 2.0), (350, 3.0), (900, 9.0)];
        let thirds = thirds(&all, &looks, Duration::from_micros(10));
        assert_eq!(thirds.map(|third| third.resident_kb), [1.0, 2.0, 3.0]);
        assert_eq!(thirds.map(|third| third.rate), [2e6; 3]);
        assert_eq!(thirds[2].delay_us, (5.0, 7.0, 7.0));
    }
}
