//! Kill campaign on both wires: sessions are read by WebSocket and by chat streams of both
//! versions, turns are submitted on either, some are cancelled, and the server is killed repeatedly
//! (F1). Everything received is checked against one log.

use std::time::Duration;

use tokio::sync::mpsc;
use turnwire_event::{ResponseId, SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::chat::{ChatSubmit, ChatViewer};
use turnwire_testkit::history::FaultKind;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::ResumingReader;

use crate::chat_cuts::submitted;
use crate::load::{self, HaltFlag};

const SESSIONS: usize = 5;
/// WebSocket readers per session; as many chat viewers, one of which submits.
const WATCHERS: usize = 2;
/// Percentage of turns that are cancelled.
const CANCELS: u64 = 15;

/// The counts of a campaign on both wires.
#[derive(Clone, Copy, Debug, Default)]
pub struct BothWiresReport {
    pub kills: usize,
    /// Clients, of both wires.
    pub clients: usize,
    /// Turns submitted by chat stream.
    pub streamed: usize,
    /// Turns submitted by `POST /sessions/{id}/turns`.
    pub posted: usize,
    /// Turns of version 0.4.
    pub old: usize,
    /// Terminals that viewers received.
    pub endings: usize,
    /// Terminals from crash recovery.
    pub swept: usize,
    /// Terminals of cancelled turns.
    pub cancelled: usize,
    /// Client connections that were cut.
    pub cuts: usize,
}

impl BothWiresReport {
    fn add(&mut self, other: Self) {
        self.clients += other.clients;
        self.streamed += other.streamed;
        self.posted += other.posted;
        self.old += other.old;
        self.endings += other.endings;
        self.swept += other.swept;
        self.cancelled += other.cancelled;
    }
}

/// Kills one server `kills` times, and checks the history.
pub async fn run(kills: usize, mut rng: SeededRng) -> BothWiresReport {
    let mut server = TestServer::start(ServerOptions::script(load::script())).await;
    let api = server.api();
    let sessions = load::sessions(&api, SESSIONS).await;
    let halt = HaltFlag::default();
    let (mut viewers, mut readers) = (Vec::new(), Vec::new());
    for &session in &sessions {
        let mut others = Vec::new();
        for number in 1..WATCHERS {
            let (announce, new_turns) = mpsc::unbounded_channel();
            others.push(announce);
            let name = format!("viewer {number}");
            viewers.push(tokio::spawn(view(api.clone(), name, new_turns, rng.fork())));
        }
        let driver = TurnDriver {
            api: api.clone(),
            session,
            rng: rng.fork(),
            others,
            report: BothWiresReport::default(),
        };
        viewers.push(tokio::spawn(driver.drive(halt.clone())));
        for number in 0..WATCHERS {
            let reader = ResumingReader::new(&api, &format!("reader {number}"), session);
            readers.push(tokio::spawn(read(reader, rng.fork(), halt.clone())));
        }
    }
    for _ in 0..kills {
        tokio::time::sleep(rng.millis(100, 900)).await;
        server.kill().await;
        server.run().await.unwrap_or_else(|why| panic!("{why}"));
    }
    halt.halt();
    let mut report = BothWiresReport {
        kills,
        clients: readers.len(),
        ..BothWiresReport::default()
    };
    for viewer in viewers {
        report.add(viewer.await.expect("a viewer"));
    }
    for reader in readers {
        let mut reader = reader.await.expect("a reader");
        if let Some(end) = load::wait_until_idle(&api, reader.session()).await {
            reader.finish(end).await;
        }
    }
    let history = load::check_history(&api, &sessions).await;
    assert_eq!(history.count(FaultKind::Kill), kills);
    report.cuts = history.count(FaultKind::Cut);
    report
}

/// Reads by WebSocket over a connection that is cut repeatedly.
async fn read(mut reader: ResumingReader, mut rng: SeededRng, halt: HaltFlag) -> ResumingReader {
    while !halt.is_halted() {
        let bytes = rng.between(1, 30_000);
        let cut = reader.cut_after(bytes, Duration::from_millis(500)).await;
        if cut.is_none() {
            tokio::time::sleep(rng.millis(1, 30)).await;
        }
    }
    reader
}

/// Reads every announced turn to its terminal.
async fn view(
    api: ApiClient,
    name: String,
    mut new_turns: mpsc::UnboundedReceiver<(TurnId, &'static str)>,
    mut rng: SeededRng,
) -> BothWiresReport {
    let mut report = BothWiresReport {
        clients: 1,
        ..BothWiresReport::default()
    };
    while let Some((turn, version)) = new_turns.recv().await {
        let viewer = ChatViewer::of(&api, &name, turn, rng.fork()).version(version);
        follow(viewer, &mut rng, &mut report).await;
    }
    report
}

/// Reads a turn to its terminal, with a few cuts.
async fn follow(mut viewer: ChatViewer, rng: &mut SeededRng, report: &mut BothWiresReport) {
    for _ in 0..rng.between(0, 4) {
        let bytes = rng.between(1, 8_000);
        viewer.cut_after(bytes, Duration::from_millis(500)).await;
    }
    let terminal = viewer.finish().await;
    report.endings += 1;
    match terminal.field("error")["code"].as_str() {
        Some("INTERNAL_ERROR") => report.swept += 1,
        Some("REQUEST_CANCELLED") => report.cancelled += 1,
        Some(_) | None => {}
    }
}

/// Keeps a turn in flight in a session, and reads it.
struct TurnDriver {
    api: ApiClient,
    session: SessionId,
    rng: SeededRng,
    others: Vec<mpsc::UnboundedSender<(TurnId, &'static str)>>,
    report: BothWiresReport,
}

impl TurnDriver {
    async fn drive(mut self, halt: HaltFlag) -> BothWiresReport {
        self.report.clients = 1;
        while !halt.is_halted() {
            let version = if self.rng.chance(50) { "0.4" } else { "0.5" };
            let Some(viewer) = self.ask(version).await else {
                // Busy with a turn whose response was lost, or down: retry.
                tokio::time::sleep(self.rng.millis(5, 40)).await;
                continue;
            };
            self.report.old += usize::from(version == "0.4");
            let turn = viewer.turn();
            for other in &self.others {
                let _ = other.send((turn, version));
            }
            let cancel = self.rng.chance(CANCELS).then(|| {
                let (api, after) = (self.api.clone(), self.rng.millis(0, 400));
                tokio::spawn(cancel(api, turn, after))
            });
            follow(viewer, &mut self.rng, &mut self.report).await;
            if let Some(cancel) = cancel {
                cancel.await.expect("a cancel");
            }
        }
        self.report
    }

    /// Submits a turn on either wire.
    async fn ask(&mut self, version: &'static str) -> Option<ChatViewer> {
        let says = load::question(&mut self.rng);
        let rng = self.rng.fork();
        let name = "viewer 0";
        if self.rng.chance(60) {
            let question = ChatSubmit::new(says).session(self.session).version(version);
            let question = question.continue_on_disconnect();
            let viewer = ChatViewer::submit(&self.api, name, &question, rng).await;
            self.report.streamed += usize::from(viewer.is_ok());
            return viewer.ok();
        }
        let turn = submitted(&self.api, self.session, says, version).await?;
        self.report.posted += 1;
        let viewer = ChatViewer::of(&self.api, name, turn.turn_id, rng).version(version);
        Some(viewer.since(turn.position.into()))
    }
}

/// Cancels a turn by its response id (D-03).
async fn cancel(api: ApiClient, turn: TurnId, after: Duration) {
    tokio::time::sleep(after).await;
    let path = format!("/turns/{}/cancel", ResponseId::from(turn));
    // The server may be down: then it is not cancelled.
    let _ = api.post(&path, serde_json::json!({})).await;
}
