//! One content block of a Messages stream while it is open: the deltas of its start, of its pieces
//! and of its end. Block numbers are assigned later by
//! [`BlockOrder`](crate::dialect::block_order::BlockOrder); every delta here has 0.

use serde_json::{Value, json};

use super::chunk::{BlockKind, BlockPiece, PieceKind, StartedBlock};
use crate::delta::Delta;

/// State of an open block.
#[derive(Debug)]
pub(super) enum OpenBlock {
    Text,
    Thinking {
        signature: String,
    },
    Tool {
        /// Input that came with the start event, from servers that do not stream it.
        start_input: Option<String>,
        has_streamed_input: bool,
    },
    /// A block of an unknown kind, collected as provider data; `None` after a piece that cannot be
    /// merged into it.
    Opaque {
        block: Option<Value>,
        input: String,
    },
    Closed,
}

/// The result of a block's start event: the new [`OpenBlock`] and its deltas.
#[derive(Debug)]
pub(super) struct BlockOpening {
    pub(super) state: OpenBlock,
    /// Deltas of the start event.
    pub(super) deltas: Vec<Delta>,
    /// Bytes of opaque data collected so far.
    pub(super) opaque_bytes: usize,
}

impl BlockOpening {
    /// A block of a known [`BlockKind`]; `None` if a required field is missing.
    pub(super) fn from_known(kind: BlockKind, block: StartedBlock<'_>) -> Option<Self> {
        match kind {
            BlockKind::Text => {
                let text = block.text.filter(|text| !text.is_empty());
                Some(Self::new(OpenBlock::Text, text.map(text_delta), 0))
            }
            BlockKind::Thinking => {
                let signature = block.signature.unwrap_or_default();
                let text = block.thinking.filter(|text| !text.is_empty());
                let deltas = text.map(|text| thinking_delta(text, None));
                let bytes = signature.len();
                Some(Self::new(OpenBlock::Thinking { signature }, deltas, bytes))
            }
            BlockKind::RedactedThinking => {
                let data = block.data.unwrap_or_default();
                let bytes = data.len();
                let deltas = keep_delta(json!({"redacted_thinking": data}));
                // The start event says everything.
                let state = OpenBlock::Opaque {
                    block: None,
                    input: String::new(),
                };
                Some(Self::new(state, [deltas], bytes))
            }
            BlockKind::ToolUse => Self::tool(block),
            BlockKind::Unknown => None,
        }
    }

    fn tool(block: StartedBlock<'_>) -> Option<Self> {
        let name = block.name.filter(|name| !name.is_empty())?;
        let id = block.id.filter(|id| !id.is_empty());
        let id_delta = id.as_ref().map(|id| keep_delta(json!({"id": id})));
        let start = Delta::ToolStart {
            block: 0,
            name,
            provider_id: id,
        };
        let start_input = block.input.map(|input| input.get().to_owned());
        let start_input = start_input.filter(|input| !is_empty_input(input));
        let bytes = start_input.as_ref().map_or(0, String::len);
        let deltas = std::iter::once(start).chain(id_delta);
        Some(Self::new(
            OpenBlock::Tool {
                start_input,
                has_streamed_input: false,
            },
            deltas,
            bytes,
        ))
    }

    /// A block of an unknown kind whose JSON has `bytes` bytes.
    pub(super) fn opaque(block: Value, bytes: usize) -> Self {
        let state = OpenBlock::Opaque {
            block: Some(block),
            input: String::new(),
        };
        Self::new(state, [], bytes)
    }

    fn new(state: OpenBlock, deltas: impl IntoIterator<Item = Delta>, opaque_bytes: usize) -> Self {
        Self {
            state,
            deltas: deltas.into_iter().collect(),
            opaque_bytes,
        }
    }
}

impl OpenBlock {
    /// A block that starts with a piece of this kind and no start event, as some servers send it. A
    /// tool use cannot: it would have no name.
    pub(super) fn without_start(kind: PieceKind) -> Option<Self> {
        match kind {
            PieceKind::TextDelta => Some(Self::Text),
            PieceKind::ThinkingDelta | PieceKind::SignatureDelta => Some(Self::Thinking {
                signature: String::new(),
            }),
            PieceKind::InputJsonDelta | PieceKind::CitationsDelta | PieceKind::Unknown => None,
        }
    }

