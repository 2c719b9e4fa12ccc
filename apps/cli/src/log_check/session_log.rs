//! Checks the log of a session from its bytes. Only the first hash of a trimmed log is trusted.
//!
//! In: the events in order, each with its stored hash, and the stored messages. Out: a
//! [`LogVerdict`] with counts and every violation, each with its event. Pure.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use turnwire_event::{Body, Epoch, Event, Position, Seq, SessionId, Timestamp, TurnId};
use turnwire_log::chain::ChainHash;

use crate::log_check::stored_contents::StoredContents;
use crate::log_check::turn_verifier::TurnVerifier;

/// A broken rule of the log, from a [`LogVerifier`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LogViolation {
    /// The event that breaks the rule.
    pub(crate) event: String,
    /// Completes a sentence whose subject is the event.
    #[serde(rename = "what")]
    pub(crate) description: String,
}

/// Checks the events of one session in order.
#[derive(Debug)]
pub(crate) struct LogVerifier {
    session: SessionId,
    first: Option<Position>,
    /// The last event of each epoch so far.
    epoch_ends: Vec<Position>,
    /// The time of the last event.
    time: Option<Timestamp>,
    turns: TurnVerifier,
    contents: Arc<StoredContents>,
    verdict: LogVerdict,
}

/// The result of [`LogVerifier`].
#[derive(Debug)]
pub(crate) struct LogVerdict {
    /// The number of the first stored event; 0 if there is none.
    pub(crate) first: u64,
    pub(crate) last: Option<Position>,
    /// The number of turns that ended, and of turns in flight.
    pub(crate) turns: (u64, u64),
    /// The number of tool calls that ended.
    pub(crate) tools: u64,
    /// The number of contents that match their hash, and of contents that are not stored.
    pub(crate) contents: (u64, u64),
    /// The chain's hash at the last event.
    pub(crate) hash: ChainHash,
    /// The first [`VIOLATIONS_MAX`] violations.
    pub(crate) violations: Vec<LogViolation>,
    pub(crate) violation_count: u64,
}

/// Violations that are kept: a log that breaks a rule a thousand times is not mended one by one.
const VIOLATIONS_MAX: usize = 1_000;

#[derive(Deserialize)]
struct EventHead {
    id: Position,
    session_id: SessionId,
    turn_id: Option<TurnId>,
    timestamp: Timestamp,
    persisted: bool,
}

impl LogVerifier {
    /// A verifier of `session`, whose log begins after the hash `previous`.
    pub(crate) fn new(
        session: SessionId,
        previous: ChainHash,
        contents: impl Into<Arc<StoredContents>>,
    ) -> Self {
        Self {
            session,
            first: None,
            epoch_ends: Vec::new(),
            time: None,
            turns: TurnVerifier::default(),
            contents: contents.into(),
            verdict: LogVerdict {
                first: 0,
                last: None,
                turns: (0, 0),
                tools: 0,
                contents: (0, 0),
                hash: previous,
                violations: Vec::new(),
                violation_count: 0,
            },
        }
    }

    /// Checks the next event against its stored [`ChainHash`] and the events before it.
    pub(crate) fn check(&mut self, bytes: &Bytes, stored: ChainHash) {
        let last = self.verdict.last;
        let expected = last.map_or(Seq(1), |last| last.seq.next());
        let head: EventHead = match serde_json::from_slice(bytes) {
            Ok(head) => head,
            Err(error) => {
                let event = format!("number {}", expected.0);
                return self.violate(event, format!("cannot be read: {error}"));
            }
        };
        let id = head.id;
        if last.is_none() {
            self.begin(id);
        } else if id.seq != expected {
            self.violate(id, format!("expected number {}", expected.0));
        }
        if last.is_some_and(|last| id.epoch < last.epoch) {
            self.violate(id, "its epoch is older than the one before");
        }
        if head.session_id != self.session {
            self.violate(id, format!("belongs to {}", head.session_id));
        }
        if !id.is_persisted() || !head.persisted {
            self.violate(id, "a transient event in the log");
        }
        if self.time.is_some_and(|time| head.timestamp < time) {
            self.violate(id, "its time is before that of the event before");
        }
        if self.verdict.hash.next(bytes) != stored {
            self.violate(id, "does not match its hash");
        }
        // One damaged event is one violation, not one for every event after it.
        self.verdict.hash = stored;
        self.verdict.last = Some(id);
        self.first.get_or_insert(id);
        match self.epoch_ends.last_mut() {
            Some(end) if end.epoch == id.epoch => *end = id,
            _ => self.epoch_ends.push(id),
        }
        self.time = Some(head.timestamp);
        // An event of a type that this program does not know has its position and hash checked only.
        if let Ok(event) = Event::read(bytes) {
            for description in self.turns.check(head.turn_id, &event.body) {
                self.violate(id, description);
            }
            self.check_content(id, &event.body);
        }
    }

