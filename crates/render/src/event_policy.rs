//! What every type of event is to the interceptor: how it is shown unless somebody says otherwise,
//! and what it waits for.
//!
//! All three matches are exhaustive on purpose: a new type does not compile until somebody has
//! decided whether it may be seen (default-deny, S1-062).

#![deny(clippy::wildcard_enum_match_arm)]

use turnwire_event::{EventType, RenderPolicy};

/// How many types there are.
pub(crate) const KINDS: usize = EventType::ALL.len();

/// What of the things held goes on before an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing: it is not shown in a chat, or it is about something else.
    Aside,
    /// Gathered text; gathered statuses wait on. Work in progress is shown where it begins, and
    /// two agents that tell of their work at the same time are still told of as one.
    Beside,
    /// Text, and all that the filter holds: it is a part of the message that the text is of.
    Within,
    /// Text and statuses: whoever sees it has seen what came before it (C-41).
    Behind,
    /// All there is.
    Last,
}

/// How a type is shown unless somebody says otherwise (S1-052).
pub(crate) const fn policy(kind: EventType) -> RenderPolicy {
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
        // Internal: R-6.
        T::SupportNoted => RenderPolicy::Suppress,
    }
}

/// What a type waits for.
pub(crate) const fn place(kind: EventType) -> Place {
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
        // The end of a sub-agent waits for its own statuses; the gate sees to that.
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
        | T::SupportNoted => Place::Aside,
        T::ToolCalled
        | T::ToolCompleted
        | T::ToolFailed
        | T::DelegateStarted
        | T::DelegateCompleted
        | T::DelegateFailed
        | T::McpListToolsStarted
        | T::McpListToolsCompleted
        | T::McpSessionStarted
        | T::McpSessionProgressed => Place::Beside,
        T::MessageStart
        | T::ToolUseStart
        | T::ToolUseInputDelta
        | T::ToolUseEnd
        | T::MessageComplete => Place::Within,
        T::ApprovalRequested
        | T::ApprovalResolved
        | T::StatusEmitted
        | T::DataLoading
        | T::DataLoaded
        | T::ComponentRendered
        | T::ErrorReported
        | T::ArtifactCreated
        | T::EvidenceCreated
        | T::TextDelta => Place::Behind,
        // Reasoning is of the message, and it is shown.
        T::ThinkingDelta | T::TurnCompleted | T::TurnCancelled => Place::Last,
    }
}

/// What an override may make of a type. A session and a turn always begin and end in sight, and
/// what is internal stays so, whatever a flag says; only statuses have words to transform, and
/// only statuses and text can be gathered.
pub(crate) const fn overridden(kind: EventType, wanted: RenderPolicy) -> Option<RenderPolicy> {
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
            | T::SupportNoted,
            _,
        ) => None,
        (_, P::Suppress) => Some(P::Suppress),
        (T::StatusEmitted, _) => Some(wanted),
        (T::TextDelta, P::Batch) => Some(P::Batch),
        (_, P::Forward | P::Transform | P::Batch) => Some(P::Forward),
    }
}

/// The word for a type in metrics: its name, or for what is internal the name it goes by in the
/// documents (S1-030).
pub(crate) fn label(kind: EventType) -> &'static str {
    if matches!(kind, EventType::SupportNoted) {
        "support_content"
    } else {
        kind.name()
    }
}

#[cfg(test)]
mod tests {
    use turnwire_event::Lane;

    use super::*;

    #[test]
    fn s1_052_defaults_are_forward_transform_for_statuses_suppress_for_what_is_internal() {
        for &kind in EventType::ALL {
            let expected = if kind == EventType::StatusEmitted {
                RenderPolicy::Transform
            } else if kind.lane() == Lane::Internal {
                RenderPolicy::Suppress
            } else {
                RenderPolicy::Forward
            };
            assert_eq!(policy(kind), expected, "{kind}");
        }
    }

    #[test]
    fn s1_062_no_override_shows_what_is_internal_or_hides_the_ends_of_a_turn() {
        for wanted in [
            RenderPolicy::Forward,
            RenderPolicy::Transform,
            RenderPolicy::Suppress,
            RenderPolicy::Batch,
        ] {
            for &kind in EventType::ALL {
                if kind.lane() == Lane::Internal || kind.is_terminal() {
                    assert_eq!(overridden(kind, wanted), None, "{kind}");
                }
            }
        }
        assert_eq!(
            overridden(EventType::ToolCalled, RenderPolicy::Suppress),
            Some(RenderPolicy::Suppress)
        );
        assert_eq!(
            overridden(EventType::ToolCalled, RenderPolicy::Batch),
            Some(RenderPolicy::Forward)
        );
    }

    #[test]
    fn a_type_is_its_own_index() {
        for (index, &kind) in EventType::ALL.iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
