//! A message as the house keeps it, from the stream that brought it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use turnwire_event::{ContentBlock, Kept, Role, ToolUseId, Ulid};
use turnwire_model::sse::Sse;
use turnwire_model::{Delta, Said};

use crate::vendor::Vendor;

/// What a stream says; tool uses are numbered from `first`.
pub(crate) fn heard(vendor: &dyn Vendor, stream: &str, first: u128) -> Said {
    let mut sse = Sse::default();
    let mut decoder = vendor.dialect().decoder();
    let mut deltas = VecDeque::new();
    let mut bytes = stream.as_bytes();
    while let Some(frame) = sse.pull(&mut bytes).expect("a stream of events") {
        decoder.step(frame, &mut deltas).expect("a frame");
    }
    decoder.end(&mut deltas).expect("an end");

    let mut blocks: BTreeMap<u32, ContentBlock> = BTreeMap::new();
    let mut inputs: BTreeMap<u32, String> = BTreeMap::new();
    let mut kept = BTreeMap::new();
    for delta in deltas {
        match delta {
            Delta::Text { block, text: more } => {
                let block = blocks.entry(block).or_insert(ContentBlock::text(""));
                if let ContentBlock::Text { text } = block {
                    text.push_str(&more);
                }
            }
            Delta::Thinking {
                block,
                text: more,
                signature: seal,
            } => {
                let nothing = ContentBlock::Thinking {
                    text: String::new(),
                    signature: None,
                };
                let block = blocks.entry(block).or_insert(nothing);
                if let ContentBlock::Thinking { text, signature } = block {
                    text.push_str(&more);
                    *signature = seal.or(signature.take());
                }
            }
            Delta::ToolStart { block, name, .. } => {
                let id = ToolUseId(Ulid(first + u128::from(block)));
                let input = Value::Null;
                blocks.insert(block, ContentBlock::ToolUse { id, name, input });
            }
            Delta::ToolInput { block, fragment } => {
                inputs.entry(block).or_default().push_str(&fragment);
            }
            Delta::ToolEnd { block } => {
                let raw = inputs.remove(&block).unwrap_or_else(|| "{}".into());
                if let Some(ContentBlock::ToolUse { input, .. }) = blocks.get_mut(&block) {
                    *input = serde_json::from_str(&raw).expect("a whole input");
                }
            }
            Delta::Keep { block, data } => {
                kept.insert(block, data);
            }
            Delta::Begun { .. } | Delta::Spent { .. } | Delta::Stop { .. } => {}
        }
    }
    // A block of which nothing but what is kept is known holds its place.
    for block in kept.keys() {
        blocks.entry(*block).or_insert(ContentBlock::text(""));
    }
    Said {
        role: Role::Assistant,
        content: blocks.into_values().collect(),
        kept: Kept {
            by: vendor.name().into(),
            blocks: kept,
        },
    }
}

/// What a message says, a line a block, without ids and seals.
pub(crate) fn spoken(said: &Said) -> Vec<String> {
    let lines = said.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => (!text.is_empty()).then(|| format!("text {text}")),
        ContentBlock::Thinking { text, .. } => Some(format!("thinking {text}")),
        ContentBlock::ToolUse { name, input, .. } => Some(format!("tool {name} {input}")),
        ContentBlock::ToolResult { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    lines.collect()
}

/// The tools a message asks for, and for which city.
pub(crate) fn uses(said: &Said) -> Vec<(ToolUseId, String)> {
    let uses = said.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse { id, input, .. } => {
            Some((*id, input["city"].as_str().expect("a city").to_owned()))
        }
        ContentBlock::Text { .. }
        | ContentBlock::Thinking { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Component { .. }
        | ContentBlock::Data { .. } => None,
    });
    uses.collect()
}
