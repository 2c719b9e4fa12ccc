//! Frames of an event stream before encoding, and the order of the frames of several blocks.
//! The order is scripted by [`BlockOrder`].

use std::fmt::Write as _;

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use super::message::BlockOrder;

/// One server-sent event before encoding.
#[derive(Clone, Debug)]
pub(crate) struct SseFrame {
    /// The event name; `None` in Chat Completions and Gemini.
    pub(crate) event: Option<String>,
    /// The data; may have several lines.
    pub(crate) data: String,
}

impl SseFrame {
    /// A frame without an event name.
    pub(crate) fn data(data: impl Into<String>) -> Self {
        Self {
            event: None,
            data: data.into(),
        }
    }

    /// A frame with an event name.
    pub(crate) fn named(event: &str, data: impl Into<String>) -> Self {
        Self {
            event: Some(event.to_owned()),
            data: data.into(),
        }
    }

    /// The encoded frame with this line ending.
    pub(crate) fn encode(&self, end: &str) -> String {
        let mut text = String::with_capacity(self.data.len() + 48);
        if let Some(event) = &self.event {
            let _ = write!(text, "event: {event}{end}");
        }
        for line in self.data.split('\n') {
            let _ = write!(text, "data: {line}{end}");
        }
        text + end
    }
}

/// The frames of one block: its start, its deltas and its end.
#[derive(Debug, Default)]
pub(crate) struct FrameBlock<T> {
    pub(crate) start: Vec<T>,
    pub(crate) deltas: Vec<T>,
    pub(crate) end: Vec<T>,
}

/// The frames of all blocks in the given order.
pub(crate) fn arrange<T>(blocks: Vec<FrameBlock<T>>, order: BlockOrder) -> Vec<T> {
    match order {
        BlockOrder::InTurn => blocks.into_iter().flat_map(whole).collect(),
        BlockOrder::Backwards => blocks.into_iter().rev().flat_map(whole).collect(),
        BlockOrder::Interleaved => {
            let mut frames = Vec::new();
            let mut deltas = Vec::new();
            let mut ends = Vec::new();
            for block in blocks {
                frames.extend(block.start);
                deltas.push(block.deltas.into_iter());
                ends.extend(block.end);
            }
            loop {
                let before = frames.len();
                frames.extend(deltas.iter_mut().filter_map(Iterator::next));
                if frames.len() == before {
                    break;
                }
            }
            frames.extend(ends);
            frames
        }
    }
}

fn whole<T>(block: FrameBlock<T>) -> impl Iterator<Item = T> {
    block.start.into_iter().chain(block.deltas).chain(block.end)
}

/// JSON as Google prints it: a space after each colon, none after a comma.
pub(crate) fn google_json(value: &Value) -> String {
    struct GoogleFormatter;
    impl Formatter for GoogleFormatter {
        fn begin_object_value<W: ?Sized + std::io::Write>(
            &mut self,
            writer: &mut W,
        ) -> std::io::Result<()> {
            writer.write_all(b": ")
        }
    }
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, GoogleFormatter);
    value
        .serialize(&mut serializer)
        .expect("a value is written into memory");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}
