//! The end of the message in flight: what is held goes first, then the message and its call end in
//! one piece, with the rows that make them durable.

use turnwire_event::body::llm::{CallCompleted, CallFailed};
use turnwire_event::code::{ToolState, ToolType};
use turnwire_event::content::content_json;
use turnwire_event::port::{Emission, MessageEnd, Onward, Refusal};
use turnwire_event::row::RowChange;
use turnwire_event::{Actor, Body, ContentBlock, Render, StopReason, ToolUseId};
use turnwire_log::{Draft, Refused, Room};

use crate::turn::emitter::{EmitterState, TurnEmitter, refusal};
use crate::turn::progress::ProgressNote;

impl TurnEmitter {
    /// Ends the message in flight: `message.complete` and the call's end together.
    pub(super) fn end_message(
        &self,
        desk: &mut EmitterState,
        end: MessageEnd,
    ) -> Result<Vec<ContentBlock>, Refusal> {
        if desk.sealed {
            return Err(refusal(Refused::Ended));
        }
        self.let_go(desk);
        let open = self.live.open_turn(self.turn).ok_or(Refusal::Ended)?;
        let message = open
            .message
            .filter(|message| message.id == end.message_id)
            .ok_or(Refusal::Ended)?;
        let stop_reason = if end.failure.is_some() {
            StopReason::Error
        } else {
            end.stop_reason
        };
        let complete = message.complete(stop_reason, end.usage);
        let content = complete.final_content.clone();
        let mut row = message.finished(&complete);
        row.kept = end.kept.clone();
        let finished = RowChange::MessageFinished(self.turn, Box::new(row.clone()));
        let after = call_end(&end, stop_reason, content_json(&content).1);
        let pending = match end.failure {
            Some(_) => Vec::new(),
            None => self.pending(&content, &end.tools),
        };
        let note = ProgressNote::Event(Actor::ORCHESTRATOR, Box::new(after.clone()));
        let after = (after, end.provider_response_id.clone());
        let complete = (Body::MessageComplete(complete), finished);
        let drafts = self.ends(desk, complete, after, pending);
        // Together, so that both are released by the commit that holds the message.
        let emitted = self.live.sequencer.emit(drafts, Room::Reserved);
        emitted.map_err(refusal)?;
        let said = &mut desk.said;
        said.types.extend(end.tools.iter().copied());
        said.take_in(note, &self.definition);
        said.keep_finished(self.live.id, self.turn, &row);
        Ok(content)
    }

    /// The end of a message and of its call, through the gate, with their rows.
    fn ends(
        &self,
        desk: &mut EmitterState,
        (complete, finished): (Body, RowChange),
        (after, theirs): (Body, Option<String>),
        pending: Vec<RowChange>,
    ) -> Vec<Draft> {
        let now = desk.look(&complete);
        let mut rows = std::iter::once(finished).chain(pending);
        let mut drafts = Vec::with_capacity(2);
        let mut out = |emission: Emission, render: Option<Render>| {
            let mut draft = self.draft(emission, render);
            match draft.body {
                Body::MessageComplete(_) => draft.rows.extend(rows.next()),
                _ => draft.rows.extend(rows.by_ref()),
            }
            drafts.push(draft);
        };
        let out: Onward<'_> = &mut out;
        for (body, theirs) in [(complete, None), (after, theirs)] {
            let mut emission = Emission::new(Actor::ORCHESTRATOR, body);
            emission.provider_response_id = theirs;
            desk.gate.take(emission, now, out);
        }
        desk.gate.flush(out);
        drafts
    }

    /// Rows of the tools a message asks for, before any is called.
    fn pending(&self, content: &[ContentBlock], types: &[(ToolUseId, ToolType)]) -> Vec<RowChange> {
        let row = |block: &ContentBlock| {
            let ContentBlock::ToolUse { id, name, .. } = block else {
                return None;
            };
            let known = types.iter().find(|(tool, _)| tool == id);
            Some(RowChange::ToolCall {
                tool_use_id: *id,
                turn_id: self.turn,
                tool_name: name.clone(),
                tool_type: known.map_or(ToolType::Function, |(_, kind)| *kind),
                status: ToolState::Pending,
            })
        };
        content.iter().filter_map(row).collect()
    }
}

fn call_end(end: &MessageEnd, stop_reason: StopReason, content_sha256: String) -> Body {
    match end.failure {
        Some(error_class) => Body::LlmCallFailed(CallFailed {
            call_id: end.call_id,
            message_id: Some(end.message_id),
            content_sha256: Some(content_sha256),
            error_class,
        }),
        None => Body::LlmCallCompleted(CallCompleted {
            call_id: end.call_id,
            message_id: end.message_id,
            content_sha256,
            stop_reason,
            usage: end.usage,
        }),
    }
}
