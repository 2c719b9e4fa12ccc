//! Answering what a paused turn has asked. The last answer opens the next leg in the same commit:
//! there is no moment in which everything is answered and nothing goes on.
//!
//! ```text
//! turn A … approval.requested*  turn.completed{paused}
//!                 approval.resolved   approval.resolved + turn.started B {resumes: A}   … B …
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use turnwire_event::body::turn::Started;
use turnwire_event::code::{OnBusy, Origin, TurnKind};
use turnwire_event::row::{ApprovalRow, TurnRow};
use turnwire_event::{Body, Event, Message, Owner, Position, Role, Seq, SessionId, Trace, TurnId};
use turnwire_log::{Draft, ReadError, Room, Store, View};

pub use crate::approval::paused_turn::ApprovalDecision;
use crate::approval::paused_turn::{PausedTurn, answered};
use crate::error::Error;
use crate::history::cache::{RESUMES, SizedMessage, weighed};
use crate::lifecycle::core::Sessions;
use crate::live::session::LiveSession;
use crate::live::turn_slot::StreamPresence;
use crate::run::start::{PendingTurn, TurnHistory};
use crate::store_read::blocking;
use crate::submit::request::{DisconnectScope, SubmitRequest};

/// Turns that went on with each other, at most: whoever has been asked so often in a row talks
/// with a model that forgets how it began.
const LEGS_MAX: usize = 256;

/// The language of a turn whose start is no longer kept.
const LOCALE: &str = "en";

/// What became of answers; durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovalOutcome {
    /// How many questions of the turn have no answer yet.
    pub remaining: usize,
    /// The turn that goes on, once none is left.
    pub next: Option<TurnId>,
}

/// What is needed to go on with a turn.
struct TurnChain {
    submit: SubmitRequest,
    /// The turn and those it went on with.
    turns: HashSet<TurnId>,
    /// All that was said in them.
    messages: Vec<SizedMessage>,
}

impl Sessions {
    /// What a turn has asked, in that order, and the turn that goes on with the answers.
    pub async fn approvals(
        &self,
        owner: &Owner,
        turn: TurnId,
    ) -> Result<(Vec<ApprovalRow>, Option<TurnId>), Error> {
        let row = self.turn(owner, turn).await?;
        let asked = self.questions(row).await?;
        Ok((asked.questions, asked.leg))
    }

    /// Takes a person's answers to what a paused turn has asked; the same again changes nothing.
    /// All are taken or none. With the last of them the next leg starts. Durable on return.
    pub async fn answer(
        &self,
        owner: &Owner,
        turn: TurnId,
        words: Vec<ApprovalDecision>,
        trace: Option<Trace>,
    ) -> Result<ApprovalOutcome, Error> {
        let row = self.turn(owner, turn).await?;
        let live = self.live(owner, row.session_id).await?;
        let trace = trace.map(Arc::new);
        // Held until the leg is counted, so that a server that drains waits for it.
        let _at_work = self.house.runner.turns.token();
        loop {
            let moves = live.slot.lock().moves;
            // Everything that was said or answered so far is in the store after this.
            let told = live.past().await?;
            let row = self.turn(owner, turn).await?;
            let mut asked = self.questions(row).await?;
            let fresh = asked.take(words.clone())?;
            let remaining = asked.remaining();
            if fresh.is_empty() {
                let next = asked.leg;
                // Nothing goes on with it, and never will: the conversation went on without.
                let late = words.first().filter(|_| remaining == 0 && next.is_none());
                return match late {
                    Some(word) => Err(Error::ApprovalResolved(word.approval_id)),
                    None => Ok(ApprovalOutcome { remaining, next }),
                };
            }
            self.admit()?;
            let leg = match remaining {
                0 => Some(self.leg(&asked, told, trace.as_ref()).await?),
                _ => None,
            };
            let drafts = fresh
                .into_iter()
                .map(|word| answered(word, trace.as_ref()))
                .collect();
            // None: someone was quicker, with an answer or a turn that goes on without one.
            if let Some((at, next)) = self.settle(&live, moves, drafts, leg)? {
                live.sequencer.committed(at.seq).await?;
                return Ok(ApprovalOutcome { remaining, next });
            }
        }
    }

    /// Records the answers and starts the leg in one step, unless anything has moved since `moves`.
    fn settle(
        &self,
        live: &Arc<LiveSession>,
        moves: u64,
        drafts: Vec<Draft>,
        leg: Option<(PendingTurn, TurnHistory)>,
    ) -> Result<Option<(Position, Option<TurnId>)>, Error> {
        let mut slot = live.slot.lock();
        if slot.moves != moves {
            return Ok(None);
        }
        let Some((mut next, told)) = leg else {
            let places = live.sequencer.emit(drafts, Room::Reserved)?;
            slot.moves += 1;
            let at = places.last().map(|(at, _)| (*at, None));
            return Ok(at);
        };
        if let Some(running) = &slot.running {
            return Err(Error::TurnInFlight(running.id));
        }
        if self.is_draining() {
            return Err(Error::Draining);
        }
        let id = next.id;
        next.before = drafts;
        let (at, run) = live.begin(&mut slot, next, told)?;
        drop(slot);
        run.go();
        Ok(Some((at, Some(id))))
    }

