//! What servers want back of reasoning: whether it came as `reasoning_content`, and its details,
//! which come in pieces and are put together here. The vendor has neither; servers that are
//! compatible with it refuse the next request if they miss theirs.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Bytes of details, at most: encrypted reasoning has tens of thousands. Half of it would be
/// refused, so more than that is not kept at all.
const DETAILS_BYTES_MAX: usize = 256 * 1024;

/// Details, at most: there is one for a stretch of thinking.
const DETAILS_MAX: usize = 1024;

/// Marks reasoning that came as the field of this name, and goes back as it.
pub(super) const CONTENT: &str = "reasoning_content";

/// The field of the details, here and there.
pub(super) const DETAILS: &str = "reasoning_details";

/// The reasoning of one answer.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// Its first block, and by which name that came.
    first: Option<(u32, Name)>,
    /// Whether the field that goes back was there, though it may have been empty.
    is_named: bool,
    details: Vec<Map<String, Value>>,
    bytes: usize,
}

/// By which name reasoning came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// `reasoning_content`.
    Content,
    /// Another.
    Other,
}

impl Reasoning {
    /// The field that goes back is there.
    pub(super) fn named(&mut self) {
        self.is_named = true;
    }

    /// A block of reasoning begins; what is kept of it.
    pub(super) fn begin(&mut self, block: u32, name: Name) -> Option<Value> {
        self.first.get_or_insert((block, name));
        (name == Name::Content).then(|| json!({CONTENT: true}))
    }

    /// More details. What is no list of objects says nothing.
    pub(super) fn detail(&mut self, raw: &RawValue) {
        self.bytes = self.bytes.saturating_add(raw.get().len());
        if self.bytes > DETAILS_BYTES_MAX {
            self.details.clear();
            return;
        }
        let list: Vec<Value> = serde_json::from_str(raw.get()).unwrap_or_default();
        for piece in list {
            if let Value::Object(piece) = piece {
                self.piece(piece);
            }
        }
    }

    fn piece(&mut self, piece: Map<String, Value>) {
        let has_room = self.details.len() < DETAILS_MAX;
        match self.begun(&piece) {
            Some(at) => join(&mut self.details[at], piece),
            None if has_room => self.details.push(piece),
            None => {}
        }
    }

    /// Which detail a piece belongs to: that of its index and type; without an index, text goes on.
    fn begun(&self, piece: &Map<String, Value>) -> Option<usize> {
        let kind = piece.get("type");
        match piece.get("index").filter(|index| !index.is_null()) {
            Some(index) => self.details.iter().rposition(|detail| {
                detail.get("index") == Some(index) && detail.get("type") == kind
            }),
            None => {
                let last = self.details.last()?;
                let goes_on = kind? == "reasoning.text" && last.get("type") == kind;
                goes_on.then(|| self.details.len() - 1)
            }
        }
    }

    /// What is kept at the end of the answer that was not kept with a block, and with which block;
    /// none of them if it has to be a new one.
    pub(super) fn end(&mut self, has_calls: bool) -> Option<(Option<u32>, Value)> {
        let details = std::mem::take(&mut self.details);
        let block = self.first.map(|(block, _)| block);
        let is_named = self
            .first
            .map_or(self.is_named, |(_, name)| name == Name::Content);
        let mut kept = Map::new();
        if is_named {
            kept.insert(CONTENT.into(), true.into());
        }
        if !details.is_empty() {
            let details = details.into_iter().map(Value::Object);
            kept.insert(DETAILS.into(), details.collect());
            return Some((block, Value::Object(kept)));
        }
        // A model may call without having thought, and the server wants the empty field back.
        let is_empty = is_named && block.is_none() && has_calls;
        is_empty.then_some((None, Value::Object(kept)))
    }
}

/// Puts a piece to what has come of a detail: words are put behind words, and what else it says is
/// the last word.
fn join(detail: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (detail.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(words)), Value::String(more))
                if ["text", "summary", "data"].contains(&name.as_str()) =>
            {
                words.push_str(&more);
            }
            (_, value) => {
                detail.insert(name, value);
            }
        }
    }
}
