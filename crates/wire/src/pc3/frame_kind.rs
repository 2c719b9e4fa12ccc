//! The kinds of frames that the metrics count.
//!
//! A [`FrameKind`] has an event type, an error code if it reports an error, and may end the turn.
//! [`FrameKinds`] are the kinds of the frames of one event, in order, packed into an integer that
//! is stored beside the bytes of the frames. To add a kind of frame, add a line to the table below.

/// The effect of a frame on its turn.
#[derive(Clone, Copy)]
enum TurnEffect {
    /// The turn continues after the frame.
    Continues,
    /// The turn continues after a failure with this code.
    Reported(&'static str),
    /// The turn has completed.
    Completed,
    /// The turn was cancelled with this code.
    Cancelled(&'static str),
    /// The turn has failed with this code.
    Failed(&'static str),
}

macro_rules! frame_kinds {
    ($($(#[$doc:meta])* $name:ident: $event_type:literal, $effect:expr;)+) => {
        /// A kind of frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FrameKind { $($(#[$doc])* $name),+ }

        impl FrameKind {
            /// Every kind, in the order of [`FrameKind::index`].
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The value of the `event:` line.
            pub const fn event_type(self) -> &'static str {
                match self { $(Self::$name => $event_type),+ }
            }

            const fn turn_effect(self) -> TurnEffect {
                match self { $(Self::$name => $effect),+ }
            }
        }
    };
}

frame_kinds! {
    /// The first frame of a turn, with its response id.
    ResponseId: "response_id", TurnEffect::Continues;
    /// The id of the episode.
    Episode: "episode", TurnEffect::Continues;
    /// Reasoning of the model before its first text.
    Thinking: "thinking", TurnEffect::Continues;
    /// Reasoning of the model after its first text.
    Reasoning: "reasoning", TurnEffect::Continues;
    /// A part of the answer.
    Text: "text", TurnEffect::Continues;
    /// The start of a tool call.
    ToolCall: "tool_call", TurnEffect::Continues;
    /// The end of a tool call.
    ToolCompleted: "tool_completed", TurnEffect::Continues;
    /// Progress, as a sentence for the user (0.5 only).
    Status: "status", TurnEffect::Continues;
    /// A placeholder for a collection of items.
    DataLoading: "data_loading", TurnEffect::Continues;
    /// The items of a collection.
    DataLoaded: "data_loaded", TurnEffect::Continues;
    /// A component of a render tool.
    Component: "component", TurnEffect::Continues;
    /// A request for the tools of an MCP server.
    McpListToolsStart: "mcp_list_tools_start", TurnEffect::Continues;
    /// The number of tools of an MCP server.
    McpListToolsCompleted: "mcp_list_tools_completed", TurnEffect::Continues;
    /// A new connection to an MCP server.
    McpSessionStart: "mcp_session_start", TurnEffect::Continues;
    /// Progress of a call to an MCP server.
    McpSessionProgress: "mcp_session_progress", TurnEffect::Continues;
    /// An internal failure that does not end the turn (0.5 only, like all reported failures).
    ReportedInternal: "error", TurnEffect::Reported("INTERNAL_ERROR");
    /// A failed model that does not end the turn.
    ReportedModel: "error", TurnEffect::Reported("MODEL_UNAVAILABLE");
    /// A rate limit of the model provider that does not end the turn.
    ReportedRateLimit: "error", TurnEffect::Reported("RATE_LIMIT_ERROR");
    /// A failed sub-agent that does not end the turn.
    ReportedSubAgent: "error", TurnEffect::Reported("SUB_AGENT_FAILED");
    /// A failed enricher that does not end the turn.
    ReportedEnvelope: "error", TurnEffect::Reported("CCS_ENVELOPE_ERROR");
    /// Some failed sub-agents of several, which do not end the turn.
    ReportedFanOut: "error", TurnEffect::Reported("PARTIAL_FAN_OUT");
    /// The tokens of the turn.
    Usage: "usage", TurnEffect::Continues;
    /// The end of a successful turn.
    Completed: "completed", TurnEffect::Completed;
    /// The end of a turn that was cancelled on request.
    CancelledRequest: "cancelled", TurnEffect::Cancelled("REQUEST_CANCELLED");
    /// The end of a turn that was cancelled because the model sent nothing for too long.
    CancelledIdle: "cancelled", TurnEffect::Cancelled("IDLE_TIMEOUT");
    /// The end of a turn that failed internally.
    ErrorInternal: "error", TurnEffect::Failed("INTERNAL_ERROR");
    /// The end of a turn whose model failed.
    ErrorModel: "error", TurnEffect::Failed("MODEL_UNAVAILABLE");
    /// The end of a turn that hit a rate limit of the model provider.
    ErrorRateLimit: "error", TurnEffect::Failed("RATE_LIMIT_ERROR");
    /// The end of a turn whose sub-agent failed.
    ErrorSubAgent: "error", TurnEffect::Failed("SUB_AGENT_FAILED");
    /// The end of a turn whose enricher failed.
    ErrorEnvelope: "error", TurnEffect::Failed("CCS_ENVELOPE_ERROR");
    /// The end of a turn with several failed sub-agents.
    ErrorFanOut: "error", TurnEffect::Failed("PARTIAL_FAN_OUT");
    /// Version 0.4: the end of a turn that was cancelled on request.
    ErrorRequestCancelled: "error", TurnEffect::Cancelled("REQUEST_CANCELLED");
    /// Version 0.4: the end of a turn that was cancelled because the model sent nothing for too
    /// long.
    ErrorIdleTimeout: "error", TurnEffect::Cancelled("IDLE_TIMEOUT");
}

impl FrameKind {
    /// The index in [`FrameKind::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The event type, if the frame ends the turn.
    pub const fn terminal_type(self) -> Option<&'static str> {
        match self.turn_effect() {
            TurnEffect::Continues | TurnEffect::Reported(_) => None,
            TurnEffect::Completed | TurnEffect::Cancelled(_) | TurnEffect::Failed(_) => {
                Some(self.event_type())
            }
        }
    }

    /// The code of an `error` frame, terminal or not; in version 0.4 also the code of a cancel.
    pub const fn error_code(self) -> Option<&'static str> {
        match (self, self.turn_effect()) {
            (Self::CancelledRequest | Self::CancelledIdle, _) => None,
            (
                _,
                TurnEffect::Failed(code) | TurnEffect::Cancelled(code) | TurnEffect::Reported(code),
            ) => Some(code),
            (_, TurnEffect::Continues | TurnEffect::Completed) => None,
        }
    }

    /// The code of the cancel that ended the turn, in either version.
    pub const fn cancel_code(self) -> Option<&'static str> {
        if let TurnEffect::Cancelled(code) = self.turn_effect() {
            Some(code)
        } else {
            None
        }
    }
}

/// The kinds of the frames of one event, in order: at most four, one byte each, the first lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameKinds(u32);

impl FrameKinds {
    /// The value for an event without frames.
    pub const NONE: Self = Self(0);
    const MAX: usize = 4;

