//! The events that a gate delays for a short time: one text delta, then statuses.
//!
//! ```text
//!   out  ←  [ text of one block, joined ]  [ status, status, … ]  ←  in
//! ```
//!
//! The text is always the older of the two: all buffered events are released before new text is
//! buffered. So released events keep the order in which they were emitted.

use std::time::{Duration, Instant};

use turnwire_event::Body;
use turnwire_event::body::stream::TextDelta;
use turnwire_event::port::Emission;

/// The largest number of buffered statuses: more than the agents that run at once, and already
/// too many for one sentence.
pub const BUFFERED_STATUSES_MAX: usize = 32;
/// The largest number of buffered bytes of text: far more than a model writes in one window.
pub const BUFFERED_TEXT_BYTES_MAX: usize = 4_096;

/// A buffered status and its index in the [`PolicyTable`](crate::policy_table::PolicyTable).
#[derive(Debug)]
pub(crate) struct BufferedStatus {
    pub emission: Emission,
    pub index: usize,
}

#[derive(Debug, Default)]
pub(crate) struct GateBuffer {
    text: Option<(Emission, Instant)>,
    statuses: Vec<BufferedStatus>,
    statuses_due: Option<Instant>,
}

impl GateBuffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_none() && self.statuses.is_empty()
    }

    pub(crate) fn has_statuses(&self) -> bool {
        !self.statuses.is_empty()
    }

    /// True if a status of the sub-agent is buffered.
    pub(crate) fn has_status_of(&self, sub_agent_id: &str) -> bool {
        self.statuses
            .iter()
            .any(|buffered| buffered.emission.actor.is_subagent(sub_agent_id))
    }

    /// The time at which the oldest buffered event must be released.
    pub(crate) fn due(&self) -> Option<Instant> {
        // Text is older than the statuses, so its deadline comes first.
        self.text
            .as_ref()
            .map(|(_, due)| *due)
            .or(self.statuses_due)
    }

    pub(crate) fn statuses_due(&self, now: Instant) -> bool {
        self.statuses_due.is_some_and(|due| due <= now)
    }

    pub(crate) fn text_due(&self, now: Instant) -> bool {
        self.text.as_ref().is_some_and(|(_, due)| *due <= now)
    }

    /// True if the buffer has reached [`BUFFERED_STATUSES_MAX`].
    pub(crate) fn is_full(&self) -> bool {
        self.statuses.len() >= BUFFERED_STATUSES_MAX
    }

    pub(crate) fn push_status(&mut self, buffered: BufferedStatus, now: Instant, window: Duration) {
        self.statuses_due.get_or_insert(now + window);
        self.statuses.push(buffered);
    }

    /// Appends a delta to the buffered text. Returns false if no text is buffered, if the delta
    /// belongs to another block, or if the text would become too long.
    pub(crate) fn try_append_text(&mut self, emission: &Emission) -> bool {
        let Some((buffered, _)) = &mut self.text else {
            return false;
        };
        let same_origin = buffered.actor == emission.actor
            && buffered.message.is_none()
            && emission.message.is_none()
            && buffered.trace == emission.trace;
        match (&mut buffered.body, &emission.body) {
            (Body::TextDelta(buffered_delta), Body::TextDelta(delta))
                if same_origin
                    && same_block(buffered_delta, delta)
                    && buffered_delta.text.len() + delta.text.len() <= BUFFERED_TEXT_BYTES_MAX =>
            {
                buffered_delta.text.push_str(&delta.text);
                true
            }
            _ => false,
        }
    }

    /// Buffers a delta. The buffer must be empty.
    pub(crate) fn buffer_text(&mut self, emission: Emission, due: Instant) {
        debug_assert!(self.is_empty(), "text is held before statuses");
        self.text = Some((emission, due));
    }

    pub(crate) fn take_text(&mut self) -> Option<Emission> {
        self.text.take().map(|(emission, _)| emission)
    }

    pub(crate) fn take_statuses(&mut self) -> Vec<BufferedStatus> {
        self.statuses_due = None;
        std::mem::take(&mut self.statuses)
    }
}

pub(crate) fn same_block(one: &TextDelta, other: &TextDelta) -> bool {
    one.message_id == other.message_id && one.content_block_index == other.content_block_index
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnwire_event::row::{MessageScope, NewMessage};
    use turnwire_event::{Actor, JsonObject, MessageId, ProviderState, Role, TraceContext, Ulid};

    use super::*;
    use crate::tests::support::{text, text_in, thinking};

    /// The text that is buffered after `first` and `then`, if they are joined.
    fn joined(first: &Emission, then: &Emission) -> Option<String> {
        let mut buffer = GateBuffer::default();
        assert!(!buffer.try_append_text(then), "nothing is buffered");
        buffer.buffer_text(first.clone(), Instant::now());
        let is_joined = buffer.try_append_text(then);
        let kept = buffer.take_text().expect("the buffered text");
        match kept.body {
            Body::TextDelta(delta) if is_joined => Some(delta.text),
            _ => {
                assert_eq!(&kept, first, "unchanged");
                None
            }
        }
    }

    fn change(emission: Emission, change: impl FnOnce(&mut Emission)) -> Emission {
        let mut emission = emission;
        change(&mut emission);
        emission
    }

    #[test]
    fn only_text_of_one_origin_and_block_is_joined() {
        let first = text("one ");
        assert_eq!(joined(&first, &text("two")).as_deref(), Some("one two"));
        let trace = Arc::new(TraceContext {
            trace_id: "1".into(),
            span_id: "2".into(),
            parent_span_id: None,
        });
        let row = NewMessage {
            id: MessageId(Ulid(98)),
            role: Role::Assistant,
            content: Vec::new(),
            metadata: JsonObject::default(),
            scope: MessageScope::Shared,
            provider_state: ProviderState::default(),
        };
        let with_row = change(text("two"), |other| other.message = Some(row));
        assert_eq!(joined(&with_row, &text("three")), None);
        for other in [
            thinking(),
            text_in(7, "two"),
            with_row,
            change(text("two"), |other| other.actor = Actor::subagent("shop")),
            change(text("two"), |other| other.trace = Some(trace)),
            change(text("two"), |other| {
                if let Body::TextDelta(delta) = &mut other.body {
                    delta.message_id = MessageId(Ulid(99));
                }
            }),
        ] {
            assert_eq!(joined(&first, &other), None, "{other:?}");
        }
    }

    #[test]
    fn joined_text_is_bounded() {
        let first = text(&"x".repeat(BUFFERED_TEXT_BYTES_MAX - 1));
        let full = joined(&first, &text("y")).expect("it fits");
        assert_eq!(full.len(), BUFFERED_TEXT_BYTES_MAX);
        assert_eq!(joined(&first, &text("yy")), None);
    }
}
