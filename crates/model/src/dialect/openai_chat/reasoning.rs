//! Reasoning that compatible servers expect back: whether it came as `reasoning_content`, and the
//! `reasoning_details`, which arrive in pieces and are merged here. OpenAI has neither field;
//! compatible servers reject the next request if theirs are missing.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Upper limit of details in bytes: encrypted reasoning has tens of thousands. A part of them would
/// be rejected, so larger details are dropped.
const DETAILS_BYTES_MAX: usize = 256 * 1024;

/// Upper limit of details: there is one per stretch of reasoning.
const DETAILS_MAX: usize = 1024;

/// Marks reasoning that came in the field of this name and goes back in it.
pub(super) const CONTENT: &str = "reasoning_content";

/// Name of the details field, in provider data and in requests.
pub(super) const DETAILS: &str = "reasoning_details";

/// Collects the reasoning of one answer.
#[derive(Debug, Default)]
pub(super) struct ReasoningCollector {
    /// The first block and the field that it came in.
    first_block: Option<(u32, ReasoningField)>,
    /// True if `reasoning_content` was present, even if empty.
    has_content_field: bool,
    details: Vec<Map<String, Value>>,
    details_bytes: usize,
}

/// The field in which reasoning came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningField {
    Content,
    Other,
}

impl ReasoningCollector {
    /// Records that `reasoning_content` was present.
    pub(super) fn set_content_present(&mut self) {
        self.has_content_field = true;
    }

    /// Opens a reasoning block; returns its provider data.
    pub(super) fn open_block(&mut self, block: u32, field: ReasoningField) -> Option<Value> {
        self.first_block.get_or_insert((block, field));
        (field == ReasoningField::Content).then(|| json!({CONTENT: true}))
    }

    /// Merges a `reasoning_details` value. A value that is not a list of objects is ignored.
    pub(super) fn add_details(&mut self, raw: &RawValue) {
        self.details_bytes = self.details_bytes.saturating_add(raw.get().len());
        if self.details_bytes > DETAILS_BYTES_MAX {
            self.details.clear();
            return;
        }
        let list: Vec<Value> = serde_json::from_str(raw.get()).unwrap_or_default();
        for piece in list {
            if let Value::Object(piece) = piece {
                self.add_piece(piece);
            }
        }
    }

    fn add_piece(&mut self, piece: Map<String, Value>) {
        let has_capacity = self.details.len() < DETAILS_MAX;
        match self.detail_index(&piece) {
            Some(at) => merge(&mut self.details[at], piece),
            None if has_capacity => self.details.push(piece),
            None => {}
        }
    }

    /// Index of the detail that a piece continues: the one of its index and type; without an index,
    /// the last one if both are text.
    fn detail_index(&self, piece: &Map<String, Value>) -> Option<usize> {
        let kind = piece.get("type");
        match piece.get("index").filter(|index| !index.is_null()) {
            Some(index) => self.details.iter().rposition(|detail| {
                detail.get("index") == Some(index) && detail.get("type") == kind
            }),
            None => {
                let last = self.details.last()?;
                let continues = kind? == "reasoning.text" && last.get("type") == kind;
                continues.then(|| self.details.len() - 1)
            }
        }
    }

    /// Provider data at the end of the answer that was not emitted with a block, and its block;
    /// `None` as the block means a new one.
    pub(super) fn end(&mut self, has_calls: bool) -> Option<(Option<u32>, Value)> {
        let details = std::mem::take(&mut self.details);
        let block = self.first_block.map(|(block, _)| block);
        let is_content = |(_, field)| field == ReasoningField::Content;
        let has_content_field = self.first_block.map_or(self.has_content_field, is_content);
        let mut data = Map::new();
        if has_content_field {
            data.insert(CONTENT.into(), true.into());
        }
        if !details.is_empty() {
            let details = details.into_iter().map(Value::Object);
            data.insert(DETAILS.into(), details.collect());
            return Some((block, Value::Object(data)));
        }
        // A model may call tools without reasoning, and the server expects the empty field back.
        let is_empty = has_content_field && block.is_none() && has_calls;
        is_empty.then_some((None, Value::Object(data)))
    }
}

/// Merges a piece into a detail: text is appended, other fields are replaced.
fn merge(detail: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (detail.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(fragment))
                if ["text", "summary", "data"].contains(&name.as_str()) =>
            {
                text.push_str(&fragment);
            }
            (_, value) => {
                detail.insert(name, value);
            }
        }
    }
}
