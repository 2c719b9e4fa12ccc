//! The port to what records the spans of turns.

use std::time::Instant;

use crate::Body;
use crate::actor::Actor;
use crate::clock::Timestamp;
use crate::id::{SessionId, TurnId};
use crate::trace::{SpanId, TraceContext, TracePropagation};

/// A turn that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct StartingTurn<'a> {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// The agent that answers; `None` for the orchestrator.
    pub agent: Option<&'a str>,
    /// The turn's span in the trace of its caller, if the caller sent one.
    pub trace: Option<&'a TraceContext>,
    /// The flag and the state of that trace.
    pub caller: &'a TracePropagation,
}

/// An event that was released, as a [`TurnTracer`] reads it.
#[derive(Clone, Copy, Debug)]
pub struct TracedEvent<'a> {
    pub turn_id: TurnId,
    pub actor: &'a Actor,
    pub body: &'a Body,
    pub time: Timestamp,
    /// The span that the event belongs to; `None` for that of the turn.
    pub trace: Option<&'a TraceContext>,
}

/// A value of a span's attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanValue {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Texts(Vec<String>),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A span that is measured where it happens, because no event shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSpan {
    pub name: String,
    /// True for a call of another service.
    pub is_client: bool,
    pub span: SpanId,
    pub parent: SpanId,
    pub started: Instant,
    pub ended: Instant,
    /// The class of the failure, if it failed: a code, never a text of the other side.
    pub failure: Option<String>,
    pub attributes: Vec<(&'static str, SpanValue)>,
}

/// The commit of a batch with events of turns.
#[derive(Clone, Copy, Debug)]
pub struct CommittedBatch {
    /// When the writer began to write the batch.
    pub began: Instant,
    /// When the batch was on disk.
    pub ended: Instant,
    /// The events of the turn in the batch.
    pub events: usize,
}

/// Records the spans of turns. Its methods are called on the path of events: none may block.
pub trait TurnTracer: Send + Sync {
    /// Decides whether the spans of a turn are recorded, before its first event. Returns the flag
    /// `sampled` for the services that the turn calls.
    fn begin(&self, turn: StartingTurn<'_>) -> bool;

    /// Forgets a turn whose first event was refused.
    fn discard(&self, turn: TurnId);

    /// Reads a released event of a turn.
    fn observe(&self, event: TracedEvent<'_>);

    /// Records the commit of a batch with events of a turn.
    fn record_commit(&self, turn: TurnId, batch: CommittedBatch);

    /// Records a span of a turn that was measured where it happened.
    fn record(&self, turn: TurnId, span: MeasuredSpan);
}
