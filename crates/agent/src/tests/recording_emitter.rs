//! An emitter that records every event as a line, and can be full or refuse.

use std::time::Duration;

use parking_lot::Mutex;
use turnwire_event::body::llm::{CallCompleted, CallFailed};
use turnwire_event::content::content_json;
use turnwire_event::fold::MessageFold;
use turnwire_event::port::{BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, MessageEnd};
use turnwire_event::row::NewMessage;
use turnwire_event::{
    Actor, Body, ContentBlock, Epoch, Position, Seq, StopReason, Sub, Timestamp, TurnId, Ulid,
};

/// An emitter that records all events.
#[derive(Default)]
pub(super) struct RecordingEmitter {
    state: Mutex<RecordedState>,
    room: Option<usize>,
    full_every: Option<usize>,
    commit_time: Duration,
}

#[derive(Default)]
struct RecordedState {
    lines: Vec<String>,
    emissions: Vec<Emission>,
    bodies: Vec<(Actor, Body)>,
    seq: u64,
    sub: u32,
    message: Option<MessageFold>,
    full: bool,
}

/// An event as one line, without the zeros of counted ids.
fn line(actor: &Actor, body: &Body) -> String {
    let mut payload = Vec::new();
    body.write(&mut payload);
    let payload = String::from_utf8(payload).expect("JSON is UTF-8");
    let payload = payload.replace(&"0".repeat(24), "");
    format!("{actor} {} {payload}", body.kind())
}

impl RecordingEmitter {
    /// Refuses all events after `room` lines.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            room: Some(room),
            ..Self::default()
        }
    }

    /// Reports a full outbox every `lines` lines.
    pub(super) fn full_every(lines: usize) -> Self {
        Self {
            full_every: Some(lines),
            ..Self::default()
        }
    }

    /// Takes `commit_time` for each commit.
    pub(super) fn committing_for(commit_time: Duration) -> Self {
        Self {
            commit_time,
            ..Self::default()
        }
    }

    /// All lines, in order.
    pub(super) fn lines(&self) -> Vec<String> {
        self.state.lock().lines.clone()
    }

    /// The event types, in order.
    pub(super) fn types(&self) -> Vec<String> {
        let lines = self.lines();
        let word = |line: &String| line.split(' ').nth(1).unwrap_or(line).to_owned();
        lines.iter().map(word).collect()
    }

    /// The emissions that came through `emit`.
    pub(super) fn emissions(&self) -> Vec<Emission> {
        self.state.lock().emissions.clone()
    }

    /// All events, those that the end of a message emits included.
    pub(super) fn bodies(&self) -> Vec<(Actor, Body)> {
        self.state.lock().bodies.clone()
    }

    /// The messages that came with emissions.
    pub(super) fn messages(&self) -> Vec<NewMessage> {
        let emissions = self.emissions().into_iter();
        emissions.filter_map(|e| e.message).collect()
    }

    /// Adds a line of the test.
    pub(super) fn note(&self, line: &str) {
        self.state.lock().lines.push(line.to_owned());
    }
}

impl RecordedState {
    fn place(&mut self, body: &Body) -> Position {
        if body.kind().is_persisted() {
            self.seq += 1;
            self.sub = 0;
        } else {
            self.sub += 1;
        }
        Position {
            epoch: Epoch::FIRST,
            seq: Seq(self.seq),
            sub: Sub(self.sub),
        }
    }

    fn put(&mut self, actor: &Actor, body: &Body) -> Position {
        let at = self.place(body);
        self.lines.push(line(actor, body));
        self.bodies.push((actor.clone(), body.clone()));
        if let Body::MessageStart(start) = body {
            let turn = TurnId(Ulid(0));
            let time = Timestamp::default();
            let fold = MessageFold::new(start.message_id, turn, start.model.clone(), at, time);
            self.message = Some(fold);
        }
        if let Some(message) = &mut self.message {
            message.apply(at, Timestamp::default(), body);
        }
        at
    }
}

impl EventEmitter for RecordingEmitter {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let mut state = self.state.lock();
        if self.room.is_some_and(|room| state.lines.len() >= room) {
            return Err(EmitRefusal::Cancelled.into());
        }
        let due = |every: usize| state.lines.len().is_multiple_of(every);
        if self.full_every.is_some_and(due) && !state.full {
            state.full = true;
            return Err(EmitError::Full(Box::new(emission)));
        }
        state.full = false;
        let at = state.put(&emission.actor, &emission.body);
        state.emissions.push(emission);
        Ok(at)
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        let mut state = self.state.lock();
        if self.room.is_some_and(|room| state.lines.len() >= room) {
            return Err(EmitRefusal::Cancelled);
        }
        let message = state.message.take().expect("a message is open");
        assert_eq!(message.id, end.message_id);
        assert_eq!(message.open_tool_uses(), [], "tool uses are ended first");
        let content = message.content();
        let tools: Vec<_> = content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::ToolUse { id, .. } => Some(*id),
                _ => None,
            })
            .collect();
        let named: Vec<_> = end.tools.iter().map(|(id, _)| *id).collect();
        assert_eq!(named, tools, "the kinds of all tools are told");
        let stop_reason = end.failure.map_or(end.stop_reason, |_| StopReason::Error);
        let complete = Body::MessageComplete(message.complete(stop_reason, end.usage));
        let content_sha256 = content_json(&content).1;
        let ended = match end.failure {
            None => Body::LlmCallCompleted(CallCompleted {
                call_id: end.call_id,
                message_id: end.message_id,
                content_sha256,
                stop_reason,
                usage: end.usage,
            }),
            Some(error_class) => Body::LlmCallFailed(CallFailed {
                call_id: end.call_id,
                message_id: Some(end.message_id),
                content_sha256: Some(content_sha256),
                error_class,
                usage: end.usage,
            }),
        };
        state.put(&Actor::ORCHESTRATOR, &complete);
        state.put(&Actor::ORCHESTRATOR, &ended);
        Ok(content)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        Box::pin(async move {
            match self.commit_time {
                Duration::ZERO => tokio::task::yield_now().await,
                commit_time => tokio::time::sleep(commit_time).await,
            }
            let mut state = self.state.lock();
            if self.room.is_some_and(|room| state.lines.len() >= room) {
                return Err(EmitRefusal::Cancelled);
            }
            state.lines.push(format!("committed {}", at.seq.0));
            Ok(())
        })
    }
}
