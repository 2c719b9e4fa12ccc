//! The findings of the checker. Each variant is one broken promise with the data to look it up:
//! client, position, and both sides of the difference.

use turnwire_event::{EventType, MessageId, Position, SessionId, TurnId};

use super::chat_violation::ChatViolation;

/// A broken promise of the server, found in a [`History`](super::History).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Violation {
    /// A stored row or a received frame cannot be parsed.
    #[error("unreadable {subject}: {reason}: {text}")]
    Unreadable {
        subject: String,
        reason: String,
        text: String,
    },

    /// I1: an accepted turn is missing from the log.
    #[error("I1 {session}: turn {turn} was accepted and is not in the log")]
    TurnLost { session: String, turn: String },
    /// I1: a cancel was accepted, and the log has neither the request nor a matching end.
    #[error("I1 turn {turn}: its cancel was answered \"{state}\", which the log contradicts")]
    CancelLost { turn: String, state: String },
    /// I1: feedback was accepted and is not in the log.
    #[error("I1 {session}: {accepted} feedback requests were accepted, {logged} are in the log")]
    FeedbackLost {
        session: String,
        accepted: usize,
        logged: usize,
    },
    /// I1: a client saw a persisted event that is not in the log.
    #[error("I1 {session}: {client} saw {id}, which is not in the log: {text}")]
    EventLost {
        session: SessionId,
        client: String,
        id: Position,
        text: String,
    },
    /// I1: a client saw a persisted event with other bytes than the log has.
    #[error("I1 {session}: {client} saw {id} as\n  {seen}\nbut the log has\n  {stored}")]
    EventChanged {
        session: SessionId,
        client: String,
        id: Position,
        seen: String,
        stored: String,
    },

    /// I2: the log has a hole, a repetition, another epoch, or an event of the wrong lane.
    #[error("I2 {session}: number {expected} of the log is {actual} ({kind})")]
    NotDense {
        session: SessionId,
        expected: u64,
        actual: Position,
        kind: EventType,
    },
    /// I2: an id on a connection does not come after the one before it, or after the cursor.
    #[error("I2 {client}, connection {connection}: {after} came after {before}")]
    NotRising {
        client: String,
        connection: usize,
        before: Position,
        after: Position,
    },
    /// I2: a client was never sent an event that its filter wants.
    #[error("I2 {client}, connection {connection}: {id} ({kind}) was never sent; {next} was")]
    Missed {
        client: String,
        connection: usize,
        id: Position,
        kind: EventType,
        next: Position,
    },
    /// I2: a client was sent an event twice.
    #[error("I2 {client}, connection {connection}: {id} was sent a second time")]
    Twice {
        client: String,
        connection: usize,
        id: Position,
    },
    /// I2: a client was sent an event that its filter does not want.
    #[error("I2 {client}, connection {connection}: {id} ({kind}) does not match the filter")]
    Unwanted {
        client: String,
        connection: usize,
        id: Position,
        kind: EventType,
    },
    /// I2: the acknowledgement promised more replayed events than there are.
    #[error(
        "I2 {client}, connection {connection}: a replay of {announced} was announced, {matching} match"
    )]
    ReplayCount {
        client: String,
        connection: usize,
        announced: u64,
        matching: u64,
    },

    /// S3-087: an event of a worker does not stand between its start and its end.
    #[error("S3-087 {client}, connection {connection}: {id} of worker {worker} came {place}")]
    WorkerOutside {
        client: String,
        connection: usize,
        worker: SessionId,
        id: Position,
        place: &'static str,
    },

    /// I3: a turn has no terminal.
    #[error("I3 {session}: turn {turn} has no terminal")]
    TerminalMissing { session: SessionId, turn: TurnId },
    /// I3: a turn has more than one terminal.
    #[error("I3 {session}: turn {turn} has a second terminal at {id}")]
    TerminalTwice {
        session: SessionId,
        turn: TurnId,
        id: Position,
    },
    /// I3: an event of a turn comes after its terminal.
    #[error("I3 {session}: {kind} at {id} comes after the terminal of turn {turn}")]
    AfterTerminal {
        session: SessionId,
        turn: TurnId,
        id: Position,
        kind: EventType,
    },
    /// I3: an event of a turn comes before its start, or the turn starts twice.
    #[error("I3 {session}: {kind} at {id} is outside turn {turn}")]
    OutsideTurn {
        session: SessionId,
        turn: TurnId,
        id: Position,
        kind: EventType,
    },
    /// I3: a turn starts while another runs.
    #[error("I3 {session}: turn {turn} starts at {id} while turn {running} runs")]
    TurnsOverlap {
        session: SessionId,
        turn: TurnId,
        running: TurnId,
        id: Position,
    },

    /// I4: a model call or a tool is open when its turn ends.
    #[error("I4 {session}: {subject} of turn {turn} is still open at the terminal")]
    LeftOpen {
        session: SessionId,
        turn: TurnId,
        subject: String,
    },
    /// I4: a model call or a tool ends that is not open.
    #[error("I4 {session}: {subject} of turn {turn} ends at {id} without being open")]
    NotOpen {
        session: SessionId,
        turn: TurnId,
        subject: String,
        id: Position,
    },
    /// I4: the `called` field of `tool.failed` is wrong.
    #[error("I4 {session}: {subject} at {id} says called: {called}")]
    CalledFlag {
        session: SessionId,
        subject: String,
        id: Position,
        called: bool,
    },

    /// I5: the text that a client was sent differs from the stored message.
    #[error(
        "I5 {client}: block {block} of message {message} was sent as {seen:?} and is {stored:?} ({compared_with})"
    )]
    TextDiffers {
        client: String,
        message: MessageId,
        block: u32,
        seen: String,
        stored: String,
        compared_with: &'static str,
    },
    /// I5: crash recovery ended a message although no process was killed.
    #[error("I5 {client}: message {message} ends at {id} as after a crash, but nothing was killed")]
    SweptWithoutCrash {
        client: String,
        message: MessageId,
        id: Position,
    },
    /// I5: a crash lost more text than the checkpoint interval allows.
    #[error("I5 {client}: message {message} lost text that was sent {ms} ms before the kill")]
    CheckpointLate {
        client: String,
        message: MessageId,
        ms: u64,
    },
    /// I5: `message.complete` and the message row differ.
    #[error("I5 {session}: message {message} is {row} in its row and {sent} on the wire")]
    MessageDiffers {
        session: SessionId,
        message: MessageId,
        row: String,
        sent: String,
    },
    /// I5: the hash of a row differs from the hash in the log.
    #[error("I5 {session}: {subject} has hash {actual}, the log says {expected}")]
    HashDiffers {
        session: SessionId,
        subject: String,
        expected: String,
        actual: String,
    },
    /// I5: a row is missing, or differs from the log.
    #[error("I5 {session}: {subject}: expected {expected}, found {actual}")]
    RowDiffers {
        session: SessionId,
        subject: String,
        expected: String,
        actual: String,
    },
    /// I5: a snapshot differs from the state at its position.
    #[error("I5 {client}: the snapshot at {at}: {subject}: expected {expected}, found {actual}")]
    SnapshotDiffers {
        client: String,
        at: Position,
        subject: String,
        expected: String,
        actual: String,
    },

    /// Law 8: work started after the cancel request.
    #[error(
        "law 8 {session}: {kind} at {id} after the cancel of turn {turn} at {cancel_requested}"
    )]
    StartedAfterCancel {
        session: SessionId,
        turn: TurnId,
        kind: EventType,
        id: Position,
        cancel_requested: Position,
    },
    /// Law 8: a second cancel request, or an end other than `turn.cancelled` after one.
    #[error("law 8 {session}: {kind} at {id} after the cancel of turn {turn}")]
    CancelNotKept {
        session: SessionId,
        turn: TurnId,
        kind: EventType,
        id: Position,
    },

    /// A broken promise of the chat wire.
    #[error("chat {client}, turn {turn}: {subject}")]
    Chat {
        client: String,
        turn: TurnId,
        subject: ChatViolation,
    },

    /// The hash of an event does not follow from the one before it.
    #[error("chain {session}: hash of {id} is {actual}, expected {expected}")]
    ChainBroken {
        session: SessionId,
        id: Position,
        actual: String,
        expected: String,
    },
}

impl Violation {
    /// The variant's name, for chat violations with the prefix `Chat`.
    pub fn name(&self) -> String {
        let first = |debug: String| {
            let end = debug.find([' ', '{', '(']).unwrap_or(debug.len());
            debug[..end].to_owned()
        };
        match self {
            Self::Chat { subject, .. } => format!("Chat{}", first(format!("{subject:?}"))),
            other => first(format!("{other:?}")),
        }
    }
}
