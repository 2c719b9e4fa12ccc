//! Replay: late readers ask for everything from the start, at once.
//!
//! All connections are made first; the clock starts when the first subscribe is sent. Told per
//! reader: the first event, and the last of so many.

use std::io;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Target, WatcherPool, subscribe_frame};
use crate::http::HttpConnection;

/// The cursor before the first event of a session.
const START: &str = "evt_00010000000000";

/// Command-line arguments of this role.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    session: String,
    /// The filter, as JSON.
    #[arg(long)]
    filter: String,
    /// How many events each reader waits for.
    #[arg(long)]
    events: u64,
    #[arg(long)]
    readers: usize,
    /// How often in a row.
    #[arg(long)]
    times: usize,
}

/// The measurements of one replay.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReplayTiming {
    /// When the last reader got its first event, in milliseconds.
    pub first_ms: f64,
    /// When the last reader had all.
    pub all_ms: f64,
}

/// Runs the load and returns the figures.
pub fn run(args: &Args) -> io::Result<Vec<ReplayTiming>> {
    (0..args.times).map(|_| once(args)).collect()
}

fn once(args: &Args) -> io::Result<ReplayTiming> {
    let mut http = HttpConnection::connect(args.target.server)?;
    let mut pool = WatcherPool::connect(
        &mut http,
        std::slice::from_ref(&args.session),
        args.readers,
        None,
    )?;
    let opened = Instant::now();
    pool.subscribe(&subscribe_frame(&args.filter, Some(START)))?;
    let wanted = args.events + 1;
    let (mut started, mut finished) = (0, 0);
    let mut timing = ReplayTiming {
        first_ms: 0.0,
        all_ms: 0.0,
    };
    while finished < args.readers {
        pool.turn(|_, before, after| {
            let now = opened.elapsed().as_secs_f64() * 1e3;
            if before <= 1 && after > 1 {
                started += 1;
                timing.first_ms = now;
            }
            if before < wanted && after >= wanted {
                finished += 1;
                timing.all_ms = now;
            }
            Ok(())
        })?;
    }
    debug_assert_eq!(started, args.readers);
    Ok(timing)
}
