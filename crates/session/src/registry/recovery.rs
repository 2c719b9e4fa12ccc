//! Recovery after a crash: turns that a dead process left open are ended before the server accepts
//! requests.
//!
//! What each turn has open is folded from its stored events and the checkpoints of its message, by
//! the same functions that live turns use; its ending is one commit. Workers come before their
//! parents: a reader of a worker's failure finds its terminal in the log. A second recovery finds
//! nothing to do.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use turnwire_event::body::delegate::DelegateEnd;
use turnwire_event::body::turn::TurnCompleted;
use turnwire_event::code::ToolState;
use turnwire_event::fold::turn::{OpenCall, OpenTool};
use turnwire_event::fold::{MessageFold, OpenTurn};
use turnwire_event::metric::TurnDimensions;
use turnwire_event::row::TurnRow;
use turnwire_event::{ActorKind, Body, Event, Seq};
use turnwire_log::{EventSelection, ReadLimits, Records, Store};

use crate::error::Error;
use crate::live::session::{LiveSession, SessionServices};
use crate::metering::model_calls::CallsInFlight;
use crate::read::worker_result::stored_worker_end;
use crate::registry::open_sessions::SessionRegistry;
use crate::store_read::worker_depth;
use crate::turn::bind::PassThroughGate;
use crate::turn::ending::{EndingContext, abort_turn};
use crate::turn::opening::dm_label;

/// Events of an open turn read at once: a turn may have any number of events, of any size.
const PAGE: ReadLimits = ReadLimits {
    events: 1_000,
    bytes: 1 << 20,
    scanned: 10_000,
};

/// Ends every turn that has started and not ended, and returns their number. The sessions in
/// `deleting` are closed, and no event may follow their last one.
pub(crate) async fn end_open_turns(
    services: &Arc<SessionServices>,
    deleting: &SessionRegistry,
) -> Result<usize, Error> {
    let open = services.read(|store| open_turns(store)).await?;
    let mut count = 0;
    for row in open {
        let id = row.id;
        let session = row.session_id;
        let is_closed = deleting.get(session).is_some();
        if is_closed || services.quarantined.lock().contains(&session) {
            continue;
        }
        count += 1;
        if let Err(error) = end_open_turn(services, row).await {
            // One damaged session must not keep the server from starting.
            services.quarantined.lock().insert(session);
            tracing::error!(%session, turn = %id, %error, "could not end an open turn: session quarantined");
        }
    }
    Ok(count)
}

/// The open turns, those of workers before those of their parents.
fn open_turns(store: &dyn Records) -> Result<Vec<TurnRow>, Error> {
    let mut open = Vec::new();
    for turn in store.open_turns()? {
        let row = store.session(turn.session_id)?;
        let depth = row.map_or(Ok(0), |row| worker_depth(store, &row))?;
        open.push((Reverse(depth), turn));
    }
    open.sort_by_key(|(depth, _)| *depth);
    Ok(open.into_iter().map(|(_, turn)| turn).collect())
}

async fn end_open_turn(services: &Arc<SessionServices>, row: TurnRow) -> Result<(), Error> {
    let (turn, session) = (row.id, row.session_id);
    let dm_types = services.options.dm_types.clone();
    let read = services.read(move |store| {
        let session_row = store.session(session)?.ok_or(Error::SessionNotFound)?;
        let tail = store.tail(session)?.ok_or(Error::SessionNotFound)?;
        let (open, context) = reopen(store, &row, tail.seq, &dm_types)?;
        Ok::<_, Error>((open, context, session_row, tail))
    });
    let (open, context, session_row, tail) = read.await?;
    let is_cancelled = open.cancel.is_some();
    let message = open.message.as_ref();
    let cut = message.map_or(0, |message| message.open_tool_uses().len() as u32 + 1);
    let response_id = open.response_id.clone();
    let live = LiveSession::load(services.clone(), (session_row, 0), tail, Some(open));
    live.sequencer.resume_turn(turn, is_cancelled, cut);
    if let Some(id) = response_id {
        live.sequencer.set_response_id(turn, id);
    }
    abort_turn(&live, turn, Some(TurnCompleted::SERVER_RESTART), context);
    live.all_committed().await?;
    tracing::info!(%session, %turn, "ended a turn that the last run left open");
    Ok(())
}

