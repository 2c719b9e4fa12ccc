//! Checks streamed text against stored text (I5, law 5): the concatenated deltas of a message are
//! the stored message. The stored text may be shorter only after a crash, and by no more than the
//! checkpoint interval.

use std::collections::BTreeMap;
use std::time::Duration;

use turnwire_event::body::stream::MessageComplete;
use turnwire_event::{
    Body, ContentBlock, Event, EventFilter, Message, MessageId, Position, Sub, TypeSet,
};

use super::parse::{ParsedClient, ParsedLog, StreamItem, SubscriptionStream};
use super::record::{FaultKind, History};
use super::streamed_message::{MessageOrigin, StreamedMessage};
use super::violation::Violation;

/// The maximum age of lost text at a kill: the checkpoint interval of a quarter of a second, and
/// a slow commit.
pub(super) const CHECKPOINT_SLACK: Duration = Duration::from_secs(3);

/// Crash recovery writes its message ends and tool use ends from this `sub` on.
const SWEPT: Sub = Sub(Sub::LAST.0 - turnwire_event::fold::message::BLOCKS_MAX);

/// The messages of one client while its events are replayed.
struct MessageView<'a> {
    history: &'a History,
    log: &'a ParsedLog<'a>,
    name: &'a str,
    in_flight: BTreeMap<MessageId, StreamedMessage>,
    /// The last received id: shows whether a subscribe continues after a cut.
    last: Option<Position>,
    /// The last persisted event that the current subscribe replays.
    replayed: Option<Position>,
}

/// Joins the deltas that one client received and compares them with the stored messages.
pub(super) fn check(
    history: &History,
    log: &ParsedLog<'_>,
    client: &ParsedClient<'_>,
    violations: &mut Vec<Violation>,
) {
    let mut view = MessageView {
        history,
        log,
        name: client.name,
        in_flight: BTreeMap::new(),
        last: None,
        replayed: None,
    };
    for stream in &client.streams {
        view.start_subscription(stream);
        for item in &stream.items {
            match item {
                StreamItem::Served(up_to) => view.last = view.last.max(Some(*up_to)),
                StreamItem::Event(at, _, apply_event) => {
                    if passes_message_events(&stream.request.filter) {
                        view.apply_event(*at, apply_event, violations);
                    }
                    view.last = Some(apply_event.id);
                }
            }
        }
    }
    let check_unfinished = std::mem::take(&mut view.in_flight);
    for (id, streamed) in check_unfinished {
        view.check_unfinished(id, &streamed, violations);
    }
}

/// True if a filter passes all events of a message and the end of its call.
fn passes_message_events(filter: &EventFilter) -> bool {
    use turnwire_event::EventType as T;
    let parts = [
        T::MessageStart,
        T::TextDelta,
        T::ThinkingDelta,
        T::ToolUseStart,
        T::ToolUseInputDelta,
        T::ToolUseEnd,
        T::MessageComplete,
        T::LlmCallCompleted,
        T::LlmCallFailed,
    ];
    filter.passes_all(parts.into_iter().collect::<TypeSet>())
}

