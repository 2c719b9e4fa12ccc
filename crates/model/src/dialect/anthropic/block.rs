//! One block of a Messages stream while it is open: what its pieces say, and what it says when it
//! ends. Numbers are not known here; every delta has 0.

use serde_json::{Value, json};

use super::chunk::{Block, BlockKind, Piece, PieceKind};
use crate::delta::Delta;

/// What is open of a block.
#[derive(Debug)]
pub(super) enum Open {
    Text,
    Thinking {
        signature: String,
    },
    Tool {
        /// The input that came with the start, for servers that do not stream it.
        whole: Option<String>,
        /// Whether any input was streamed.
        fed: bool,
    },
    /// Not ours to read; none once a piece came that cannot be put into it.
    Sealed {
        block: Option<Value>,
        input: String,
    },
    Stopped,
}

/// A block that has just opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) open: Open,
    /// What it says with its start.
    pub(super) first: Vec<Delta>,
    /// Bytes of what is kept of it.
    pub(super) sealed_bytes: usize,
}

impl Opened {
    /// A block of a known kind; none if it lacks what it cannot do without.
    pub(super) fn known(kind: BlockKind, block: Block<'_>) -> Option<Self> {
        match kind {
            BlockKind::Text => {
                let text = block.text.filter(|text| !text.is_empty());
                Some(Self::of(Open::Text, text.map(words), 0))
            }
            BlockKind::Thinking => {
                let signature = block.signature.unwrap_or_default();
                let text = block.thinking.filter(|text| !text.is_empty());
                let first = text.map(|text| thinking(text, None));
                let bytes = signature.len();
                Some(Self::of(Open::Thinking { signature }, first, bytes))
            }
            BlockKind::RedactedThinking => {
                let data = block.data.unwrap_or_default();
                let bytes = data.len();
                let first = keep(json!({"redacted_thinking": data}));
                Some(Self::of(Open::nothing(), [first], bytes))
            }
            BlockKind::ToolUse => Self::tool(block),
            BlockKind::Unknown => None,
        }
    }

    fn tool(block: Block<'_>) -> Option<Self> {
        let name = block.name.filter(|name| !name.is_empty())?;
        let id = block.id.filter(|id| !id.is_empty());
        let kept = id.as_ref().map(|id| keep(json!({"id": id})));
        let start = Delta::ToolStart {
            block: 0,
            name,
            provider_id: id,
        };
        let whole = block.input.map(|input| input.get().to_owned());
        let whole = whole.filter(|input| !is_nothing(input));
        let bytes = whole.as_ref().map_or(0, String::len);
        let first = std::iter::once(start).chain(kept);
        Some(Self::of(Open::Tool { whole, fed: false }, first, bytes))
    }

    /// A block that is not read here, of so many bytes.
    pub(super) fn sealed(block: Value, bytes: usize) -> Self {
        let open = Open::Sealed {
            block: Some(block),
            input: String::new(),
        };
        Self::of(open, [], bytes)
    }

    fn of(open: Open, first: impl IntoIterator<Item = Delta>, sealed_bytes: usize) -> Self {
        Self {
            open,
            first: first.into_iter().collect(),
            sealed_bytes,
        }
    }
}

impl Open {
    /// A block of which all is said.
    fn nothing() -> Self {
        Self::Sealed {
            block: None,
            input: String::new(),
        }
    }

    /// A block that opens with a piece of this kind, as some servers do. Words need no start; a
    /// tool has no name without one.
    pub(super) fn unannounced(kind: PieceKind) -> Option<Self> {
        match kind {
            PieceKind::TextDelta => Some(Self::Text),
            PieceKind::ThinkingDelta | PieceKind::SignatureDelta => Some(Self::Thinking {
                signature: String::new(),
            }),
            PieceKind::InputJsonDelta | PieceKind::CitationsDelta | PieceKind::Unknown => None,
        }
    }

    /// What a piece says in the block it belongs to; `sealed` grows by what is kept of it. A piece of
    /// another kind than its block, and one behind its block's end, say nothing.
    pub(super) fn take(&mut self, piece: Piece, sealed: &mut usize) -> Option<Delta> {
        match (self, piece.kind) {
            (Self::Text, PieceKind::TextDelta) => {
                piece.text.filter(|text| !text.is_empty()).map(words)
            }
            (Self::Thinking { .. }, PieceKind::ThinkingDelta) => {
                let text = piece.thinking.filter(|text| !text.is_empty());
                text.map(|text| thinking(text, None))
            }
            (Self::Thinking { signature }, PieceKind::SignatureDelta) => {
                let more = piece.signature.unwrap_or_default();
                *sealed += more.len();
                signature.push_str(&more);
                None
            }
            (Self::Tool { whole, fed }, PieceKind::InputJsonDelta) => {
                let fragment = piece.partial_json.filter(|more| !more.is_empty())?;
                // It is streamed after all.
                *whole = None;
                *fed = true;
                Some(Delta::ToolInput { block: 0, fragment })
            }
            (Self::Sealed { input, .. }, PieceKind::InputJsonDelta) => {
                let more = piece.partial_json.unwrap_or_default();
                *sealed += more.len();
                input.push_str(&more);
                None
            }
            (Self::Sealed { block, .. }, _) => {
                *block = None;
                None
            }
            (Self::Text | Self::Thinking { .. } | Self::Tool { .. } | Self::Stopped, _) => None,
        }
    }

    /// Whether it is a tool of which no input has come. At the end of a message that was cut, that
    /// is not a tool without input.
    pub(super) fn is_unfed(&self) -> bool {
        matches!(
            self,
            Self::Tool {
                whole: None,
                fed: false
            }
        )
    }

    /// The block's last words; it says nothing afterwards. That a tool has ended which had no input
    /// is not among them: whether it is whole only the rest of the message tells.
    pub(super) fn stop(&mut self) -> impl Iterator<Item = Delta> + use<> {
        let is_unfed = self.is_unfed();
        let last = match std::mem::replace(self, Self::Stopped) {
            Self::Stopped | Self::Text => [None, None],
            Self::Thinking { signature } => {
                let seal = Some(signature).filter(|signature| !signature.is_empty());
                [seal.map(|seal| thinking(String::new(), Some(seal))), None]
            }
            Self::Tool { whole, .. } => [
                whole.map(|fragment| Delta::ToolInput { block: 0, fragment }),
                (!is_unfed).then_some(Delta::ToolEnd { block: 0 }),
            ],
            Self::Sealed { block, input } => [whole_block(block, &input).map(keep), None],
        };
        last.into_iter().flatten()
    }
}

/// A block that is not read here, with the input that was streamed behind it.
fn whole_block(block: Option<Value>, input: &str) -> Option<Value> {
    let mut block = block.filter(Value::is_object)?;
    if !input.is_empty() {
        block["input"] = serde_json::from_str(input).ok()?;
    }
    Some(json!({"block": block}))
}

fn words(text: String) -> Delta {
    Delta::Text { block: 0, text }
}

fn thinking(text: String, signature: Option<String>) -> Delta {
    Delta::Thinking {
        block: 0,
        text,
        signature,
    }
}

fn keep(data: Value) -> Delta {
    Delta::Keep { block: 0, data }
}

/// Whether an input says nothing: a start has an empty object when the input is to come.
fn is_nothing(input: &str) -> bool {
    let inside = input.trim().strip_prefix('{');
    let inside = inside.and_then(|inside| inside.strip_suffix('}'));
    input == "null" || inside.is_some_and(|inside| inside.trim().is_empty())
}
