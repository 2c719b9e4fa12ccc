//! What kinds of frames there are, as a server counts them.
//!
//! A `Mark` names one kind: its event type, its code, and whether it ends the turn. `Marks` are
//! those of one event, in order, packed so that they can be kept beside the frames' bytes. A new
//! kind of frame is a new line of the table.

/// What a frame says about its turn.
#[derive(Clone, Copy)]
enum Says {
    /// It goes on.
    Going,
    /// It goes on, though something failed with this code.
    Reported(&'static str),
    /// It is over, as it should be.
    Over,
    /// It is over, by a cancel with this code.
    Cancelled(&'static str),
    /// It is over, by a failure with this code.
    Failed(&'static str),
}

macro_rules! marks {
    ($($(#[$doc:meta])* $name:ident: $event_type:literal, $says:expr;)+) => {
        /// One kind of frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Mark { $($(#[$doc])* $name),+ }

        impl Mark {
            /// Every kind, in the order of `index`.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The type on its `event:` line.
            pub const fn event_type(self) -> &'static str {
                match self { $(Self::$name => $event_type),+ }
            }

            const fn says(self) -> Says {
                match self { $(Self::$name => $says),+ }
            }
        }
    };
}

marks! {
    /// The turn's name, first of all.
    ResponseId: "response_id", Says::Going;
    /// The episode.
    Episode: "episode", Says::Going;
    /// The model thinks, before any words.
    Thinking: "thinking", Says::Going;
    /// The model thinks, after words.
    Reasoning: "reasoning", Says::Going;
    /// Words.
    Text: "text", Says::Going;
    /// A tool begins.
    ToolCall: "tool_call", Says::Going;
    /// A tool ended.
    ToolCompleted: "tool_completed", Says::Going;
    /// What is being done, in the person's words (0.5).
    Status: "status", Says::Going;
    /// A place for a collection.
    DataLoading: "data_loading", Says::Going;
    /// The collection.
    DataLoaded: "data_loaded", Says::Going;
    /// A component.
    Component: "component", Says::Going;
    /// A tool server is asked for its tools.
    McpListToolsStart: "mcp_list_tools_start", Says::Going;
    /// It has listed them.
    McpListToolsCompleted: "mcp_list_tools_completed", Says::Going;
    /// A tool server is connected to.
    McpSessionStart: "mcp_session_start", Says::Going;
    /// A tool server is at work.
    McpSessionProgress: "mcp_session_progress", Says::Going;
    /// Something failed inside, and the turn goes on (0.5, as all that are reported).
    ReportedInternal: "error", Says::Reported("INTERNAL_ERROR");
    /// The model's provider said: too much, and the turn goes on.
    ReportedRateLimit: "error", Says::Reported("RATE_LIMIT_ERROR");
    /// A sub-agent failed, and the turn goes on.
    ReportedSubAgent: "error", Says::Reported("SUB_AGENT_FAILED");
    /// An enricher failed, and the turn goes on.
    ReportedEnvelope: "error", Says::Reported("CCS_ENVELOPE_ERROR");
    /// Some of several sub-agents failed, and the turn goes on.
    ReportedFanOut: "error", Says::Reported("PARTIAL_FAN_OUT");
    /// What the turn cost.
    Usage: "usage", Says::Going;
    /// The turn ended as it should.
    Completed: "completed", Says::Over;
    /// The turn was cancelled by someone.
    CancelledRequest: "cancelled", Says::Cancelled("REQUEST_CANCELLED");
    /// The turn was cancelled because its upstream said nothing.
    CancelledIdle: "cancelled", Says::Cancelled("IDLE_TIMEOUT");
    /// The turn failed inside.
    ErrorInternal: "error", Says::Failed("INTERNAL_ERROR");
    /// The turn failed because the model's provider said: too much.
    ErrorRateLimit: "error", Says::Failed("RATE_LIMIT_ERROR");
    /// The turn failed with its sub-agent.
    ErrorSubAgent: "error", Says::Failed("SUB_AGENT_FAILED");
    /// The turn failed with an enricher.
    ErrorEnvelope: "error", Says::Failed("CCS_ENVELOPE_ERROR");
    /// The turn failed with several sub-agents.
    ErrorFanOut: "error", Says::Failed("PARTIAL_FAN_OUT");
    /// Version 0.4: the turn was cancelled by someone.
    ErrorRequestCancelled: "error", Says::Cancelled("REQUEST_CANCELLED");
    /// Version 0.4: the turn was cancelled because its upstream said nothing.
    ErrorIdleTimeout: "error", Says::Cancelled("IDLE_TIMEOUT");
}

impl Mark {
    /// How many kinds there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Its place in `ALL`, below `COUNT`.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its type, if it ends the turn.
    pub const fn terminal(self) -> Option<&'static str> {
        match self.says() {
            Says::Going | Says::Reported(_) => None,
            Says::Over | Says::Cancelled(_) | Says::Failed(_) => Some(self.event_type()),
        }
    }

    /// The code of an `error` frame, whether it ends the turn or not; of version 0.4 those of
    /// cancels too.
    pub const fn error_code(self) -> Option<&'static str> {
        match (self, self.says()) {
            (Self::CancelledRequest | Self::CancelledIdle, _) => None,
            (_, Says::Failed(code) | Says::Cancelled(code) | Says::Reported(code)) => Some(code),
            (_, Says::Going | Says::Over) => None,
        }
    }

    /// The code of the cancel that ended the turn, in either version.
    pub const fn cancel_code(self) -> Option<&'static str> {
        match self.says() {
            Says::Cancelled(code) => Some(code),
            Says::Going | Says::Over | Says::Failed(_) | Says::Reported(_) => None,
        }
    }
}

/// The kinds of one event's frames, in order: at most four, a byte each, the first lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks(u32);

impl Marks {
    /// No frame.
    pub const NONE: Self = Self(0);
    const MAX: usize = 4;

