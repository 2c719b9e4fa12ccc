//! What a turn's viewers are due: the frames of its persisted events as `pc3::project` gives them,
//! and of each model call the words that are stored.

use std::collections::BTreeMap;

use turnwire_event::{
    ActorKind, Body, CallId, ContentBlock, Event, MessageId, Position, ResponseId, SessionId,
    TurnId,
};
use turnwire_wire::pc3::{self, Cursor, Version};

use super::super::parse::ParsedLog;
use super::super::record::{FaultKind, History};

/// What kind of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Thinking,
    Reasoning,
    Text,
}

/// A model call: between which places its words lie, and which they are.
#[derive(Debug)]
pub(super) struct ExpectedCall {
    id: CallId,
    pub(super) started: Position,
    pub(super) ended: Option<Position>,
    pub(super) message: Option<MessageId>,
    /// Neighbours of one kind are one.
    pub(super) words: Vec<(TextKind, String)>,
}

/// All that one turn gives.
#[derive(Debug)]
pub(super) struct ExpectedTurn {
    pub(super) turn: TurnId,
    pub(super) session: SessionId,
    pub(super) response: String,
    pub(super) version: Version,
    /// The frames of persisted events, in order.
    pub(super) frames: Vec<(Cursor, String)>,
    pub(super) calls: Vec<ExpectedCall>,
    /// Whether a crash ended it, so that stored words may be fewer than were sent.
    pub(super) swept: bool,
    terminal: Option<Cursor>,
    /// Whether words were sent, so that what is thought from here on is reasoning.
    spoken: bool,
}

impl ExpectedTurn {
    /// Every turn of every log.
    pub(super) fn all(
        history: &History,
        logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    ) -> BTreeMap<TurnId, Self> {
        let killed = history.count(FaultKind::Kill) > 0;
        let mut dues = BTreeMap::new();
        if history.chats.is_empty() {
            return dues;
        }
        for log in logs.values() {
            for event in &log.events {
                let Some(turn) = event.turn_id else { continue };
                let due = dues.entry(turn).or_insert_with(|| Self::new(turn, log.id));
                due.event(log, event, killed);
            }
        }
        dues
    }

    fn new(turn: TurnId, session: SessionId) -> Self {
        Self {
            turn,
            session,
            response: ResponseId::from(turn).to_string(),
            version: Version::default(),
            frames: Vec::new(),
            calls: Vec::new(),
            swept: false,
            terminal: None,
            spoken: false,
        }
    }

    fn event(&mut self, log: &ParsedLog<'_>, event: &Event, killed: bool) {
        // What sub-agents say is theirs: no words of it are due (S2-013).
        let own = event.actor.kind() != ActorKind::Subagent;
        match &event.body {
            Body::TurnStarted(started) => {
                let bound = started.wire_version.as_deref().map(str::parse);
                self.version = bound.and_then(Result::ok).unwrap_or_default();
            }
            Body::LlmCallStarted(call) if own => self.calls.push(ExpectedCall {
                id: call.call_id,
                started: event.id,
                ended: None,
                message: None,
                words: Vec::new(),
            }),
            Body::LlmCallCompleted(call) if own => {
                self.call_ended(log, event.id, call.call_id, Some(call.message_id));
            }
            Body::LlmCallFailed(call) if own => {
                self.call_ended(log, event.id, call.call_id, call.message_id);
            }
            Body::TurnCompleted(end) => {
                self.swept = killed && end.reason.as_deref() == Some("server_restart");
            }
            // Its end does not say whether the process lived to write it.
            Body::TurnCancelled(_) => self.swept = killed,
            _ => {}
        }
        let mut bytes = Vec::new();
        pc3::project(event, self.version, &mut bytes);
        let text = String::from_utf8(bytes).unwrap_or_default();
        let blocks = text.split_inclusive("\n\n");
        let frames = blocks.filter(|block| block.as_bytes() != pc3::SENTINEL);
        for (block, number) in frames.zip(0u8..) {
            let id = Cursor {
                position: event.id,
                frame: Some(number),
            };
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
        let mut words: Vec<(TextKind, String)> = Vec::new();
        for block in row.map_or(&[][..], |row| &row.content) {
            let (kind, text) = match block {
                ContentBlock::Text { text } => (TextKind::Text, text),
                ContentBlock::Thinking { text, .. } if self.spoken => (TextKind::Reasoning, text),
                ContentBlock::Thinking { text, .. } => (TextKind::Thinking, text),
                _ => continue,
            };
            self.spoken |= kind == TextKind::Text && !text.is_empty();
            join(&mut words, kind, text);
        }
        if let Some(open) = self.calls.iter_mut().find(|open| open.id == call) {
            (open.ended, open.message, open.words) = (Some(at), message, words);
        }
    }

    /// A frame of a persisted event.
    pub(super) fn frame(&self, id: Cursor) -> Option<&str> {
        let found = self.frames.iter().find(|(known, _)| *known == id);
        found.map(|(_, text)| text.as_str())
    }

    /// Whether one who has this has the terminal.
    pub(super) fn is_over(&self, cursor: Cursor) -> bool {
        let last = |last: Cursor| cursor.covers(last.position, last.frame.unwrap_or(0));
        self.terminal.is_some_and(last)
    }
}

/// Adds words to the run before them, or begins another.
pub(super) fn join(words: &mut Vec<(TextKind, String)>, kind: TextKind, text: &str) {
    if text.is_empty() {
        return;
    }
    match words.last_mut() {
        Some((last, run)) if *last == kind => run.push_str(text),
        _ => words.push((kind, text.to_owned())),
    }
}
