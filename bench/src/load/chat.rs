//! Chats: turns posted so that the answer is their stream, so many at once in a closed loop.
//!
//! A stream has a connection of its own, which ends with it. Told: from the first byte of the post
//! (or from the connect before it) to the first frame, frames a second over all, and the server's
//! processor time a frame. The first turn of each is not counted.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{CpuSpan, READ_BYTES, Readiness, Stopwatch, Target};
use crate::http::HttpConnection;
use crate::sse::BlockCounter;
use crate::stat::percentile;

/// Command-line arguments of this role.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    at_once: usize,
    /// How many follow each other.
    #[arg(long)]
    turns: u64,
    /// How often all of it is done again with new sessions.
    #[arg(long)]
    generations: u64,
    /// What is said in each.
    #[arg(long)]
    message: String,
    /// The bearer token of every request.
    #[arg(long)]
    token: Option<String>,
    /// Every turn has a session of its own, made with it.
    #[arg(long)]
    new_sessions: bool,
    /// The clock starts before the connection is there.
    #[arg(long)]
    connecting: bool,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub turns: u64,
    /// Their frames; the sentinel is none.
    pub frames: u64,
    /// How long, and at what cost.
    pub span: CpuSpan,
    /// Milliseconds from the post or the connect to the first frame: p50, p99.
    pub first_frame_ms: (f64, f64),
    /// Turns that were refused at first because the last one held its lock still.
    pub busy: u64,
}

/// One of those who chat.
struct Chat {
    server: SocketAddr,
    request: Vec<u8>,
    connecting: bool,
    /// The connection of the turn at hand.
    stream: Option<TcpStream>,
    /// The connection of the next turn, made a turn before, so that the server knows it.
    spare: Option<TcpStream>,
    counter: BlockCounter,
    begun: Instant,
    /// Blocks of the turn at hand.
    blocks: u64,
    /// Turns still to end.
    left: u64,
}

/// What a read found.
enum ReadProgress {
    /// So many blocks frames, the first of the turn among them or not.
    Blocks { frames: u64, first: bool },
    /// The same, and the last of the turn.
    End { frames: u64, first: bool },
    /// The session is busy.
    Busy,
}

fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Chat {
    fn open(http: &mut HttpConnection, args: &Args) -> io::Result<Self> {
        let mut body = serde_json::json!({ "message": args.message });
        if !args.new_sessions {
            body["session_id"] = http.create_session()?.into();
        }
        let server = args.target.server;
        Ok(Self {
            server,
            request: http.own_post_bytes("/chat/stream", &body.to_string()),
            connecting: args.connecting,
            stream: None,
            spare: None,
            counter: BlockCounter::default(),
            begun: Instant::now(),
            blocks: 0,
            left: 0,
        })
    }

    fn start(&mut self, readiness: &Readiness, token: usize) -> io::Result<()> {
        (self.blocks, self.counter) = (0, BlockCounter::default());
        let spare = self.spare.take();
        self.begun = Instant::now();
        let mut stream = match spare {
            Some(stream) => stream,
            None => connect(self.server)?,
        };
        stream.write_all(&self.request)?;
        stream.set_nonblocking(true)?;
        readiness.watch(&stream, token)?;
        self.stream = Some(stream);
        if !self.connecting {
            self.spare = Some(connect(self.server)?);
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadProgress> {
        let mut stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        let len = match stream.read(buffer) {
            Ok(0) => return Err(io::Error::other("a stream ended before its turn")),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let mut frames = match self.counter.feed(&buffer[..len]) {
            Ok(frames) => frames,
            Err(refused) if refused.status == 409 => return Ok(ReadProgress::Busy),
            Err(refused) => return Err(refused.into()),
        };
        let first = self.blocks == 0 && frames > 0;
        self.blocks += frames;
        if self.counter.is_done() {
            frames -= 1;
            return Ok(ReadProgress::End { frames, first });
        }
        self.stream = Some(stream);
        Ok(ReadProgress::Blocks { frames, first })
    }
}

/// What a round of turns gave.
#[derive(Default)]
struct Totals {
    first_frame_ms: Vec<f64>,
    frames: u64,
    busy: u64,
}

/// All of them, and which have something to read.
struct ChatClients {
    chats: Vec<Chat>,
    readiness: Readiness,
    buffer: Vec<u8>,
}

impl ChatClients {
    fn open(args: &Args) -> io::Result<Self> {
        let mut http = HttpConnection::connect_with(args.target.server, args.token.as_deref())?;
        let chats = (0..args.at_once).map(|_| Chat::open(&mut http, args));
        Ok(Self {
            chats: chats.collect::<io::Result<_>>()?,
            readiness: Readiness::new()?,
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Everyone does so many turns.
    fn round(&mut self, turns: u64, totals: &mut Totals) -> io::Result<()> {
        let mut running = self.chats.len();
        for (token, chat) in self.chats.iter_mut().enumerate() {
            chat.left = turns;
            chat.start(&self.readiness, token)?;
        }
        while running > 0 {
            let ready = self.readiness.wait()?.to_vec();
            for token in ready {
                let chat = &mut self.chats[token];
                let progress = chat.read(&mut self.buffer)?;
                let since_ms = chat.begun.elapsed().as_secs_f64() * 1e3;
                let (frames, first, ended) = match progress {
                    ReadProgress::Blocks { frames, first } => (frames, first, false),
                    ReadProgress::End { frames, first } => (frames, first, true),
                    ReadProgress::Busy => {
                        totals.busy += 1;
                        chat.start(&self.readiness, token)?;
                        continue;
                    }
                };
                totals.frames += frames;
                totals.first_frame_ms.extend(first.then_some(since_ms));
                if ended {
                    chat.left -= 1;
                    match chat.left {
                        0 => running -= 1,
                        _ => chat.start(&self.readiness, token)?,
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
        let mut open_streams = ChatClients::open(args)?;
        open_streams.round(1, &mut Totals::default())?;
        let stopwatch = Stopwatch::start(args.target.pid)?;
        open_streams.round(args.turns, &mut totals)?;
        span = span.plus(stopwatch.span()?);
    }
    let first = |percent| percentile(&totals.first_frame_ms, percent);
    Ok(Outcome {
        turns: args.turns * args.generations * args.at_once as u64,
        frames: totals.frames,
        span,
        first_frame_ms: (first(50.0), first(99.0)),
        busy: totals.busy,
    })
}
