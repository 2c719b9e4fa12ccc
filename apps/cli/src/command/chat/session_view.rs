//! What happens in a session while someone talks there: events, losses, Ctrl-C, the answer to a
//! cancel. Everything comes through `step`, and dropping a `step` loses nothing, so a line typed
//! may win over it.

use std::io;
use std::time::Duration;

use serde::Deserialize as _;
use tokio::signal::unix::Signal;
use tokio::time::Instant;
use turnwire_client::{
    Client, Error, ReceivedEvent, SessionWatch, SnapshotFrame, WatchItem, WatchStart,
};
use turnwire_event::body::turn::{TurnCancelled, TurnCompleted};
use turnwire_event::message::{MessageStatus, Role};
use turnwire_event::{Body, ContentBlock, EventType, Position, SessionId, TurnId};

use crate::terminal::color::TextTone;

use super::event_printer::EventPrinter;
use super::missed_turn::{MissedEnding, MissedTurn};
use super::pending_cancel::{Cancel, CancelNotSent, SentCancel, Slow, answered, slowly};
use super::turn_ending::{self, TurnEnding};

/// A turn that ended, and how.
type Ended = (TurnId, TurnEnding);

/// Why a conversation ends before its questions do.
#[derive(Debug)]
pub(crate) enum LeaveReason {
    Interrupted,
    /// Nobody reads the answers.
    HungUp,
    /// The answers cannot be written.
    Unwritable(io::Error),
    /// The session is gone.
    Deleted,
    /// A question cannot be read.
    Unreadable(String),
    /// The server or the way to it.
    Failed(Error),
}

impl From<Error> for LeaveReason {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for LeaveReason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::HungUp,
            _ => Self::Unwritable(error),
        }
    }
}

/// A session, as someone sees it who talks there.
pub(crate) struct SessionView {
    pub(crate) client: Client,
    pub(crate) session: SessionId,
    pub(crate) watch: SessionWatch,
    pub(crate) teller: EventPrinter,
    pub(crate) interrupts: Signal,
    /// The turn that runs, whoever asked for it.
    pub(crate) running: Option<TurnId>,
    /// The turn that was asked for here.
    pub(crate) ours: Option<TurnId>,
    /// What was asked and is not yet known to be taken.
    pub(crate) asking: Option<String>,
    /// Turns that ended since it was asked.
    pub(crate) ended: Vec<Ended>,
    /// The turn that was asked to stop.
    pub(crate) stopping: Option<TurnId>,
    cancel: Cancel,
    slow: Slow,
    /// How often a question may have got its answer: by an event, or by what a snapshot passed
    /// over.
    pub(crate) news: u64,
    /// Whether the first snapshot was seen.
    met: bool,
    /// Whether the server is away.
    lost: bool,
    /// A turn that ended while nobody looked.
    unseen: Option<MissedTurn>,
}

impl SessionView {
    /// A session; `teller` tells what happens there.
    pub(crate) fn new(
        client: Client,
        session: SessionId,
        teller: EventPrinter,
        interrupts: Signal,
    ) -> Self {
        Self {
            watch: client.watch(session, teller.filter(), WatchStart::Snapshot),
            client,
            session,
            teller,
            interrupts,
            running: None,
            ours: None,
            asking: None,
            ended: Vec::new(),
            stopping: None,
            cancel: None,
            slow: None,
            news: 0,
            met: false,
            lost: false,
            unseen: None,
        }
    }

