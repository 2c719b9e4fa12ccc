//! Kill campaign: the server is killed at random times while fifty turns run and fifty readers with
//! unreliable connections read, and is restarted on the same folder each time. At the end nothing
//! that was acknowledged or received is missing, and every turn has one terminal (F1).

use std::time::{Duration, Instant};

use turnwire_event::{Body, SessionId};
use turnwire_testkit::history::FaultKind;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::ResumingReader;

use crate::load::{self, HaltFlag};

const SESSIONS: usize = 50;
/// Percentage of turns that are cancelled.
const CANCELS: u64 = 15;

/// The counts of a kill campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct KillReport {
    pub kills: usize,
    /// Turns that were accepted.
    pub turns: usize,
    /// Turns that crash recovery ended.
    pub swept: usize,
    /// Client connections that were cut.
    pub cuts: usize,
    pub events: usize,
    /// The longest time from start to ready.
    pub ready_max: Duration,
}

/// Kills one server `kills` times, and checks the history.
pub async fn run(kills: usize, mut rng: SeededRng) -> KillReport {
    let mut server = TestServer::start(ServerOptions::script(load::script())).await;
    let api = server.api();
    let sessions = load::sessions(&api, SESSIONS).await;
    let halt = HaltFlag::default();
    let drivers: Vec<_> = sessions
        .iter()
        .map(|&session| {
            let work = load::drive(api.clone(), session, rng.fork(), halt.clone(), CANCELS);
            tokio::spawn(work)
        })
        .collect();
    let readers: Vec<_> = sessions
        .iter()
        .map(|&session| {
            let reader = ResumingReader::new(&api, "reader", session);
            tokio::spawn(read(reader, rng.fork(), halt.clone()))
        })
        .collect();
    let mut report = KillReport {
        kills,
        ..KillReport::default()
    };
    for _ in 0..kills {
        tokio::time::sleep(rng.millis(100, 900)).await;
        server.kill().await;
        let started = Instant::now();
        server.run().await.unwrap_or_else(|why| panic!("{why}"));
        report.ready_max = report.ready_max.max(started.elapsed());
    }
    halt.halt();
    for driver in drivers {
        report.turns += driver.await.expect("a driver").accepted.len();
    }
    for reader in readers {
        let mut reader = reader.await.expect("a reader");
        if let Some(end) = load::wait_until_idle(&api, reader.session()).await {
            reader.finish(end).await;
        }
    }
    check_campaign(&server, &sessions, &mut report).await;
    report
}

/// Reads over a connection that is cut repeatedly.
async fn read(mut reader: ResumingReader, mut rng: SeededRng, halt: HaltFlag) -> ResumingReader {
    while !halt.is_halted() {
        if rng.chance(10) {
            // Resume without a cursor, from a snapshot.
            reader.drop_connection();
            let _ = reader.resume(true).await;
        }
        let bytes = rng.between(1, 30_000);
        if reader
            .cut_after(bytes, Duration::from_millis(500))
            .await
            .is_none()
        {
            tokio::time::sleep(rng.millis(1, 30)).await;
        }
    }
    reader
}

async fn check_campaign(server: &TestServer, sessions: &[SessionId], report: &mut KillReport) {
    let history = load::check_history(&server.api(), sessions).await;
    report.cuts = history.count(FaultKind::Cut);
    assert_eq!(history.count(FaultKind::Kill), report.kills);
    for log in &history.sessions {
        report.events += log.events.len();
        for logged in &log.events {
            let event = turnwire_event::Event::read(logged.text.as_bytes()).expect("judged above");
            if let Body::TurnCompleted(end) = &event.body {
                report.swept += usize::from(end.reason.as_deref() == Some("server_restart"));
            }
        }
    }
}
