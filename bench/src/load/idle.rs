//! Idle connections: what each costs the server's process in memory.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Fleet, Target, subscribe_frame};
use crate::http::Http;
use crate::machine;

/// How long memory may settle before it is read.
const SETTLE: Duration = Duration::from_secs(3);

/// Connections opened and closed first, so that what a server needs once is not counted.
const WARM: usize = 10;

/// What to run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    clients: usize,
    /// Over so many sessions.
    #[arg(long)]
    sessions: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Resident memory before, in KiB.
    pub before_kb: u64,
    /// Resident memory with all connections, in KiB.
    pub after_kb: u64,
    /// How many connections.
    pub clients: u64,
}

impl Outcome {
    /// KiB of process memory a connection.
    pub fn each_kb(&self) -> f64 {
        self.after_kb.saturating_sub(self.before_kb) as f64 / self.clients.max(1) as f64
    }
}

/// Runs it.
pub fn run(args: &Args) -> io::Result<Outcome> {
    machine::raise_open_files()?;
    let mut http = Http::connect(args.target.server)?;
    let sessions = (0..args.sessions)
        .map(|_| http.create_session())
        .collect::<io::Result<Vec<_>>>()?;
    let subscribe = subscribe_frame(r#""preset:full""#, None);
    let mut warm = Fleet::connect(&mut http, &sessions, WARM, Some(&subscribe))?;
    warm.await_acks()?;
    drop(warm);
    std::thread::sleep(SETTLE);
    let before_kb = machine::resident_kb(args.target.pid)?;
    let mut fleet = Fleet::connect(&mut http, &sessions, args.clients, Some(&subscribe))?;
    fleet.await_acks()?;
    std::thread::sleep(SETTLE);
    let after_kb = machine::resident_kb(args.target.pid)?;
    Ok(Outcome {
        before_kb,
        after_kb,
        clients: args.clients as u64,
    })
}
