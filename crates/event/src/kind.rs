//! The closed list of event types, their lanes, and sets of event types.
//!
//! The table of types decides whether a type is persisted, transient or internal. Adding a type
//! makes the compiler list every place that must handle it.

use std::fmt;
use std::str::FromStr;

use crate::id::{IdError, text_serde};

/// How events of a type are stored and published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLane {
    /// Written to the log before any client sees it; these types are the catalog.
    Persisted,
    /// Live only; clients may filter for it.
    Streaming,
    /// Live only; belongs to one wire, and clients cannot filter for it.
    Lifecycle,
    Internal,
}

macro_rules! types {
    ($($lane:ident { $($variant:ident = $name:literal),+ $(,)? })+) => {
        /// The type of an event, `domain.verb`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is its dotted name")]
        #[repr(u8)]
        pub enum EventType { $($($variant),+),+ }

        impl EventType {
            /// All event types, in catalog order.
            pub const ALL: &'static [Self] = &[$($(Self::$variant),+),+];

            /// The dotted name, for example `tool.called`.
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name),+),+ }
            }

            /// The lane of this type.
            pub const fn lane(self) -> EventLane {
                match self { $($(Self::$variant)|+ => EventLane::$lane),+ }
            }
        }

        impl FromStr for EventType {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                match text {
                    $($($name => Ok(Self::$variant),)+)+
                    _ => Err(IdError { what: "event type" }),
                }
            }
        }
    };
}

// The only place that decides the lane of a type.
types! {
    Persisted {
        SessionCreated = "session.created",
        SessionClosed = "session.closed",
        TurnStarted = "turn.started",
        TurnCompleted = "turn.completed",
        TurnCancelRequested = "turn.cancel_requested",
        TurnCancelled = "turn.cancelled",
        ApprovalRequested = "approval.requested",
        ApprovalResolved = "approval.resolved",
        RouteDecided = "route.decided",
        RoutingPolicyReloaded = "routing.policy_reloaded",
        DispatchTraced = "dispatch.traced",
        LlmCallStarted = "llm.call_started",
        LlmCallCompleted = "llm.call_completed",
        LlmCallFailed = "llm.call_failed",
        ToolCalled = "tool.called",
        ToolCompleted = "tool.completed",
        ToolFailed = "tool.failed",
        SubagentStarted = "subagent.started",
        SubagentCompleted = "subagent.completed",
        SubagentFailed = "subagent.failed",
        DelegateStarted = "delegate.started",
        DelegateCompleted = "delegate.completed",
        DelegateFailed = "delegate.failed",
        StatusEmitted = "status.emitted",
        DataLoading = "data.loading",
        DataLoaded = "data.loaded",
        ComponentRendered = "component.rendered",
        ErrorReported = "error.reported",
        FeedbackRecorded = "feedback.recorded",
        SkillLoaded = "skill.loaded",
        PlanStepStarted = "plan.step_started",
        PlanSubagentUpdated = "plan.subagent_updated",
        PlanStepCompleted = "plan.step_completed",
        PlanDegraded = "plan.degraded",
        SafetyDecided = "safety.decided",
        MissionStage = "mission.stage",
        MissionExited = "mission.exited",
        ArtifactCreated = "artifact.created",
        EvidenceCreated = "evidence.created",
        AgentErrorEmit = "agent.error_emit",
        BusSubscriberRegistered = "bus.subscriber_registered",
        BusSubscriberUnregistered = "bus.subscriber_unregistered",
        BusHandlerWarning = "bus.handler_warning",
    }
    Streaming {
        MessageStart = "message.start",
        TextDelta = "text.delta",
        ThinkingDelta = "thinking.delta",
        ToolUseStart = "tool.use_start",
        ToolUseInputDelta = "tool.use_input_delta",
        ToolUseEnd = "tool.use_end",
        MessageComplete = "message.complete",
    }
    Lifecycle {
        McpListToolsStarted = "mcp.list_tools_started",
        McpListToolsCompleted = "mcp.list_tools_completed",
        McpSessionStarted = "mcp.session_started",
        McpSessionProgressed = "mcp.session_progressed",
    }
    Internal {
        SupportNoted = "support.noted",
    }
}

text_serde!(EventType);

impl EventType {
    /// True if events of this type are written to the log.
    pub const fn is_persisted(self) -> bool {
        matches!(self.lane(), EventLane::Persisted)
    }

