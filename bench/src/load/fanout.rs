//! Fan-out: one producer, N watchers, at most W events outstanding, delivered events a second.
//! Watchers are WebSockets, streams of the turn, or some of each.
//!
//! Two producers: `paced` turns emit transient deltas as fast as the marks on the side channel
//! allow (no disk between), and feedback posts by this client append one persisted event each
//! (a commit between). The first tenth of the events is not counted.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use serde::{Deserialize, Serialize};

use super::{CpuSpan, Stopwatch, Target, WatcherPool, only, subscribe_frame};
use crate::floor::CHAT_OPENING;
use crate::http::HttpConnection;
use crate::window::{WindowOrder, WindowTally};

/// Command-line arguments of this role.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The side channel of paced turns; without it the client posts feedback.
    #[arg(long)]
    side: Option<SocketAddr>,
    /// How many WebSockets watch the session.
    #[arg(long)]
    clients: usize,
    /// How many streams watch the turn; only paced turns have them.
    #[arg(long, default_value_t = 0)]
    streams: usize,
    #[arg(long)]
    window: u64,
    #[arg(long)]
    events: u64,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Events delivered in the span, over all connections.
    pub deliveries: u64,
    /// How long, and at what cost.
    pub span: CpuSpan,
    /// Bytes of one WebSocket frame on the wire; 0 where there is none.
    pub frame_bytes: f64,
    /// Bytes of one block of a stream on the wire; 0 where there is none.
    pub block_bytes: f64,
}

/// Where marks go, so that more events come.
enum Source {
    Paced(TcpStream),
    Feedback {
        connections: Vec<HttpConnection>,
        request: Vec<u8>,
        sent: u64,
        order: WindowOrder,
    },
}

impl Source {
    fn feedback(
        args: &Args,
        http: &mut HttpConnection,
        session: &str,
        order: WindowOrder,
    ) -> io::Result<Self> {
        let turn = http.submit(session, "turn")?;
        http.await_turn(&turn)?;
        Ok(Self::Feedback {
            connections: (0..order.window)
                .map(|_| HttpConnection::connect(args.target.server))
                .collect::<io::Result<_>>()?,
            request: HttpConnection::feedback_bytes(args.target.server, session, &turn),
            sent: 0,
            order,
        })
    }

    /// Every watcher has `mark` events: lets the next ones come.
    fn allow(&mut self, mark: u64) -> io::Result<()> {
        match self {
            Self::Paced(side) => side.write_all(&mark.to_le_bytes()),
            Self::Feedback {
                connections,
                request,
                sent,
                order,
            } => {
                while *sent < order.total.min(mark + order.window) {
                    let connection = &mut connections[(*sent % order.window) as usize];
                    if *sent >= order.window {
                        let (status, _) = connection.receive()?;
                        if !(200..300).contains(&status) {
                            return Err(io::Error::other(format!("feedback: HTTP {status}")));
                        }
                    }
                    connection.send(request)?;
                    *sent += 1;
                }
                Ok(())
            }
        }
    }
}

/// Opens the side channel of a paced turn, which waits for its order.
fn side_channel(side: SocketAddr) -> io::Result<Source> {
    let side = TcpStream::connect(side)?;
    side.set_nodelay(true)?;
    Ok(Source::Paced(side))
}

/// Runs the load and returns the figures.
pub fn run(args: &Args) -> io::Result<Outcome> {
    let mut http = HttpConnection::connect(args.target.server)?;
    let session = http.create_session()?;
    let order = WindowOrder {
        window: args.window,
        total: args.events,
    };
    let (mut source, kind) = match args.side {
        Some(side) => (side_channel(side)?, "text.delta"),
        None => (
            Source::feedback(args, &mut http, &session, order)?,
            "feedback.recorded",
        ),
    };
    let mut pool = WatcherPool::connect(
        &mut http,
        std::slice::from_ref(&session),
        args.clients,
        Some(&subscribe_frame(&only(kind), None)),
    )?;
    pool.await_acks()?;
    if let Source::Paced(side) = &mut source {
        let turn = http.submit(&session, "paced")?;
        pool.follow(&http, &[turn], args.streams)?;
        // What tells of the turn comes before the order; with the order, that the model thinks.
        pool.await_frames(args.clients, CHAT_OPENING - 1)?;
        side.write_all(&order.to_bytes())?;
    }
    let opening = Bytes::of(&pool, args);
    if let Source::Feedback { .. } = source {
        source.allow(0)?;
    }
    let mut tally = WindowTally::new((args.clients + args.streams) as u32);
    let mut counting: Option<(Stopwatch, u64)> = None;
    while tally.mark() < order.total {
        pool.turn(|token, before, after| {
            // The ack is the first frame and no event.
            let skip = if token < args.clients {
                1
            } else {
                CHAT_OPENING
            };
            if tally.advance(before.saturating_sub(skip), after.saturating_sub(skip)) {
                source.allow(tally.mark())?;
            }
            Ok(())
        })?;
        if counting.is_none() && tally.mark() >= order.total / 10 {
            counting = Some((Stopwatch::start(args.target.pid)?, tally.mark()));
        }
    }
    let (stopwatch, from) = counting.ok_or_else(|| io::Error::other("nothing counted"))?;
    let span = stopwatch.span()?;
    let bytes = Bytes::of(&pool, args);
    let each = |bytes: u64, of: usize| bytes as f64 / (order.total * of.max(1) as u64) as f64;
    Ok(Outcome {
        deliveries: (order.total - from) * (args.clients + args.streams) as u64,
        span,
        frame_bytes: each(bytes.frames - opening.frames, args.clients),
        block_bytes: each(bytes.blocks - opening.blocks, args.streams),
    })
}

/// Bytes received so far, by framing.
struct Bytes {
    frames: u64,
    blocks: u64,
}

impl Bytes {
    fn of(pool: &WatcherPool, args: &Args) -> Self {
        Self {
            frames: pool.bytes(0..args.clients),
            blocks: pool.bytes(args.clients..args.clients + args.streams),
        }
    }
}
