//! Recovery after a crash: turns that a dead process left open are ended before the server accepts
//! requests.
//!
//! What each turn has open is folded from its stored events and the checkpoints of its message, by
//! the same functions that live turns use; its ending is one commit. Workers come before their
//! parents: a reader of a worker's failure finds its terminal in the log. A second recovery finds
//! nothing to do.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use turnwire_event::code::ToolState;
use turnwire_event::fold::turn::OpenTool;
use turnwire_event::fold::{MessageFold, OpenTurn};
use turnwire_event::row::TurnRow;
use turnwire_event::{Body, Event, Seq};
use turnwire_log::{EventSelection, ReadLimits, Records, Store};

use crate::error::Error;
use crate::live::session::{LiveSession, SessionServices};
use crate::metering::model_calls::CallsInFlight;
use crate::store_read::worker_depth;
use crate::turn::bind::PassThroughGate;
use crate::turn::ending::{EndingContext, abort_turn};

/// Events of an open turn read at once: a turn may have any number of events, of any size.
const PAGE: ReadLimits = ReadLimits {
    events: 1_000,
    bytes: 1 << 20,
    scanned: 10_000,
};

/// Ends every turn that has started and not ended, and returns their number.
pub(crate) async fn end_open_turns(services: &Arc<SessionServices>) -> Result<usize, Error> {
    let open = services.read(|store| open_turns(store)).await?;
    let count = open.len();
    for row in open {
        let id = row.id;
        let session = row.session_id;
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
    let read = services.read(move |store| {
        let session_row = store.session(session)?.ok_or(Error::SessionNotFound)?;
        let tail = store.tail(session)?.ok_or(Error::SessionNotFound)?;
        let (open, context) = reopen(store, &row, tail.seq)?;
        Ok::<_, Error>((open, context, session_row, tail))
    });
    let (open, context, session_row, tail) = read.await?;
    let is_cancelled = open.cancel.is_some();
    let message = open.message.as_ref();
    let cut = message.map_or(0, |message| message.open_tool_uses().len() as u32 + 1);
    let live = LiveSession::load(services.clone(), (session_row, 0), tail, Some(open));
    live.sequencer.resume_turn(turn, is_cancelled, cut);
    abort_turn(&live, turn, Some("server_restart"), context);
    live.all_committed().await?;
    tracing::info!(%session, %turn, "ended a turn that the last run left open");
    Ok(())
}

/// Folds a stored turn: what it has open, and the context of its end.
fn reopen(store: &dyn Store, row: &TurnRow, tail: Seq) -> Result<(OpenTurn, EndingContext), Error> {
    let mut open = OpenTurn::new(row.id);
    let mut hidden_tools = HashSet::new();
    let mut calls = CallsInFlight::default();
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
            calls.restore(&event.body);
            open.apply(event.id, event.timestamp, &event.actor, &event.body);
        }
    }
    // Transient events are not stored: the message in flight comes from its checkpoints, the tools
    // that it uses from their rows.
    if !open.in_call.is_empty() {
        open.message = MessageFold::from_parts(&store.message_checkpoints(row.id)?);
    }
    let tools = store.turn_tool_calls(row.id)?;
    let pending = tools
        .iter()
        .filter(|tool| tool.status == ToolState::Pending);
    open.tools.extend(pending.map(|tool| OpenTool {
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
        agent_definition: row.agent_definition.clone(),
        gate: Box::new(PassThroughGate),
        hidden_tools,
        stop_report: None,
    };
    Ok((open, context))
}
