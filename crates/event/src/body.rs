//! Event payloads: one struct per event type, one file per family, one exhaustive enum.
//!
//! Only types that the server emits have a payload here. A new type is a variant, and the compiler
//! lists the places that must handle it.

/// Texts that the server itself writes into a member of a payload, as constants of its type and as a
/// list. The documents are compared with the lists.
macro_rules! server_texts {
    ($(#[$about:meta])* $list:ident { $($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)? }) => {
        $($(#[$doc])* pub const $name: &'static str = $text;)+
        $(#[$about])*
        pub const $list: &'static [&'static str] = &[$(Self::$name),+];
    };
}

pub mod lifecycle;
pub mod model;
pub mod tooling;
pub mod orchestration;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::kind::EventType;

pub use lifecycle::{approval, bus, feedback, session, turn};
pub use model::{llm, route, routing, stream};
pub use orchestration::{agent, delegate, dispatch, plan, subagent, support};
pub use tooling::{component, data, mcp, status, tool};

macro_rules! bodies {
    ($($variant:ident($payload:ty)),+ $(,)?) => {
        /// The payload of an event, by type.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is its event type")]
        pub enum Body { $($variant($payload)),+ }

        impl Body {
            /// The event types that have a payload struct: those that the server emits.
            pub const KINDS: &'static [EventType] = &[$(EventType::$variant),+];

            /// The [`EventType`] of this payload.
            pub const fn kind(&self) -> EventType {
                match self { $(Self::$variant(_) => EventType::$variant),+ }
            }

            /// Appends the payload as JSON to `out`.
            pub fn write(&self, out: &mut Vec<u8>) {
                let result = match self { $(Self::$variant(payload) => serde_json::to_writer(out, payload)),+ };
                result.expect("payloads are plain data: string keys, finite numbers, and a Vec takes any bytes");
            }

            /// Parses the payload of an event of type `kind`; `None` for a type that the server does not emit.
            pub fn read(kind: EventType, payload: &RawValue) -> Option<serde_json::Result<Self>> {
                fn get<T: DeserializeOwned>(payload: &RawValue) -> serde_json::Result<T> {
                    serde_json::from_str(payload.get())
                }
                $(if kind == EventType::$variant {
                    return Some(get::<$payload>(payload).map(Self::$variant));
                })+
                None
            }

            /// The JSON Schema of each payload, by dotted type name.
            #[cfg(feature = "schema")]
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$((EventType::$variant.name(), generator.subschema_for::<$payload>())),+]
            }
        }
    };
}

/// The payloads of whole families as a pattern, so that an exhaustive `match` names the families
/// that it ignores: `family!(Bus | Mcp)`. A new type joins a family here or is matched by itself.
macro_rules! family {
    ($($family:ident)|+) => { $(family!(@$family))|+ };
    (@Session) => { Body::SessionCreated(_) | Body::SessionClosed(_) };
    (@TurnEnd) => { Body::TurnCompleted(_) | Body::TurnCancelled(_) };
    (@Approval) => { Body::ApprovalRequested(_) | Body::ApprovalResolved(_) };
    (@Routing) => { Body::RouteDecided(_) | Body::RoutingPolicyReloaded(_) };
    (@Llm) => { Body::LlmCallStarted(_) | Body::LlmCallCompleted(_) | Body::LlmCallFailed(_) };
    (@Tool) => { Body::ToolCalled(_) | Body::ToolCompleted(_) | Body::ToolFailed(_) };
    (@SubagentEnd) => { Body::SubagentCompleted(_) | Body::SubagentFailed(_) };
    (@Delegate) => {
        Body::DelegateStarted(_) | Body::DelegateCompleted(_) | Body::DelegateFailed(_)
    };
    (@Plan) => { Body::PlanStepStarted(_) | Body::PlanStepCompleted(_) };
    // What is shown beside the text of a message.
    (@Display) => {
        Body::DataLoading(_)
            | Body::DataLoaded(_)
            | Body::ComponentRendered(_)
            | Body::ErrorReported(_)
    };
    (@Bus) => {
        Body::BusSubscriberRegistered(_)
            | Body::BusSubscriberUnregistered(_)
            | Body::BusHandlerWarning(_)
    };
    (@Delta) => {
        Body::TextDelta(_)
            | Body::ThinkingDelta(_)
            | Body::ToolUseStart(_)
            | Body::ToolUseInputDelta(_)
            | Body::ToolUseEnd(_)
    };
    (@Mcp) => {
        Body::McpListToolsStarted(_)
            | Body::McpListToolsCompleted(_)
            | Body::McpSessionStarted(_)
            | Body::McpSessionProgressed(_)
    };
    // What is about no work of a turn.
    (@Note) => {
        Body::FeedbackRecorded(_) | Body::AgentErrorEmit(_) | Body::SupportNoted(_)
    };
}
pub(crate) use family;

bodies! {
    SessionCreated(session::SessionCreated),
    SessionClosed(session::SessionClosed),
    TurnStarted(turn::TurnStarted),
    TurnCompleted(turn::TurnCompleted),
    TurnCancelRequested(turn::CancelRequested),
    TurnCancelled(turn::TurnCancelled),
    ApprovalRequested(approval::ApprovalRequested),
    ApprovalResolved(approval::ApprovalResolved),
    RouteDecided(route::RouteDecided),
    RoutingPolicyReloaded(routing::PolicyReloaded),
    DispatchTraced(dispatch::DispatchTraced),
    LlmCallStarted(llm::CallStarted),
    LlmCallCompleted(llm::CallCompleted),
    LlmCallFailed(llm::CallFailed),
    ToolCalled(tool::ToolCalled),
    ToolCompleted(tool::ToolCompleted),
    ToolFailed(tool::ToolFailed),
    SubagentStarted(subagent::SubagentStarted),
    SubagentCompleted(subagent::SubagentCompleted),
    SubagentFailed(subagent::SubagentFailed),
    DelegateStarted(delegate::DelegateStarted),
    DelegateCompleted(delegate::DelegateCompleted),
    DelegateFailed(delegate::DelegateFailed),
    StatusEmitted(status::StatusEmitted),
    DataLoading(data::DataLoading),
    DataLoaded(data::DataLoaded),
    ComponentRendered(component::ComponentRendered),
    ErrorReported(turn::TurnError),
    FeedbackRecorded(feedback::FeedbackRecorded),
    PlanStepStarted(plan::StepStarted),
    PlanStepCompleted(plan::StepCompleted),
    AgentErrorEmit(agent::ErrorEmit),
    BusSubscriberRegistered(bus::SubscriberRegistered),
    BusSubscriberUnregistered(bus::SubscriberUnregistered),
    BusHandlerWarning(bus::HandlerWarning),
    MessageStart(stream::MessageStart),
    TextDelta(stream::TextDelta),
    ThinkingDelta(stream::ThinkingDelta),
    ToolUseStart(stream::ToolUseStart),
    ToolUseInputDelta(stream::ToolUseInputDelta),
    ToolUseEnd(stream::ToolUseEnd),
    MessageComplete(stream::MessageComplete),
    McpListToolsStarted(mcp::McpServerRef),
    McpListToolsCompleted(mcp::McpToolsListed),
    McpSessionStarted(mcp::McpServerRef),
    McpSessionProgressed(mcp::McpCallProgressed),
    SupportNoted(support::SupportNoted),
}
