//! Checkpoints of a streaming message: each stores only the additions since the last one, and the
//! parts together rebuild the message after a crash.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fold::cut::DeltaCut;
use crate::fold::message::{BlockFold, MessageFold};
use crate::id::ToolUseId;
use crate::row::MessagePart;

impl MessageFold {
    /// The additions since the checkpoint `done`, which advances; `None` if there are none.
    pub fn part(&self, done: &mut MessageCheckpoint) -> Option<MessagePart> {
        if done.cuts == self.cuts.bytes().len() {
            return None;
        }
        let grown: Vec<BlockAddition> = self
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(at, block)| done.grown(at, block))
            .collect();
        let part = MessagePart {
            message_id: self.id,
            turn_id: self.turn_id,
            model: self.model.clone(),
            started: self.started,
            started_at: self.started_at,
            index: done.parts,
            blocks: serde_json::to_string(&grown).expect("plain data"),
            cuts: self.cuts.bytes()[done.cuts..].to_vec(),
        };
        done.parts += 1;
        done.cuts = self.cuts.bytes().len();
        Some(part)
    }

    /// Rebuilds a message from its [`MessagePart`]s, in order of their index.
    pub fn from_parts(parts: &[MessagePart]) -> Option<Self> {
        let first = parts.first()?;
        let mut fold = Self::new(
            first.message_id,
            first.turn_id,
            first.model.clone(),
            first.started,
            first.started_at,
        );
        for part in parts {
            for grown in serde_json::from_str::<Vec<BlockAddition>>(&part.blocks).ok()? {
                grown.add_to(&mut fold);
            }
            fold.cuts.extend(DeltaCut::read_all(
                (first.started, first.started_at),
                &part.cuts,
            ));
        }
        Some(fold)
    }
}

/// How much of a [`MessageFold`] is already stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageCheckpoint {
    parts: u32,
    /// The bytes of the cuts.
    cuts: usize,
    ends: Vec<usize>,
    seals: Vec<usize>,
}