    /// From what `bits` gave. Bytes that are no kind are left out.
    pub fn from_bits(bits: u32) -> Self {
        let mut marks = Self::NONE;
        marks.extend(Self(bits).iter());
        marks
    }

    /// As a number; 0 is no frame.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The kinds, in order.
    pub fn iter(self) -> impl Iterator<Item = Mark> {
        let known = |byte: u8| Mark::ALL.get(usize::from(byte).wrapping_sub(1)).copied();
        self.0.to_le_bytes().into_iter().filter_map(known)
    }

    /// How many frames.
    pub const fn len(self) -> usize {
        Self::MAX - (self.0.leading_zeros() / u8::BITS) as usize
    }

    /// Whether there is no frame.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// One frame more. No event gives more than four.
    pub(crate) fn push(&mut self, mark: Mark) {
        debug_assert!(self.len() < Self::MAX, "no event gives so many frames");
        let byte = mark as u32 + 1;
        self.0 |= byte.checked_shl(self.len() as u32 * u8::BITS).unwrap_or(0);
    }
}

impl Extend<Mark> for Marks {
    fn extend<I: IntoIterator<Item = Mark>>(&mut self, marks: I) {
        for mark in marks {
            self.push(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_frame_has_its_own_index_and_tells_its_end() {
        for (index, mark) in Mark::ALL.iter().enumerate() {
            assert_eq!(mark.index(), index);
            let reported = matches!(mark.says(), Says::Reported(_));
            let ends = matches!(mark.event_type(), "completed" | "cancelled" | "error");
            let ends = ends && !reported;
            assert_eq!(mark.terminal(), ends.then_some(mark.event_type()));
            assert_eq!(mark.error_code().is_some(), mark.event_type() == "error");
            if mark.event_type() == "cancelled" {
                assert!(mark.cancel_code().is_some());
            }
        }
        let folded = Mark::ErrorIdleTimeout;
        assert_eq!(folded.error_code(), Some("IDLE_TIMEOUT"));
        assert_eq!(folded.cancel_code(), Some("IDLE_TIMEOUT"));
        assert_eq!(Mark::ErrorInternal.cancel_code(), None);
    }

    #[test]
    fn s1_095_s1_127_an_error_that_is_not_the_end_has_the_code_of_one_that_is() {
        let codes = |ends: bool| -> Vec<&str> {
            let errors = Mark::ALL.iter().filter(|mark| mark.cancel_code().is_none());
            let errors = errors.filter(|mark| mark.terminal().is_some() == ends);
            errors.filter_map(|mark| mark.error_code()).collect()
        };
        assert_eq!(codes(false), codes(true));
        assert_eq!(codes(true).len(), 5);
    }

    #[test]
    fn every_kind_of_frame_fits_a_byte_beside_the_one_that_says_none() {
        assert!(Mark::COUNT < usize::from(u8::MAX));
    }

    proptest! {
        #[test]
        fn marks_keep_their_order_through_bits(indexes in prop::collection::vec(0..Mark::COUNT, 0..=4)) {
            let wanted: Vec<Mark> = indexes.iter().map(|&at| Mark::ALL[at]).collect();
            let mut marks = Marks::NONE;
            marks.extend(wanted.iter().copied());
            prop_assert_eq!(marks.len(), wanted.len());
            prop_assert_eq!(marks.is_empty(), wanted.is_empty());
            prop_assert_eq!(Marks::from_bits(marks.bits()), marks);
            prop_assert_eq!(marks.iter().collect::<Vec<_>>(), wanted);
        }

        #[test]
        fn no_number_is_taken_for_more_than_it_is(bits in any::<u32>()) {
            let marks = Marks::from_bits(bits);
            prop_assert_eq!(marks.iter().count(), marks.len());
            prop_assert_eq!(Marks::from_bits(marks.bits()), marks);
        }
    }
}