    /// Says something of our own.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.teller.screen.note(TextTone::Quiet, text)
    }

    /// Goes on until a turn has ended.
    pub(crate) async fn until(&mut self, turn: TurnId) -> Result<TurnEnding, LeaveReason> {
        loop {
            if let Some((ended, outcome)) = self.step().await?
                && ended == turn
            {
                return Ok(outcome);
            }
        }
    }

    /// Goes on for a while.
    pub(crate) async fn pause(&mut self, time: Duration) -> Result<(), LeaveReason> {
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                _ = &mut deadline => return Ok(()),
                step = self.step() => drop(step?),
            }
        }
    }

    /// One thing that happens; a turn that ended by it.
    pub(crate) async fn step(&mut self) -> Result<Option<Ended>, LeaveReason> {
        // First how the last turn ended: what happens next comes after it.
        if let Some(unseen) = &self.unseen {
            return tokio::select! {
                found = unseen.look(&self.client, self.session) => self.looked(found),
                _ = self.interrupts.recv() => self.interrupted().map(|()| None),
                answer = answered(&mut self.cancel) => self.cancel_answered(answer),
            };
        }
        tokio::select! {
            item = self.watch.next() => {
                let item = item?.ok_or(LeaveReason::Deleted)?;
                self.item(item)
            }
            _ = self.interrupts.recv() => self.interrupted().map(|()| None),
            answer = answered(&mut self.cancel) => self.cancel_answered(answer),
            seconds = slowly(self.slow) => self.stops_still(seconds).map(|()| None),
        }
    }

    /// What is still waited for.
    fn stops_still(&mut self, seconds: u32) -> Result<(), LeaveReason> {
        if let Some((_, told)) = &mut self.slow {
            *told = seconds;
        }
        Ok(self.teller.stops_still(seconds)?)
    }

    /// A cancel that did not get through is sent again for as long as its turn runs.
    fn cancel_answered(
        &mut self,
        answer: Result<(), CancelNotSent>,
    ) -> Result<Option<Ended>, LeaveReason> {
        let tried = self.cancel.take().map_or(0, |sent| sent.tried);
        let Err(CancelNotSent { why, passing }) = answer else {
            return Ok(None);
        };
        let turn = self.stopping.filter(|turn| self.running == Some(*turn));
        match turn.filter(|_| passing) {
            Some(turn) => {
                self.cancel = Some(SentCancel::new(self.client.clone(), turn, tried + 1));
                if tried == 0 {
                    self.say(&format!(
                        "the cancel did not get through: {why}; trying again, Ctrl-C again leaves"
                    ))?;
                }
            }
            None => self.say(&format!(
                "the cancel did not get through: {why}; Ctrl-C again leaves"
            ))?,
        }
        Ok(None)
    }

    /// An item of the watch; a turn that ended by it.
    pub(crate) fn item(&mut self, item: WatchItem) -> Result<Option<Ended>, LeaveReason> {
        match item {
            WatchItem::Connected { .. } => {
                if std::mem::take(&mut self.lost) {
                    self.say("connected again")?;
                }
            }
            WatchItem::Lost { reason: why, .. } => {
                if !std::mem::replace(&mut self.lost, true) {
                    self.say(&format!("lost the server ({why}); trying again"))?;
                }
            }
            WatchItem::Snapshot(snapshot) => self.snapshot(&snapshot)?,
            WatchItem::Event(received) => return self.event(&received),
        }
        Ok(None)
    }

    /// The session as it stands: at the beginning, and after more was missed than is replayed.
    pub(crate) fn snapshot(&mut self, snapshot: &SnapshotFrame) -> Result<(), LeaveReason> {
        self.news += 1;
        let before = self.running;
        let now = snapshot.session["current_turn_id"].as_str();
        self.running = now.and_then(|id| id.parse().ok());
        if self.teller.is_for_people() {
            let turns = [before, self.running];
            for message in &snapshot.messages {
                if turns.contains(&Some(message.turn_id)) {
                    self.teller.learn(message);
                }
                let is_visible = self.met || message.status == MessageStatus::InProgress;
                let is_own_answer =
                    message.role == Role::Assistant && turns.contains(&Some(message.turn_id));
                if is_visible && is_own_answer {
                    self.teller.catch_up(message)?;
                }
            }
        }
        self.teller.goes_on_with(self.running);
        self.unseen = before
            .filter(|_| before != self.running)
            .map(MissedTurn::new);
        self.met = true;
        Ok(())
    }

    /// A turn may have ended without its end being seen: looks it up.
    pub(crate) fn look_up(&mut self, turn: TurnId) {
        self.unseen = Some(MissedTurn::new(turn));
    }

    /// What was found of the turn that is looked up.
    fn looked(
        &mut self,
        found: Result<Option<MissedEnding>, Error>,
    ) -> Result<Option<Ended>, LeaveReason> {
        let Some(mut unseen) = self.unseen.take() else {
            return Ok(None);
        };
        match found {
            Err(error) if error.is_transient() => {
                if unseen.later() {
                    self.say(&format!(
                        "cannot read how the turn ended ({error}); trying again"
                    ))?;
                }
                self.unseen = Some(unseen);
                Ok(None)
            }
            Err(error) => Err(error.into()),
            Ok(Some(found)) if self.is_passed(found.terminal.id) => {
                self.missed(unseen.turn, &found).map(Some)
            }
            // Its end is still to come, as an event.
            Ok(_) => Ok(None),
        }
    }

    /// Whether the watch stands behind an event, which then will not come.
    fn is_passed(&self, id: Option<Position>) -> bool {
        match (id, self.watch.position()) {
            (Some(id), Some(at)) => id <= at,
            (None, Some(_)) => true,
            // A snapshot is to come, and passes over what is before it.
            (_, None) => false,
        }
    }

    /// Tells what was missed of a turn.
    fn missed(&mut self, turn: TurnId, found: &MissedEnding) -> Result<Ended, LeaveReason> {
        if self.teller.is_for_people() {
            for message in &found.answers {
                self.teller.catch_up(message)?;
                self.teller.screen.line_end()?;
            }
        }
        let payload = &found.terminal.payload;
        let outcome = if let Ok(end) = TurnCancelled::deserialize(payload) {
            self.teller.cancelled(&end)?
        } else {
            let end = TurnCompleted::deserialize(payload);
            let end = end.map_err(|error| Error::InvalidResponse(error.to_string()))?;
            self.teller.completed(&end)?
        };
        Ok(self.over(turn, outcome))
    }

    /// A turn is over.
    fn over(&mut self, turn: TurnId, outcome: TurnEnding) -> Ended {
        self.teller.ended(turn);
        if [self.running, self.stopping].contains(&Some(turn)) {
            self.slow = None;
        }
        if self.stopping == Some(turn) {
            self.cancel = None;
        }
        self.running = self.running.filter(|running| *running != turn);
        self.ended.push((turn, outcome));
        (turn, outcome)
    }

    fn event(&mut self, received: &ReceivedEvent) -> Result<Option<Ended>, LeaveReason> {
        let event = received.parse();
        let beside = self.teller.is_beside(received.turn_id);
        if let Some(Body::TurnStarted(start)) = event.as_ref().map(|event| &event.body)
            && self.teller.is_for_people()
            && !beside
            && self.ours != received.turn_id
            && start.resumes.is_none()
        {
            let texts: Vec<_> = start
                .input
                .iter()
                .filter_map(ContentBlock::as_text)
                .collect();
            let text = texts.join(" ");
            if self.asking.as_ref() != Some(&text) {
                self.say(&format!("from elsewhere: {text}"))?;
            }
        }
        match received.kind {
            EventType::TurnCancelRequested => self.stop_requested(received.turn_id),
            EventType::ApprovalResolved => self.news += 1,
            _ => {}
        }
        self.teller.received(received, event.as_ref())?;
        let (Some(turn), Some(event)) = (received.turn_id, event) else {
            return Ok(None);
        };
        let outcome = match &event.body {
            Body::TurnStarted(_) => {
                // One that is withdrawn from the line begins too, beside the one that runs.
                self.running.get_or_insert(turn);
                return Ok(None);
            }
            Body::TurnCompleted(end) if beside => turn_ending::completed(end).0,
            Body::TurnCancelled(_) if beside => TurnEnding::Cancelled,
            Body::TurnCompleted(end) => self.teller.completed(end)?,
            Body::TurnCancelled(end) => self.teller.cancelled(end)?,
            _ => return Ok(None),
        };
        if beside {
            self.teller.ended_beside(outcome)?;
        }
        Ok(Some(self.over(turn, outcome)))
    }

    /// Ctrl-C: stops what runs, or leaves.
    fn interrupted(&mut self) -> Result<(), LeaveReason> {
        match self.running {
            Some(turn) if self.stopping != Some(turn) => {
                self.stop(turn);
                Ok(self.teller.stops()?)
            }
            _ => Err(LeaveReason::Interrupted),
        }
    }

    /// A turn was asked to stop, here or elsewhere.
    fn stop_requested(&mut self, turn: Option<TurnId>) {
        if turn.is_none() || self.running != turn {
            return;
        }
        self.slow.get_or_insert_with(|| (Instant::now(), 0));
        if self.stopping == turn {
            self.teller.stops_as_said();
        }
    }

    /// Asks a turn to stop; the answer comes through `step`.
    pub(crate) fn stop(&mut self, turn: TurnId) {
        self.stopping = Some(turn);
        self.slow = Some((Instant::now(), 0));
        self.cancel = Some(SentCancel::new(self.client.clone(), turn, 0));
    }
}