/// The additions to one block between two checkpoints.
#[derive(Debug, Serialize, Deserialize)]
struct BlockAddition {
    block: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    add: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    thinking: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<(ToolUseId, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
}

impl MessageCheckpoint {
    fn grown(&mut self, at: usize, block: &BlockFold) -> Option<BlockAddition> {
        if self.ends.len() <= at {
            self.ends.resize(at + 1, usize::MAX);
            self.seals.resize(at + 1, 0);
        }
        let fresh = self.ends[at] == usize::MAX;
        let from = if fresh { 0 } else { self.ends[at] };
        let text = block.grown();
        let seal = match block {
            // A seal may come in pieces: its length tells that it grew.
            BlockFold::Thinking(_, seal) => seal.as_ref().map_or(0, |seal| seal.len() + 1),
            BlockFold::Tool(_, _, _, input) => usize::from(input.is_some()),
            BlockFold::Text(_) => 0,
            BlockFold::Gap => return None,
        };
        if !fresh && from == text.len() && seal == self.seals[at] {
            return None;
        }
        self.ends[at] = text.len();
        self.seals[at] = seal;
        let (thinking, signature, tool, input) = match block {
            BlockFold::Thinking(_, seal) => (true, seal.clone(), None, None),
            BlockFold::Tool(id, name, _, input) => {
                (false, None, Some((*id, name.clone())), input.clone())
            }
            BlockFold::Text(_) | BlockFold::Gap => (false, None, None, None),
        };
        Some(BlockAddition {
            block: at as u32,
            add: text[from..].to_owned(),
            thinking,
            signature,
            tool,
            input,
        })
    }
}

impl BlockAddition {
    fn add_to(self, fold: &mut MessageFold) {
        let fresh = match (&self.tool, self.thinking) {
            (Some((id, name)), _) => BlockFold::Tool(*id, name.clone(), String::new(), None),
            (None, true) => BlockFold::Thinking(String::new(), None),
            (None, false) => BlockFold::Text(String::new()),
        };
        match fold.block(self.block, fresh) {
            Some(BlockFold::Text(text)) => text.push_str(&self.add),
            Some(BlockFold::Thinking(text, seal)) => {
                text.push_str(&self.add);
                *seal = self.signature.or(seal.take());
            }
            Some(BlockFold::Tool(_, _, raw, input)) => {
                raw.push_str(&self.add);
                *input = self.input.or(input.take());
            }
            Some(BlockFold::Gap) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::body::stream::{
        TextDelta, ThinkingDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart,
    };
    use crate::clock::Timestamp;
    use crate::id::{MessageId, TurnId, Ulid};
    use crate::position::{Epoch, Position, Seq, Sub};
    use proptest::prelude::*;

    const ID: MessageId = MessageId(Ulid(1));
    const TOOL: ToolUseId = ToolUseId(Ulid(2));

    fn body(kind: u8, text: String) -> Body {
        let message_id = ID;
        match kind {
            0 => Body::TextDelta(TextDelta {
                message_id,
                content_block_index: 1,
                text,
            }),
            1 => Body::ThinkingDelta(ThinkingDelta {
                message_id,
                content_block_index: 0,
                signature: text.len().is_multiple_of(3).then(|| "seal".to_owned()),
                text,
                after_text: false,
            }),
            2 => Body::ToolUseStart(ToolUseStart {
                message_id,
                content_block_index: 2,
                tool_use_id: TOOL,
                tool_name: "echo".into(),
            }),
            3 => Body::ToolUseInputDelta(ToolUseInputDelta {
                message_id,
                content_block_index: 2,
                tool_use_id: TOOL,
                partial_json: text,
            }),
            _ => Body::ToolUseEnd(ToolUseEnd {
                message_id,
                content_block_index: 2,
                tool_use_id: TOOL,
                final_input: serde_json::json!({ "text": text }),
            }),
        }
    }

    #[test]
    fn checkpoints_are_numbered_and_note_an_empty_signature() {
        let (start, time) = (
            Position::persisted(Epoch(1), Seq(3)),
            Timestamp::from_millis(10),
        );
        let mut fold = MessageFold::new(ID, TurnId(Ulid(9)), "m".into(), start, time);
        let mut done = MessageCheckpoint::default();
        let mut parts = Vec::new();
        for (sub, signature) in (1..).zip([None, Some(""), Some("seal")]) {
            let thinking = Body::ThinkingDelta(ThinkingDelta {
                message_id: ID,
                content_block_index: 0,
                text: if sub == 1 { "hm".into() } else { String::new() },
                signature: signature.map(str::to_owned),
                after_text: false,
            });
            let at = Position {
                sub: Sub(sub),
                ..start
            };
            fold.apply(at, time, &thinking);
            parts.extend(fold.part(&mut done));
            assert_eq!(MessageFold::from_parts(&parts).as_ref(), Some(&fold));
        }
        let indexes: Vec<_> = parts.iter().map(|part| part.index).collect();
        assert_eq!(indexes, [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn checkpoint_parts_rebuild_the_message(deltas in proptest::collection::vec((0u8..5, ".{0,6}", any::<bool>()), 1..40)) {
            let (start, time) = (Position::persisted(Epoch(1), Seq(3)), Timestamp::from_millis(10));
            let mut fold = MessageFold::new(ID, TurnId(Ulid(9)), "m".into(), start, time);
            let mut done = MessageCheckpoint::default();
            let mut parts = Vec::new();
            let (mut started, mut ended) = (false, false);
            for (at, (kind, text, checkpoint)) in deltas.into_iter().enumerate() {
                // A tool's input comes after its start and ends once, as every provider has it.
                let kind = if kind > 2 && !started { 2 } else { kind };
                let kind = if kind == 4 && ended { 0 } else { kind };
                started |= kind == 2;
                ended |= kind == 4;
                let position = Position { epoch: Epoch(1), seq: Seq(3), sub: Sub(at as u32 + 1) };
                fold.apply(position, Timestamp::from_millis(10 + at as i64), &body(kind, text));
                if checkpoint {
                    parts.extend(fold.part(&mut done));
                }
            }
            parts.extend(fold.part(&mut done));
            prop_assert_eq!(fold.part(&mut done), None, "nothing has grown since");
            prop_assert_eq!(MessageFold::from_parts(&parts), Some(fold));
        }
    }
}
