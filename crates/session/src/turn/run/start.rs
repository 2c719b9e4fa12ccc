//! The start of a turn: it reads the history, binds the turn to its producer, and emits the events
//! and rows that make it a turn. From there on a [`TurnRun`] owns it.

use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;
use turnwire_event::body::turn::BoundVersions;
use turnwire_event::code::Origin;
use turnwire_event::metric::TurnDimensions;
use turnwire_event::port::{HistoryBudget, ResumeInput, StartingTurn, TurnContext};
use turnwire_event::row::{ApprovalRow, NewMessage, RowChange};
use turnwire_event::{Message, Position, TraceContext, TracePropagation, TurnId, metric};
use turnwire_log::{EventDraft, OutboxRoom};

use super::turn_run::TurnRun;
use crate::error::Error;
use crate::history::select::{RESUMES, SizedMessage, with_size};
use crate::history::view::HistoryView;
use crate::live::child_tasks::ChildTasks;
use crate::live::session::LiveSession;
use crate::live::turn_slot::{RunningTurn, StreamPresence, TurnEndGuard, TurnSlot};
use crate::store_read::ReadShare;
use crate::submit::input_bytes::TurnPermit;
use crate::submit::request::SubmitRequest;
use crate::turn::approval::expire::{expire_approvals, open_approvals};
use crate::turn::bind::bind;
use crate::turn::emitter::TurnEmitter;
use crate::turn::opening::{started_draft, turn_input, user_message};

/// The session before a turn, as the turn's agents read it.
pub(crate) struct TurnHistory {
    /// The newest messages, oldest first.
    pub(crate) messages: Vec<SizedMessage>,
    /// The number of messages in the session.
    pub(crate) total: u64,
    /// The position of the session before the turn.
    pub(crate) at: Position,
    /// The approvals of paused turns that have an undecided one.
    pub(crate) open_approvals: Vec<ApprovalRow>,
}

/// A turn that is about to start.
pub(crate) struct PendingTurn {
    pub(crate) id: TurnId,
    pub(crate) request: SubmitRequest,
    pub(crate) presence: StreamPresence,
    /// Counts the turn for its owner while it runs.
    pub(crate) permit: TurnPermit,
    /// Rows in the commit of the start.
    pub(crate) rows: Vec<RowChange>,
    /// Events in the commit of the start, before it.
    pub(crate) preceding: Vec<EventDraft>,
    /// The paused turn that this one resumes, with the decisions.
    pub(crate) resumed: Option<ResumeInput>,
}

impl PendingTurn {
    /// A turn that starts in a commit of its own.
    pub(crate) fn new(
        id: TurnId,
        request: SubmitRequest,
        presence: StreamPresence,
        permit: TurnPermit,
    ) -> Self {
        Self {
            id,
            request,
            presence,
            permit,
            rows: Vec::new(),
            preceding: Vec::new(),
            resumed: None,
        }
    }
}

/// Reads the history of a session, from its cache if that is current, else with a slot of `share`.
pub(crate) async fn load_history(
    live: &Arc<LiveSession>,
    share: ReadShare,
) -> Result<TurnHistory, Error> {
    // The terminal of the previous turn may not be released yet: its messages count.
    live.all_committed().await?;
    let budget = live.services.runner.producer.history();
    let id = live.id;
    let (upto, is_new) = live
        .ring
        .with_state(|transcript, tail, _| (tail, transcript.row.turn_count == 0));
    let history = move |(messages, total), open_approvals| TurnHistory {
        messages,
        total,
        at: upto,
        open_approvals,
    };
    let may_have_open_approvals = live.slot.lock().may_have_open_approvals;
    // Not waited for: a blocking thread has the lock while it reads the store, and the read below
    // waits for it on such a thread.
    if let Some(mut cache) = live.history.try_lock() {
        if is_new {
            cache.start_empty(upto);
        }
        if !may_have_open_approvals && let Some(cached) = cache.current(upto, budget) {
            return Ok(history(cached, Vec::new()));
        }
    }
    let cache = live.history.clone();
    let read = share.read(live.services.store.clone(), move |store| {
        let messages = cache.lock().refresh(store, id, upto, budget)?;
        let approvals = match may_have_open_approvals {
            true => open_approvals(store, id)?,
            false => Vec::new(),
        };
        Ok(history(messages, approvals))
    });
    read.await
}

