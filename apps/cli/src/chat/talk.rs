//! The conversation itself: one question at a time, each to its turn's end, whatever happens to
//! the connection meanwhile.
//!
//! Everything that can happen comes through `step`: an item of the watch, a Ctrl-C, the answer to
//! a cancel. Dropping a `step` loses nothing, so a line typed may win over it.

use std::io;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::json;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use turnwire_client::{Client, Error, Item, Key, Received, Snapshot, Start, Watch};
use turnwire_event::body::turn::{Cancelled, Completed};
use turnwire_event::code::TurnState;
use turnwire_event::message::{MessageStatus, Role};
use turnwire_event::{Body, ContentBlock, SessionId, TurnId};
use turnwire_wire::problem::Code;
use turnwire_wire::rest::turn::{Accepted, CancelAccepted, Submit, Terminal};

use crate::paint::Tone;

use super::input::Line;
use super::story::Outcome;
use super::teller::Teller;

/// How many messages are shown to someone who comes back.
const OLD_MAX: usize = 6;
/// How long to wait before a question is asked again: at first, and at most.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// Where the questions come from.
pub(crate) enum Questions {
    /// One, from the command line.
    Once(String),
    /// Lines, as they are typed or piped in.
    Lines(Receiver<Line>),
}

/// Why a conversation ends before its questions do.
#[derive(Debug)]
pub(crate) enum Leave {
    /// By Ctrl-C.
    Interrupted,
    /// Nobody reads the answers.
    HungUp,
    /// The session is gone.
    Deleted,
    /// A question cannot be read.
    Unreadable(String),
    /// The server or the way to it.
    Failed(Error),
}

impl From<Error> for Leave {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Leave {
    fn from(_: io::Error) -> Self {
        Self::HungUp
    }
}

/// A conversation.
pub(crate) struct Talk {
    client: Client,
    session: SessionId,
    watch: Watch,
    teller: Teller,
    interrupts: Signal,
    /// Whether the first snapshot was seen.
    met: bool,
    /// Whether the server is away.
    lost: bool,
    /// The turn that runs, whoever asked for it.
    running: Option<TurnId>,
    /// The turn that was asked for here.
    ours: Option<TurnId>,
    /// A turn that ended while nobody looked.
    unseen: Option<TurnId>,
    /// What was asked and is not yet known to be taken.
    asking: Option<String>,
    /// Turns that ended since it was asked.
    ended: Vec<(TurnId, Outcome)>,
    /// The turn that was asked to stop, and the answer to that.
    stopping: Option<TurnId>,
    cancel: Option<JoinHandle<Result<CancelAccepted, Error>>>,
}

impl Talk {
    /// A conversation in a session.
    pub(crate) fn new(
        client: Client,
        session: SessionId,
        teller: Teller,
        interrupts: Signal,
    ) -> Self {
        let filter = match teller.is_for_people() {
            true => json!("preset:chat"),
            false => json!("preset:full"),
        };
        Self {
            watch: client.watch(session, filter, Start::Snapshot),
            client,
            session,
            teller,
            interrupts,
            met: false,
            lost: false,
            running: None,
            ours: None,
            unseen: None,
            asking: None,
            ended: Vec::new(),
            stopping: None,
            cancel: None,
        }
    }

    /// Asks all questions; gives the exit status they add up to.
    pub(crate) async fn run(&mut self, questions: Questions, typed: bool) -> Result<u8, Leave> {
        let lines = matches!(questions, Questions::Lines(_));
        let typed = typed && lines;
        self.meet(lines && self.teller.is_for_people()).await?;
        if self.stopping.is_some() && !typed {
            return Err(Leave::Interrupted);
        }
        let mut lines = match questions {
            Questions::Once(words) => return Ok(self.ask(&words).await?.status()),
            Questions::Lines(lines) => lines,
        };
        let mut status = 0;
        while let Some(line) = self.line(&mut lines).await? {
            let line = line.map_err(Leave::Unreadable)?;
            if line.is_empty() {
                continue;
            }
            let outcome = self.ask(&line).await?;
            if !typed {
                status = status.max(outcome.status());
                if self.stopping.is_some() {
                    return Err(Leave::Interrupted);
                }
            }
        }
        Ok(status)
    }

    /// Says something of our own.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.teller.screen.note(Tone::Quiet, text)
    }

    /// Waits for the state of the session, and for the end of a turn that runs there.
    async fn meet(&mut self, shows_old: bool) -> Result<(), Leave> {
        let snapshot = loop {
            tokio::select! {
                item = self.watch.next() => match item?.ok_or(Leave::Deleted)? {
                    Item::Snapshot(snapshot) => break snapshot,
                    other => self.item(other)?,
                },
                _ = self.interrupts.recv() => return Err(Leave::Interrupted),
            };
        };
        if shows_old {
            let whole = |m: &&_| is_whole(m);
            let old: Vec<_> = snapshot.messages.iter().filter(whole).collect();
            for message in &old[old.len().saturating_sub(OLD_MAX)..] {
                self.teller.screen.old(message)?;
            }
        }
        if snapshot.session["current_turn_id"].is_string() {
            self.say("a turn is running here; Ctrl-C stops it")?;
        }
        self.snapshot(&snapshot)?;
        match self.running {
            None => Ok(()),
            Some(turn) => self.until(turn).await.map(drop),
        }
    }

