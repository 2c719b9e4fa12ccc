//! The state of a session during a chat: events, lost connections, Ctrl-C, and responses to a
//! cancel. Everything arrives through [`SessionView::step`], which is cancel safe, so that a typed
//! line may win over it.

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
use turnwire_event::{Body, EventType, Position, SessionId, TurnId};

use crate::terminal::color::TextTone;
use crate::terminal::wording::{error_text, text_of};

use super::event_printer::EventPrinter;
use super::missed_turn::{MissedEnding, MissedTurn};
use super::pending_cancel::{PendingCancel, StopClock, next_report, response};
use super::turn_ending::{self, TurnEnding};

/// A turn that ended in a step, and how.
pub(crate) type Ended = (TurnId, TurnEnding);

/// A result that may end the chat.
pub(crate) type ChatResult<T> = Result<T, LeaveReason>;

/// The result of a step: a turn that ended, if one did.
pub(crate) type Step = ChatResult<Option<Ended>>;

/// The reason to end a [`ChatConversation`](super::conversation::ChatConversation) before its input
/// ends.
#[derive(Debug)]
pub(crate) enum LeaveReason {
    Interrupted,
    /// The person typed `/quit` while a turn runs.
    Quit,
    /// The reader of standard output has closed it.
    HungUp,
    /// Standard output cannot be written.
    Unwritable(io::Error),
    /// The session was deleted.
    Deleted,
    /// A line of the input cannot be read.
    Unreadable(String),
    /// The server cannot be reached or rejects a request.
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

/// A session as its [`SessionWatch`] reports it and its [`EventPrinter`] prints it.
pub(crate) struct SessionView {
    pub(crate) client: Client,
    pub(crate) session: SessionId,
    pub(crate) watch: SessionWatch,
    pub(crate) printer: EventPrinter,
    pub(crate) interrupts: Signal,
    /// The running turn of any client.
    pub(crate) running: Option<TurnId>,
    /// The turn that was submitted here.
    pub(crate) own: Option<TurnId>,
    /// The message that was submitted and not yet accepted.
    pub(crate) submitted: Option<String>,
    /// Turns that ended since the submit.
    pub(crate) ended: Vec<Ended>,
    /// The turn that is cancelled from here.
    pub(crate) stopping: Option<TurnId>,
    cancel: Option<PendingCancel>,
    stop_clock: StopClock,
    /// The number of events and snapshots that may have answered an approval request.
    pub(crate) approval_changes: u64,
    has_snapshot: bool,
    is_lost: bool,
    /// A turn whose end was not received.
    missed: Option<MissedTurn>,
}

impl SessionView {
    pub(crate) fn new(
        client: Client,
        session: SessionId,
        printer: EventPrinter,
        interrupts: Signal,
    ) -> Self {
        Self {
            watch: client.watch(session, printer.filter(), WatchStart::Snapshot),
            client,
            session,
            printer,
            interrupts,
            running: None,
            own: None,
            submitted: None,
            ended: Vec::new(),
            stopping: None,
            cancel: None,
            stop_clock: None,
            approval_changes: 0,
            has_snapshot: false,
            is_lost: false,
            missed: None,
        }
    }

    /// Prints a note of the chat itself.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.printer.screen.note(TextTone::Quiet, text)
    }