    /// The delta of a piece in this block; `opaque_bytes` grows by the opaque data in it. A piece
    /// of another kind than the block, and a piece after the block's end, are ignored.
    pub(super) fn apply(&mut self, piece: BlockPiece, opaque_bytes: &mut usize) -> Option<Delta> {
        match (self, piece.kind) {
            (Self::Text, PieceKind::TextDelta) => {
                piece.text.filter(|text| !text.is_empty()).map(text_delta)
            }
            (Self::Thinking { .. }, PieceKind::ThinkingDelta) => {
                let text = piece.thinking.filter(|text| !text.is_empty());
                text.map(|text| thinking_delta(text, None))
            }
            (Self::Thinking { signature }, PieceKind::SignatureDelta) => {
                let fragment = piece.signature.unwrap_or_default();
                *opaque_bytes += fragment.len();
                signature.push_str(&fragment);
                None
            }
            (
                Self::Tool {
                    start_input,
                    has_streamed_input,
                },
                PieceKind::InputJsonDelta,
            ) => {
                let fragment = piece.partial_json.filter(|text| !text.is_empty())?;
                // The input is streamed after all.
                *start_input = None;
                *has_streamed_input = true;
                Some(Delta::ToolInput { block: 0, fragment })
            }
            (Self::Opaque { input, .. }, PieceKind::InputJsonDelta) => {
                let fragment = piece.partial_json.unwrap_or_default();
                *opaque_bytes += fragment.len();
                input.push_str(&fragment);
                None
            }
            (Self::Opaque { block, .. }, _) => {
                *block = None;
                None
            }
            (Self::Text | Self::Thinking { .. } | Self::Tool { .. } | Self::Closed, _) => None,
        }
    }

    /// True for a tool use without input. At the end of a truncated message its input may be
    /// missing.
    pub(super) fn has_no_input(&self) -> bool {
        matches!(
            self,
            Self::Tool {
                start_input: None,
                has_streamed_input: false
            }
        )
    }

    /// Closes the block and returns its last deltas. The end of a tool use without input is not
    /// among them: only the following events tell whether its input is complete.
    pub(super) fn close(&mut self) -> impl Iterator<Item = Delta> + use<> {
        let has_no_input = self.has_no_input();
        let last = match std::mem::replace(self, Self::Closed) {
            Self::Closed | Self::Text => [None, None],
            Self::Thinking { signature } => {
                let signature = Some(signature).filter(|signature| !signature.is_empty());
                [
                    signature.map(|signature| thinking_delta(String::new(), Some(signature))),
                    None,
                ]
            }
            Self::Tool { start_input, .. } => [
                start_input.map(|fragment| Delta::ToolInput { block: 0, fragment }),
                (!has_no_input).then_some(Delta::ToolEnd { block: 0 }),
            ],
            Self::Opaque { block, input } => [opaque_block(block, &input).map(keep_delta), None],
        };
        last.into_iter().flatten()
    }
}

/// Provider data for an opaque block, with the input that was streamed after its start.
fn opaque_block(block: Option<Value>, input: &str) -> Option<Value> {
    let mut block = block.filter(Value::is_object)?;
    if !input.is_empty() {
        block["input"] = serde_json::from_str(input).ok()?;
    }
    Some(json!({"block": block}))
}

fn text_delta(text: String) -> Delta {
    Delta::Text { block: 0, text }
}

fn thinking_delta(text: String, signature: Option<String>) -> Delta {
    Delta::Thinking {
        block: 0,
        text,
        signature,
    }
}

fn keep_delta(data: Value) -> Delta {
    Delta::ProviderData { block: 0, data }
}

/// True for an empty object or null, which a start event has if the input is streamed.
fn is_empty_input(input: &str) -> bool {
    let inside = input.trim().strip_prefix('{');
    let inside = inside.and_then(|inside| inside.strip_suffix('}'));
    input == "null" || inside.is_some_and(|inside| inside.trim().is_empty())
}
