//! Cut campaign on the chat wire: streams break after a random number of bytes and viewers resume,
//! half of them inside a message, half of them after a restart of the server; also right after
//! `response_id` and between `usage` and the terminal (F5). Every viewer receives the terminal of
//! its turn.
//!
//! ```text
//! a round:  ask, read ✂ resume, read ✂ │ server killed or drained, started │ resume ...
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use turnwire_event::SessionId;
use turnwire_testkit::api::{AcceptedSubmit, ApiClient};
use turnwire_testkit::chat::{ChatSubmit, ChatViewer, ViewerPosition};
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::{ServerOptions, TestServer};

use crate::{cuts, load};

/// Sessions, each with a viewer that submits one turn after another.
const SESSIONS: usize = 50;
/// Cuts of one round: each viewer is cut once and resumes at once, and once before the restart.
const ROUND: usize = SESSIONS * 2;
/// Deadline for a viewer to get bytes to cut in.
const PATIENCE: Duration = Duration::from_secs(60);
/// The disconnect grace of turns, longer than any restart.
const GRACE_MS: u64 = 30_000;

/// The counts of a cut campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChatCutReport {
    /// Cuts, each followed by a resume.
    pub cuts: usize,
    /// Cuts inside a message.
    pub inside: usize,
    /// Cuts right after `response_id`.
    pub opening: usize,
    /// Cuts between `usage` and the terminal.
    pub ending: usize,
    /// Cuts after the terminal, in the sentinel.
    pub over: usize,
    /// Cuts with a restart before the resume.
    pub restarted: usize,
    /// Turns, each read to its terminal.
    pub turns: usize,
    /// Turns with wire version 0.4.
    pub old: usize,
    /// Turns that crash recovery ended.
    pub swept: usize,
}

impl ChatCutReport {
    fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.inside += other.inside;
        self.opening += other.opening;
        self.ending += other.ending;
        self.over += other.over;
        self.restarted += other.restarted;
        self.turns += other.turns;
        self.old += other.old;
        self.swept += other.swept;
    }

    fn cut(&mut self, place: ViewerPosition, restarted: bool) {
        self.cuts += 1;
        self.restarted += usize::from(restarted);
        match place {
            ViewerPosition::Opening => self.opening += 1,
            ViewerPosition::Inside => self.inside += 1,
            ViewerPosition::Ending => self.ending += 1,
            ViewerPosition::Over => self.over += 1,
            ViewerPosition::Between => {}
        }
    }
}

/// Makes at least `cuts` cuts on one server, and checks the history.
pub async fn run(cuts: usize, mut rng: SeededRng) -> ChatCutReport {
    let options = ServerOptions::script(load::script()).set("listen", "drain_ms", 300);
    let mut server = TestServer::start(options).await;
    let api = server.api();
    let sessions = load::sessions(&api, SESSIONS).await;
    let rounds = cuts.div_ceil(ROUND).max(1);
    let barrier = Arc::new(Barrier::new(SESSIONS + 1));
    let people: Vec<_> = sessions
        .iter()
        .map(|&session| {
            let person = CutViewer {
                api: api.clone(),
                session,
                rng: rng.fork(),
                viewer: None,
                old: false,
                report: ChatCutReport::default(),
            };
            tokio::spawn(person.live(rounds, Arc::clone(&barrier)))
        })
        .collect();
    for round in 0..rounds {
        barrier.wait().await;
        cuts::restart(&mut server, round).await;
        barrier.wait().await;
    }
    let mut report = ChatCutReport::default();
    for person in people {
        report.add(person.await.expect("a viewer"));
    }
    for &session in &sessions {
        load::wait_until_idle(&api, session).await;
    }
    load::check_history(&api, &sessions).await;
    report
}

/// Submits turns, is cut while reading, and resumes to the terminal.
struct CutViewer {
    api: ApiClient,
    session: SessionId,
    rng: SeededRng,
    viewer: Option<ChatViewer>,
    old: bool,
    report: ChatCutReport,
}

impl CutViewer {
    async fn live(mut self, rounds: usize, barrier: Arc<Barrier>) -> ChatCutReport {
        for _ in 0..rounds {
            for restarted in [false, true] {
                let place = self.cut().await;
                self.report.cut(place, restarted);
            }
            barrier.wait().await;
            barrier.wait().await;
        }
        self.end().await;
        self.report
    }

