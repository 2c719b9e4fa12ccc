//! A streaming message: its blocks, and the cuts that record which delta added what.

use serde_json::Value;

use crate::body::stream::MessageComplete;
use crate::body::{Body, family};
use crate::clock::Timestamp;
use crate::content::{ContentBlock, StopReason, TokenUsage};
use crate::fold::cut::{CutKind, CutList, DeltaCut};
use crate::fold::input::parse_input;
use crate::id::{MessageId, SessionId, ToolUseId, TurnId, UpstreamId};
use crate::json_object::JsonObject;
use crate::message::{Message, MessageStatus, Role};
use crate::position::Position;
use crate::row::{FinishedMessage, StoredMessage};

/// One block of a [`MessageFold`].
#[derive(Clone, Debug, PartialEq)]
pub enum BlockFold {
    Text(String),
    /// Reasoning and its signature.
    Thinking(String, Option<String>),
    /// A tool use: id, name, raw input so far, and the parsed input once it is complete.
    Tool(ToolUseId, String, String, Option<Value>),
    /// An index that the model skipped.
    Gap,
}

impl BlockFold {
    /// The text of the block so far.
    pub fn grown(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking(text, _) | Self::Tool(_, _, text, _) => text,
            Self::Gap => "",
        }
    }
}

/// The state of a message after its deltas so far.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageFold {
    pub id: MessageId,
    pub turn_id: TurnId,
    /// The id that the upstream of a relayed turn gave to its response.
    pub response_id: Option<UpstreamId>,
    /// The model that produces the message.
    pub model: String,
    /// The position of its start.
    pub started: Position,
    pub started_at: Timestamp,
    /// The blocks, by index.
    pub blocks: Vec<BlockFold>,
    /// The [`DeltaCut`]s of the message, in order.
    pub cuts: CutList,
    /// The position, time, stop reason and usage of its end.
    pub completed: Option<(Position, Timestamp, StopReason, TokenUsage)>,
}

/// The maximum number of blocks: far above any model's, low enough that a wild index
/// cannot make the server allocate.
pub const BLOCKS_MAX: u32 = 1024;

impl MessageFold {
    /// A message that has just started.
    pub fn new(
        id: MessageId,
        turn_id: TurnId,
        model: String,
        started: Position,
        started_at: Timestamp,
    ) -> Self {
        Self {
            id,
            turn_id,
            response_id: None,
            model,
            started,
            started_at,
            blocks: Vec::new(),
            cuts: CutList::new((started, started_at)),
            completed: None,
        }
    }

