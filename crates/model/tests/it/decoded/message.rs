//! Builds the stored message from the deltas of an answer. The agent does the same with the deltas
//! of a live call.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::{ContentBlock, ProviderState, Role, ToolUseId, Ulid};
use turnwire_model::{Delta, ModelMessage};

/// The message that these deltas form; tool uses are numbered from `first`.
pub(crate) fn from_deltas(provider: &str, deltas: &[Delta], first: u128) -> ModelMessage {
    let mut blocks: BTreeMap<u32, ContentBlock> = BTreeMap::new();
    let mut inputs: BTreeMap<u32, String> = BTreeMap::new();
    let mut provider_data = ProviderState {
        by: provider.into(),
        blocks: BTreeMap::new(),
    };
    for delta in deltas {
        match delta.clone() {
            Delta::Text { block, text: piece } => {
                let entry = blocks.entry(block).or_insert(ContentBlock::text(""));
                if let ContentBlock::Text { text } = entry {
                    text.push_str(&piece);
                }
            }
            Delta::Thinking {
                block,
                text: piece,
                signature: new_signature,
            } => {
                let empty = ContentBlock::Thinking {
                    text: String::new(),
                    signature: None,
                };
                if let ContentBlock::Thinking { text, signature } =
                    blocks.entry(block).or_insert(empty)
                {
                    text.push_str(&piece);
                    *signature = new_signature.or(signature.take());
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
                    *input = serde_json::from_str(&raw).expect("a complete input");
                }
            }
            Delta::ProviderData { block, data } => {
                provider_data.blocks.insert(block, data);
            }
            Delta::Started { .. } | Delta::PartialUsage { .. } | Delta::Stop { .. } => {}
        }
    }
    let last = blocks.keys().last().map_or(0, |last| last + 1);
    let content = (0..last).map(|n| blocks.remove(&n).unwrap_or(ContentBlock::text("")));
    ModelMessage {
        role: Role::Assistant,
        content: content.collect(),
        provider_data,
    }
}
