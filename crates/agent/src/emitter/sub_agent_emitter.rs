//! The voice of one sub-agent in one invocation: the turn's writer, as that sub-agent has it.
//!
//! What it emits goes on to the turn's writer, in the span of its run. The voice notes what is
//! open and what was shown. Once it is closed nothing of the sub-agent gets through, whatever of
//! it still runs elsewhere, and what was left open is told.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::ToolType;
use turnwire_event::port::{BoxFuture, Emission, EmitError, Emitter, MessageEnd, Refusal};
use turnwire_event::{Body, CallId, ContentBlock, Position, ToolUseId, Trace};
use turnwire_tool::ServiceFault;

/// A tool that was called and has not ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenTool {
    pub(crate) id: ToolUseId,
    pub(crate) name: String,
    pub(crate) tool_type: ToolType,
}

/// What a sub-agent has done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    /// How many status events it emitted.
    pub(crate) statuses: u32,
    /// The last of those that the person may have been shown.
    heard: Option<Heard>,
    /// What it had shown to the person: types and ids.
    pub(crate) components: Vec<Value>,
    /// The errors that were told of it.
    pub(crate) errors: Vec<TurnError>,
    /// Failures of data services that were not told.
    pub(crate) kept: Vec<ServiceFault>,
    /// Its model calls in flight.
    pub(crate) calls: Vec<CallId>,
    /// Its tools at work.
    pub(crate) tools: Vec<OpenTool>,
}

/// A status that the person may have been shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Which of them it was, from 1.
    pub(crate) number: u32,
    /// When.
    pub(crate) at: Instant,
}

/// One sub-agent's way to the turn's writer.
pub(crate) struct Voice {
    writer: Arc<dyn Emitter>,
    span: Arc<Trace>,
    /// The statuses that a person is shown of it; others are dropped on their way.
    emits: Vec<String>,
    /// Told when one of those is emitted.
    spoken: Notify,
    /// None once closed. Held while an event is handed on, so that closing is a point in time.
    trail: Mutex<Option<Trail>>,
}

impl Voice {
    pub(crate) fn new(writer: Arc<dyn Emitter>, span: Arc<Trace>, emits: Vec<String>) -> Self {
        Self {
            writer,
            span,
            emits,
            spoken: Notify::new(),
            trail: Mutex::new(Some(Trail::default())),
        }
    }

    /// The last status that the person may have been shown.
    pub(crate) fn heard(&self) -> Option<Heard> {
        self.trail.lock().as_ref().and_then(|trail| trail.heard)
    }

    /// Comes back when a status has been emitted that the person may have been shown. For one
    /// listener; what it missed while it did not listen it is told at once.
    pub(crate) async fn speaks(&self) {
        self.spoken.notified().await;
    }

    /// Whether anything was shown to the person.
    pub(crate) fn has_shown(&self) -> bool {
        let trail = self.trail.lock();
        trail.as_ref().is_some_and(|h| !h.components.is_empty())
    }

    /// Keeps a failure that is not told.
    pub(crate) fn keep(&self, fault: ServiceFault) {
        if let Some(trail) = self.trail.lock().as_mut() {
            trail.kept.push(fault);
        }
    }

    /// Lets nothing more through; gives what it leaves behind.
    pub(crate) fn close(&self) -> Trail {
        self.trail.lock().take().unwrap_or_default()
    }

    pub(crate) fn span(&self) -> &Arc<Trace> {
        &self.span
    }
}

impl Trail {
    fn note(&mut self, note: Note) {
        match note {
            Note::Status(Seen::No) => self.statuses += 1,
            Note::Status(Seen::Yes) => {
                self.statuses += 1;
                self.heard = Some(Heard {
                    number: self.heard.map_or(0, |last| last.number) + 1,
                    at: Instant::now(),
                });
            }
            Note::Shown(component) => self.components.push(component),
            Note::Error(error) => self.errors.push(error),
            Note::Call(id) => self.calls.push(id),
            Note::CallEnd(id) => self.calls.retain(|open| *open != id),
            Note::Tool(tool) => self.tools.push(tool),
            Note::ToolEnd(id) => self.tools.retain(|open| open.id != id),
        }
    }
}

/// Whether a person is shown a status.
enum Seen {
    Yes,
    No,
}

/// What an event means for what is open.
enum Note {
    Status(Seen),
    Shown(Value),
    Error(TurnError),
    Call(CallId),
    CallEnd(CallId),
    Tool(OpenTool),
    ToolEnd(ToolUseId),
}

fn note(body: &Body, emits: &[String]) -> Option<Note> {
    Some(match body {
        Body::StatusEmitted(status) if emits.contains(&status.event_id) => Note::Status(Seen::Yes),
        Body::StatusEmitted(_) => Note::Status(Seen::No),
        Body::DataLoaded(data) => {
            let ids: Vec<&str> = data.key.ids.iter().map(|item| item.id.as_str()).collect();
            Note::Shown(json!({"type": data.data_type, "ids": ids}))
        }
        Body::ComponentRendered(rendered) => {
            let text = |key: &str| rendered.component.get(key).and_then(Value::as_str);
            let name = rendered.tool_call.name.as_str();
            let kind = text("type").unwrap_or(name.strip_prefix("render_").unwrap_or(name));
            let ids: Vec<&str> = text("id").into_iter().collect();
            Note::Shown(json!({"type": kind, "ids": ids}))
        }
        Body::ErrorReported(error) => Note::Error(error.clone()),
        Body::LlmCallStarted(call) => Note::Call(call.call_id),
        Body::LlmCallCompleted(call) => Note::CallEnd(call.call_id),
        Body::LlmCallFailed(call) => Note::CallEnd(call.call_id),
        Body::ToolCalled(tool) => Note::Tool(OpenTool {
            id: tool.tool_use_id,
            name: tool.tool_name.clone(),
            tool_type: tool.tool_type,
        }),
        Body::ToolCompleted(tool) => Note::ToolEnd(tool.tool_use_id),
        Body::ToolFailed(tool) => Note::ToolEnd(tool.tool_use_id),
        _ => return None,
    })
}

impl Emitter for Voice {
    fn emit(&self, mut emission: Emission) -> Result<Position, EmitError> {
        let mut trail = self.trail.lock();
        let Some(trail) = trail.as_mut() else {
            return Err(Refusal::Ended.into());
        };
        if emission.trace.is_none() {
            emission.trace = Some(Arc::clone(&self.span));
        }
        let note = note(&emission.body, &self.emits);
        let at = self.writer.emit(emission)?;
        if let Some(note) = note {
            if let Note::Status(Seen::Yes) = note {
                self.spoken.notify_one();
            }
            trail.note(note);
        }
        Ok(at)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, Refusal> {
        let trail = self.trail.lock();
        if trail.is_none() {
            return Err(Refusal::Ended);
        }
        self.writer.complete(end)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        self.writer.ready()
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), Refusal>> {
        self.writer.committed(at)
    }
}
