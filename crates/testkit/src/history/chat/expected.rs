//! What a viewer of a turn must receive: the frames of its persisted events by `pc3::project`, and
//! the stored text of each model call.

use std::collections::BTreeMap;

use turnwire_event::{
    ActorKind, Body, CallId, ContentBlock, Event, MessageId, Position, ResponseId, SessionId,
    TurnId,
};
use turnwire_wire::pc3::{self, FrameCursor, WireVersion};

use super::super::parse::ParsedLog;
use super::super::record::{FaultKind, History};

/// The frame type that carries a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Thinking,
    Reasoning,
    Text,
}

/// A model call: its first and last position, and its stored text.
#[derive(Debug)]
pub(super) struct ExpectedCall {
    id: CallId,
    pub(super) started: Position,
    pub(super) ended: Option<Position>,
    pub(super) message: Option<MessageId>,
    /// The text as runs; adjacent texts of one kind are joined.
    pub(super) runs: Vec<(TextKind, String)>,
}

/// Everything that a viewer of one turn must receive.
#[derive(Debug)]
pub(super) struct ExpectedTurn {
    pub(super) turn: TurnId,
    pub(super) session: SessionId,
    pub(super) response: String,
    pub(super) version: WireVersion,
    /// The frames of persisted events, in order.
    pub(super) frames: Vec<(FrameCursor, String)>,
    pub(super) calls: Vec<ExpectedCall>,
    /// True if crash recovery ended the turn: the stored text may be shorter than the sent text.
    pub(super) swept: bool,
    terminal: Option<FrameCursor>,
    /// True after the first text: later thinking is sent as `reasoning`.
    has_text: bool,
    /// An agent elsewhere says itself what is reasoning before its text and what within it.
    is_relayed: bool,
}

impl ExpectedTurn {
    /// Every turn of every log.
    pub(super) fn all(
        history: &History,
        logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    ) -> BTreeMap<TurnId, Self> {
        let was_killed = history.count(FaultKind::Kill) > 0;
        let mut expected_turns = BTreeMap::new();
        if history.chats.is_empty() {
            return expected_turns;
        }
        for log in logs.values() {
            for event in &log.events {
                let Some(turn) = event.turn_id else { continue };
                let expected = expected_turns
                    .entry(turn)
                    .or_insert_with(|| Self::new(turn, log.id));
                expected.event(log, event, was_killed);
            }
        }
        expected_turns
    }

    fn new(turn: TurnId, session: SessionId) -> Self {
        Self {
            turn,
            session,
            response: ResponseId::from(turn).to_string(),
            version: WireVersion::default(),
            frames: Vec::new(),
            calls: Vec::new(),
            swept: false,
            terminal: None,
            has_text: false,
            is_relayed: false,
        }
    }

    fn event(&mut self, log: &ParsedLog<'_>, event: &Event, was_killed: bool) {
        if let Some(given) = &event.response_id {
            self.response = given.to_string();
        }
        // Text of sub-agents is not sent (S2-013).
        let own = event.actor.kind() != ActorKind::Subagent;
        match &event.body {
            Body::TurnStarted(started) => {
                let bound = started.wire_version.as_deref().map(str::parse);
                self.version = bound.and_then(Result::ok).unwrap_or_default();
                self.is_relayed = started.relayed_to.is_some();
            }
            Body::LlmCallStarted(call) if own => self.calls.push(ExpectedCall {
                id: call.call_id,
                started: event.id,
                ended: None,
                message: None,
                runs: Vec::new(),
            }),
            Body::LlmCallCompleted(call) if own => {
                self.call_ended(log, event.id, call.call_id, Some(call.message_id));
            }
            Body::LlmCallFailed(call) if own => {
                self.call_ended(log, event.id, call.call_id, call.message_id);
            }
            Body::TurnCompleted(end) => {
                self.swept = was_killed && end.reason.as_deref() == Some("server_restart");
            }
            // `turn.cancelled` does not show whether crash recovery wrote it.
            Body::TurnCancelled(_) => self.swept = was_killed,
            _ => {}
        }
        let mut bytes = Vec::new();
        pc3::project(event, self.version, &mut bytes);
        let text = String::from_utf8(bytes).unwrap_or_default();
        let blocks = text.split_inclusive("\n\n");
        let frames = blocks.filter(|block| block.as_bytes() != pc3::SENTINEL);
        for (block, number) in frames.zip(0u8..) {
            let id = FrameCursor::of_frame(event, number);
            self.frames.push((id, block.to_owned()));
        }
        if event.body.kind().is_terminal() && self.terminal.is_none() {
            self.terminal = self.frames.last().map(|(id, _)| *id);
        }
    }

    fn call_ended(
        &mut self,
        log: &ParsedLog<'_>,
        at: Position,
        call: CallId,
        message: Option<MessageId>,
    ) {
        let row = log.messages.iter().find(|row| Some(row.id) == message);
        let mut runs: Vec<(TextKind, String)> = Vec::new();
        for block in row.map_or(&[][..], |row| &row.content) {
            let (kind, text) = match block {
                ContentBlock::Text { text } => (TextKind::Text, text),
                ContentBlock::Thinking { text, .. } if self.has_text => (TextKind::Reasoning, text),
                ContentBlock::Thinking { text, .. } => (TextKind::Thinking, text),
                _ => continue,
            };
            let kind = self.compared_kind(kind);
            self.has_text |= kind == TextKind::Text && !text.is_empty();
            append_run(&mut runs, kind, text);
        }
        if let Some(open) = self.calls.iter_mut().find(|open| open.id == call) {
            (open.ended, open.message, open.runs) = (Some(at), message, runs);
        }
    }

    /// The kind by which text is compared: of a relayed turn, the log has one kind of reasoning.
    pub(super) fn compared_kind(&self, kind: TextKind) -> TextKind {
        match kind {
            TextKind::Reasoning if self.is_relayed => TextKind::Thinking,
            kind => kind,
        }
    }

    /// A frame of a persisted event.
    pub(super) fn frame(&self, id: FrameCursor) -> Option<&str> {
        let frame = self.frames.iter().find(|(known, _)| *known == id);
        frame.map(|(_, text)| text.as_str())
    }

    /// True if a viewer with this cursor has the terminal.
    pub(super) fn is_over(&self, cursor: FrameCursor) -> bool {
        let last = |last: FrameCursor| cursor.covers(last.position, last.frame.unwrap_or(0));
        self.terminal.is_some_and(last)
    }
}

/// Appends text to the last run, or starts a new run if the kind differs.
pub(super) fn append_run(runs: &mut Vec<(TextKind, String)>, kind: TextKind, text: &str) {
    if text.is_empty() {
        return;
    }
    match runs.last_mut() {
        Some((last, run)) if *last == kind => run.push_str(text),
        _ => runs.push((kind, text.to_owned())),
    }
}