impl MessageView<'_> {
    fn start_subscription(&mut self, stream: &SubscriptionStream<'_>) {
        // Cut before the snapshot: nothing was received, so the position is unchanged.
        if stream.request.snapshot && stream.snapshot.is_none() {
            return;
        }
        let continue_on_disconnect =
            stream.request.since.is_some() && stream.request.since == self.last;
        if let Some(snapshot) = &stream.snapshot {
            self.in_flight = StreamedMessage::of_snapshot(&snapshot.messages);
            self.last = Some(snapshot.at);
        } else if !continue_on_disconnect || !passes_message_events(&stream.request.filter) {
            self.in_flight.clear();
            self.last = stream.request.since;
        }
        self.replayed = stream.request.since.and_then(|since| {
            let after = self.log.events.iter().filter(|e| e.id > since);
            let wanted = after.filter(|e| stream.request.filter.matches(&e.head()));
            let count = usize::try_from(stream.replay_count).unwrap_or(usize::MAX);
            wanted.take(count).last().map(|apply_event| apply_event.id)
        });
        for streamed in self.in_flight.values_mut() {
            streamed.resumed();
        }
    }

    /// The origin of a message whose start was just received. A message that had ended before the
    /// subscribe is sent as start and end only (S3-039).
    fn origin(&self, message: MessageId) -> MessageOrigin {
        let ended = self.log.events.iter().find(|e| match &e.body {
            Body::LlmCallCompleted(call) => call.message_id == message,
            Body::LlmCallFailed(call) => call.message_id == Some(message),
            _ => false,
        });
        match ended {
            Some(apply_event) if Some(apply_event.id) <= self.replayed => MessageOrigin::Ends,
            _ => MessageOrigin::Start,
        }
    }

    fn apply_event(&mut self, at: Duration, apply_event: &Event, violations: &mut Vec<Violation>) {
        match &apply_event.body {
            Body::MessageStart(start) => {
                let origin = self.origin(start.message_id);
                self.in_flight
                    .insert(start.message_id, StreamedMessage::new(origin));
            }
            Body::MessageComplete(end) => {
                let streamed = self.in_flight.remove(&end.message_id);
                let streamed =
                    streamed.unwrap_or_else(|| StreamedMessage::new(MessageOrigin::Middle));
                self.check_complete(apply_event.id, end, &streamed, violations);
            }
            body => {
                let applied = StreamedMessage::apply(&mut self.in_flight, at, body);
                // Crash recovery ends tool uses with the stored input, which may be shorter.
                if let Some((id, wrong)) = applied.filter(|_| apply_event.id.sub < SWEPT) {
                    violations.extend(wrong.map(|(block, seen, stored)| {
                        self.differs(id, block, seen, stored, "tool.use_end")
                    }));
                }
            }
        }
    }

    fn differs(
        &self,
        message: MessageId,
        block: u32,
        seen: String,
        stored: String,
        compared_with: &'static str,
    ) -> Violation {
        Violation::TextDiffers {
            client: self.name.to_owned(),
            message,
            block,
            seen,
            stored,
            compared_with,
        }
    }

    fn check_complete(
        &self,
        id: Position,
        end: &MessageComplete,
        streamed: &StreamedMessage,
        violations: &mut Vec<Violation>,
    ) {
        let message = end.message_id;
        let swept = id.sub >= SWEPT;
        if swept && self.history.count(FaultKind::Kill) == 0 {
            let client = self.name.to_owned();
            violations.push(Violation::SweptWithoutCrash {
                client,
                message,
                id,
            });
        }
        self.check_row(end, violations);
        if streamed.is_empty() && streamed.origin == MessageOrigin::Ends {
            return;
        }
        for (block, seen, stored) in streamed.compare(&end.final_content, swept) {
            violations.push(self.differs(message, block, seen, stored, "message.complete"));
        }
        if swept {
            self.check_checkpoint(message, streamed, &end.final_content, violations);
        }
    }

    /// Compares `message.complete` with the stored row.
    fn check_row(&self, end: &MessageComplete, violations: &mut Vec<Violation>) {
        let Some(check_row) = self.stored(end.message_id) else {
            return;
        };
        let sent = (&end.final_content, Some(end.stop_reason), Some(end.usage));
        let has = (&check_row.content, check_row.stop_reason, check_row.usage);
        if sent != has {
            violations.push(Violation::MessageDiffers {
                session: self.log.id,
                message: end.message_id,
                row: format!("{has:?}"),
                sent: format!("{sent:?}"),
            });
        }
    }

    fn stored(&self, id: MessageId) -> Option<&Message> {
        self.log
            .messages
            .iter()
            .find(|check_row| check_row.id == id)
    }

    /// Checks a message without a received end: its text is a prefix of the stored text, or a crash
    /// lost the difference.
    fn check_unfinished(
        &self,
        id: MessageId,
        streamed: &StreamedMessage,
        violations: &mut Vec<Violation>,
    ) {
        if matches!(streamed.origin, MessageOrigin::Middle | MessageOrigin::Ends) {
            return;
        }
        let content = self
            .stored(id)
            .map_or(&[][..], |check_row| &check_row.content);
        let cut = streamed.compare(content, true).is_empty();
        if streamed.is_part_of(content) {
            return;
        }
        if cut && self.history.count(FaultKind::Kill) > 0 {
            self.check_checkpoint(id, streamed, content, violations);
            return;
        }
        let (seen, stored) = (streamed.text(), format!("{content:?}"));
        violations.push(self.differs(id, 0, seen, stored, "stored row"));
    }

    /// Lost text must have been sent shortly before a kill.
    fn check_checkpoint(
        &self,
        message: MessageId,
        streamed: &StreamedMessage,
        content: &[ContentBlock],
        violations: &mut Vec<Violation>,
    ) {
        let lost_ages = streamed.lost_piece_times(content).filter_map(|at| {
            let age = self.history.nearest_kill(at);
            (age > CHECKPOINT_SLACK).then_some(age)
        });
        if let Some(age) = lost_ages.max() {
            violations.push(Violation::CheckpointLate {
                client: self.name.to_owned(),
                message,
                ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            });
        }
    }
}
