//! A message as one client has seen it grow: the text of each block, where each piece ended and
//! when it came. Written apart from the server's own fold, so that the two can disagree.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use turnwire_event::{Body, ContentBlock, Message, MessageId, MessageStatus};

/// From where a client knows a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageOrigin {
    Start,
    /// From its start, which came when it was over: its end follows, and nothing in between.
    Ends,
    /// From a snapshot in its middle.
    Snapshot,
    /// From somewhere in its middle: what came is its end.
    Middle,
}

/// A block as it was sent.
#[derive(Debug, Default)]
struct StreamedBlock {
    text: String,
    /// Where each piece ended, and when it came.
    pieces: Vec<(usize, Duration)>,
    /// For a tool: whether all of its raw input was seen.
    whole_input: bool,
    input: Option<Value>,
}

/// A message as it was sent.
#[derive(Debug)]
pub(super) struct StreamedMessage {
    pub(super) origin: MessageOrigin,
    blocks: BTreeMap<u32, StreamedBlock>,
}

/// A block that is not what it should be: which, as seen, as it is.
pub(super) type BlockMismatch = (u32, String, String);

impl StreamedMessage {
    pub(super) fn new(origin: MessageOrigin) -> Self {
        Self {
            origin,
            blocks: BTreeMap::new(),
        }
    }

    /// The messages in flight of a snapshot.
    pub(super) fn of_snapshot(messages: &[Message]) -> BTreeMap<MessageId, Self> {
        let open = messages
            .iter()
            .filter(|m| m.status == MessageStatus::InProgress);
        open.map(|message| {
            let mut growth = Self::new(MessageOrigin::Snapshot);
            for (block, index) in message.content.iter().zip(0u32..) {
                let block = StreamedBlock {
                    text: words(block).unwrap_or_default().to_owned(),
                    ..StreamedBlock::default()
                };
                growth.blocks.insert(index, block);
            }
            (message.id, growth)
        })
        .collect()
    }

    /// The client was cut and goes on from its cursor. Of a message that came as its two ends,
    /// and whose cut fell between them, only what stands after the cursor will come.
    pub(super) fn resumed(&mut self) {
        if self.origin == MessageOrigin::Ends {
            self.origin = MessageOrigin::Middle;
        }
    }

    /// Takes in an event of a message; says which message, and what is wrong with it.
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
            Body::ToolUseStart(_) => block.whole_input = true,
            Body::ToolUseEnd(end) => {
                block.input = Some(end.final_input.clone());
                let wrong = block.whole_input
                    && !block.text.is_empty()
                    && parsed(&block.text) != end.final_input;
                let wrong = wrong.then(|| (index, block.text.clone(), end.final_input.to_string()));
                return Some((id, wrong));
            }
            _ => {}
        }
        Some((id, None))
    }

    /// Whether nothing of it was sent.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All its words, for a report.
    pub(super) fn text(&self) -> String {
        self.blocks.values().map(|b| b.text.as_str()).collect()
    }

    /// The blocks that are not what `content` says. With `cut`, the content may be shorter.
    pub(super) fn compare(&self, content: &[ContentBlock], cut: bool) -> Vec<BlockMismatch> {
        let first = self.blocks.keys().next().copied();
        let mut wrong = Vec::new();
        for (block, index) in content.iter().zip(0u32..) {
            let seen = self.blocks.get(&index);
            let text = seen.map_or("", |b| b.text.as_str());
            let (fits, whole) = match (words(block), block) {
                (Some(whole), _) => (
                    self.fits(text, whole, Some(index) == first, cut),
                    whole.to_owned(),
                ),
                (None, ContentBlock::ToolUse { input, .. }) => {
                    let told = seen.and_then(|b| b.input.as_ref());
                    let same = cut || told.is_none_or(|told| told == input);
                    (same, input.to_string())
                }
                (None, _) => (true, String::new()),
            };
            let unseen =
                self.origin == MessageOrigin::Middle && first.is_none_or(|first| index < first);
            if !(fits || unseen) {
                wrong.push((index, text.to_owned(), whole));
            }
        }
        let beyond = self
            .blocks
            .range(u32::try_from(content.len()).unwrap_or(u32::MAX)..);
        wrong.extend(
            beyond
                .filter(|_| !cut)
                .map(|(&index, block)| (index, block.text.clone(), "no such block".to_owned())),
        );
        wrong
    }

    fn fits(&self, seen: &str, whole: &str, first: bool, cut: bool) -> bool {
        match (self.origin, cut) {
            // Where a piece without its beginning was followed by a crash, nothing can be told.
            (MessageOrigin::Middle, true) => true,
            (MessageOrigin::Middle, false) if first => whole.ends_with(seen),
            (_, true) => seen.starts_with(whole),
            (_, false) => seen == whole,
        }
    }

    /// Whether all that was sent is the beginning of `content`.
    pub(super) fn is_part_of(&self, content: &[ContentBlock]) -> bool {
        self.blocks
            .iter()
            .all(|(&index, block)| match content.get(index as usize) {
                Some(whole) => words(whole).is_none_or(|whole| whole.starts_with(&block.text)),
                None => block.text.is_empty(),
            })
    }

    /// When those pieces came that `content` no longer has.
    pub(super) fn lost<'a>(
        &'a self,
        content: &'a [ContentBlock],
    ) -> impl Iterator<Item = Duration> + 'a {
        self.blocks.iter().flat_map(move |(&index, block)| {
            let kept = match content.get(index as usize) {
                None => 0,
                Some(whole) => words(whole).map_or(usize::MAX, str::len),
            };
            block
                .pieces
                .iter()
                .filter(move |(end, _)| *end > kept)
                .map(|(_, at)| *at)
        })
    }
}

/// The growing text of a block of words or reasoning.
fn words(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => Some(text),
        _ => None,
    }
}

/// What of a raw input is an object, else an empty one (S3-072).
fn parsed(raw: &str) -> Value {
    match serde_json::from_str(raw) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::Object(Map::new()),
    }
}