    /// The turn that goes on, about to start, and what it is told.
    async fn leg(
        &self,
        asked: &PausedTurn,
        told: TurnHistory,
        trace: Option<&Arc<Trace>>,
    ) -> Result<(PendingTurn, TurnHistory), Error> {
        let (paused, upto) = (asked.turn.clone(), told.at);
        let read = move |store: &dyn Store| thread(store, &paused, upto);
        let thread = blocking(self.house.store(), read).await?;
        let next = PendingTurn {
            id: TurnId(self.house.mint.ulid()),
            submit: SubmitRequest {
                trace: trace.map(|trace| Trace::clone(trace)),
                ..thread.submit
            },
            presence: StreamPresence::default(),
            rows: Vec::new(),
            before: Vec::new(),
            resumed: Some(asked.resumed()),
        };
        Ok((next, whole(told, &thread.turns, thread.messages)))
    }

    async fn questions(&self, row: TurnRow) -> Result<PausedTurn, Error> {
        blocking(self.house.store(), move |store| {
            PausedTurn::read(store, row)
        })
        .await
    }
}

/// The past with all of the turns that are gone on with: a leg without what was asked in them
/// could do nothing, so no budget cuts them.
fn whole(told: TurnHistory, turns: &HashSet<TurnId>, messages: Vec<SizedMessage>) -> TurnHistory {
    let older = told.messages.into_iter();
    let older = older.filter(|(message, _)| !turns.contains(&message.turn_id));
    TurnHistory {
        messages: older.chain(messages).collect(),
        ..told
    }
}

fn thread(store: &dyn Store, paused: &TurnRow, upto: Position) -> Result<TurnChain, Error> {
    let session = paused.session_id;
    let mut turns = HashSet::from([paused.id]);
    let mut first = paused.clone();
    while let Some(before) = first.resumes.filter(|_| turns.len() < LEGS_MAX) {
        let Some((_, row)) = store.turn(before)? else {
            break;
        };
        turns.insert(before);
        first = row;
    }
    let from = first.started;
    let from = Position::persisted(from.epoch, Seq(from.seq.0.saturating_sub(1)));
    let said = store.messages_since(session, View::Orchestrator, from, upto)?;
    let said = said
        .into_iter()
        .filter(|stored| turns.contains(&stored.message.turn_id));
    let messages: Vec<SizedMessage> = weighed(said.collect()).collect();
    let heard = messages
        .iter()
        .map(|(message, _)| message)
        .find(|message| message.turn_id == paused.id && message.role == Role::User);
    let started = started(store, session, paused.started.seq)?;
    Ok(TurnChain {
        submit: submit(paused, started, heard.map(AsRef::as_ref)),
        turns,
        messages,
    })
}

/// The start of a turn, if it is still kept.
fn started(store: &dyn Store, session: SessionId, at: Seq) -> Result<Option<Started>, Error> {
    let before = Seq(at.0.saturating_sub(1));
    let stored = match store.events(session, before, at, 1) {
        Err(ReadError::Trimmed { .. }) => return Ok(None),
        read => read?,
    };
    let event = stored.first().and_then(|it| Event::read(&it.bytes).ok());
    Ok(event.and_then(|event| match event.body {
        Body::TurnStarted(started) => Some(started),
        _ => None,
    }))
}

/// What the paused turn was asked with, without its words.
fn submit(paused: &TurnRow, started: Option<Started>, heard: Option<&Message>) -> SubmitRequest {
    let mut metadata = heard.map_or_else(Map::new, |message| message.metadata.clone());
    metadata.remove(RESUMES);
    let location = match metadata.remove("location") {
        Some(Value::String(place)) => Some(place),
        _ => None,
    };
    let origin = match paused.kind {
        TurnKind::Scheduled => Origin::Scheduled,
        TurnKind::Chat | TurnKind::Mission | TurnKind::Worker => Origin::Chat,
    };
    SubmitRequest {
        content: Vec::new(),
        locale: started
            .as_ref()
            .map_or_else(|| LOCALE.to_owned(), |started| started.locale.clone()),
        on_disconnect: paused.on_disconnect,
        disconnect_grace_ms: paused.disconnect_grace_ms,
        trace: None,
        on_busy: OnBusy::Reject,
        wire_version: paused.wire_version.clone().unwrap_or_default(),
        metadata,
        location,
        // Nobody streams a leg before it is there: it goes on until someone did and has left.
        bound: DisconnectScope::Stream,
        origin: started
            .as_ref()
            .and_then(|started| started.origin)
            .unwrap_or(origin),
        dm_type: started.and_then(|started| started.dm_type),
    }
}
