//! The course of one turn (S3-052): a state machine that takes the turn's events in order, both
//! lanes, and refuses the first one that cannot come next.
//!
//! ```text
//! turn.started ─ route.decided ─┬─ llm.call_started ─ message.start ─ deltas ─ message.complete ─ llm.call_* ─┐
//!                               ├──────────────────────── tools, each called and ended ◄──────────────────────┤
//!                               └─ dispatch.traced ─ terminal ◄───────────────────────────────────────────────┘
//! ```
//! After a call that failed without a word another model may be chosen, and the call comes again.

use turnwire_event::body::turn::Cancelled;
use turnwire_event::code::ToolErrorClass;
use turnwire_event::{Body, CallId, ContentBlock, Event, MessageId, StopReason, ToolUseId};

/// Where a turn stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TurnStage {
    New,
    /// Started, no model chosen.
    Started,
    /// Between two things; tools may be asked for or running.
    Between,
    /// A model was called and has said nothing.
    Calling(CallId),
    Streaming(CallId, MessageId),
    /// A message has ended; its call must end next.
    Ending(CallId, MessageId, StopReason),
    Over,
}

/// A turn as far as its events have been taken.
#[derive(Debug)]
pub(super) struct TurnOrder {
    pub(super) stage: TurnStage,
    /// Calls, however often each was tried.
    pub(super) calls: u32,
    pub(super) routed: bool,
    /// Tool uses of the streaming message whose input is not whole.
    pub(super) inputs: Vec<ToolUseId>,
    /// Tools that were asked for and not called.
    pub(super) pending: Vec<ToolUseId>,
    pub(super) running: Vec<ToolUseId>,
    /// The reason given with the cancel.
    pub(super) asked: Option<String>,
    pub(super) cancelled: Option<Cancelled>,
    wants_more: bool,
    /// Whether the last thing was a call that failed without a word.
    unheard: bool,
    /// Whether the turn's dispatch was told: its end comes next (S2-064).
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
            asked: None,
            cancelled: None,
            wants_more: true,
            unheard: false,
            traced: false,
        }
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: &Event) -> Result<(), String> {
        let kind = event.body.kind();
        let at = format!("{kind} at {}", event.id);
        if self.asked.is_some() && kind.is_start() {
            return Err(format!("{at} starts after the cancel"));
        }
        if self.traced && !kind.is_terminal() {
            return Err(format!("{at} comes after dispatch.traced"));
        }
        let before = self.stage.clone();
        self.step(&event.body)
            .map_err(|why| format!("{at} cannot come in {before:?}: {why}"))
    }

    fn step(&mut self, body: &Body) -> Result<(), &'static str> {
        match body {
            Body::TurnStarted(_) => self.go(self.stage == TurnStage::New, TurnStage::Started),
            Body::RouteDecided(_) => {
                let first = self.stage == TurnStage::Started && !self.routed;
                let another = self.stage == TurnStage::Between && self.unheard;
                self.routed = true;
                self.unheard = false;
                self.go(first || another, TurnStage::Between)
            }
            Body::TurnCancelRequested(cancel) => {
                let open = !matches!(
                    self.stage,
                    TurnStage::New | TurnStage::Over | TurnStage::Ending(..)
                );
                let fits = open && self.asked.is_none();
                self.asked = Some(cancel.reason.clone());
                self.go(fits, self.stage.clone())
            }
            Body::LlmCallStarted(call) => {
                let free = self.pending.is_empty() && self.running.is_empty() && self.wants_more;
                self.calls += u32::from(call.attempt == 1);
                self.unheard = false;
                self.go(
                    self.stage == TurnStage::Between && free,
                    TurnStage::Calling(call.call_id),
                )
            }
            Body::LlmCallCompleted(_) | Body::LlmCallFailed(_) => self.end_call(body),
            Body::ToolCalled(_) | Body::ToolCompleted(_) | Body::ToolFailed(_) => self.tool(body),
            Body::DispatchTraced(_) => {
                let early = self.stage == TurnStage::Started && self.asked.is_some();
                self.traced = true;
                self.go(self.at_rest() || early, self.stage.clone())
            }
            Body::TurnCompleted(_) => {
                let fits = self.at_rest() && self.asked.is_none() && self.traced;
                self.go(fits, TurnStage::Over)
            }
            Body::TurnCancelled(cancelled) => {
                // A cancel that comes first of all finds no model chosen.
                let early = self.stage == TurnStage::Started;
                let fits = (self.at_rest() || early) && self.asked.is_some() && self.traced;
                self.cancelled = Some(cancelled.clone());
                self.go(fits, TurnStage::Over)
            }
            Body::MessageStart(_)
            | Body::TextDelta(_)
            | Body::ThinkingDelta(_)
            | Body::ToolUseStart(_)
            | Body::ToolUseInputDelta(_)
            | Body::ToolUseEnd(_)
            | Body::MessageComplete(_) => self.stream(body),
            _ => Err("it is no part of a turn"),
        }
    }

    fn go(&mut self, fits: bool, to: TurnStage) -> Result<(), &'static str> {
        self.stage = to;
        if fits { Ok(()) } else { Err("out of order") }
    }

    fn at_rest(&self) -> bool {
        self.stage == TurnStage::Between && self.pending.is_empty() && self.running.is_empty()
    }

    fn stream(&mut self, body: &Body) -> Result<(), &'static str> {
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
                take(&mut self.inputs, d.tool_use_id)?;
                d.message_id
            }
            Body::MessageComplete(end) => {
                if !self.inputs.is_empty() {
                    return Err("a tool use has no tool.use_end");
                }
                let cut = matches!(end.stop_reason, StopReason::Cancelled | StopReason::Error);
                if !cut {
                    self.pending = end.final_content.iter().filter_map(tool_use).collect();
                    self.wants_more = !self.pending.is_empty();
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
        let fits = match (stage, body) {
            (TurnStage::Ending(call, message, stop), Body::LlmCallCompleted(end)) => {
                let cut = matches!(stop, StopReason::Cancelled | StopReason::Error);
                (call, message, stop) == (end.call_id, end.message_id, end.stop_reason) && !cut
            }
            (TurnStage::Ending(call, message, stop), Body::LlmCallFailed(end)) => {
                let cut = matches!(stop, StopReason::Cancelled | StopReason::Error);
                call == end.call_id && Some(message) == end.message_id && cut
            }
            (TurnStage::Calling(call), Body::LlmCallFailed(end)) => {
                self.unheard = true;
                call == end.call_id && end.message_id.is_none()
            }
            _ => false,
        };
        if fits {
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
                // A tool that runs may tell of steps of its own.
                let nested = !self.running.is_empty() && !self.running.contains(&tool.tool_use_id);
                let asked = take(&mut self.pending, tool.tool_use_id);
                self.running.push(tool.tool_use_id);
                if nested { Ok(()) } else { asked }
            }
            Body::ToolCompleted(tool) => take(&mut self.running, tool.tool_use_id),
            Body::ToolFailed(tool) if tool.called => take(&mut self.running, tool.tool_use_id),
            // One of more than a message may ask for is answered and never called.
            Body::ToolFailed(tool)
                if self.asked.is_some() || tool.error_class == ToolErrorClass::InvalidInput =>
            {
                take(&mut self.pending, tool.tool_use_id)
            }
            _ => Err("a tool that was not called fails only after a cancel or as one too many"),
        }
    }
}

fn take(open: &mut Vec<ToolUseId>, id: ToolUseId) -> Result<(), &'static str> {
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
