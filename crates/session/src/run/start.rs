//! The start of a turn: what it is told of the past, what it is bound to, and the events and rows
//! that make it a turn. From there on `run` has it.

use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;
use turnwire_event::body::turn::{Started, Versions};
use turnwire_event::code::Origin;
use turnwire_event::port::{Resumed, TurnContext, TurnInput};
use turnwire_event::row::{ApprovalRow, NewMessage, RowChange, Scope};
use turnwire_event::{
    Actor, Body, EpisodeId, Message, MessageId, MessageStatus, Position, Role, Trace, TurnId,
    metric,
};
use turnwire_log::{Draft, Room};

use crate::approval::paused_turn::{left_open, pass_over};
use crate::error::Error;
use crate::history::cache::{RESUMES, SizedMessage, weigh};
use crate::history::view::HistoryView;
use crate::live::child_tasks::ChildTasks;
use crate::live::session::LiveSession;
use crate::live::turn_slot::{RunningTurn, StreamPresence, TurnEndGuard, TurnSlot};
use crate::run::turn_run::TurnRun;
use crate::store_read::blocking;
pub use crate::submit::request::{
    DisconnectScope, IdempotencyKey, SubmitRequest, SubmitTarget, SubmittedTurn,
};
use crate::turn::bind::bind;
use crate::turn::emitter::TurnEmitter;

/// What was said before a turn.
pub(crate) struct TurnHistory {
    /// The newest messages.
    pub(crate) messages: Vec<SizedMessage>,
    /// How many there are in all.
    pub(crate) total: u64,
    /// Where the session stood.
    pub(crate) at: Position,
    /// The questions of turns that wait for an answer.
    pub(crate) asked: Vec<ApprovalRow>,
}

/// A turn about to start.
pub(crate) struct PendingTurn {
    pub(crate) id: TurnId,
    pub(crate) submit: SubmitRequest,
    pub(crate) presence: StreamPresence,
    /// Rows that commit with its start.
    pub(crate) rows: Vec<RowChange>,
    /// The events that commit with its start, before it.
    pub(crate) before: Vec<Draft>,
    /// What it goes on with.
    pub(crate) resumed: Option<Resumed>,
}

impl LiveSession {
    /// The newest messages, and how many there are in all.
    pub(crate) async fn past(self: &Arc<Self>) -> Result<TurnHistory, Error> {
        // The turn before may have its terminal placed and not yet released: its messages count.
        self.sequencer.committed(self.sequencer.last().seq).await?;
        let budget = self.house.runner.producer.history();
        let (id, upto, fresh) = self
            .ring
            .look(|transcript, tail, _| (self.id, tail, transcript.row.turn_count == 0));
        let told = move |(messages, total), asked| TurnHistory {
            messages,
            total,
            at: upto,
            asked,
        };
        let asked = self.slot.lock().asked;
        {
            let mut memory = self.memory.lock();
            if fresh {
                memory.begin(upto);
            }
            if !asked && memory.knows(upto, budget) {
                memory.forget(budget);
                return Ok(told(memory.recall(), Vec::new()));
            }
        }
        let memory = self.memory.clone();
        blocking(self.house.store(), move |store| {
            let mut memory = memory.lock();
            memory.refresh(store, id, upto, budget)?;
            let asked = match asked {
                true => left_open(store, id)?,
                false => Vec::new(),
            };
            Ok(told(memory.recall(), asked))
        })
        .await
    }

    /// Starts a turn, under the session's lock, in one step: from here on it runs. The caller
    /// lets `Run` go when the lock is free.
    pub(crate) fn begin(
        self: &Arc<Self>,
        slot: &mut TurnSlot,
        next: PendingTurn,
        told: TurnHistory,
    ) -> Result<(Position, TurnRun), Error> {
        let runner = &self.house.runner;
        let mut user = self.user_message(next.id, &next.submit);
        if let Some(resumed) = &next.resumed {
            let paused = resumed.turn_id.to_string();
            user.metadata.insert(RESUMES.to_owned(), paused.into());
        }
        let trace = next.submit.trace.clone().map(Arc::new);
        let mut input = self.input(next.id, &next.submit, trace.clone());
        input.resumed.clone_from(&next.resumed);
        let bound = bind(runner.producer.as_ref(), &input);
        let (passed, mut heard) = pass_over(self, &told.asked, next.resumed.as_ref());
        heard.push(user.clone());
        let mut past = told.messages;
        past.extend(heard.iter().cloned().map(weigh));
        let place = (self.id, told.at);
        let shown = HistoryView::new(past, bound.history, self.house.store(), place);
        let omitted = (told.total + heard.len() as u64).saturating_sub(shown.len() as u64);
        let definition = bound.versions.agent_definition.clone();
        let resumed = next.resumed.as_ref();
        let mut draft = self.opening(&next.submit, &user, omitted, bound.versions, resumed);
        draft.rows.extend(next.rows);
        let stop = CancellationToken::new();
        let wards = ChildTasks::new(runner.runtime.clone(), self.house.clock.clone());
        let drafts = passed.into_iter().chain(next.before).chain([draft]);
        let places = self.sequencer.emit(drafts.collect(), Room::Reserved)?;
        slot.asked = false;
        let at = places.last().map_or(told.at, |(at, _)| *at);
        let live = self.clone();
        let emitter = TurnEmitter::new(live, next.id, trace.clone(), bound.gate, &definition);
        *runner.definition.lock() = definition;
        let weak: Weak<TurnEmitter> = Arc::downgrade(&emitter);
        let over = Arc::new(TurnEndGuard::default());
        slot.running = Some(RunningTurn {
            id: next.id,
            stop: stop.clone(),
            over: over.clone(),
            wards: wards.clone(),
            emitter: weak,
            on_disconnect: next.submit.on_disconnect,
            grace_ms: next.submit.disconnect_grace_ms,
            bound: next.submit.bound,
            trace,
            presence: next.presence,
            alone: true,
        });
        slot.moves += 1;
        metrics::counter!(metric::TURN_STARTED_TOTAL).increment(1);
        if next.resumed.is_none() {
            let counted = &self.house.options.dm_types;
            count_unwatched(next.submit.origin, next.submit.dm_type.as_deref(), counted);
        }
        let context = TurnContext {
            delegate: self.delegate(next.id, &next.submit, wards.clone()),
            wards: wards.clone(),
            input,
            emitter: emitter.clone(),
            history: Arc::new(shown),
        };
        let run = TurnRun {
            live: self.clone(),
            turn: next.id,
            emitter,
            stop,
            wards,
            ready: Some((bound.work, context)),
            work: None,
            ended: false,
            over,
            begun: told.at,
            heard,
        };
        Ok((at, run))
    }