    /// True if an event of this type ends its turn.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::TurnCompleted | Self::TurnCancelled)
    }

    /// True if an event of this type starts new work, which a cancelled turn may not do (law 8).
    pub const fn is_start(self) -> bool {
        matches!(
            self,
            Self::LlmCallStarted
                | Self::MessageStart
                | Self::ToolCalled
                | Self::SubagentStarted
                | Self::DelegateStarted
                | Self::ApprovalRequested
                | Self::PlanStepStarted
        )
    }

    /// True if a turn may still emit this type after a cancel was accepted: it ends started work,
    /// or clients do not see it as part of the turn. Any other event would be shown after the
    /// cancel (D-79).
    pub const fn is_closing(self) -> bool {
        matches!(
            self,
            Self::TurnCompleted
                | Self::TurnCancelled
                | Self::ApprovalResolved
                | Self::DispatchTraced
                | Self::LlmCallCompleted
                | Self::LlmCallFailed
                | Self::ToolCompleted
                | Self::ToolFailed
                | Self::SubagentCompleted
                | Self::SubagentFailed
                | Self::DelegateCompleted
                | Self::DelegateFailed
                | Self::PlanStepCompleted
                | Self::ToolUseEnd
                | Self::MessageComplete
                | Self::FeedbackRecorded
                | Self::SupportNoted
        )
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of event types: one bit each, so that a filter is one AND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet(u128);

impl TypeSet {
    /// The set without any type.
    pub const EMPTY: Self = Self(0);

    /// Adds an [`EventType`] to the set.
    #[must_use]
    pub const fn with(self, kind: EventType) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// The types that a client may filter for: those of [`EventLane::Persisted`] and
    /// [`EventLane::Streaming`].
    pub fn filterable() -> Self {
        let kinds = EventType::ALL.iter().copied();
        kinds
            .filter(|kind| matches!(kind.lane(), EventLane::Persisted | EventLane::Streaming))
            .collect()
    }

    /// True if `kind` is in the set.
    pub const fn contains(self, kind: EventType) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// True if `other` is a subset of this set.
    pub const fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// True if the two sets have a common member.
    pub const fn meets(self, other: Self) -> bool {
        other.0 & self.0 != 0
    }

    /// The members of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Iterates over the members in catalog order.
    pub fn iter(self) -> impl Iterator<Item = EventType> {
        EventType::ALL
            .iter()
            .copied()
            .filter(move |&kind| self.contains(kind))
    }
}

impl FromIterator<EventType> for TypeSet {
    fn from_iter<I: IntoIterator<Item = EventType>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        for &kind in EventType::ALL {
            assert_eq!(kind.name().parse::<EventType>(), Ok(kind));
        }
        assert!(EventType::ALL.len() <= 128, "a TypeSet has 128 bits");
    }

    // S3-049, S3-069, D-34, C-12, I-03
    #[test]
    fn reserved_domains_never_enter_the_catalog() {
        for &kind in EventType::ALL.iter().filter(|kind| kind.is_persisted()) {
            let name = kind.name();
            let reserved = ["message.", "text.", "thinking.", "tool.use_"];
            assert!(
                !reserved.iter().any(|domain| name.starts_with(domain)),
                "{name}"
            );
        }
    }

    //
    #[test]
    fn catalog_is_that_of_the_requirement() {
        let required = "session.created, session.closed, turn.started, turn.completed, \
             turn.cancel_requested, turn.cancelled, approval.requested, approval.resolved, \
             route.decided, routing.policy_reloaded, dispatch.traced, llm.call_started, \
             llm.call_completed, llm.call_failed, tool.called, tool.completed, tool.failed, \
             subagent.started, subagent.completed, subagent.failed, delegate.started, \
             delegate.completed, delegate.failed, status.emitted, data.loading, data.loaded, \
             component.rendered, error.reported, feedback.recorded, skill.loaded, \
             plan.step_started, plan.subagent_updated, plan.step_completed, plan.degraded, \
             safety.decided, mission.stage, mission.exited, artifact.created, evidence.created, \
             agent.error_emit, bus.subscriber_registered, bus.subscriber_unregistered, \
             bus.handler_warning";
        let required: Vec<&str> = required.split(", ").collect();
        let persisted = EventType::ALL.iter().filter(|kind| kind.is_persisted());
        let catalog: Vec<&str> = persisted.clone().map(|kind| kind.name()).collect();
        assert_eq!(catalog, required);
        // Those without a payload are named for what is not built: skills, missions and their plans.
        let unused = persisted.filter(|kind| !crate::Body::KINDS.contains(kind));
        let unused: Vec<&str> = unused.map(|kind| kind.name()).collect();
        assert_eq!(
            unused,
            [
                "skill.loaded",
                "plan.subagent_updated",
                "plan.degraded",
                "safety.decided",
                "mission.stage",
                "mission.exited",
                "artifact.created",
                "evidence.created"
            ]
        );
    }

    // S3-068
    #[test]
    fn partial_parsed_input_is_reserved() {
        assert!(
            "tool.use_input_partial_parsed"
                .parse::<EventType>()
                .is_err()
        );
    }

    #[test]
    fn type_sets_contain_their_members() {
        let set: TypeSet = [EventType::TextDelta, EventType::TurnStarted]
            .into_iter()
            .collect();
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [EventType::TurnStarted, EventType::TextDelta]
        );
        assert!(TypeSet::filterable().covers(set));
        assert!(!TypeSet::filterable().contains(EventType::SupportNoted));
        assert!(!TypeSet::filterable().contains(EventType::McpSessionStarted));
    }
}
