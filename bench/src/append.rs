//! Durable append in a closed loop: N sessions, each waits for its own commit before its next.
//!
//! The same loop drives the bare reference and Turnwire's sequencer, on the same disk, with
//! rows of the same columns and length. Told: events a second and how long an acknowledgement takes.

pub mod bare;
pub mod sequenced;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::stat::percentile;

/// Bytes of one stored event, envelope and all.
pub const EVENT_BYTES: usize = 400;

/// Which implementation appends the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AppendTarget {
    /// SQLite alone, with group commit.
    Bare,
    /// Turnwire's sequencer on its store.
    Turnwire,
}

/// Command-line arguments of this role.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[arg(long)]
    who: AppendTarget,
    #[arg(long)]
    sessions: usize,
    /// How long it counts.
    #[arg(long)]
    millis: u64,
    /// A new folder for its files.
    #[arg(long)]
    dir: PathBuf,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Durable events a second.
    pub events_per_second: f64,
    /// Milliseconds from the append to its acknowledgement: p50, p99.
    pub ack_ms: (f64, f64),
}

/// Something a session can append one event to.
pub trait Appender: Send + Sync + 'static {
    /// Appends one event of session number `session`; resolves when it is durable.
    fn append(&self, session: usize) -> impl Future<Output = io::Result<()>> + Send;
}

/// Runs the closed loop on `appender`. The first quarter of the time is not counted.
pub async fn drive(
    appender: Arc<impl Appender>,
    sessions: usize,
    time: Duration,
) -> io::Result<Outcome> {
    let count_from = Instant::now() + time / 3;
    let count_until = count_from + time;
    let tasks: Vec<_> = (0..sessions)
        .map(|session| {
            let appender = appender.clone();
            tokio::spawn(async move {
                let mut acks_ms = Vec::new();
                loop {
                    let started = Instant::now();
                    appender.append(session).await?;
                    let now = Instant::now();
                    if now > count_until {
                        return io::Result::Ok(acks_ms);
                    }
                    if now > count_from {
                        acks_ms.push((now - started).as_secs_f64() * 1e3);
                    }
                }
            })
        })
        .collect();
    let mut acks_ms = Vec::new();
    for task in tasks {
        acks_ms.extend(task.await.map_err(io::Error::other)??);
    }
    Ok(Outcome {
        events_per_second: acks_ms.len() as f64 / time.as_secs_f64(),
        ack_ms: (percentile(&acks_ms, 50.0), percentile(&acks_ms, 99.0)),
    })
}

/// Runs the sessions and returns their figures.
pub async fn run(args: &Args) -> io::Result<Outcome> {
    std::fs::create_dir_all(&args.dir)?;
    let time = Duration::from_millis(args.millis);
    match args.who {
        AppendTarget::Bare => {
            let bare = Arc::new(bare::BareAppender::open(&args.dir, args.sessions)?);
            drive(bare, args.sessions, time).await
        }
        AppendTarget::Turnwire => {
            let sequenced = sequenced::SequencedAppender::open(&args.dir, args.sessions).await?;
            drive(Arc::new(sequenced), args.sessions, time).await
        }
    }
}