    fn begin(&mut self, id: Position) {
        self.verdict.first = id.seq.0;
        self.turns.is_log_trimmed = id.seq != Seq(1);
        let seed = ChainHash::seed(self.session);
        if id.seq == Seq(1) && self.verdict.hash != seed {
            self.violate(id, "the chain does not begin with the session's id");
            self.verdict.hash = seed;
        }
    }

    /// Reports that the store could not read record `seq`: it is missing or does not match its hash.
    pub(crate) fn damaged(&mut self, seq: Seq) {
        let epoch = self.verdict.last.map_or(Epoch::FIRST, |last| last.epoch);
        let id = Position::persisted(epoch, seq);
        let description = "is missing or does not match its hash; nothing after it was read";
        self.violate(id, description);
    }

    /// Compares the content hash of an event with the stored content.
    fn check_content(&mut self, id: Position, body: &Body) {
        let (content, promised, stored) = match body {
            Body::LlmCallCompleted(call) => {
                let stored = self.contents.message(call.message_id);
                ("message", Some(&call.content_sha256), stored)
            }
            Body::LlmCallFailed(call) => {
                let Some(message) = call.message_id else {
                    return;
                };
                let stored = self.contents.message(message);
                ("message", call.content_sha256.as_ref(), stored)
            }
            Body::ToolCompleted(tool) => {
                let stored = self.contents.result(tool.tool_use_id);
                ("result", Some(&tool.result_sha256), stored)
            }
            _ => return,
        };
        let Some(promised) = promised else {
            return;
        };
        match stored {
            None => self.verdict.contents.1 += 1,
            Some(stored) if stored.is(promised) => self.verdict.contents.0 += 1,
            Some(_) => self.violate(id, format!("its stored {content} does not match its hash")),
        }
    }

    /// Adds a violation that was found outside of the bytes.
    pub(crate) fn violate(&mut self, event: impl Display, description: impl Into<String>) {
        self.verdict.violation_count += 1;
        if self.verdict.violations.len() < VIOLATIONS_MAX {
            self.verdict.violations.push(LogViolation {
                event: event.to_string(),
                description: description.into(),
            });
        }
    }

    /// The first event that was checked.
    pub(crate) fn first(&self) -> Option<Position> {
        self.first
    }

    /// The last event that was checked.
    pub(crate) fn last(&self) -> Option<Position> {
        self.verdict.last
    }

    /// The hash of the chain at the last event that was checked.
    pub(crate) fn hash(&self) -> ChainHash {
        self.verdict.hash
    }

    /// The last event of an epoch before `epoch`.
    pub(crate) fn last_before(&self, epoch: Epoch) -> Option<Position> {
        let older = self.epoch_ends.iter().rev();
        older.copied().find(|end| end.epoch < epoch)
    }

    pub(crate) fn finish(mut self) -> LogVerdict {
        let unfinished = self.turns.unfinished.len() as u64;
        if unfinished > 1 {
            let last = self.verdict.last.map(|last| last.to_string());
            let description = format!("{unfinished} turns are in flight at once");
            self.violate(last.unwrap_or_default(), description);
        }
        LogVerdict {
            turns: (self.turns.ended_turn_count, unfinished),
            tools: self.turns.ended_tool_count,
            ..self.verdict
        }
    }
}

#[cfg(test)]
mod tests;