    /// What a turn is about, as its producer is told.
    fn input(
        &self,
        turn_id: TurnId,
        submit: &SubmitRequest,
        trace: Option<Arc<Trace>>,
    ) -> TurnInput {
        TurnInput {
            agent: self
                .ring
                .look(|transcript, _, _| transcript.row.agent.clone()),
            resumed: None,
            session_id: self.id,
            turn_id,
            owner: self.owner.clone(),
            kind: self.kind(submit),
            cost_usd: self.ring.look(|transcript, _, _| transcript.row.cost_usd),
            locale: submit.locale.clone(),
            content: submit.content.clone(),
            metadata: submit.metadata.clone(),
            location: submit.location.clone(),
            episode_id: self.episode(),
            trace,
            turn_timeout: self.house.options.turn_timeout,
        }
    }

    fn episode(&self) -> EpisodeId {
        self.ring.look(|transcript, _, _| transcript.row.episode_id)
    }

    pub(crate) fn user_message(&self, turn_id: TurnId, submit: &SubmitRequest) -> Message {
        Message {
            kept: turnwire_event::Kept::default(),
            id: MessageId(self.house.mint.ulid()),
            session_id: self.id,
            turn_id,
            role: Role::User,
            status: MessageStatus::Complete,
            content: submit.content.clone(),
            model: None,
            stop_reason: None,
            usage: None,
            created_at: self.house.clock.now(),
            metadata: submit.message_metadata(),
        }
    }

    /// The `turn.started` of a turn with its rows.
    pub(crate) fn opening(
        &self,
        submit: &SubmitRequest,
        user: &Message,
        omitted: u64,
        versions: Versions,
        resumed: Option<&Resumed>,
    ) -> Draft {
        let turn = user.turn_id;
        let agent_definition = versions.agent_definition.clone();
        let wire_version = Some(submit.wire_version.clone());
        let body = Body::TurnStarted(Started {
            answers: resumed.map_or_else(Vec::new, |resumed| resumed.answers.clone()),
            resumes: resumed.map(|resumed| resumed.turn_id),
            user_message_id: user.id,
            input: submit.content.clone(),
            kind: self.kind(submit),
            origin: submit.origin(),
            dm_type: submit.dm_type.clone(),
            episode_id: self.episode(),
            locale: submit.locale.clone(),
            wire_version: wire_version.clone(),
            history_omitted: omitted,
            versions,
        });
        let mut draft = Draft::new(Some(turn), Actor::USER, body);
        draft.trace = submit.trace.clone().map(Arc::new);
        draft.rows = vec![
            RowChange::TurnStarted {
                turn_id: turn,
                kind: self.kind(submit),
                on_disconnect: submit.on_disconnect,
                disconnect_grace_ms: submit.disconnect_grace_ms,
                trace: submit.trace.clone(),
                wire_version,
                agent_definition,
                resumes: resumed.map(|resumed| resumed.turn_id),
            },
            RowChange::MessagePut(
                turn,
                NewMessage {
                    kept: turnwire_event::Kept::default(),
                    id: user.id,
                    role: Role::User,
                    content: user.content.clone(),
                    metadata: user.metadata.clone(),
                    scope: Scope::Shared,
                },
            ),
        ];
        draft
    }
}

/// Counts a turn that nobody waits for.
fn count_unwatched(origin: Origin, dm_type: Option<&str>, counted: &[String]) {
    let origin = match origin {
        Origin::Chat => return,
        Origin::Scheduled => "scheduled",
        Origin::Dm => "dm",
    };
    // A caller's word would be a series each.
    let dm_type = match dm_type {
        None => "",
        Some(said) if counted.iter().any(|known| known == said) => said,
        Some(_) => "other",
    };
    let dm_type = dm_type.to_owned();
    metrics::counter!(metric::TURN_UNWATCHED_TOTAL, "origin" => origin, "dm_type" => dm_type)
        .increment(1);
}
