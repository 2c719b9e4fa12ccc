//! Filling: a session gets so many persisted events, by feedback posts from several threads.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::Target;
use crate::http::HttpConnection;

/// Posts in flight at once; enough for commits to be shared.
const THREADS: u64 = 32;

/// Command-line arguments of this role.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    events: u64,
}

/// The figures that the role prints as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The session that has them.
    pub session: String,
}

/// Runs the load and returns the figures.
pub fn run(args: &Args) -> io::Result<Outcome> {
    let server = args.target.server;
    let mut http = HttpConnection::connect(server)?;
    let session = http.create_session()?;
    let turn = http.submit(&session, "turn")?;
    http.await_turn(&turn)?;
    let request = HttpConnection::feedback_bytes(server, &session, &turn);
    let next = AtomicU64::new(0);
    let post = || -> io::Result<()> {
        let mut http = HttpConnection::connect(server)?;
        while next.fetch_add(1, Ordering::Relaxed) < args.events {
            http.send(&request)?;
            let (status, body) = http.receive()?;
            if !(200..300).contains(&status) {
                let text = String::from_utf8_lossy(&body);
                return Err(io::Error::other(format!("feedback: HTTP {status}: {text}")));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(post)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .map_err(|_| io::Error::other("a thread of the filler panicked"))?
        })
    })?;
    Ok(Outcome { session })
}