    /// The packed value; 0 means no frame.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The kinds, in order.
    pub fn iter(self) -> impl Iterator<Item = FrameKind> {
        let kind_of_byte = |byte: u8| {
            FrameKind::ALL
                .get(usize::from(byte).wrapping_sub(1))
                .copied()
        };
        self.0.to_le_bytes().into_iter().filter_map(kind_of_byte)
    }

    /// The number of frames.
    pub const fn len(self) -> usize {
        Self::MAX - (self.0.leading_zeros() / u8::BITS) as usize
    }

    /// True if the event has no frame.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Appends a kind. No event has more than four frames.
    pub(crate) fn push(&mut self, kind: FrameKind) {
        debug_assert!(self.len() < Self::MAX, "no event gives so many frames");
        let byte = kind as u32 + 1;
        self.0 |= byte.checked_shl(self.len() as u32 * u8::BITS).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_has_its_index_and_terminal_type() {
        for (index, kind) in FrameKind::ALL.iter().enumerate() {
            assert_eq!(kind.index(), index);
            let is_reported = matches!(kind.turn_effect(), TurnEffect::Reported(_));
            let is_terminal = matches!(kind.event_type(), "completed" | "cancelled" | "error");
            let is_terminal = is_terminal && !is_reported;
            assert_eq!(
                kind.terminal_type(),
                is_terminal.then_some(kind.event_type())
            );
            assert_eq!(kind.error_code().is_some(), kind.event_type() == "error");
            if kind.event_type() == "cancelled" {
                assert!(kind.cancel_code().is_some());
            }
        }
        let idle_timeout = FrameKind::ErrorIdleTimeout;
        assert_eq!(idle_timeout.error_code(), Some("IDLE_TIMEOUT"));
        assert_eq!(idle_timeout.cancel_code(), Some("IDLE_TIMEOUT"));
        assert_eq!(FrameKind::ErrorInternal.cancel_code(), None);
    }

    // S1-095, S1-127
    #[test]
    fn reported_and_terminal_errors_share_their_codes() {
        let codes = |is_terminal: bool| -> Vec<&str> {
            let errors = FrameKind::ALL
                .iter()
                .filter(|kind| kind.cancel_code().is_none());
            let errors = errors.filter(|kind| kind.terminal_type().is_some() == is_terminal);
            errors.filter_map(|kind| kind.error_code()).collect()
        };
        assert_eq!(codes(false), codes(true));
        assert_eq!(codes(true).len(), 6);
    }

    #[test]
    fn every_kind_fits_into_a_nonzero_byte() {
        assert!(FrameKind::ALL.len() < usize::from(u8::MAX));
    }

    proptest! {
        #[test]
        fn packed_kinds_keep_their_order(indexes in prop::collection::vec(0..FrameKind::ALL.len(), 0..=4)) {
            let expected: Vec<FrameKind> = indexes.iter().map(|&at| FrameKind::ALL[at]).collect();
            let mut kinds = FrameKinds::NONE;
            expected.iter().for_each(|kind| kinds.push(*kind));
            prop_assert_eq!(kinds.len(), expected.len());
            prop_assert_eq!(kinds.is_empty(), expected.is_empty());
            prop_assert_eq!(kinds.iter().collect::<Vec<_>>(), expected);
        }
    }
}
