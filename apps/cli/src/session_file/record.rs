//! The records of a session file, one JSON object per line, in this order:
//!
//! ```text
//!   export      the format and its version, the session, where it was read from
//!   session     the session's row
//!   turn*, tool_call*, llm_call*, message*      rows, each kind newest first
//!   log         the number and the hash before the first event
//!   event*      each with its hash and its stored bytes, oldest first
//!   end         counts, the last hash, the SHA-256 of every byte before this line
//! ```

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use turnwire_event::{JsonObject, Message, Position, SessionId, Timestamp};
use turnwire_wire::rest::llm_call::LlmCall;
use turnwire_wire::rest::session::SessionInfo;
use turnwire_wire::rest::tool_call::ToolCallRecord;
use turnwire_wire::rest::turn::TurnInfo;

/// The name of the format.
pub(crate) const FORMAT: &str = "turnwire.session";
/// The version of the format that this program writes and reads.
pub(crate) const VERSION: u32 = 1;
/// The longest line: twice the largest answer of a model (`model.call_bytes_max`). A check reads
/// one line at a time.
pub(crate) const LINE_BYTES_MAX: usize = 128 << 20;

/// Where a session was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExportSource {
    /// A server: without messages that clients are not shown.
    Server,
    /// A data folder: everything.
    Folder,
}

/// The fields of the first record: the format, the session, the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExportHead {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// The version of the program that wrote the file.
    pub(crate) turnwire: String,
    pub(crate) exported_at: Timestamp,
    pub(crate) source: ExportSource,
    pub(crate) session_id: SessionId,
    /// The last event before the rows were read: rows are as of this event or a later one.
    pub(crate) rows_seq: u64,
}

/// The row of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    #[serde(flatten)]
    pub(crate) session: SessionInfo,
    pub(crate) metadata: JsonObject,
}

/// A [`Message`] with the hash by which events refer to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageRecord {
    pub(crate) message: Message,
    /// The hash by which events refer to the content.
    pub(crate) content_sha256: String,
    /// The position of the message's end; only from a data folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed: Option<Position>,
    /// Who reads the message, if not everybody: `+` clients only, `-` the orchestrator only, `*`
    /// every sub-agent, otherwise the sub-agent with this id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) scope: String,
}

/// The begin of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogStart {
    /// The events up to this number are trimmed; 0 if none is.
    pub(crate) after: u64,
    /// The hash at `after`.
    pub(crate) hash: String,
}

/// An event as it is written.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EventRecord<'a> {
    /// The hash of the chain at the event.
    pub(crate) hash: String,
    /// JSON exactly as the log stores it.
    pub(crate) event: &'a RawValue,
}

/// An event as it is read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ReadEvent {
    pub(crate) hash: String,
    pub(crate) event: Box<RawValue>,
}

/// The fields of the last record: counts and digests of everything before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportEnd {
    /// The number of records before this one.
    pub(crate) records: u64,
    pub(crate) events: u64,
    /// The number of the last event.
    pub(crate) last_seq: u64,
    /// The hash of the chain at the last event.
    pub(crate) hash: String,
    /// The SHA-256 of all bytes before this line.
    pub(crate) sha256: String,
}

/// The kind of a record, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordKind {
    Export,
    Session,
    Turn,
    ToolCall,
    LlmCall,
    Message,
    Log,
    Event,
    End,
}

impl RecordKind {
    /// True if a file may have several records of this kind.
    pub(crate) fn repeats(self) -> bool {
        matches!(
            self,
            Self::Turn | Self::ToolCall | Self::LlmCall | Self::Message | Self::Event
        )
    }
}

/// A line: the kind and the fields of its record.
#[derive(Debug, Serialize)]
pub(crate) struct Line<T> {
    pub(crate) record: RecordKind,
    #[serde(flatten)]
    pub(crate) fields: T,
}

/// A [`TurnInfo`] in its record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    pub(crate) turn: TurnInfo,
}

/// A [`ToolCallRecord`] in its record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ToolRecord {
    pub(crate) tool_call: ToolCallRecord,
}

/// An [`LlmCall`] in its record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ModelCallRecord {
    pub(crate) llm_call: LlmCall,
}

/// The row of the session in its record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionLine {
    pub(crate) session: SessionRecord,
}

/// 64 hexadecimal digits of a hash.
pub(crate) fn hex(hash: &[u8; 32]) -> String {
    hash.map(|byte| format!("{byte:02x}")).concat()
}
