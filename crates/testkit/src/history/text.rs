//! What was streamed against what was stored (I5, law 5): the sum of the deltas a client was
//! sent of a message is the message. Shorter only after a crash, and then by no more than the
//! checkpoints allow.

use std::collections::BTreeMap;
use std::time::Duration;

use turnwire_event::body::stream::MessageComplete;
use turnwire_event::{
    Body, ContentBlock, Event, Filter, Message, MessageId, Position, Sub, TypeSet,
};

use super::parse::{ParsedClient, ParsedLog, StreamItem, SubscriptionStream};
use super::record::{FaultKind, History};
use super::streamed_message::{MessageOrigin, StreamedMessage};
use super::violation::Violation;

/// How much older than the kill text may be that the crash cost: the checkpoint's quarter of a
/// second, and room for a commit on a busy disk.
pub(super) const CHECKPOINT_SLACK: Duration = Duration::from_secs(3);

/// Places from here on are the sweep's: the end of a message, and of tool uses it was cut in.
const SWEPT: Sub = Sub(Sub::LAST.0 - turnwire_event::fold::message::BLOCKS_MAX);

/// One client's view of the messages, as it grows.
struct MessageView<'a> {
    history: &'a History,
    log: &'a ParsedLog<'a>,
    name: &'a str,
    growing: BTreeMap<MessageId, StreamedMessage>,
    /// The last id, to tell whether a subscribe goes on where the one before it was cut.
    last: Option<Position>,
    /// The last persisted event that the subscribe at hand replays.
    replayed: Option<Position>,
}

/// Puts together what one client was sent and compares it.
pub(super) fn check(
    history: &History,
    log: &ParsedLog<'_>,
    client: &ParsedClient<'_>,
    found: &mut Vec<Violation>,
) {
    let mut view = MessageView {
        history,
        log,
        name: client.name,
        growing: BTreeMap::new(),
        last: None,
        replayed: None,
    };
    for stretch in &client.stretches {
        view.begin(stretch);
        for item in &stretch.items {
            match item {
                StreamItem::Served(upto) => view.last = view.last.max(Some(*upto)),
                StreamItem::Event(at, _, event) => {
                    if streams(&stretch.asked.filter) {
                        view.event(*at, event, found);
                    }
                    view.last = Some(event.id);
                }
            }
        }
    }
    let unfinished = std::mem::take(&mut view.growing);
    for (id, growth) in unfinished {
        view.unfinished(id, &growth, found);
    }
}

