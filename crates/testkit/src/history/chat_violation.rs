//! Broken promises of the chat wire: headers, order, frame contents, endings and text.

use turnwire_event::MessageId;

/// One broken promise of the chat wire; reported as [`Violation::Chat`](super::Violation::Chat).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChatViolation {
    /// A response header is missing or has an unexpected value.
    #[error("the head's {name} is {actual:?}")]
    Head { name: &'static str, actual: String },
    /// The stream has another wire version than requested.
    #[error("version {requested} was requested, the turn is bound to {bound}")]
    Version { requested: String, bound: String },
    /// A resume was answered 204 with frames still due, or 200 with no frame due.
    #[error("a resume at {cursor} was answered {status}")]
    WrongStatus { cursor: String, status: u16 },

    /// I1: a frame of a persisted event that is not in the log.
    #[error("I1 {id} is not in the log: {text}")]
    Lost { id: String, text: String },
    /// I1: the bytes of a frame differ from the projection of the log.
    #[error("I1 {id} came as\n  {seen}\nbut the log gives\n  {expected}")]
    Changed {
        id: String,
        seen: String,
        expected: String,
    },
    /// I2: an id does not come after the one before it, or after the cursor.
    #[error("I2 {after} came after {before}")]
    NotRising { before: String, after: String },
    /// I2: a frame came twice.
    #[error("I2 {id} came a second time")]
    Twice { id: String },
    /// I2: a frame never came, and a later one did.
    #[error("I2 {id} never came: {text}")]
    Missed { id: String, text: String },
    /// I2: text outside of every model call of the turn.
    #[error("I2 {id} lies in no model call of the turn: {text}")]
    Stray { id: String, text: String },

    /// A frame has a missing, additional or wrongly typed field.
    #[error("{id}: {reason}: {text}")]
    Envelope {
        id: String,
        reason: String,
        text: String,
    },
    /// The timestamps of a turn decrease.
    #[error("{id} is of {after}, the frame before it of {before}")]
    TimeBack {
        id: String,
        before: String,
        after: String,
    },
    /// `response_id` is not the first frame, or comes again.
    #[error("{event} at {id}: response_id is the first frame, and there alone")]
    First { id: String, event: String },

    /// I3: a frame after the terminal.
    #[error("I3 {id} ({event}) came after the terminal")]
    AfterTerminal { id: String, event: String },
    /// I3: the sentinel without a terminal before it, a terminal without a sentinel behind it,
    /// or something behind the sentinel.
    #[error("I3 the sentinel: {reason}")]
    Sentinel { reason: String },
    /// I3: a viewer stayed to the end and received no terminal.
    #[error("I3 the viewer stayed and has no terminal; the last it has is {last}")]
    Unended { last: String },
    /// I3: the usage frame is missing or not right before the terminal.
    #[error("I3 usage: {reason}")]
    Usage { reason: String },

    /// I4: `tool_call` and `tool_completed` of a tool do not match.
    #[error("I4 tool {tool}: {reason}")]
    Tool { tool: String, reason: &'static str },

    /// I5, law 5: the received text differs from the stored text.
    #[error("I5 message {message:?} came as {seen:?} and is {stored:?}")]
    Text {
        message: Option<MessageId>,
        seen: String,
        stored: String,
    },
    /// I5: a crash lost more text than the checkpoint interval allows.
    #[error("I5 message {message:?} lost text that was sent {ms} ms before the kill")]
    CheckpointLate { message: Option<MessageId>, ms: u64 },
}
