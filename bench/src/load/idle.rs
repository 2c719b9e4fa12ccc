//! Idle connections: what each costs the server's process in memory.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Target, WatcherPool, subscribe_frame};
use crate::floor::CHAT_OPENING;
use crate::http::HttpConnection;
use crate::machine;

/// How long memory may settle before it is read.
const SETTLE: Duration = Duration::from_secs(3);

/// Connections opened and closed first, so that what a server needs once is not counted.
const WARM: usize = 10;

/// Command-line arguments of this role.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    clients: usize,
    /// Over so many sessions.
    #[arg(long)]
    sessions: usize,
    /// Streams of turns that stall, instead of WebSockets.
    #[arg(long)]
    streams: bool,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Resident memory before, in KiB.
    pub before_kb: u64,
    /// Resident memory with all connections, in KiB.
    pub after_kb: u64,
    pub clients: u64,
}

impl Outcome {
    /// KiB of process memory a connection.
    pub fn each_kb(&self) -> f64 {
        self.after_kb.saturating_sub(self.before_kb) as f64 / self.clients.max(1) as f64
    }
}

/// Runs the load and returns the figures.
pub fn run(args: &Args) -> io::Result<Outcome> {
    machine::raise_open_files()?;
    let mut http = HttpConnection::connect(args.target.server)?;
    let sessions = (0..args.sessions)
        .map(|_| http.create_session())
        .collect::<io::Result<Vec<_>>>()?;
    let kind = Kind::of(args, &mut http, &sessions)?;
    let warm = kind.open(&mut http, &sessions, WARM)?;
    drop(warm);
    std::thread::sleep(SETTLE);
    let before_kb = machine::resident_kb(args.target.pid)?;
    let pool = kind.open(&mut http, &sessions, args.clients)?;
    std::thread::sleep(SETTLE);
    let after_kb = machine::resident_kb(args.target.pid)?;
    drop(pool);
    Ok(Outcome {
        before_kb,
        after_kb,
        clients: args.clients as u64,
    })
}

enum Kind {
    /// WebSockets that subscribe with this frame.
    WebSockets(Vec<u8>),
    /// Streams of these turns.
    Streams(Vec<String>),
}

impl Kind {
    /// Starts the turns that stall, if streams are to be opened: they emit their first events and
    /// then nothing for longer than the run.
    fn of(args: &Args, http: &mut HttpConnection, sessions: &[String]) -> io::Result<Self> {
        if !args.streams {
            return Ok(Self::WebSockets(subscribe_frame(r#""preset:full""#, None)));
        }
        let turns = sessions.iter().map(|id| http.submit(id, "stall"));
        Ok(Self::Streams(turns.collect::<io::Result<_>>()?))
    }

    /// Opens so many, and waits until each has what there is to have.
    fn open(
        &self,
        http: &mut HttpConnection,
        sessions: &[String],
        count: usize,
    ) -> io::Result<WatcherPool> {
        match self {
            Self::WebSockets(subscribe) => {
                let mut pool = WatcherPool::connect(http, sessions, count, Some(subscribe))?;
                pool.await_acks()?;
                Ok(pool)
            }
            Self::Streams(turns) => {
                let mut pool = WatcherPool::new()?;
                pool.follow(http, turns, count)?;
                pool.await_frames(0, CHAT_OPENING)?;
                Ok(pool)
            }
        }
    }
}