/// Whether a filter lets everything through that a message is made of, and the end of its call.
fn streams(filter: &Filter) -> bool {
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
    fn begin(&mut self, stretch: &SubscriptionStream<'_>) {
        // Cut before the snapshot came: nothing was sent, and the reader stands where it stood.
        if stretch.asked.snapshot && stretch.snapshot.is_none() {
            return;
        }
        let goes_on = stretch.asked.since.is_some() && stretch.asked.since == self.last;
        if let Some(snapshot) = &stretch.snapshot {
            self.growing = StreamedMessage::of_snapshot(&snapshot.messages);
            self.last = Some(snapshot.at);
        } else if !goes_on || !streams(&stretch.asked.filter) {
            self.growing.clear();
            self.last = stretch.asked.since;
        }
        self.replayed = stretch.asked.since.and_then(|since| {
            let after = self.log.events.iter().filter(|e| e.id > since);
            let wanted = after.filter(|e| stretch.asked.filter.matches(&e.head()));
            let count = usize::try_from(stretch.replay_count).unwrap_or(usize::MAX);
            wanted.take(count).last().map(|event| event.id)
        });
        for growth in self.growing.values_mut() {
            growth.resumed();
        }
    }

    /// From where the client knows a message whose start it has just been sent. One that was over
    /// when the client asked comes as its two ends (S3-039).
    fn origin(&self, message: MessageId) -> MessageOrigin {
        let ended = self.log.events.iter().find(|e| match &e.body {
            Body::LlmCallCompleted(call) => call.message_id == message,
            Body::LlmCallFailed(call) => call.message_id == Some(message),
            _ => false,
        });
        match ended {
            Some(event) if Some(event.id) <= self.replayed => MessageOrigin::Ends,
            _ => MessageOrigin::Start,
        }
    }

    fn event(&mut self, at: Duration, event: &Event, found: &mut Vec<Violation>) {
        match &event.body {
            Body::MessageStart(start) => {
                let origin = self.origin(start.message_id);
                self.growing
                    .insert(start.message_id, StreamedMessage::new(origin));
            }
            Body::MessageComplete(end) => {
                let growth = self.growing.remove(&end.message_id);
                let growth = growth.unwrap_or_else(|| StreamedMessage::new(MessageOrigin::Middle));
                self.complete(event.id, end, &growth, found);
            }
            body => {
                let told = StreamedMessage::apply(&mut self.growing, at, body);
                // What the sweep ends it ends by what was stored, which may be less.
                if let Some((id, wrong)) = told.filter(|_| event.id.sub < SWEPT) {
                    found.extend(wrong.map(|(block, seen, whole)| {
                        self.differs(id, block, seen, whole, "tool.use_end")
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
        whole: String,
        whence: &'static str,
    ) -> Violation {
        Violation::TextDiffers {
            client: self.name.to_owned(),
            message,
            block,
            seen,
            whole,
            whence,
        }
    }

    fn complete(
        &self,
        id: Position,
        end: &MessageComplete,
        growth: &StreamedMessage,
        found: &mut Vec<Violation>,
    ) {
        let message = end.message_id;
        let swept = id.sub >= SWEPT;
        if swept && self.history.count(FaultKind::Kill) == 0 {
            let client = self.name.to_owned();
            found.push(Violation::SweptWithoutCrash {
                client,
                message,
                id,
            });
        }
        self.row(end, found);
        if growth.is_empty() && growth.origin == MessageOrigin::Ends {
            return;
        }
        for (block, seen, whole) in growth.compare(&end.final_content, swept) {
            found.push(self.differs(message, block, seen, whole, "message.complete"));
        }
        if swept {
            self.late(message, growth, &end.final_content, found);
        }
    }

    /// The end a client was told is the row that is stored.
    fn row(&self, end: &MessageComplete, found: &mut Vec<Violation>) {
        let Some(row) = self.stored(end.message_id) else {
            return;
        };
        let told = (&end.final_content, Some(end.stop_reason), Some(end.usage));
        let has = (&row.content, row.stop_reason, row.usage);
        if told != has {
            found.push(Violation::MessageDiffers {
                session: self.log.id,
                message: end.message_id,
                row: format!("{has:?}"),
                told: format!("{told:?}"),
            });
        }
    }

    fn stored(&self, id: MessageId) -> Option<&Message> {
        self.log.messages.iter().find(|row| row.id == id)
    }

    /// A message whose end the client was not there to see: its text is a part of the row's, or
    /// the crash cost the rest.
    fn unfinished(&self, id: MessageId, growth: &StreamedMessage, found: &mut Vec<Violation>) {
        if matches!(growth.origin, MessageOrigin::Middle | MessageOrigin::Ends) {
            return;
        }
        let content = self.stored(id).map_or(&[][..], |row| &row.content);
        let cut = growth.compare(content, true).is_empty();
        if growth.is_part_of(content) {
            return;
        }
        if cut && self.history.count(FaultKind::Kill) > 0 {
            self.late(id, growth, content, found);
            return;
        }
        let (seen, whole) = (growth.text(), format!("{content:?}"));
        found.push(self.differs(id, 0, seen, whole, "stored row"));
    }

    /// Text that a crash cost must have been sent shortly before the kill.
    fn late(
        &self,
        message: MessageId,
        growth: &StreamedMessage,
        content: &[ContentBlock],
        found: &mut Vec<Violation>,
    ) {
        let lost = growth.lost(content).filter_map(|at| {
            let age = self.history.kill_near(at);
            (age > CHECKPOINT_SLACK).then_some(age)
        });
        if let Some(age) = lost.max() {
            found.push(Violation::CheckpointLate {
                client: self.name.to_owned(),
                message,
                ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            });
        }
    }
}