/// Folds a stored turn: what it has open, and the context of its end. Of the labels of its metrics,
/// the vertical and the experiment arm are not stored; they stay empty.
fn reopen(
    store: &dyn Store,
    row: &TurnRow,
    tail: Seq,
    dm_types: &[String],
) -> Result<(OpenTurn, EndingContext), Error> {
    let mut open = OpenTurn::new(row.id);
    let mut hidden_tools = HashSet::new();
    let mut tool_agents = HashMap::new();
    let mut dm_type = None;
    let mut calls = CallsInFlight::default();
    let mut last_call = None;
    // Includes the `turn.started`, which has the versions that the turn was bound to.
    let mut after = row.started.seq.prev();
    let of_turn = EventSelection::all().with_turn(row.id);
    while after < tail {
        let page = store.read(row.session_id, after, tail, &of_turn, PAGE)?;
        after = page.end;
        for stored in &page.events {
            let event = Event::read(&stored.bytes).map_err(|error| {
                tracing::error!(session = %row.session_id, seq = stored.seq.0, %error, "a stored event is invalid");
                Error::Quarantined
            })?;
            if let (true, Body::ToolCalled(tool)) = (stored.head.suppressed, &event.body) {
                hidden_tools.insert(tool.tool_use_id);
            }
            match (&event.body, event.sub_agent_id) {
                (Body::ToolCalled(tool), Some(agent)) => {
                    tool_agents.insert(tool.tool_use_id, agent.into());
                }
                (Body::TurnStarted(started), _) => dm_type.clone_from(&started.dm_type),
                _ => {}
            }
            calls.restore(&event.body);
            if matches!(event.body, Body::LlmCallStarted(_))
                && event.actor.kind() != ActorKind::Subagent
            {
                last_call = Some(event.id);
            }
            open.apply(event.id, event.timestamp, &event.actor, &event.body);
        }
    }
    // Transient events are not stored: the message in flight comes from its checkpoints, the tools
    // that it uses from their rows.
    if !open.in_call.is_empty() {
        open.message = MessageFold::from_parts(&store.message_checkpoints(row.id)?);
        if let Some(message) = &mut open.message {
            message.response_id.clone_from(&open.response_id);
        }
    }
    // Of a message in flight, clients may have seen more than its checkpoints have.
    let is_streaming = |call: &OpenCall| call.actor.kind() != ActorKind::Subagent;
    if open.in_call.iter().any(is_streaming) {
        let message = open.message.as_ref();
        let stored =
            message.map(|message| message.cuts.last().map_or(message.started, |cut| cut.at));
        open.kept_until = stored.or(last_call);
    }
    let tools = store.turn_tool_calls(row.id)?;
    let pending = tools
        .iter()
        .filter(|tool| tool.status == ToolState::Pending);
    open.tools.extend(pending.map(|tool| OpenTool {
        upstream_id: None,
        id: tool.tool_use_id,
        name: tool.tool_name.clone(),
        tool_type: tool.tool_type,
        called: false,
    }));
    let tool_types = tools.iter().map(|tool| (tool.tool_use_id, tool.tool_type));
    let context = EndingContext {
        tool_types: tool_types.collect(),
        trace: row.trace.clone().map(Arc::new),
        calls,
        dimensions: TurnDimensions {
            dm_type: dm_label(dm_type.as_deref(), dm_types).to_owned(),
            ..TurnDimensions::of_definition(&row.agent_definition)
        },
        gate: Box::new(PassThroughGate),
        hidden_tools,
        tool_agents,
        stop_report: None,
        worker_ends: worker_ends(store, &open),
    };
    Ok((open, context))
}

/// The ends of the open workers that ended by themselves before the crash; workers are ended before
/// their parents. One that cannot be read counts as stopped: its parent is not damaged.
fn worker_ends(store: &dyn Store, open: &OpenTurn) -> Vec<DelegateEnd> {
    let ends = open.delegates.iter().filter_map(|worker| {
        let id = worker.worker_session_id;
        let end = stored_worker_end(store, id).inspect_err(|error| {
            tracing::warn!(session = %id, %error, "the end of a worker could not be read");
        });
        end.ok().flatten()
    });
    ends.collect()
}
