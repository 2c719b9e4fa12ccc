//! The promises of the chat wire, as they can be broken.

use turnwire_event::MessageId;

/// One broken promise of the chat wire.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(
    missing_docs,
    reason = "the sentence above each variant says what its fields are"
)]
pub enum ChatViolation {
    /// The head of the answer lacks something or names something else.
    #[error("the head's {name} is {found:?}")]
    Head { name: &'static str, found: String },
    /// The stream speaks another version than was asked for.
    #[error("version {asked} was asked for, the turn is bound to {bound}")]
    Version { asked: String, bound: String },
    /// Nothing more was said to come, or something, and the opposite is true.
    #[error("a resume at {cursor} was answered {status}")]
    Over { cursor: String, status: u16 },

    /// I1: a frame of a persisted event that is not in the log.
    #[error("I1 {id} is not in the log: {text}")]
    Lost { id: String, text: String },
    /// I1: a frame with other bytes than the log gives.
    #[error("I1 {id} came as\n  {seen}\nbut the log gives\n  {due}")]
    Changed {
        id: String,
        seen: String,
        due: String,
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
    /// I2: words outside of any model call of the turn.
    #[error("I2 {id} lies in no model call of the turn: {text}")]
    Stray { id: String, text: String },

    /// A frame lacks a field, or has one too many, or one of another kind.
    #[error("{id}: {why}: {text}")]
    Envelope {
        id: String,
        why: String,
        text: String,
    },
    /// Time goes back inside a turn.
    #[error("{id} is of {after}, the frame before it of {before}")]
    TimeBack {
        id: String,
        before: String,
        after: String,
    },
    /// The turn's name does not come first, or comes again.
    #[error("{event} at {id}: response_id is the first frame, and there alone")]
    First { id: String, event: String },

    /// I3: a frame after the terminal.
    #[error("I3 {id} ({event}) came after the terminal")]
    AfterTerminal { id: String, event: String },
    /// I3: the sentinel without a terminal before it, a terminal without a sentinel behind it,
    /// or something behind the sentinel.
    #[error("I3 the sentinel: {why}")]
    Sentinel { why: String },
    /// I3: a viewer stayed and was never told the end.
    #[error("I3 the viewer stayed and has no terminal; the last it has is {last}")]
    Unended { last: String },
    /// I3: what the turn cost is told elsewhere than right before a terminal that has it.
    #[error("I3 usage: {why}")]
    Usage { why: String },

    /// I4: a tool's two frames do not fit.
    #[error("I4 tool {tool}: {why}")]
    Tool { tool: String, why: &'static str },

    /// I5, law 5: the words that came are not those that are stored.
    #[error("I5 message {message:?} came as {seen:?} and is {whole:?}")]
    Text {
        message: Option<MessageId>,
        seen: String,
        whole: String,
    },
    /// I5: a crash cost more text than the checkpoints allow.
    #[error("I5 message {message:?} lost text that was sent {ms} ms before the kill")]
    CheckpointLate { message: Option<MessageId>, ms: u64 },
}
