//! A message as one client received it: the text of each block, and the end and time of each delta.
//! Independent of the server's own fold, so that a bug in one does not hide in the other.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_event::{Body, ContentBlock, Message, MessageId, MessageStatus};

/// Which part of a message a client received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageOrigin {
    Start,
    /// Start and end only: the message had ended before the subscribe.
    Ends,
    /// A part in a snapshot, then deltas.
    Snapshot,
    /// Deltas from the middle on.
    Middle,
}

/// A block as it was sent.
#[derive(Debug, Default)]
struct StreamedBlock {
    text: String,
    /// For each delta, the byte offset of its end and its time of receipt.
    pieces: Vec<(usize, Duration)>,
    /// For a tool use: true if its start was received, so that `text` is all of its input.
    saw_input_start: bool,
    input: Option<Value>,
}

/// A message as it was sent.
#[derive(Debug)]
pub(super) struct StreamedMessage {
    pub(super) origin: MessageOrigin,
    blocks: BTreeMap<u32, StreamedBlock>,
}

/// A block whose text differs: index, received text, stored text.
pub(super) type BlockMismatch = (u32, String, String);

impl StreamedMessage {
    pub(super) fn new(origin: MessageOrigin) -> Self {
        Self {
            origin,
            blocks: BTreeMap::new(),
        }
    }

    /// The messages in progress of a snapshot.
    pub(super) fn of_snapshot(messages: &[Message]) -> BTreeMap<MessageId, Self> {
        let open = messages
            .iter()
            .filter(|m| m.status == MessageStatus::InProgress);
        open.map(|message| {
            let mut growth = Self::new(MessageOrigin::Snapshot);
            for (block, index) in message.content.iter().zip(0u32..) {
                let block = StreamedBlock {
                    text: block_text(block).unwrap_or_default().to_owned(),
                    ..StreamedBlock::default()
                };
                growth.blocks.insert(index, block);
            }
            (message.id, growth)
        })
        .collect()
    }

    /// Call after a cut and resume. If only the start of an ended message had arrived, only events
    /// after the cursor follow.
    pub(super) fn resumed(&mut self) {
        if self.origin == MessageOrigin::Ends {
            self.origin = MessageOrigin::Middle;
        }
    }

    /// Applies a delta; returns its message and, for a wrong tool input, the mismatch.
    pub(super) fn apply(
        growing: &mut BTreeMap<MessageId, Self>,
        at: Duration,
        body: &Body,
    ) -> Option<(MessageId, Option<BlockMismatch>)> {
        let (id, index, text) = match body {
            Body::TextDelta(d) => (d.message_id, d.content_block_index, d.text.as_str()),
            Body::ThinkingDelta(d) => (d.message_id, d.content_block_index, d.text.as_str()),
            Body::ToolUseStart(d) => (d.message_id, d.content_block_index, ""),
            Body::ToolUseInputDelta(d) => {
                (d.message_id, d.content_block_index, d.partial_json.as_str())
            }
            Body::ToolUseEnd(d) => (d.message_id, d.content_block_index, ""),
            _ => return None,
        };
        let growth = growing
            .entry(id)
            .or_insert_with(|| Self::new(MessageOrigin::Middle));
        let block = growth.blocks.entry(index).or_default();
        block.text.push_str(text);
        block.pieces.push((block.text.len(), at));
        match body {
            Body::ToolUseStart(_) => block.saw_input_start = true,
            Body::ToolUseEnd(end) => {
                block.input = Some(end.final_input.clone());
                let differs = block.saw_input_start
                    && !block.text.is_empty()
                    && object_or_empty(&block.text) != end.final_input;
                let mismatch =
                    differs.then(|| (index, block.text.clone(), end.final_input.to_string()));
                return Some((id, mismatch));
            }
            _ => {}
        }
        Some((id, None))
    }

    /// True if no block was received.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The text of all blocks, for reports.
    pub(super) fn text(&self) -> String {
        self.blocks.values().map(|b| b.text.as_str()).collect()
    }

    /// The blocks that differ from `content`. With `cut`, the content may be shorter.
    pub(super) fn compare(&self, content: &[ContentBlock], cut: bool) -> Vec<BlockMismatch> {
        let first = self.blocks.keys().next().copied();
        let mut mismatches = Vec::new();
        for (block, index) in content.iter().zip(0u32..) {
            let seen = self.blocks.get(&index);
            let text = seen.map_or("", |b| b.text.as_str());
            let (text_matches, stored) = match (block_text(block), block) {
                (Some(stored), _) => (
                    self.text_matches(text, stored, Some(index) == first, cut),
                    stored.to_owned(),
                ),
                (None, ContentBlock::ToolUse { input, .. }) => {
                    let sent_input = seen.and_then(|b| b.input.as_ref());
                    let same = cut || sent_input.is_none_or(|sent_input| sent_input == input);
                    (same, input.to_string())
                }
                (None, _) => (true, String::new()),
            };
            let unseen =
                self.origin == MessageOrigin::Middle && first.is_none_or(|first| index < first);
            if !(text_matches || unseen) {
                mismatches.push((index, text.to_owned(), stored));
            }
        }
        let beyond = self
            .blocks
            .range(u32::try_from(content.len()).unwrap_or(u32::MAX)..);
        mismatches.extend(
            beyond
                .filter(|_| !cut)
                .map(|(&index, block)| (index, block.text.clone(), "no such block".to_owned())),
        );
        mismatches
    }

    fn text_matches(&self, seen: &str, stored: &str, first: bool, cut: bool) -> bool {
        match (self.origin, cut) {
            // The start is unknown and a crash cut the end: any text is possible.
            (MessageOrigin::Middle, true) => true,
            (MessageOrigin::Middle, false) if first => stored.ends_with(seen),
            (_, true) => seen.starts_with(stored),
            (_, false) => seen == stored,
        }
    }

    /// True if the received text is a prefix of `content`.
    pub(super) fn is_part_of(&self, content: &[ContentBlock]) -> bool {
        self.blocks
            .iter()
            .all(|(&index, block)| match content.get(index as usize) {
                Some(stored) => {
                    block_text(stored).is_none_or(|stored| stored.starts_with(&block.text))
                }
                None => block.text.is_empty(),
            })
    }

    /// The times of receipt of deltas that `content` does not contain.
    pub(super) fn lost_piece_times<'a>(
        &'a self,
        content: &'a [ContentBlock],
    ) -> impl Iterator<Item = Duration> + 'a {
        self.blocks.iter().flat_map(move |(&index, block)| {
            let stored_len = match content.get(index as usize) {
                None => 0,
                Some(stored) => block_text(stored).map_or(usize::MAX, str::len),
            };
            block
                .pieces
                .iter()
                .filter(move |(end, _)| *end > stored_len)
                .map(|(_, at)| *at)
        })
    }
}

/// The text of a text or thinking block.
fn block_text(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => Some(text),
        _ => None,
    }
}

/// The raw input if it is a JSON object, else an empty object (S3-072).
fn object_or_empty(raw: &str) -> Value {
    match serde_json::from_str(raw) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::Object(Map::new()),
    }
}