    /// The next line; meanwhile others may speak.
    async fn line(&mut self, lines: &mut Receiver<Line>) -> Result<Option<Line>, Leave> {
        self.stopping = None;
        loop {
            if self.running.is_none() && self.teller.is_for_people() {
                self.teller.screen.prompt()?;
            }
            tokio::select! {
                line = lines.recv() => {
                    if line.is_some() {
                        self.teller.screen.typed();
                    }
                    return Ok(line);
                }
                step = self.step() => drop(step?),
            }
        }
    }

    /// Asks a question and tells its turn to the end.
    async fn ask(&mut self, words: &str) -> Result<Outcome, Leave> {
        let submit = Submit::text(words);
        let key = Key::random();
        let mut again = AGAIN;
        let mut told = false;
        self.ended.clear();
        self.asking = Some(words.to_owned());
        loop {
            let error = match self.submit(&submit, key.as_ref()).await? {
                Ok(accepted) => {
                    self.asking = None;
                    return self.follow(accepted.turn_id).await;
                }
                Err(error) => error,
            };
            if error.code() == Some(Code::TurnInFlight) {
                self.wait_for(&error).await?;
                if self.stopping.is_some() {
                    return Ok(Outcome::Cancelled);
                }
            } else if !is_worth_repeating(&error) || key.is_none() {
                self.teller
                    .screen
                    .note(Tone::Bad, &format!("not asked: {error}"))?;
                return Ok(Outcome::Refused);
            } else if !told {
                told = true;
                self.say(&format!("not asked yet ({error}); trying again"))?;
            }
            self.pause(again).await?;
            again = (again * 2).min(AGAIN_MAX);
        }
    }

    /// Sends a question. A Ctrl-C meanwhile stops the turn as soon as it is known.
    async fn submit(
        &mut self,
        submit: &Submit,
        key: Option<&Key>,
    ) -> Result<Result<Accepted, Error>, Leave> {
        let (client, session) = (self.client.clone(), self.session);
        let sent = async {
            match key {
                Some(key) => client.submit_once(session, submit, key).await,
                None => client.submit(session, submit).await,
            }
        };
        tokio::pin!(sent);
        let mut interrupted = false;
        loop {
            tokio::select! {
                answer = &mut sent => {
                    if let (Ok(accepted), true) = (&answer, interrupted) {
                        self.stop(accepted.turn_id);
                    }
                    return match answer {
                        Err(_) if interrupted => Err(Leave::Interrupted),
                        answer => Ok(answer),
                    };
                }
                _ = self.interrupts.recv() => {
                    if interrupted {
                        return Err(Leave::Interrupted);
                    }
                    interrupted = true;
                }
            }
        }
    }

    /// Tells a turn that was taken to its end, which may have been seen already.
    async fn follow(&mut self, turn: TurnId) -> Result<Outcome, Leave> {
        self.ours = Some(turn);
        match self.ended.iter().find(|(ended, _)| *ended == turn) {
            Some(&(_, outcome)) => Ok(outcome),
            None => {
                self.running = Some(turn);
                self.until(turn).await
            }
        }
    }