/// Starts a turn under the lock of the slot. The caller spawns the [`TurnRun`] when the lock is
/// free.
pub(crate) fn start_turn(
    live: &Arc<LiveSession>,
    slot: &mut TurnSlot,
    mut pending: PendingTurn,
    history: TurnHistory,
) -> Result<(Position, TurnRun), Error> {
    let runner = &live.services.runner;
    let user = opening_user_message(live, &pending);
    let trace = pending.request.trace.clone().map(Arc::new);
    let propagation = begin_trace(live, &pending);
    let trace_input = (trace.clone(), propagation);
    let mut input = turn_input(live, pending.id, &pending.request, trace_input);
    input.resumed.clone_from(&pending.resumed);
    let bound = bind(runner.producer.as_ref(), &input);
    let definition = bound.versions.agent_definition.clone();
    let dimensions = TurnDimensions {
        agent_definition: definition.clone(),
        dm_type: input.dm_type.clone(),
        experiment_arm: bound.experiment_arm,
        verticals: bound.verticals,
    };
    let started_after = history.at;
    let relayed_to = bound.relayed_to;
    let binding = (bound.history, bound.versions, relayed_to.clone());
    let (drafts, opening_messages, view) =
        prepare_opening(live, &mut pending, user, history, binding);
    let children = ChildTasks::new(runner.runtime.clone(), live.services.clock.clone());
    let emitted = live.sequencer.emit(drafts, OutboxRoom::Reserved);
    let positions = emitted.map_err(|refused| {
        if let Some(tracer) = &live.services.tracer {
            tracer.discard(pending.id);
        }
        live.refusal(refused)
    })?;
    slot.may_have_open_approvals = false;
    let at = positions.last().map_or(started_after, |(at, _)| *at);
    let context_dm_type = input.dm_type.clone();
    let emitter = TurnEmitter::new(
        live.clone(),
        pending.id,
        trace.clone(),
        (bound.gate, relayed_to.is_some()),
        dimensions,
    );
    *runner.agent_definition.lock() = definition;
    let request = &pending.request;
    if pending.resumed.is_none() {
        count_unattended(request.origin, &context_dm_type);
    }
    let services = &live.services;
    let context = TurnContext {
        delegate: services.delegate(live, pending.id, request, children.clone()),
        child_tasks: children.clone(),
        input,
        emitter: emitter.clone(),
        history: Arc::new(view),
    };
    let run = TurnRun {
        span: turn_span(live, pending.id, trace.as_deref()),
        live: live.clone(),
        turn: pending.id,
        emitter,
        stop: CancellationToken::new(),
        children,
        work: Some((bound.work, context)),
        producer: None,
        ended: false,
        end_guard: Arc::new(TurnEndGuard::default()),
        started_after,
        opening_messages,
        _permit: pending.permit,
    };
    slot.running = Some(running_turn(&run, request, pending.presence, trace));
    slot.version += 1;
    metrics::counter!(metric::TURN_STARTED_TOTAL).increment(1);
    Ok((at, run))
}

/// What the services that the turn calls learn of its trace. The tracer decides whether the spans of
/// the turn are recorded; without one the flag of the caller is passed on.
fn begin_trace(live: &LiveSession, pending: &PendingTurn) -> TracePropagation {
    let request = &pending.request;
    let mut propagation = request.propagation.clone();
    if let Some(tracer) = &live.services.tracer {
        let agent = live.with_row(|row| row.agent.clone());
        propagation.is_exporting = true;
        propagation.sampled = tracer.begin(StartingTurn {
            session_id: live.id,
            turn_id: pending.id,
            agent: agent.as_deref(),
            trace: request.trace.as_ref(),
            caller: &request.propagation,
        });
    }
    propagation
}

