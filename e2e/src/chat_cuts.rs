//! Cuts on the chat wire: viewers whose line breaks after a random number of bytes and who come
//! back, half of them inside a message, half of them to a server that was started after the cut;
//! also right after the turn's name, and between what it cost and its ending (F5). Whatever
//! happens, every viewer is told the end of its turn.
//!
//! ```text
//! a round:  ask, read ✂ resume, read ✂ │ server killed or drained, started │ resume ...
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use turnwire_event::SessionId;
use turnwire_testkit::chat::{Place, Question, Viewer};
use turnwire_testkit::dice::Dice;
use turnwire_testkit::rest::{Accepted, Rest};
use turnwire_testkit::server::{Options, Server};

use crate::{cuts, load};

/// Sessions, each with a viewer that asks for one turn after another.
const SESSIONS: usize = 50;
/// Cuts of one round: each viewer is cut once and resumes at once, and once before the restart.
const ROUND: usize = SESSIONS * 2;
/// How long a viewer waits for something to be cut in.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a turn of those that end without viewers waits for one: longer than any restart.
const GRACE_MS: u64 = 30_000;

/// What a campaign has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Cuts, each followed by a resume.
    pub cuts: usize,
    /// Of them inside a message.
    pub inside: usize,
    /// Of them with nothing but the turn's name.
    pub opening: usize,
    /// Of them between the cost and the ending.
    pub ending: usize,
    /// Of them after the ending, in the sentinel.
    pub over: usize,
    /// Of them before a restart that the resume came after.
    pub restarted: usize,
    /// Turns, each of which was seen to its end.
    pub turns: usize,
    /// Of them bound to version 0.4.
    pub old: usize,
    /// Of them ended by a restart.
    pub swept: usize,
}

impl Report {
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

    fn cut(&mut self, place: Place, restarted: bool) {
        self.cuts += 1;
        self.restarted += usize::from(restarted);
        match place {
            Place::Opening => self.opening += 1,
            Place::Inside => self.inside += 1,
            Place::Ending => self.ending += 1,
            Place::Over => self.over += 1,
            Place::Between => {}
        }
    }
}

/// Makes at least so many cuts on one server, and judges.
pub async fn run(cuts: usize, mut dice: Dice) -> Report {
    let options = Options::script(load::script()).set("listen", "drain_ms", 300);
    let mut server = Server::start(options).await;
    let rest = server.rest();
    let sessions = load::sessions(&rest, SESSIONS).await;
    let rounds = cuts.div_ceil(ROUND).max(1);
    let barrier = Arc::new(Barrier::new(SESSIONS + 1));
    let people: Vec<_> = sessions
        .iter()
        .map(|&session| {
            let person = Person {
                rest: rest.clone(),
                session,
                dice: dice.fork(),
                viewer: None,
                old: false,
                report: Report::default(),
            };
            tokio::spawn(person.live(rounds, Arc::clone(&barrier)))
        })
        .collect();
    for round in 0..rounds {
        barrier.wait().await;
        cuts::restart(&mut server, round).await;
        barrier.wait().await;
    }
    let mut report = Report::default();
    for person in people {
        report.add(person.await.expect("a viewer"));
    }
    for &session in &sessions {
        load::quiet(&rest, session).await;
    }
    load::judge(&rest, &sessions).await;
    report
}

/// Someone who asks, is cut, and wants to know the end.
struct Person {
    rest: Rest,
    session: SessionId,
    dice: Dice,
    viewer: Option<Viewer>,
    old: bool,
    report: Report,
}

impl Person {
    async fn live(mut self, rounds: usize, barrier: Arc<Barrier>) -> Report {
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

    /// Reads and is cut: most of the time inside a message, else at the seams or anywhere.
    async fn cut(&mut self) -> Place {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "nothing to be cut in");
            // The seams are where a turn begins and where it ends: those of a new one, and of a
            // short one, are near.
            let fresh = self.viewer.is_none();
            let wanted = match self.dice.between(0, 100) {
                0..20 if fresh => Place::Opening,
                20..38 if fresh => Place::Ending,
                38..46 if fresh => Place::Over,
                0..85 => Place::Inside,
                _ => Place::Between,
            };
            let bytes = self.dice.index(40);
            let quick = matches!(wanted, Place::Ending | Place::Over);
            let Some(viewer) = self.turn(quick).await else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let cut = match wanted {
                Place::Opening | Place::Ending | Place::Over => {
                    viewer.cut_at(wanted, bytes).await.then_some(wanted)
                }
                Place::Inside | Place::Between => {
                    let reached = wanted == Place::Between || inside(viewer).await;
                    let most = if wanted == Place::Inside { 900 } else { 6_000 };
                    let bytes = self.dice.between(1, most);
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
            let over = |viewer: &Viewer| viewer.terminal().is_some();
            if self.viewer.as_ref().is_some_and(over) {
                self.end().await;
            }
        }
    }

    /// The viewer of the turn at hand, else of a new one.
    async fn turn(&mut self, quick: bool) -> Option<&mut Viewer> {
        if self.viewer.is_none() {
            let says = if quick && self.dice.chance(90) {
                "quick"
            } else {
                load::question(&mut self.dice)
            };
            self.old = self.dice.chance(40);
            let version = if self.old { "0.4" } else { "0.5" };
            let viewer = if self.dice.chance(75) {
                let question = Question::new(says).session(self.session).version(version);
                let question = match self.dice.chance(50) {
                    true => question.goes_on(),
                    false => question.grace_ms(GRACE_MS),
                };
                let dice = self.dice.fork();
                Viewer::submit(&self.rest, "viewer", &question, dice)
                    .await
                    .ok()
            } else {
                let turn = submitted(&self.rest, self.session, says, version).await?;
                let viewer = Viewer::of(&self.rest, "viewer", turn.turn_id, self.dice.fork());
                let viewer = viewer.version(version);
                Some(match self.dice.chance(50) {
                    true => viewer.since(turn.position.into()),
                    false => viewer,
                })
            };
            self.viewer = viewer;
        }
        self.viewer.as_mut()
    }

    /// Sees the turn at hand to its end.
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

/// Submits a turn that nobody need watch, in a version of the chat wire.
pub async fn submitted(
    rest: &Rest,
    session: SessionId,
    message: &str,
    version: &str,
) -> Option<Accepted> {
    let rest = rest.clone().with("x-wire-version", version);
    let answer = rest.try_submit(session, message).await.ok()?;
    let accepted = (answer.status == 202).then_some(answer.body)?;
    serde_json::from_str(&accepted).ok()
}

/// Reads on until the viewer is inside a message; false if its turn or its line ended first.
async fn inside(viewer: &mut Viewer) -> bool {
    while viewer.place() != Place::Inside {
        if viewer.step().await.is_err() {
            return false;
        }
    }
    true
}
