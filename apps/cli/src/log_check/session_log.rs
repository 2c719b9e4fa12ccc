//! The log of a session, checked from its bytes alone: nothing is taken on trust but the first
//! hash of a log whose beginning was trimmed.
//!
//! In: the events in order, with the hash the store has for each, and the messages that can be
//! read. Out: what was counted and every violation, each with the event it is about. Pure.

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;
use turnwire_event::content::content_json;
use turnwire_event::{
    Body, ContentBlock, Event, Message, MessageId, MessageStatus, Position, Seq, SessionId,
    Timestamp, ToolUseId, TurnId,
};
use turnwire_log::chain::ChainHash;

use crate::log_check::turn_rules::TurnRules;

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogViolation {
    /// The event it is about.
    pub(crate) event: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

#[derive(Debug)]
pub(crate) struct LogVerifier {
    session: SessionId,
    first: Option<Seq>,
    last: Option<Position>,
    time: Option<Timestamp>,
    hash: ChainHash,
    turns: TurnRules,
    messages: HashMap<MessageId, Message>,
    results: HashMap<ToolUseId, String>,
    checked: u64,
    missing: u64,
    violations: Vec<LogViolation>,
}

#[derive(Debug)]
pub(crate) struct LogVerdict {
    /// The number of the first event that is kept.
    pub(crate) first: u64,
    pub(crate) last: Option<Position>,
    /// Turns that ended, and turns in flight.
    pub(crate) turns: (u64, u64),
    /// Tool calls that were closed.
    pub(crate) tools: u64,
    /// Contents that match their hash, and contents that are not there to be read.
    pub(crate) contents: (u64, u64),
    /// The chain's hash at the last event.
    pub(crate) hash: ChainHash,
    /// What must not be.
    pub(crate) violations: Vec<LogViolation>,
}

#[derive(Deserialize)]
struct EventHead {
    id: Position,
    session_id: SessionId,
    turn_id: Option<TurnId>,
    timestamp: Timestamp,
    persisted: bool,
}

impl LogVerifier {
    /// A check of `session`, whose log begins after the link `previous`.
    pub(crate) fn new(session: SessionId, previous: ChainHash, messages: Vec<Message>) -> Self {
        let is_complete = |message: &Message| message.status != MessageStatus::InProgress;
        let messages: HashMap<_, _> = messages
            .into_iter()
            .filter(is_complete)
            .map(|message| (message.id, message))
            .collect();
        let results = messages.values().flat_map(results).collect();
        Self {
            session,
            first: None,
            last: None,
            time: None,
            hash: previous,
            turns: TurnRules::default(),
            messages,
            results,
            checked: 0,
            missing: 0,
            violations: Vec::new(),
        }
    }

    /// Takes in the next event, with the hash the store has for it.
    pub(crate) fn take(&mut self, bytes: &Bytes, stored: ChainHash) {
        let expected = self.last.map_or(Seq(1), |last| last.seq.next());
        let head: EventHead = match serde_json::from_slice(bytes) {
            Ok(head) => head,
            Err(error) => {
                return self.violate(
                    format!("number {}", expected.0),
                    format!("cannot be read: {error}"),
                );
            }
        };
        let id = head.id.to_string();
        if self.first.is_none() {
            self.begin(&id, head.id.seq);
        } else if head.id.seq != expected {
            self.violate(id.clone(), format!("expected number {}", expected.0));
        }
        if self.last.is_some_and(|last| head.id.epoch < last.epoch) {
            self.violate(id.clone(), "its epoch is older than the one before".into());
        }
        if head.session_id != self.session {
            self.violate(id.clone(), format!("belongs to {}", head.session_id));
        }
        if !head.id.is_persisted() || !head.persisted {
            self.violate(id.clone(), "a transient event in the log".into());
        }
        if self.time.is_some_and(|time| head.timestamp < time) {
            self.violate(
                id.clone(),
                "its time is before that of the event before".into(),
            );
        }
        self.hash = self.hash.next(bytes);
        if self.hash != stored {
            self.violate(id.clone(), "does not match its hash".into());
            // One damaged event is one violation, not one for every event after it.
            self.hash = stored;
        }
        self.last = Some(head.id);
        self.time = Some(head.timestamp);
        // A type that is newer than this program has its place and its hash checked, no more.
        if let Ok(event) = Event::read(bytes) {
            for what in self.turns.take(head.turn_id, &event.body) {
                self.violate(id.clone(), what);
            }
            self.content(&id, &event.body);
        }
    }

    fn begin(&mut self, id: &str, seq: Seq) {
        self.first = Some(seq);
        self.turns.trimmed = seq != Seq(1);
        if seq == Seq(1) && self.hash != ChainHash::seed(self.session) {
            self.violate(
                id.to_owned(),
                "the chain does not begin with the session's id".into(),
            );
            self.hash = ChainHash::seed(self.session);
        }
    }

    /// The store could not give record `seq`, because it does not match its hash.
    pub(crate) fn damaged(&mut self, seq: Seq) {
        let epoch = self
            .last
            .map_or(turnwire_event::Epoch::FIRST, |last| last.epoch);
        let id = Position::persisted(epoch, seq).to_string();
        self.violate(
            id,
            "does not match its hash; nothing after it was read".into(),
        );
    }

    /// Compares what an event vouches for with what is stored.
    fn content(&mut self, id: &str, body: &Body) {
        let (what, promised, found) = match body {
            Body::LlmCallCompleted(call) => {
                let stored_hash = self.message_hash(call.message_id);
                ("message", call.content_sha256.clone(), stored_hash)
            }
            Body::LlmCallFailed(call) => {
                let (Some(message), Some(promised)) = (call.message_id, &call.content_sha256)
                else {
                    return;
                };
                ("message", promised.clone(), self.message_hash(message))
            }
            Body::ToolCompleted(tool) => {
                let stored_hash = self.results.get(&tool.tool_use_id).cloned();
                ("result", tool.result_sha256.clone(), stored_hash)
            }
            _ => return,
        };
        match found {
            None => self.missing += 1,
            Some(found) if found == promised => self.checked += 1,
            Some(_) => self.violate(
                id.to_owned(),
                format!("its {what} is not the one it vouches for"),
            ),
        }
    }

    fn message_hash(&self, id: MessageId) -> Option<String> {
        let message = self.messages.get(&id)?;
        Some(content_json(&message.content).1)
    }

    fn violate(&mut self, event: String, what: String) {
        self.violations.push(LogViolation { event, what });
    }

    pub(crate) fn finish(mut self) -> LogVerdict {
        let open = self.turns.open.len() as u64;
        if open > 1 {
            let last = self.last.map(|last| last.to_string()).unwrap_or_default();
            self.violate(last, format!("{open} turns are in flight at once"));
        }
        LogVerdict {
            first: self.first.map_or(0, |first| first.0),
            last: self.last,
            turns: (self.turns.ended, open),
            tools: self.turns.tools,
            contents: (self.checked, self.missing),
            hash: self.hash,
            violations: self.violations,
        }
    }
}

/// The hash of each tool result that a message holds.
fn results(message: &Message) -> Vec<(ToolUseId, String)> {
    let hashed = |block: &ContentBlock| match block {
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            ..
        } => {
            let json = serde_json::to_string(content).ok()?;
            let hash = turnwire_event::content::sha256_hex(json.as_bytes());
            Some((*tool_use_id, hash))
        }
        _ => None,
    };
    message.content.iter().filter_map(hashed).collect()
}

#[cfg(test)]
mod tests;