    /// Handles changes while `time` passes.
    pub(crate) async fn pause(&mut self, time: Duration) -> ChatResult<()> {
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                _ = &mut deadline => return Ok(()),
                step = self.step() => drop(step?),
            }
        }
    }

    /// Waits for the next change and handles it.
    pub(crate) async fn step(&mut self) -> Step {
        // The ending of the last turn comes before everything after it.
        if let Some(missed) = &self.missed {
            return tokio::select! {
                found = missed.look_up(&self.client, self.session) => self.looked_up(found),
                _ = self.interrupts.recv() => self.interrupted(),
                response = response(&mut self.cancel) => self.cancel_answered(response),
            };
        }
        tokio::select! {
            item = self.watch.next() => self.item(item?.ok_or(LeaveReason::Deleted)?),
            _ = self.interrupts.recv() => self.interrupted(),
            response = response(&mut self.cancel) => self.cancel_answered(response),
            seconds = next_report(self.stop_clock) => {
                self.stop_clock = self.stop_clock.map(|(since, _)| (since, seconds));
                self.printer.show_stop_progress(seconds)?;
                Ok(None)
            }
        }
    }

    /// Handles the response to a cancel. A failed request is sent again while its turn runs.
    fn cancel_answered(&mut self, response: Result<(), Error>) -> Step {
        let (Some(sent), Err(error)) = (self.cancel.take(), response) else {
            return Ok(None);
        };
        let text = format!("the cancel did not get through: {}; ", error_text(&error));
        let running = self.stopping.filter(|turn| self.running == Some(*turn));
        let is_first = sent.retry.is_first();
        match running.filter(|_| error.is_transient()) {
            Some(turn) => {
                self.cancel = Some(sent.again(self.client.clone(), turn));
                if is_first {
                    self.say(&(text + "trying again, Ctrl-C again leaves"))?;
                }
            }
            None => self.say(&(text + "Ctrl-C again leaves"))?,
        }
        Ok(None)
    }

    /// Handles a [`WatchItem`]: a change of the connection, a snapshot or an event.
    pub(crate) fn item(&mut self, item: WatchItem) -> Step {
        match item {
            WatchItem::Connected { .. } => {
                if std::mem::take(&mut self.is_lost) {
                    self.say("connected again")?;
                }
            }
            WatchItem::Lost { reason, .. } => {
                if !std::mem::replace(&mut self.is_lost, true) {
                    self.say(&format!("lost the server ({reason}); trying again"))?;
                }
            }
            WatchItem::Snapshot(snapshot) => self.snapshot(&snapshot)?,
            WatchItem::Event(received) => return self.event(&received),
        }
        Ok(None)
    }

    /// Handles a [`SnapshotFrame`]: the first item, and the first after a gap that is not replayed.
    pub(crate) fn snapshot(&mut self, snapshot: &SnapshotFrame) -> ChatResult<()> {
        self.approval_changes += 1;
        let before = self.running;
        let now = snapshot.session["current_turn_id"].as_str();
        self.running = now.and_then(|id| id.parse().ok());
        let turns = [before, self.running];
        let messages = snapshot.messages.iter();
        for message in messages.filter(|message| turns.contains(&Some(message.turn_id))) {
            if !self.printer.is_for_people() {
                break;
            }
            self.printer.add_tool_names(message);
            let is_new = self.has_snapshot || message.status == MessageStatus::InProgress;
            if is_new && message.role == Role::Assistant {
                self.printer.catch_up(message)?;
            }
        }
        self.printer.turn = self.running;
        let missed = before.filter(|_| before != self.running);
        self.missed = missed.map(MissedTurn::new);
        self.has_snapshot = true;
        Ok(())
    }

    /// Looks up a turn whose end may have been missed.
    pub(crate) fn look_up(&mut self, turn: TurnId) {
        self.missed = Some(MissedTurn::new(turn));
    }

    /// Handles the result of a look-up.
    fn looked_up(&mut self, found: Result<Option<MissedEnding>, Error>) -> Step {
        let Some(mut missed) = self.missed.take() else {
            return Ok(None);
        };
        match found {
            Err(error) if error.is_transient() => {
                if missed.retry_later() {
                    let error = error_text(&error);
                    let text = format!("cannot read how the turn ended ({error}); trying again");
                    self.say(&text)?;
                }
                self.missed = Some(missed);
                Ok(None)
            }
            Err(error) => Err(error.into()),
            Ok(Some(found)) if self.has_passed(found.terminal.id) => {
                self.missed_ending(missed.turn, &found).map(Some)
            }
            // The end will arrive as an event.
            Ok(_) => Ok(None),
        }
    }

    /// True if the watch is past the event `id`, which therefore does not arrive any more.
    fn has_passed(&self, id: Option<Position>) -> bool {
        match (id, self.watch.position()) {
            (Some(id), Some(at)) => id <= at,
            (None, Some(_)) => true,
            // A snapshot follows and skips the events before it.
            (_, None) => false,
        }
    }

    /// Prints the missed part of a turn.
    fn missed_ending(&mut self, turn: TurnId, found: &MissedEnding) -> ChatResult<Ended> {
        if self.printer.is_for_people() {
            for message in &found.answers {
                self.printer.catch_up(message)?;
                self.printer.screen.end_line()?;
            }
        }
        let payload = &found.terminal.payload;
        let ending = if let Ok(end) = TurnCancelled::deserialize(payload) {
            self.printer.cancelled(&end)?
        } else {
            let end = TurnCompleted::deserialize(payload).map_err(Error::from)?;
            self.printer.completed(&end)?
        };
        Ok(self.turn_ended(turn, ending))
    }

    fn turn_ended(&mut self, turn: TurnId, ending: TurnEnding) -> Ended {
        self.printer.turn_ended(turn);
        if [self.running, self.stopping].contains(&Some(turn)) {
            self.stop_clock = None;
        }
        if self.stopping == Some(turn) {
            self.cancel = None;
        }
        self.running = self.running.filter(|running| *running != turn);
        self.ended.push((turn, ending));
        (turn, ending)
    }

    fn event(&mut self, received: &ReceivedEvent) -> Step {
        let event = received.parse();
        let body = event.as_ref().map(|event| &event.body);
        let is_beside = self.printer.is_beside(received.turn_id);
        if let Some(Body::TurnStarted(start)) = body
            && self.printer.is_for_people()
            && !is_beside
            && self.own != received.turn_id
            && start.resumes.is_none()
        {
            let text = text_of(&start.input, " ");
            if self.submitted.as_ref() != Some(&text) {
                self.say(&format!("from elsewhere: {text}"))?;
            }
        }
        match received.kind {
            EventType::TurnCancelRequested => self.stop_requested(received.turn_id),
            EventType::ApprovalResolved => self.approval_changes += 1,
            _ => {}
        }
        self.printer.received(&received.raw, event.as_ref())?;
        let (Some(turn), Some(body)) = (received.turn_id, body) else {
            return Ok(None);
        };
        let ending = match body {
            Body::TurnStarted(_) => {
                // A turn that is withdrawn from the queue starts too, while another runs.
                self.running.get_or_insert(turn);
                return Ok(None);
            }
            Body::TurnCompleted(end) if is_beside => turn_ending::completed_ending(end).0,
            Body::TurnCancelled(_) if is_beside => TurnEnding::Cancelled,
            Body::TurnCompleted(end) => self.printer.completed(end)?,
            Body::TurnCancelled(end) => self.printer.cancelled(end)?,
            _ => return Ok(None),
        };
        if is_beside {
            self.printer.ended_beside(ending)?;
        }
        Ok(Some(self.turn_ended(turn, ending)))
    }

    /// Handles Ctrl-C: cancels the running turn, or ends the chat.
    pub(crate) fn interrupted(&mut self) -> Step {
        match self.running {
            Some(turn) if self.stopping != Some(turn) => {
                self.stop(turn);
                self.printer.show_stopping()?;
                Ok(None)
            }
            _ => Err(LeaveReason::Interrupted),
        }
    }

    /// Notes that a turn was asked to stop, here or elsewhere.
    fn stop_requested(&mut self, turn: Option<TurnId>) {
        if turn.is_some() && self.running == turn {
            self.stop_clock.get_or_insert_with(|| (Instant::now(), 0));
            self.printer.is_stopping |= self.stopping == turn;
        }
    }

    /// Sends a cancel request; its response arrives through [`step`](Self::step).
    pub(crate) fn stop(&mut self, turn: TurnId) {
        self.stopping = Some(turn);
        self.stop_clock = Some((Instant::now(), 0));
        self.cancel = Some(PendingCancel::new(self.client.clone(), turn));
    }
}
