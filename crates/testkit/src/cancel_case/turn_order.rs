//! The event order of one turn (S3-052): a state machine that takes the turn's events of both lanes
//! in order, and rejects the first one that is out of order.
//!
//! ```text
//! turn.started ─ route.decided ─┬─ llm.call_started ─ message.start ─ deltas ─ message.complete ─ llm.call_* ─┐
//!                               ├──────────────────────── tools, each called and ended ◄──────────────────────┤
//!                               └─ dispatch.traced ─ terminal ◄───────────────────────────────────────────────┘
//! ```
//! After a call that failed without output another model may be chosen, and the call is repeated.

use turnwire_event::body::turn::TurnCancelled;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::{Body, CallId, ContentBlock, Event, MessageId, StopReason, ToolUseId};

/// The state of the turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TurnStage {
    New,
    /// Started, no model chosen.
    Started,
    /// Between two model calls; tools may be pending or running.
    Between,
    /// A model call without output so far.
    Calling(CallId),
    Streaming(CallId, MessageId),
    /// A message has ended; its call must end next.
    Ending(CallId, MessageId, StopReason),
    Over,
}

/// The turn after the events applied so far.
#[derive(Debug)]
pub(super) struct TurnOrder {
    pub(super) stage: TurnStage,
    /// Model calls, without retries.
    pub(super) calls: u32,
    pub(super) routed: bool,
    /// Tool uses of the streaming message whose input is incomplete.
    pub(super) inputs: Vec<ToolUseId>,
    /// Tools that the model requested and that were not called yet.
    pub(super) pending: Vec<ToolUseId>,
    pub(super) running: Vec<ToolUseId>,
    /// The reason of the cancel request, once it came.
    pub(super) cancel_reason: Option<String>,
    pub(super) cancelled: Option<TurnCancelled>,
    may_call_model: bool,
    /// True after a model call that failed without output.
    failed_silently: bool,
    /// True after `dispatch.traced`: the terminal comes next (S2-064).
    traced: bool,
}

impl TurnOrder {
    pub(super) fn new() -> Self {
        Self {
            stage: TurnStage::New,
            calls: 0,
            routed: false,
            inputs: Vec::new(),
            pending: Vec::new(),
            running: Vec::new(),
            cancel_reason: None,
            cancelled: None,
            may_call_model: true,
            failed_silently: false,
            traced: false,
        }
    }