    /// Reads and is cut: mostly inside a message, else at the start or end of a turn, or anywhere.
    async fn cut(&mut self) -> ViewerPosition {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < PATIENCE, "nothing to be cut in");
            // The seams are where a turn begins and where it ends: those of a new one, and of a
            // short one, are near.
            let fresh = self.viewer.is_none();
            let wanted = match self.rng.between(0, 100) {
                0..20 if fresh => ViewerPosition::Opening,
                20..38 if fresh => ViewerPosition::Ending,
                38..46 if fresh => ViewerPosition::Over,
                0..85 => ViewerPosition::Inside,
                _ => ViewerPosition::Between,
            };
            let bytes = self.rng.index(40);
            let quick = matches!(wanted, ViewerPosition::Ending | ViewerPosition::Over);
            let Some(viewer) = self.turn(quick).await else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let cut = match wanted {
                ViewerPosition::Opening | ViewerPosition::Ending | ViewerPosition::Over => {
                    viewer.cut_at(wanted, bytes).await.then_some(wanted)
                }
                ViewerPosition::Inside | ViewerPosition::Between => {
                    let reached = wanted == ViewerPosition::Between || inside(viewer).await;
                    let most = if wanted == ViewerPosition::Inside {
                        900
                    } else {
                        6_000
                    };
                    let bytes = self.rng.between(1, most);
                    let viewer = self.viewer.as_mut().filter(|_| reached);
                    match viewer {
                        Some(viewer) => viewer.cut_after(bytes, Duration::from_secs(2)).await,
                        None => None,
                    }
                }
            };
            if let Some(place) = cut {
                return place;
            }
            let has_terminal = |viewer: &ChatViewer| viewer.terminal().is_some();
            if self.viewer.as_ref().is_some_and(has_terminal) {
                self.end().await;
            }
        }
    }

    /// The viewer of the current turn, or of a new one.
    async fn turn(&mut self, quick: bool) -> Option<&mut ChatViewer> {
        if self.viewer.is_none() {
            let says = if quick && self.rng.chance(90) {
                "quick"
            } else {
                load::question(&mut self.rng)
            };
            self.old = self.rng.chance(40);
            let version = if self.old { "0.4" } else { "0.5" };
            let viewer = if self.rng.chance(75) {
                let question = ChatSubmit::new(says).session(self.session).version(version);
                let question = match self.rng.chance(50) {
                    true => question.continue_on_disconnect(),
                    false => question.grace_ms(GRACE_MS),
                };
                let rng = self.rng.fork();
                ChatViewer::submit(&self.api, "viewer", &question, rng)
                    .await
                    .ok()
            } else {
                let turn = submitted(&self.api, self.session, says, version).await?;
                let viewer = ChatViewer::of(&self.api, "viewer", turn.turn_id, self.rng.fork());
                let viewer = viewer.version(version);
                Some(match self.rng.chance(50) {
                    true => viewer.since(turn.position.into()),
                    false => viewer,
                })
            };
            self.viewer = viewer;
        }
        self.viewer.as_mut()
    }

    /// Reads the current turn to its terminal.
    async fn end(&mut self) {
        let Some(mut viewer) = self.viewer.take() else {
            return;
        };
        let terminal = viewer.finish().await;
        self.report.turns += 1;
        self.report.old += usize::from(self.old);
        self.report.swept += usize::from(terminal.field("error")["code"] == "INTERNAL_ERROR");
    }
}

/// Submits a turn over HTTP, bound to a version of the chat wire.
pub async fn submitted(
    api: &ApiClient,
    session: SessionId,
    message: &str,
    version: &str,
) -> Option<AcceptedSubmit> {
    let api = api.clone().with("x-wire-version", version);
    let answer = api.try_submit(session, message).await.ok()?;
    let accepted = (answer.status == 202).then_some(answer.body)?;
    serde_json::from_str(&accepted).ok()
}

/// Reads until the viewer is inside a message; false if the turn or the stream ended first.
async fn inside(viewer: &mut ChatViewer) -> bool {
    while viewer.place() != ViewerPosition::Inside {
        if viewer.step().await.is_err() {
            return false;
        }
    }
    true
}
