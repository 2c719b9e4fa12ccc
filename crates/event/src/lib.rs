//! The shared vocabulary: what happened, at which position, by whom, and for whom.
//!
//! These types are all that the other crates have in common. No I/O, no clock, no
//! runtime: values, pure functions over them, and the port traits that other crates implement.
//! The modules are listed leaf first: ids and positions, then events, then the folds over them.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod primitive;
pub mod kind;
pub mod code;
pub mod content;
pub mod json_object;
pub mod message;
pub mod body;
pub mod envelope;
pub mod filter;
pub mod row;
pub mod fold;
pub mod metric;
pub mod port;
#[cfg(feature = "schema")]
pub mod schema;

pub use body::Body;
pub use content::{ContentBlock, StopReason, TokenUsage};
pub use envelope::{Event, EventHead, RenderDecision, RenderPolicy};
pub use filter::{EventFilter, FilterSpec};
pub use json_object::{JsonObject, OversizedObject};
pub use kind::{EventLane, EventType, TypeSet};
pub use message::{Message, MessageStatus, ProviderState, Role};
pub use primitive::actor::{Actor, ActorKind};
pub use primitive::clock::{Clock, IdGenerator, Timestamp};
pub use primitive::day::UtcDay;
pub use primitive::id::{
    ApprovalId, CallId, EpisodeId, InvocationId, MessageId, Owner, Principal, ResponseId,
    SessionId, TenantId, ToolUseId, TurnId, TurnResponseId, Ulid, UpstreamId,
};
pub use primitive::job_name::JobName;
pub use primitive::position::{Epoch, EventId, Position, Seq, Sub};
pub use primitive::trace::{CallerTrace, SpanId, TraceContext, TracePropagation};
pub use primitive::{actor, clock, day, id, job_name, position, trace};
