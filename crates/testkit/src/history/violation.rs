//! What a checker can find wrong. Each variant is one broken promise, with what is needed to
//! look it up: whose, where, and both sides of the disagreement.

use turnwire_event::{EventType, MessageId, Position, SessionId, TurnId};

use super::chat_violation::ChatViolation;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(
    missing_docs,
    reason = "the sentence above each variant says what its fields are"
)]
pub enum Violation {
    /// Something that should be readable is not.
    #[error("unreadable {what}: {why}: {text}")]
    Unreadable {
        what: String,
        why: String,
        text: String,
    },

    /// I1: a turn was accepted and is not in the log.
    #[error("I1 {session}: turn {turn} was accepted and is not in the log")]
    TurnLost { session: String, turn: String },
    /// I1: a cancel was accepted, and the log has neither the request nor an end.
    #[error(
        "I1 turn {turn}: its cancel was answered \"{state}\" and the log does not bear that out"
    )]
    CancelLost { turn: String, state: String },
    /// I1: feedback was accepted and is not in the log.
    #[error("I1 {session}: {accepted} feedbacks were accepted, {logged} are in the log")]
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
    #[error("I2 {session}: number {expected} of the log is {found} ({kind})")]
    NotDense {
        session: SessionId,
        expected: u64,
        found: Position,
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
        "I2 {client}, connection {connection}: a replay of {told} was announced, {matching} match"
    )]
    ReplayCount {
        client: String,
        connection: usize,
        told: u64,
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
    #[error("I4 {session}: {what} of turn {turn} is still open at the terminal")]
    LeftOpen {
        session: SessionId,
        turn: TurnId,
        what: String,
    },
    /// I4: a model call or a tool ends that is not open.
    #[error("I4 {session}: {what} of turn {turn} ends at {id} without being open")]
    NotOpen {
        session: SessionId,
        turn: TurnId,
        what: String,
        id: Position,
    },
    /// I4: `tool.failed` lies about whether the tool was called.
    #[error("I4 {session}: {what} at {id} says called: {told}")]
    CalledFlag {
        session: SessionId,
        what: String,
        id: Position,
        told: bool,
    },

    /// I5: what a client was sent of a message is not what the message is.
    #[error(
        "I5 {client}: block {block} of message {message} was sent as {seen:?} and is {whole:?} ({whence})"
    )]
    TextDiffers {
        client: String,
        message: MessageId,
        block: u32,
        seen: String,
        whole: String,
        whence: &'static str,
    },
    /// I5: a message is shorter than what was sent of it, and no crash explains it.
    #[error("I5 {client}: message {message} ends at {id} as after a crash, but nothing was killed")]
    SweptWithoutCrash {
        client: String,
        message: MessageId,
        id: Position,
    },
    /// I5: a crash cost more text than the checkpoints allow.
    #[error("I5 {client}: message {message} lost text that was sent {ms} ms before the kill")]
    CheckpointLate {
        client: String,
        message: MessageId,
        ms: u64,
    },
    /// I5: the end of a message and its row disagree.
    #[error("I5 {session}: message {message} is {row} in its row and {told} on the wire")]
    MessageDiffers {
        session: SessionId,
        message: MessageId,
        row: String,
        told: String,
    },
    /// I5: the row is not what the log vouches for.
    #[error("I5 {session}: {what} has hash {found}, the log says {told}")]
    HashDiffers {
        session: SessionId,
        what: String,
        told: String,
        found: String,
    },
    /// I5: a row is missing, or says something else than the log.
    #[error("I5 {session}: {what}: expected {expected}, found {found}")]
    RowDiffers {
        session: SessionId,
        what: String,
        expected: String,
        found: String,
    },
    /// I5: a snapshot is not the state at its position.
    #[error("I5 {client}: the snapshot at {at}: {what}: expected {expected}, found {found}")]
    SnapshotDiffers {
        client: String,
        at: Position,
        what: String,
        expected: String,
        found: String,
    },

    /// Law 8: something started after the cancel was asked for.
    #[error("law 8 {session}: {kind} at {id} after the cancel of turn {turn} at {asked}")]
    StartedAfterCancel {
        session: SessionId,
        turn: TurnId,
        kind: EventType,
        id: Position,
        asked: Position,
    },
    /// Law 8: a turn was asked to stop twice, or ended otherwise after being asked.
    #[error("law 8 {session}: {kind} at {id} after the cancel of turn {turn}")]
    CancelNotKept {
        session: SessionId,
        turn: TurnId,
        kind: EventType,
        id: Position,
    },

    /// A promise of the chat wire.
    #[error("chat {client}, turn {turn}: {what}")]
    Chat {
        client: String,
        turn: TurnId,
        what: ChatViolation,
    },

    /// The hash of an event does not follow from the one before it.
    #[error("chain {session}: hash of {id} is {found}, expected {expected}")]
    ChainBroken {
        session: SessionId,
        id: Position,
        found: String,
        expected: String,
    },
}

impl Violation {
    /// The name of the broken promise, without its particulars.
    pub fn name(&self) -> String {
        let first = |debug: String| {
            let end = debug.find([' ', '{', '(']).unwrap_or(debug.len());
            debug[..end].to_owned()
        };
        match self {
            Self::Chat { what, .. } => format!("Chat{}", first(format!("{what:?}"))),
            other => first(format!("{other:?}")),
        }
    }
}
