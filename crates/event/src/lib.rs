//! The shared vocabulary: what happened, at which position, by whom, and for whom.
//!
//! These types are all that the other crates have in common. No I/O, no clock, no
//! runtime: values, pure functions over them, and the port traits that other crates implement.
//! The modules are listed leaf first: ids and positions, then events, then the folds over them.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod id;
pub mod clock;
pub mod day;
pub mod position;
pub mod kind;
pub mod actor;
pub mod code;
pub mod content;
pub mod message;
pub mod body;
pub mod envelope;
pub mod filter;
pub mod row;
pub mod fold;
pub mod port;
pub mod metric;
#[cfg(feature = "schema")]
pub mod schema;

pub use actor::{Actor, ActorKind};
pub use body::Body;
pub use clock::{Clock, Mint, Timestamp};
pub use content::{ContentBlock, StopReason, Usage};
pub use day::Day;
pub use envelope::{Event, Head, Render, RenderPolicy, Trace};
pub use filter::{Filter, FilterSpec};
pub use id::{
    ApprovalId, CallId, EpisodeId, InvocationId, MessageId, Owner, Principal, ResponseId,
    SessionId, TenantId, ToolUseId, TurnId, Ulid,
};
pub use kind::{EventType, Lane, TypeSet};
pub use message::{Kept, Message, MessageStatus, Role};
pub use position::{Epoch, EventId, Position, Seq, Sub};
