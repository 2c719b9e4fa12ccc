//! Why an answer ended, in one vocabulary for all vendors, and the [`StopReason`] that it becomes.

use turnwire_event::StopReason;

/// Why an answer ended; each decoder translates its vendor's own reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerEnding {
    /// End of turn or tool use.
    #[default]
    Complete,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The token limit or the context window was reached.
    Truncated,
    /// The vendor's safety filter stopped the answer.
    Filtered,
}

impl AnswerEnding {
    /// True if the model was stopped: the input of a tool use may be missing.
    pub(crate) fn is_cut_short(self) -> bool {
        matches!(self, Self::Truncated | Self::Filtered)
    }

    /// The reason that [`Delta::Stop`](crate::Delta::Stop) reports.
    pub(crate) fn stop_reason(self, has_tool_use: bool) -> StopReason {
        match self {
            Self::Filtered => StopReason::EndTurn,
            Self::Truncated => StopReason::MaxTokens,
            Self::StopSequence | Self::Complete if has_tool_use => StopReason::ToolUse,
            Self::StopSequence => StopReason::StopSequence,
            Self::Complete => StopReason::EndTurn,
        }
    }
}
