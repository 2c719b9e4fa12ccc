//! Cut campaign: connections of readers break after a random number of bytes and resume, half of
//! them inside a message, half of them after a restart of the server (F5).
//!
//! ```text
//! a round:  read ✂ resume, read ✂ │ server killed or drained, started │ resume ...
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{CutPlace, ResumingReader};

use crate::load::{self, HaltFlag};

const SESSIONS: usize = 25;
/// Readers of each session.
const WATCHERS: usize = 2;
/// Cuts of one round: each reader is cut once and resumes at once, and once before the restart.
const ROUND: usize = SESSIONS * WATCHERS * 2;
/// Deadline for a reader to get bytes to cut in.
const PATIENCE: Duration = Duration::from_secs(10);

/// The counts of a cut campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct CutReport {
    /// Cuts, each followed by a resume.
    pub cuts: usize,
    /// Cuts inside a message.
    pub inside: usize,
    /// Cuts with a restart before the resume.
    pub restarted: usize,
    /// Restarts, every other one a kill.
    pub restarts: usize,
}

/// Makes at least `cuts` cuts on one server, and checks the history.
pub async fn run(cuts: usize, mut rng: SeededRng) -> CutReport {
    let options = ServerOptions::script(load::script()).set("listen", "drain_ms", 300);
    let mut server = TestServer::start(options).await;
    let api = server.api();
    let sessions = load::sessions(&api, SESSIONS).await;
    let halt = HaltFlag::default();
    let drivers: Vec<_> = sessions
        .iter()
        .map(|&session| {
            tokio::spawn(load::drive(
                api.clone(),
                session,
                rng.fork(),
                halt.clone(),
                5,
            ))
        })
        .collect();
    let rounds = cuts.div_ceil(ROUND).max(1);
    let barrier = Arc::new(Barrier::new(SESSIONS * WATCHERS + 1));
    let mut readers = Vec::new();
    for &session in &sessions {
        for number in 0..WATCHERS {
            let reader = ResumingReader::new(&api, &format!("reader {number}"), session);
            readers.push(tokio::spawn(read(
                reader,
                rng.fork(),
                rounds,
                Arc::clone(&barrier),
            )));
        }
    }
    for round in 0..rounds {
        barrier.wait().await;
        restart(&mut server, round).await;
        barrier.wait().await;
    }
    let mut report = CutReport {
        restarts: rounds,
        ..CutReport::default()
    };
    halt.halt();
    for driver in drivers {
        driver.await.expect("a driver");
    }
    for reader in readers {
        let (mut reader, places) = reader.await.expect("a reader");
        report.cuts += places.len();
        report.inside += places
            .iter()
            .filter(|place| place.0 == CutPlace::Inside)
            .count();
        report.restarted += places.iter().filter(|place| place.1).count();
        if let Some(end) = load::wait_until_idle(&api, reader.session()).await {
            reader.finish(end).await;
        }
    }
    load::check_history(&api, &sessions).await;
    report
}

/// Kills the server, or every other time drains it, and starts it again.
pub(crate) async fn restart(server: &mut TestServer, round: usize) {
    if round.is_multiple_of(2) {
        server.kill().await;
    } else {
        server.sigterm();
        let status = server.wait(Duration::from_secs(20)).await;
        assert!(status.success(), "a drained server ends with {status}");
    }
    server.run().await.unwrap_or_else(|why| panic!("{why}"));
}

/// One reader over all rounds: where each of its cuts was, and whether a restart followed it.
pub(crate) async fn read(
    mut reader: ResumingReader,
    mut rng: SeededRng,
    rounds: usize,
    barrier: Arc<Barrier>,
) -> (ResumingReader, Vec<(CutPlace, bool)>) {
    let mut places = Vec::with_capacity(rounds * 2);
    for _ in 0..rounds {
        for restarted in [false, true] {
            places.push((cut(&mut reader, &mut rng).await, restarted));
        }
        barrier.wait().await;
        barrier.wait().await;
    }
    (reader, places)
}

/// Reads and is cut: mostly inside a message, else anywhere.
async fn cut(reader: &mut ResumingReader, rng: &mut SeededRng) -> CutPlace {
    let started = std::time::Instant::now();
    loop {
        assert!(
            started.elapsed() < 6 * PATIENCE,
            "nothing to be cut in at {}",
            reader.last()
        );
        let bytes = if rng.chance(70) {
            while reader.cut_place() != CutPlace::Inside && started.elapsed() < PATIENCE {
                let _ = reader.step().await;
            }
            rng.between(1, 900)
        } else {
            rng.between(1, 6_000)
        };
        if let Some(place) = reader.cut_after(bytes, Duration::from_secs(2)).await {
            return place;
        }
    }
}
