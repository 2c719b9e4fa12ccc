//! Replays a message to a client that has seen only part of it.
//!
//! ```text
//! cursor before the message   finished: message.start ................ message.complete
//!                             in flight: message.start, all deltas so far, joined
//! cursor inside the message   the remaining deltas, joined, then message.complete if it has ended
//! ```
//! Only adjacent deltas of one block between two persisted events are joined: a joined delta takes
//! the id of its last part, so the cursor of a client cut anywhere covers exactly what it received.
//! A joined delta has a bounded size, so that a long message is replayed in pieces.

use crate::actor::Actor;
use crate::body::Body;
use crate::body::stream::{
    MessageStart, TextDelta, ThinkingDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart,
};
use crate::clock::Timestamp;
use crate::envelope::Event;
use crate::fold::cut::{CutKind, DeltaCut};
use crate::fold::message::{BlockFold, MessageFold};
use crate::id::SessionId;
use crate::message::Role;
use crate::position::Position;

/// Bytes of text in a joined delta: large enough that a usual answer is one delta, small enough that
/// a client that reads slowly does not hold a long one in memory. A single delta may be larger.
const JOINED_BYTES_MAX: usize = 64 << 10;

/// How a finished message is replayed to a client that has not seen its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishedReplay {
    /// Start and end only; the end carries the whole content (S3-039).
    Ends,
    /// Everything, for wires whose text is in the deltas alone.
    Deltas,
    /// Everything, and each delta as it was sent: for counts of what a client has not received.
    EachDelta,
}

/// A range of a replay: one page of the way from a client's cursor to a fixed position.
#[derive(Clone, Copy, Debug)]
pub struct ReplayRange {
    /// The client's cursor: the last position it has seen.
    pub since: Position,
    /// The end of the whole replay; messages that ended by then are replayed as finished.
    pub upto: Position,
    /// This page starts after this position.
    pub from: Position,
    /// This page ends at this position.
    pub to: Position,
}

/// The events of a message within a [`ReplayRange`].
pub fn events(
    message: &MessageFold,
    session_id: SessionId,
    range: ReplayRange,
    missed: FinishedReplay,
) -> Vec<Event> {
    let event = |id: Position, timestamp: Timestamp, body: Body| Event {
        id,
        session_id,
        turn_id: Some(message.turn_id),
        response_id: message.response_id.clone(),
        actor: Actor::ORCHESTRATOR,
        timestamp,
        trace: None,
        render: None,
        sub_agent_id: None,
        body,
    };
    let inside = |at: Position| range.from < at && at <= range.to;
    let mut out = Vec::new();
    if inside(message.started) {
        let start = Body::MessageStart(MessageStart {
            message_id: message.id,
            role: Role::Assistant,
            model: message.model.clone(),
        });
        out.push(event(message.started, message.started_at, start));
    }
    let end = message.completed.filter(|&(at, ..)| at <= range.upto);
    if end.is_none() || message.started <= range.since || missed != FinishedReplay::Ends {
        let joins = |last: &DeltaCut, next: &DeltaCut| {
            missed != FinishedReplay::EachDelta && joins(last, next)
        };
        deltas(message, &inside, &joins, |at, time, body| {
            out.push(event(at, time, body))
        });
    }
    if let Some((at, time, stop_reason, usage)) = end
        && inside(at)
    {
        let complete = Body::MessageComplete(message.complete(stop_reason, usage));
        out.push(event(at, time, complete));
    }
    out
}

fn deltas(
    message: &MessageFold,
    inside: &dyn Fn(Position) -> bool,
    joins: &dyn Fn(&DeltaCut, &DeltaCut) -> bool,
    mut push: impl FnMut(Position, Timestamp, Body),
) {
    // The length of each block's text before the range or the current run.
    let mut ends = vec![0usize; message.blocks.len()];
    let mut cuts = message.cuts.iter().peekable();
    while let Some(cut) = cuts.next() {
        let Some(end) = ends.get_mut(cut.block as usize) else {
            continue;
        };
        if !inside(cut.at) {
            *end = cut.end as usize;
            continue;
        }
        let mut last = cut;
        let from = *end;
        let fits = |next: &DeltaCut| (next.end as usize).saturating_sub(from) <= JOINED_BYTES_MAX;
        while let Some(next) =
            cuts.next_if(|next| joins(&last, next) && inside(next.at) && fits(next))
        {
            last = next;
        }
        *end = last.end as usize;
        if let Some(body) = delta(message, &last, from) {
            push(last.at, last.time, body);
        }
    }
}

/// True if `next` may be joined with `last` into one delta.
fn joins(last: &DeltaCut, next: &DeltaCut) -> bool {
    let same =
        next.block == last.block && next.at.seq == last.at.seq && next.at.sub == last.at.sub.next();
    same && match last.kind {
        CutKind::Text | CutKind::ToolInput => next.kind == last.kind,
        // A signature ends its reasoning.
        CutKind::Thinking {
            after_text: last,
            signed,
        } => {
            let is_same = |next| !signed && next == last;
            matches!(next.kind, CutKind::Thinking { after_text, .. } if is_same(after_text))
        }
        CutKind::ToolStart | CutKind::ToolEnd => false,
    }
}

fn delta(message: &MessageFold, cut: &DeltaCut, from: usize) -> Option<Body> {
    let content_block_index = cut.block;
    let message_id = message.id;
    let block = message.blocks.get(cut.block as usize)?;
    // `get` and not an index: after a crash a row may hold less text than its cuts cover.
    let text = || block.grown().get(from..cut.end as usize).map(str::to_owned);
    Some(match (cut.kind, block) {
        (CutKind::Text, BlockFold::Text(_)) => Body::TextDelta(TextDelta {
            message_id,
            content_block_index,
            text: text()?,
        }),
        (CutKind::Thinking { after_text, signed }, BlockFold::Thinking(_, seal)) => {
            Body::ThinkingDelta(ThinkingDelta {
                message_id,
                content_block_index,
                text: text()?,
                signature: if signed { seal.clone() } else { None },
                after_text,
            })
        }
        (CutKind::ToolStart, BlockFold::Tool(tool_use_id, tool_name, ..)) => {
            Body::ToolUseStart(ToolUseStart {
                message_id,
                content_block_index,
                tool_use_id: *tool_use_id,
                tool_name: tool_name.clone(),
            })
        }
        (CutKind::ToolInput, BlockFold::Tool(tool_use_id, ..)) => {
            Body::ToolUseInputDelta(ToolUseInputDelta {
                message_id,
                content_block_index,
                tool_use_id: *tool_use_id,
                partial_json: text()?,
            })
        }
        (CutKind::ToolEnd, BlockFold::Tool(tool_use_id, _, _, Some(input))) => {
            Body::ToolUseEnd(ToolUseEnd {
                message_id,
                content_block_index,
                tool_use_id: *tool_use_id,
                final_input: input.clone(),
            })
        }
        (
            CutKind::Text
            | CutKind::Thinking { .. }
            | CutKind::ToolStart
            | CutKind::ToolInput
            | CutKind::ToolEnd,
            _,
        ) => return None,
    })
}

#[cfg(test)]
mod tests;
