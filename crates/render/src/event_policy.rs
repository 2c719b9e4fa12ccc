//! The rendering rules of every event type: its default policy, what is released before it, and
//! which overrides are allowed.
//!
//! The matches are exhaustive on purpose: a new event type does not compile until its rules are
//! decided (default-deny, S1-062).

#![deny(clippy::wildcard_enum_match_arm)]

use turnwire_event::code::TurnStatus;
use turnwire_event::{Body, EventType, RenderPolicy};

pub(crate) const EVENT_TYPE_COUNT: usize = EventType::ALL.len();

/// The buffered events that a gate releases before it emits an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseBefore {
    /// The event is not shown in a chat, or is unrelated to the buffered events.
    Nothing,
    /// Buffered text. Buffered statuses stay: progress is shown at once, and statuses that two
    /// agents emit at the same time are still combined.
    Text,
    /// Buffered text and the characters that the text filter delays: the event is part of the same
    /// message.
    FilteredText,
    /// Buffered text and statuses: a client that sees the event has seen all earlier ones (C-41).
    TextAndStatuses,
    /// Buffered text and statuses, and the characters that the text filter delays.
    Everything,
}

/// The policy of a type without overrides (S1-052).
pub(crate) const fn default_policy(kind: EventType) -> RenderPolicy {
    use EventType as T;
    match kind {
        T::SessionCreated
        | T::SessionClosed
        | T::TurnStarted
        | T::TurnCompleted
        | T::TurnCancelRequested
        | T::TurnCancelled
        | T::ApprovalRequested
        | T::ApprovalResolved
        | T::RouteDecided
        | T::RoutingPolicyReloaded
        | T::DispatchTraced
        | T::LlmCallStarted
        | T::LlmCallCompleted
        | T::LlmCallFailed
        | T::ToolCalled
        | T::ToolCompleted
        | T::ToolFailed
        | T::SubagentStarted
        | T::SubagentCompleted
        | T::SubagentFailed
        | T::DelegateStarted
        | T::DelegateCompleted
        | T::DelegateFailed
        | T::DataLoading
        | T::DataLoaded
        | T::ComponentRendered
        | T::ErrorReported
        | T::FeedbackRecorded
        | T::SkillLoaded
        | T::PlanStepStarted
        | T::PlanSubagentUpdated
        | T::PlanStepCompleted
        | T::PlanDegraded
        | T::SafetyDecided
        | T::MissionStage
        | T::MissionExited
        | T::ArtifactCreated
        | T::EvidenceCreated
        | T::AgentErrorEmit
        | T::BusSubscriberRegistered
        | T::BusSubscriberUnregistered
        | T::BusHandlerWarning
        | T::MessageStart
        | T::TextDelta
        | T::ThinkingDelta
        | T::ToolUseStart
        | T::ToolUseInputDelta
        | T::ToolUseEnd
        | T::MessageComplete
        | T::McpListToolsStarted
        | T::McpListToolsCompleted
        | T::McpSessionStarted
        | T::McpSessionProgressed => RenderPolicy::Forward,
        T::StatusEmitted => RenderPolicy::Transform,
        // Internal events are never shown: R-6.
        T::SupportNoted => RenderPolicy::Suppress,
    }
}

/// What a gate releases before an event of this type.
pub(crate) const fn release_before(kind: EventType) -> ReleaseBefore {
    use EventType as T;
    match kind {
        T::SessionCreated
        | T::SessionClosed
        | T::TurnStarted
        | T::TurnCancelRequested
        | T::RouteDecided
        | T::RoutingPolicyReloaded
        | T::DispatchTraced
        | T::LlmCallStarted
        | T::LlmCallCompleted
        | T::LlmCallFailed
        | T::SubagentStarted
        // The gate releases the statuses of the sub-agent that ends.
        | T::SubagentCompleted
        | T::SubagentFailed
        | T::FeedbackRecorded
        | T::SkillLoaded
        | T::PlanStepStarted
        | T::PlanSubagentUpdated
        | T::PlanStepCompleted
        | T::PlanDegraded
        | T::SafetyDecided
        | T::MissionStage
        | T::MissionExited
        | T::AgentErrorEmit
        | T::BusSubscriberRegistered
        | T::BusSubscriberUnregistered
        | T::BusHandlerWarning
        | T::SupportNoted => ReleaseBefore::Nothing,
        T::ToolCalled
        | T::ToolCompleted
        | T::ToolFailed
        | T::DataLoading
        | T::DelegateStarted
        | T::DelegateCompleted
        | T::DelegateFailed
        | T::McpListToolsStarted
        | T::McpListToolsCompleted
        | T::McpSessionStarted
        | T::McpSessionProgressed => ReleaseBefore::Text,
        T::MessageStart
        | T::ToolUseStart
        | T::ToolUseInputDelta
        | T::ToolUseEnd
        | T::MessageComplete => ReleaseBefore::FilteredText,
        T::ApprovalRequested
        | T::ApprovalResolved
        | T::StatusEmitted
        | T::DataLoaded
        | T::ComponentRendered
        | T::ErrorReported
        | T::ArtifactCreated
        | T::EvidenceCreated
        | T::TextDelta => ReleaseBefore::TextAndStatuses,
        // Reasoning is part of the message and is shown.
        T::ThinkingDelta | T::TurnCompleted | T::TurnCancelled => ReleaseBefore::Everything,
    }
}