    /// Applies the next event, or says why it is out of order.
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), String> {
        let kind = event.body.kind();
        let at = format!("{kind} at {}", event.id);
        if self.cancel_reason.is_some() && kind.is_start() {
            return Err(format!("{at} starts after the cancel"));
        }
        if self.traced && !kind.is_terminal() {
            return Err(format!("{at} comes after dispatch.traced"));
        }
        let before = self.stage.clone();
        self.apply_body(&event.body)
            .map_err(|why| format!("{at} cannot come in {before:?}: {why}"))
    }

    fn apply_body(&mut self, body: &Body) -> Result<(), &'static str> {
        match body {
            Body::TurnStarted(_) => self.advance(self.stage == TurnStage::New, TurnStage::Started),
            Body::RouteDecided(_) => {
                let first = self.stage == TurnStage::Started && !self.routed;
                let another = self.stage == TurnStage::Between && self.failed_silently;
                self.routed = true;
                self.failed_silently = false;
                self.advance(first || another, TurnStage::Between)
            }
            Body::TurnCancelRequested(cancel) => {
                let open = !matches!(
                    self.stage,
                    TurnStage::New | TurnStage::Over | TurnStage::Ending(..)
                );
                let is_allowed = open && self.cancel_reason.is_none();
                self.cancel_reason = Some(cancel.reason.clone());
                self.advance(is_allowed, self.stage.clone())
            }
            Body::LlmCallStarted(call) => {
                let free =
                    self.pending.is_empty() && self.running.is_empty() && self.may_call_model;
                self.calls += u32::from(call.attempt == 1);
                self.failed_silently = false;
                self.advance(
                    self.stage == TurnStage::Between && free,
                    TurnStage::Calling(call.call_id),
                )
            }
            Body::LlmCallCompleted(_) | Body::LlmCallFailed(_) => self.end_call(body),
            Body::ToolCalled(_) | Body::ToolCompleted(_) | Body::ToolFailed(_) => self.tool(body),
            Body::DispatchTraced(_) => {
                let early = self.stage == TurnStage::Started && self.cancel_reason.is_some();
                self.traced = true;
                self.advance(self.is_idle() || early, self.stage.clone())
            }
            Body::TurnCompleted(_) => {
                let is_allowed = self.is_idle() && self.cancel_reason.is_none() && self.traced;
                self.advance(is_allowed, TurnStage::Over)
            }
            Body::TurnCancelled(cancelled) => {
                // A very early cancel comes before a model is chosen.
                let early = self.stage == TurnStage::Started;
                let is_allowed =
                    (self.is_idle() || early) && self.cancel_reason.is_some() && self.traced;
                self.cancelled = Some(cancelled.clone());
                self.advance(is_allowed, TurnStage::Over)
            }
            Body::MessageStart(_)
            | Body::TextDelta(_)
            | Body::ThinkingDelta(_)
            | Body::ToolUseStart(_)
            | Body::ToolUseInputDelta(_)
            | Body::ToolUseEnd(_)
            | Body::MessageComplete(_) => self.apply_stream(body),
            _ => Err("it is no part of a turn"),
        }
    }

    fn advance(&mut self, is_allowed: bool, to: TurnStage) -> Result<(), &'static str> {
        self.stage = to;
        if is_allowed {
            Ok(())
        } else {
            Err("out of order")
        }
    }

    fn is_idle(&self) -> bool {
        self.stage == TurnStage::Between && self.pending.is_empty() && self.running.is_empty()
    }

    fn apply_stream(&mut self, body: &Body) -> Result<(), &'static str> {
        if let (TurnStage::Calling(call), Body::MessageStart(start)) = (&self.stage, body) {
            self.inputs.clear();
            self.stage = TurnStage::Streaming(*call, start.message_id);
            return Ok(());
        }
        let TurnStage::Streaming(call, open) = self.stage else {
            return Err("no message streams");
        };
        let message = match body {
            Body::TextDelta(d) => d.message_id,
            Body::ThinkingDelta(d) => d.message_id,
            Body::ToolUseStart(d) => {
                self.inputs.push(d.tool_use_id);
                d.message_id
            }
            Body::ToolUseInputDelta(d) => {
                if !self.inputs.contains(&d.tool_use_id) {
                    return Err("the tool use is not open");
                }
                d.message_id
            }
            Body::ToolUseEnd(d) => {
                remove_open(&mut self.inputs, d.tool_use_id)?;
                d.message_id
            }
            Body::MessageComplete(end) => {
                if !self.inputs.is_empty() {
                    return Err("a tool use has no tool.use_end");
                }
                let cut = matches!(end.stop_reason, StopReason::Cancelled | StopReason::Error);
                if !cut {
                    self.pending = end.final_content.iter().filter_map(tool_use).collect();
                    self.may_call_model = !self.pending.is_empty();
                }
                self.stage = TurnStage::Ending(call, end.message_id, end.stop_reason);
                end.message_id
            }
            _ => return Err("a message streams already"),
        };
        if message == open {
            Ok(())
        } else {
            Err("it belongs to another message")
        }
    }

    fn end_call(&mut self, body: &Body) -> Result<(), &'static str> {
        let stage = std::mem::replace(&mut self.stage, TurnStage::Between);
        let is_allowed = match (stage, body) {
            (TurnStage::Ending(call, message, stop), Body::LlmCallCompleted(end)) => {
                let cut = matches!(stop, StopReason::Cancelled | StopReason::Error);
                (call, message, stop) == (end.call_id, end.message_id, end.stop_reason) && !cut
            }
            (TurnStage::Ending(call, message, stop), Body::LlmCallFailed(end)) => {
                let cut = matches!(stop, StopReason::Cancelled | StopReason::Error);
                call == end.call_id && Some(message) == end.message_id && cut
            }
            (TurnStage::Calling(call), Body::LlmCallFailed(end)) => {
                self.failed_silently = true;
                call == end.call_id && end.message_id.is_none()
            }
            _ => false,
        };
        if is_allowed {
            Ok(())
        } else {
            Err("it is not the end of the open call")
        }
    }

    fn tool(&mut self, body: &Body) -> Result<(), &'static str> {
        if self.stage != TurnStage::Between {
            return Err("tools run between two calls");
        }
        match body {
            Body::ToolCalled(tool) => {
                // A running tool may report nested steps.
                let nested = !self.running.is_empty() && !self.running.contains(&tool.tool_use_id);
                let was_pending = remove_open(&mut self.pending, tool.tool_use_id);
                self.running.push(tool.tool_use_id);
                if nested { Ok(()) } else { was_pending }
            }
            Body::ToolCompleted(tool) => remove_open(&mut self.running, tool.tool_use_id),
            Body::ToolFailed(tool) if tool.called => {
                remove_open(&mut self.running, tool.tool_use_id)
            }
            // A tool use above the limit per message fails without a call.
            Body::ToolFailed(tool)
                if self.cancel_reason.is_some()
                    || matches!(
                        tool.error_class,
                        ToolErrorClass::InvalidInput | ToolErrorClass::NotExecuted
                    ) =>
            {
                remove_open(&mut self.pending, tool.tool_use_id)
            }
            _ => Err("a tool that was not called fails only after a cancel or as one too many"),
        }
    }
}

fn remove_open(open: &mut Vec<ToolUseId>, id: ToolUseId) -> Result<(), &'static str> {
    let at = open.iter().position(|&tool| tool == id);
    at.map(|at| _ = open.remove(at))
        .ok_or("the tool use is not open")
}

fn tool_use(block: &ContentBlock) -> Option<ToolUseId> {
    match block {
        ContentBlock::ToolUse { id, .. } => Some(*id),
        _ => None,
    }
}
