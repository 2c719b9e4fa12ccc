//! Fan-out: one producer, N watchers, at most W events outstanding, delivered events a second.
//!
//! Two producers: `paced` turns emit transient deltas as fast as the marks on the side channel
//! allow (no disk between), and feedback posts by this client append one persisted event each
//! (a commit between). The first tenth of the events is not counted.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use serde::{Deserialize, Serialize};

use super::{Fleet, Span, Stopwatch, Target, only, subscribe_frame};
use crate::http::Http;
use crate::window::{Order, Tally};

/// What to run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The side channel of paced turns; without it the client posts feedback.
    #[arg(long)]
    side: Option<SocketAddr>,
    #[arg(long)]
    clients: usize,
    #[arg(long)]
    window: u64,
    /// Events in all.
    #[arg(long)]
    events: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Events delivered in the span, over all connections.
    pub deliveries: u64,
    /// How long, and at what cost.
    pub span: Span,
    /// Bytes of one frame on the wire.
    pub frame_bytes: f64,
}

/// Where marks go, so that more events come.
enum Source {
    Paced(TcpStream),
    Feedback {
        connections: Vec<Http>,
        request: Vec<u8>,
        sent: u64,
        order: Order,
    },
}

impl Source {
    fn feedback(args: &Args, http: &mut Http, session: &str, order: Order) -> io::Result<Self> {
        let turn = http.submit(session, "turn")?;
        http.await_turn(&turn)?;
        Ok(Self::Feedback {
            connections: (0..order.window)
                .map(|_| Http::connect(args.target.server))
                .collect::<io::Result<_>>()?,
            request: Http::feedback_bytes(args.target.server, session, &turn),
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

/// Runs it.
pub fn run(args: &Args) -> io::Result<Outcome> {
    let mut http = Http::connect(args.target.server)?;
    let session = http.create_session()?;
    let order = Order {
        window: args.window,
        total: args.events,
    };
    let kind = match args.side {
        Some(_) => "text.delta",
        None => "feedback.recorded",
    };
    let mut source = match args.side {
        Some(side) => {
            let mut side = TcpStream::connect(side)?;
            side.set_nodelay(true)?;
            side.write_all(&order.to_bytes())?;
            Source::Paced(side)
        }
        None => Source::feedback(args, &mut http, &session, order)?,
    };
    let mut fleet = Fleet::connect(
        &mut http,
        std::slice::from_ref(&session),
        args.clients,
        Some(&subscribe_frame(&only(kind), None)),
    )?;
    fleet.await_acks()?;
    let ack_bytes = fleet.bytes();
    match &mut source {
        Source::Paced(_) => drop(http.submit(&session, "paced")?),
        Source::Feedback { .. } => source.allow(0)?,
    }
    let mut tally = Tally::new(args.clients as u32);
    let mut counting: Option<(Stopwatch, u64)> = None;
    while tally.mark() < order.total {
        fleet.turn(|_, before, after| {
            // The ack is the first frame and no event.
            if tally.advance(before - 1, after - 1) {
                source.allow(tally.mark())?;
            }
            Ok(())
        })?;
        if counting.is_none() && tally.mark() >= order.total / 10 {
            counting = Some((Stopwatch::start(args.target.pid)?, tally.mark()));
        }
    }
    let (stopwatch, from) = counting.ok_or_else(|| io::Error::other("nothing counted"))?;
    let clients = args.clients as u64;
    Ok(Outcome {
        deliveries: (order.total - from) * clients,
        span: stopwatch.span()?,
        frame_bytes: (fleet.bytes() - ack_bytes) as f64 / (order.total * clients) as f64,
    })
}