    /// Waits for the turn that a refused question has named.
    async fn wait_for(&mut self, refused: &Error) -> Result<(), Leave> {
        let Some(turn) = named_turn(refused) else {
            return Ok(());
        };
        // Asked anew: its end may have been told between the refusal and now.
        match self.client.turn(turn).await {
            Ok(at) if !matches!(at.state, TurnState::Completed | TurnState::Cancelled) => {
                self.say(
                    "the session is busy with another turn; waiting for its end (Ctrl-C stops it)",
                )?;
                self.running = Some(turn);
                self.until(turn).await.map(drop)
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_passing() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on until a turn has ended.
    async fn until(&mut self, turn: TurnId) -> Result<Outcome, Leave> {
        loop {
            if let Some((ended, outcome)) = self.step().await?
                && ended == turn
            {
                return Ok(outcome);
            }
        }
    }

    /// Goes on for a while.
    async fn pause(&mut self, time: Duration) -> Result<(), Leave> {
        let over = tokio::time::sleep(time);
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = &mut over => return Ok(()),
                step = self.step() => drop(step?),
            }
        }
    }

    /// One thing that happens; a turn that ended by it.
    async fn step(&mut self) -> Result<Option<(TurnId, Outcome)>, Leave> {
        if let Some(turn) = self.unseen {
            let terminal = self.client.turn(turn).await?.terminal;
            self.unseen = None;
            return self.missed(turn, terminal);
        }
        tokio::select! {
            item = self.watch.next() => {
                let item = item?.ok_or(Leave::Deleted)?;
                self.item(item)
            }
            _ = self.interrupts.recv() => self.interrupted().map(|()| None),
            answer = answered(&mut self.cancel) => {
                self.cancel = None;
                if let Err(error) = answer {
                    self.say(&format!("the cancel did not get through: {error}; Ctrl-C again leaves"))?;
                }
                Ok(None)
            }
        }
    }

    fn item(&mut self, item: Item) -> Result<Option<(TurnId, Outcome)>, Leave> {
        match item {
            Item::Connected { .. } => {
                if std::mem::take(&mut self.lost) {
                    self.say("connected again")?;
                }
            }
            Item::Lost { why, .. } => {
                if !std::mem::replace(&mut self.lost, true) {
                    self.say(&format!("lost the server ({why}); trying again"))?;
                }
            }
            Item::Snapshot(snapshot) => self.snapshot(&snapshot)?,
            Item::Event(received) => return self.event(&received),
        }
        Ok(None)
    }

    /// The session as it stands: at the beginning, and after more was missed than is replayed.
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Leave> {
        let before = self.running;
        let now = snapshot.session["current_turn_id"].as_str();
        self.running = now.and_then(|id| id.parse().ok());
        if self.teller.is_for_people() {
            let turns = [before, self.running];
            for message in &snapshot.messages {
                let shown = self.met || message.status == MessageStatus::InProgress;
                let ours =
                    message.role == Role::Assistant && turns.contains(&Some(message.turn_id));
                if shown && ours {
                    self.teller.catch_up(message)?;
                }
            }
        }
        self.unseen = before.filter(|_| before != self.running);
        self.met = true;
        Ok(())
    }

    /// The end of a turn, read from its row.
    fn missed(
        &mut self,
        turn: TurnId,
        terminal: Option<Terminal>,
    ) -> Result<Option<(TurnId, Outcome)>, Leave> {
        let Some(terminal) = terminal else {
            return Ok(None);
        };
        let outcome = if let Ok(end) = Cancelled::deserialize(&terminal.payload) {
            self.teller.cancelled(&end)?
        } else {
            let end = Completed::deserialize(&terminal.payload);
            let end = end.map_err(|error| Error::Answer(error.to_string()))?;
            self.teller.completed(&end)?
        };
        self.ended.push((turn, outcome));
        Ok(Some((turn, outcome)))
    }

    fn event(&mut self, received: &Received) -> Result<Option<(TurnId, Outcome)>, Leave> {
        let event = received.read();
        if let Some(Body::TurnStarted(start)) = event.as_ref().map(|event| &event.body)
            && self.teller.is_for_people()
            && self.ours != received.turn_id
        {
            let said: Vec<_> = start
                .input
                .iter()
                .filter_map(ContentBlock::as_text)
                .collect();
            let said = said.join(" ");
            if self.asking.as_ref() != Some(&said) {
                self.say(&format!("from elsewhere: {said}"))?;
            }
        }
        self.teller.received(received, event.as_ref())?;
        let (Some(turn), Some(event)) = (received.turn_id, event) else {
            return Ok(None);
        };
        let outcome = match &event.body {
            Body::TurnStarted(_) => {
                self.running = Some(turn);
                return Ok(None);
            }
            Body::TurnCompleted(end) => self.teller.completed(end)?,
            Body::TurnCancelled(end) => self.teller.cancelled(end)?,
            _ => return Ok(None),
        };
        self.running = None;
        self.ended.push((turn, outcome));
        Ok(Some((turn, outcome)))
    }

    /// Ctrl-C: stops what runs, or leaves.
    fn interrupted(&mut self) -> Result<(), Leave> {
        match self.running {
            Some(turn) if self.stopping != Some(turn) => {
                self.stop(turn);
                Ok(self.teller.screen.passing_or_note("stopping…")?)
            }
            _ => Err(Leave::Interrupted),
        }
    }

    fn stop(&mut self, turn: TurnId) {
        let client = self.client.clone();
        self.stopping = Some(turn);
        self.cancel = Some(tokio::spawn(async move { client.cancel(turn, None).await }));
    }
}

/// The answer to a cancel; never, if none was asked for.
async fn answered(
    cancel: &mut Option<JoinHandle<Result<CancelAccepted, Error>>>,
) -> Result<(), String> {
    match cancel {
        None => std::future::pending().await,
        Some(cancel) => match cancel.await {
            Ok(answer) => answer.map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn is_whole(message: &turnwire_event::Message) -> bool {
    message.status != MessageStatus::InProgress
}

/// Whether the same question may be taken a little later.
fn is_worth_repeating(error: &Error) -> bool {
    let away = matches!(error, Error::Connection(_) | Error::Silence(_));
    away || error.code() == Some(Code::Draining)
}

/// The turn that a refusal names.
fn named_turn(error: &Error) -> Option<TurnId> {
    match error {
        Error::Problem(problem) => problem.extra.get("turn_id")?.as_str()?.parse().ok(),
        _ => None,
    }
}