/// The policy that an override yields, or `None` if overrides of the type are not allowed.
///
/// The start and the end of sessions and turns, the route (it has the first frames of a relayed turn),
/// failures and reasoning are always shown, and internal types never. Only a status has a text to
/// transform; only statuses and text can be batched.
pub(crate) const fn override_policy(kind: EventType, wanted: RenderPolicy) -> Option<RenderPolicy> {
    use EventType as T;
    use RenderPolicy as P;
    match (kind, wanted) {
        (
            T::SessionCreated
            | T::SessionClosed
            | T::TurnStarted
            | T::TurnCompleted
            | T::TurnCancelRequested
            | T::TurnCancelled
            | T::RouteDecided
            | T::ErrorReported
            | T::ThinkingDelta
            | T::SupportNoted,
            _,
        ) => None,
        (_, P::Suppress) => Some(P::Suppress),
        (T::StatusEmitted, _) => Some(wanted),
        (T::TextDelta, P::Batch) => Some(P::Batch),
        (_, P::Forward | P::Transform | P::Batch) => Some(P::Forward),
    }
}

/// The type that an event is counted as. A turn that fails ends with the frame `error`, as a reported
/// failure is; the policy of both is always the same.
pub(crate) fn counted_kind(body: &Body) -> EventType {
    let is_failed_turn =
        matches!(body, Body::TurnCompleted(end) if end.status == TurnStatus::Failed);
    match is_failed_turn {
        true => EventType::ErrorReported,
        false => body.kind(),
    }
}

/// The name of a type in metric labels: that of its frame on the chat wire, so that all series have
/// one vocabulary (S1-125); the documented name of an internal type (S1-030); else its event name.
pub(crate) fn metric_label(kind: EventType) -> &'static str {
    use EventType as T;
    match kind {
        T::TextDelta => "text",
        T::ThinkingDelta => "thinking",
        T::ToolCalled => "tool_call",
        T::ToolCompleted | T::ToolFailed => "tool_completed",
        T::StatusEmitted => "status",
        T::DataLoading => "data_loading",
        T::DataLoaded => "data_loaded",
        T::ComponentRendered => "component",
        T::ErrorReported => "error",
        T::McpListToolsStarted => "mcp_list_tools_start",
        T::McpListToolsCompleted => "mcp_list_tools_completed",
        T::McpSessionStarted => "mcp_session_start",
        T::McpSessionProgressed => "mcp_session_progress",
        T::TurnCompleted => "completed",
        T::TurnCancelled => "cancelled",
        T::SupportNoted => "support_content",
        T::SessionCreated
        | T::SessionClosed
        | T::TurnStarted
        | T::TurnCancelRequested
        | T::ApprovalRequested
        | T::ApprovalResolved
        | T::RouteDecided
        | T::RoutingPolicyReloaded
        | T::DispatchTraced
        | T::LlmCallStarted
        | T::LlmCallCompleted
        | T::LlmCallFailed
        | T::SubagentStarted
        | T::SubagentCompleted
        | T::SubagentFailed
        | T::DelegateStarted
        | T::DelegateCompleted
        | T::DelegateFailed
        | T::FeedbackRecorded
        | T::SkillLoaded
        | T::PlanStepStarted
        | T::PlanSubagentUpdated
        | T::PlanStepCompleted
        | T::PlanDegraded
        | T::SafetyDecided
        | T::MissionStage
        | T::MissionExited
        | T::ArtifactCreated
        | T::EvidenceCreated
        | T::AgentErrorEmit
        | T::BusSubscriberRegistered
        | T::BusSubscriberUnregistered
        | T::BusHandlerWarning
        | T::MessageStart
        | T::ToolUseStart
        | T::ToolUseInputDelta
        | T::ToolUseEnd
        | T::MessageComplete => kind.name(),
    }
}

#[cfg(test)]
mod tests {
    use turnwire_event::EventLane;

    use super::*;

    // S1-052
    #[test]
    fn default_policies_depend_on_lane_and_status() {
        for &kind in EventType::ALL {
            let expected = if kind == EventType::StatusEmitted {
                RenderPolicy::Transform
            } else if kind.lane() == EventLane::Internal {
                RenderPolicy::Suppress
            } else {
                RenderPolicy::Forward
            };
            assert_eq!(default_policy(kind), expected, "{kind}");
        }
    }

    // S1-062
    #[test]
    fn overrides_cannot_show_internal_or_hide_fixed_events() {
        for wanted in [
            RenderPolicy::Forward,
            RenderPolicy::Transform,
            RenderPolicy::Suppress,
            RenderPolicy::Batch,
        ] {
            for &kind in EventType::ALL {
                let is_fixed = matches!(kind, EventType::ErrorReported | EventType::ThinkingDelta);
                if kind.lane() == EventLane::Internal || kind.is_terminal() || is_fixed {
                    assert_eq!(override_policy(kind, wanted), None, "{kind}");
                }
            }
        }
        assert_eq!(
            override_policy(EventType::ToolCalled, RenderPolicy::Suppress),
            Some(RenderPolicy::Suppress)
        );
        assert_eq!(
            override_policy(EventType::ToolCalled, RenderPolicy::Batch),
            Some(RenderPolicy::Forward)
        );
    }

    #[test]
    fn event_type_discriminant_is_its_index() {
        for (index, &kind) in EventType::ALL.iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