/// The span of a turn's log lines, at the highest level, so that every filter of lines keeps it. A
/// turn without a caller's trace has its own id as its trace id, in the same form.
fn turn_span(live: &LiveSession, turn: TurnId, trace: Option<&TraceContext>) -> tracing::Span {
    let trace_id = trace.map_or_else(|| turn.trace_id(), |trace| trace.trace_id.clone());
    tracing::error_span!(parent: None, "turn", session_id = %live.id, turn_id = %turn, trace_id)
}

/// The user message of a turn; it names the paused turn if there is one.
fn opening_user_message(live: &LiveSession, pending: &PendingTurn) -> NewMessage {
    let mut user = user_message(live, &pending.request);
    if let Some(resumed) = &pending.resumed {
        let paused = resumed.turn_id.to_string();
        user.metadata.set(RESUMES, &paused.into());
    }
    user
}

/// The events of the start, the messages stored with them, and the history that the turn reads.
/// Takes the rows and the preceding events of `pending`.
fn prepare_opening(
    live: &LiveSession,
    pending: &mut PendingTurn,
    user: NewMessage,
    history: TurnHistory,
    (budget, versions, relayed_to): (HistoryBudget, BoundVersions, Option<String>),
) -> (Vec<EventDraft>, Vec<Arc<Message>>, HistoryView) {
    let resumed = pending.resumed.as_ref();
    let (expired, mut opening_messages) = expire_approvals(live, &history.open_approvals, resumed);
    let now = live.services.clock.now();
    opening_messages.push(user.clone().into_message(live.id, pending.id, now));
    // Shared with the history that the turn reads: the content may be large.
    let opening_messages: Vec<Arc<Message>> = opening_messages.into_iter().map(Arc::new).collect();
    let mut messages = history.messages;
    messages.extend(opening_messages.iter().cloned().map(with_size));
    let before = (live.id, history.at);
    let reads = live.turn_read_share();
    let store = live.services.store.clone();
    let view = HistoryView::new(messages, budget, (reads, store), before);
    let total = history.total + opening_messages.len() as u64;
    let omitted = total.saturating_sub(view.len() as u64);
    let turn = (pending.id, &pending.request);
    let bound = (versions, relayed_to);
    let mut started = started_draft(live, turn, user, omitted, bound, resumed);
    started.rows.append(&mut pending.rows);
    let preceding = std::mem::take(&mut pending.preceding);
    let drafts = expired.into_iter().chain(preceding).chain([started]);
    (drafts.collect(), opening_messages, view)
}

/// The entry of a turn in the slot.
fn running_turn(
    run: &TurnRun,
    request: &SubmitRequest,
    presence: StreamPresence,
    trace: Option<Arc<TraceContext>>,
) -> RunningTurn {
    let emitter: Weak<TurnEmitter> = Arc::downgrade(&run.emitter);
    RunningTurn {
        id: run.turn,
        stop: run.stop.clone(),
        end_guard: run.end_guard.clone(),
        children: run.children.clone(),
        emitter,
        cancel_grace: request.cancel_grace(),
        trace,
        presence,
        contiguous: true,
    }
}

/// Counts a turn that no client waits for.
fn count_unattended(origin: Origin, dm_type: &str) {
    let origin = match origin {
        Origin::Chat => return,
        Origin::Scheduled => "scheduled",
        Origin::Dm => "dm",
    };
    let dm_type = dm_type.to_owned();
    metrics::counter!(metric::TURN_UNWATCHED_TOTAL, "origin" => origin, "dm_type" => dm_type)
        .increment(1);
}
