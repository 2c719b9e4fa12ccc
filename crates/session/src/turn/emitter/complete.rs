//! The end of the message in flight: events held back go first, then `message.complete` and the end
//! of its model call in one commit, with the rows of both.

use turnwire_event::body::llm::{CallCompleted, CallFailed};
use turnwire_event::code::{ToolState, ToolType};
use turnwire_event::content::content_json;
use turnwire_event::port::{Emission, EmitRefusal, GateOutput, MessageEnd};
use turnwire_event::row::RowChange;
use turnwire_event::{Actor, Body, ContentBlock, RenderDecision, StopReason, ToolUseId};
use turnwire_log::{EventDraft, OutboxRoom, SequencerError};

use super::{EmitterState, TurnEmitter, refusal};
use crate::turn::progress::ProgressNote;

impl TurnEmitter {
    /// Ends the message in flight and its model call, and returns the content of the message.
    pub(super) fn end_message(
        &self,
        state: &mut EmitterState,
        end: MessageEnd,
    ) -> Result<Vec<ContentBlock>, EmitRefusal> {
        if state.sealed {
            return Err(refusal(SequencerError::Ended));
        }
        self.flush_gate(state);
        let open = self.live.open_turn(self.turn).ok_or(EmitRefusal::Ended)?;
        let message = open
            .message
            .filter(|message| message.id == end.message_id)
            .ok_or(EmitRefusal::Ended)?;
        let stop_reason = if end.failure.is_some() {
            StopReason::Error
        } else {
            end.stop_reason
        };
        let complete = message.complete(stop_reason, end.usage);
        let content = complete.final_content.clone();
        let mut row = message.finished(&complete);
        row.provider_state = end.provider_state.clone();
        let finished = RowChange::MessageFinished(self.turn, Box::new(row.clone()));
        let call_end = call_end_body(&end, stop_reason, content_json(&content).1);
        let pending_tools = match end.failure {
            Some(_) => Vec::new(),
            None => self.pending_tool_rows(&content, &end.tools),
        };
        let note = ProgressNote::Event(Actor::ORCHESTRATOR, Box::new(call_end.clone()));
        let call_end = (call_end, end.provider_response_id.clone());
        let complete = (Body::MessageComplete(complete), finished);
        let drafts = self.end_drafts(state, complete, call_end, pending_tools);
        // Together, so that one commit releases both.
        let emitted = self.live.sequencer.emit(drafts, OutboxRoom::Reserved);
        emitted.map_err(refusal)?;
        let progress = &mut state.progress;
        progress.tool_types.extend(end.tools.iter().copied());
        progress.apply(note, &self.dimensions);
        progress.add_streamed(self.live.id, self.turn, &row);
        Ok(content)
    }

    /// The drafts of `message.complete` and of the call's end, rendered by the gate, with their
    /// rows.
    fn end_drafts(
        &self,
        state: &mut EmitterState,
        (complete, finished): (Body, RowChange),
        (call_end, response_id): (Body, Option<String>),
        pending_tools: Vec<RowChange>,
    ) -> Vec<EventDraft> {
        let now = state.event_time(&complete);
        let mut rows = std::iter::once(finished).chain(pending_tools);
        let mut drafts = Vec::with_capacity(2);
        let mut out = |emission: Emission, render: Option<RenderDecision>| {
            let mut draft = self.draft(emission, render);
            match draft.body {
                Body::MessageComplete(_) => draft.rows.extend(rows.next()),
                _ => draft.rows.extend(rows.by_ref()),
            }
            drafts.push(draft);
        };
        let out: GateOutput<'_> = &mut out;
        for (body, response_id) in [(complete, None), (call_end, response_id)] {
            let mut emission = Emission::new(Actor::ORCHESTRATOR, body);
            emission.provider_response_id = response_id;
            state.gate.take(emission, now, out);
        }
        state.gate.flush(out);
        drafts
    }

    /// The rows of the tools that a message uses, before any of them is called.
    fn pending_tool_rows(
        &self,
        content: &[ContentBlock],
        types: &[(ToolUseId, ToolType)],
    ) -> Vec<RowChange> {
        let row = |block: &ContentBlock| {
            let ContentBlock::ToolUse { id, name, .. } = block else {
                return None;
            };
            let tool_type = types.iter().find(|(tool, _)| tool == id);
            Some(RowChange::ToolCall {
                tool_use_id: *id,
                turn_id: self.turn,
                tool_name: name.clone(),
                tool_type: tool_type.map_or(ToolType::Function, |(_, kind)| *kind),
                status: ToolState::Pending,
            })
        };
        content.iter().filter_map(row).collect()
    }
}

fn call_end_body(end: &MessageEnd, stop_reason: StopReason, content_sha256: String) -> Body {
    match end.failure {
        Some(error_class) => Body::LlmCallFailed(CallFailed {
            call_id: end.call_id,
            message_id: Some(end.message_id),
            content_sha256: Some(content_sha256),
            error_class,
            usage: end.usage,
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