    pub(super) fn block(&mut self, index: u32, fresh: BlockFold) -> Option<&mut BlockFold> {
        if index >= BLOCKS_MAX {
            return None;
        }
        let at = index as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, BlockFold::Gap);
        }
        if self.blocks[at] == BlockFold::Gap {
            self.blocks[at] = fresh;
        }
        self.blocks.get_mut(at)
    }

    /// Applies one event of the message; other events have no effect.
    pub fn apply(&mut self, at: Position, time: Timestamp, body: &Body) {
        let (block, kind) = match body {
            Body::TextDelta(d) if d.message_id == self.id => {
                if let Some(BlockFold::Text(text)) =
                    self.block(d.content_block_index, BlockFold::Text(String::new()))
                {
                    text.push_str(&d.text);
                }
                (d.content_block_index, CutKind::Text)
            }
            Body::ThinkingDelta(d) if d.message_id == self.id => {
                let fresh = BlockFold::Thinking(String::new(), None);
                if let Some(BlockFold::Thinking(text, seal)) =
                    self.block(d.content_block_index, fresh)
                {
                    text.push_str(&d.text);
                    if let Some(fragment) = &d.signature {
                        seal.get_or_insert_default().push_str(fragment);
                    }
                }
                (
                    d.content_block_index,
                    CutKind::Thinking {
                        after_text: d.after_text,
                        signed: d.signature.is_some(),
                    },
                )
            }
            Body::ToolUseStart(d) if d.message_id == self.id => {
                self.block(
                    d.content_block_index,
                    BlockFold::Tool(d.tool_use_id, d.tool_name.clone(), String::new(), None),
                );
                (d.content_block_index, CutKind::ToolStart)
            }
            Body::ToolUseInputDelta(d) if d.message_id == self.id => {
                if let Some(BlockFold::Tool(_, _, raw, _)) =
                    self.block(d.content_block_index, BlockFold::Gap)
                {
                    raw.push_str(&d.partial_json);
                }
                (d.content_block_index, CutKind::ToolInput)
            }
            Body::ToolUseEnd(d) if d.message_id == self.id => {
                if let Some(BlockFold::Tool(_, _, _, input)) =
                    self.block(d.content_block_index, BlockFold::Gap)
                {
                    *input = Some(d.final_input.clone());
                }
                (d.content_block_index, CutKind::ToolEnd)
            }
            Body::MessageComplete(d) if d.message_id == self.id => {
                self.completed = Some((at, time, d.stop_reason, d.usage));
                return;
            }
            family!(
                Session
                    | TurnEnd
                    | Approval
                    | Routing
                    | Llm
                    | Tool
                    | SubagentEnd
                    | Delegate
                    | Plan
                    | Display
                    | Bus
                    | Delta
                    | Mcp
                    | Note
            )
            | Body::TurnStarted(_)
            | Body::TurnCancelRequested(_)
            | Body::DispatchTraced(_)
            | Body::SubagentStarted(_)
            | Body::StatusEmitted(_)
            | Body::MessageStart(_)
            | Body::MessageComplete(_) => return,
        };
        let end = self
            .blocks
            .get(block as usize)
            .map_or(0, |b| b.grown().len() as u32);
        self.cuts.push(DeltaCut {
            at,
            time,
            kind,
            block,
            end,
        });
    }

    /// Tool uses whose input is incomplete: block, id, and the parsed input, or `{}` if it does not parse.
    pub fn open_tool_uses(&self) -> Vec<(u32, ToolUseId, Value)> {
        let mut open = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            if let BlockFold::Tool(id, _, raw, None) = block {
                open.push((at as u32, *id, parse_input(raw)));
            }
        }
        open
    }

    /// The current content. A skipped index becomes an empty text, so that every index keeps its
    /// block.
    pub fn content(&self) -> Vec<ContentBlock> {
        let block = |block: &BlockFold| match block {
            BlockFold::Text(text) => ContentBlock::text(text.clone()),
            BlockFold::Thinking(text, seal) => ContentBlock::Thinking {
                text: text.clone(),
                signature: seal.clone(),
            },
            BlockFold::Tool(id, name, raw, input) => ContentBlock::ToolUse {
                id: *id,
                name: name.clone(),
                input: input.clone().unwrap_or_else(|| parse_input(raw)),
            },
            BlockFold::Gap => ContentBlock::text(""),
        };
        self.blocks.iter().map(block).collect()
    }

    /// Bytes of text and reasoning so far.
    pub fn text_bytes(&self) -> u64 {
        let is_text = |b: &&BlockFold| matches!(b, BlockFold::Text(_) | BlockFold::Thinking(..));
        let texts = self.blocks.iter().filter(is_text);
        texts.map(|block| block.grown().len() as u64).sum()
    }

    /// Bytes of all blocks so far: text, reasoning and raw tool inputs.
    pub fn grown_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.grown().len()).sum()
    }

    /// The message as clients see it while it streams.
    pub fn in_progress(&self, session_id: SessionId) -> Message {
        Message {
            content: self.content(),
            ..self.in_progress_without_content(session_id)
        }
    }

    /// As [`in_progress`](Self::in_progress), with nothing of the content.
    pub fn in_progress_without_content(&self, session_id: SessionId) -> Message {
        Message {
            provider_state: crate::message::ProviderState::default(),
            id: self.id,
            session_id,
            turn_id: self.turn_id,
            role: Role::Assistant,
            status: MessageStatus::InProgress,
            content: Vec::new(),
            model: Some(self.model.clone()),
            omitted_bytes: None,
            stop_reason: None,
            usage: None,
            created_at: self.started_at,
            metadata: JsonObject::default(),
        }
    }

    /// The [`MessageComplete`] that ends the message.
    pub fn complete(&self, stop_reason: StopReason, usage: TokenUsage) -> MessageComplete {
        MessageComplete {
            message_id: self.id,
            stop_reason,
            final_content: self.content(),
            usage,
        }
    }

    /// The [`FinishedMessage`] row of the message, ended by `end`.
    pub fn finished(&self, end: &MessageComplete) -> FinishedMessage {
        let status = match end.stop_reason {
            StopReason::Cancelled => MessageStatus::Cancelled,
            StopReason::Error => MessageStatus::Failed,
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::ToolUse => MessageStatus::Complete,
        };
        FinishedMessage {
            provider_state: crate::message::ProviderState::default(),
            id: self.id,
            status,
            stop_reason: end.stop_reason,
            model: self.model.clone(),
            content: end.final_content.clone(),
            usage: end.usage,
            started: self.started,
            started_at: self.started_at,
            cuts: self.cuts.bytes().to_vec(),
            inputs: self.inputs(),
        }
    }

    fn inputs(&self) -> Vec<(u32, String)> {
        let mut inputs = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            if let BlockFold::Tool(_, _, raw, _) = block {
                inputs.push((at as u32, raw.clone()));
            }
        }
        inputs
    }

    /// Rebuilds a finished message from its [`StoredMessage`]; `None` if it did not stream.
    pub fn from_stored(stored: &StoredMessage) -> Option<Self> {
        let message = &stored.message;
        let (done, done_at) = stored.completed?;
        if message.role != Role::Assistant || stored.started == done {
            return None;
        }
        let raw = |at: usize| {
            let input = stored.inputs.iter().find(|(i, _)| *i as usize == at);
            input.map(|(_, raw)| raw.clone())
        };
        let blocks = message
            .content
            .iter()
            .enumerate()
            .map(|(at, block)| match block {
                ContentBlock::Text { text } => BlockFold::Text(text.clone()),
                ContentBlock::Thinking { text, signature } => {
                    BlockFold::Thinking(text.clone(), signature.clone())
                }
                ContentBlock::ToolUse { id, name, input } => BlockFold::Tool(
                    *id,
                    name.clone(),
                    raw(at).unwrap_or_default(),
                    Some(input.clone()),
                ),
                ContentBlock::ToolResult { .. }
                | ContentBlock::Component { .. }
                | ContentBlock::Data { .. } => BlockFold::Gap,
            });
        Some(Self {
            id: message.id,
            turn_id: message.turn_id,
            response_id: stored.response_id.clone(),
            model: message.model.clone().unwrap_or_default(),
            started: stored.started,
            started_at: message.created_at,
            blocks: blocks.collect(),
            cuts: CutList::read((stored.started, message.created_at), &stored.cuts),
            completed: Some((
                done,
                done_at,
                message.stop_reason?,
                message.usage.unwrap_or_default(),
            )),
        })
    }
}

#[cfg(test)]
mod tests;
