//! The message that a model streams: deltas in, the events of the message out.
//!
//! [`MessageBuilder`] enforces the rules of a message: a block has one kind, the input of a tool
//! comes between its start and its end, and the whole stays within bounds. A provider that breaks a
//! rule is stopped before it can write a message that could not be replayed.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::body::stream::{
    MessageStart, TextDelta, ThinkingDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart,
};
use turnwire_event::fold::input::{parse_input, read_input};
use turnwire_event::fold::message::BLOCKS_MAX;
use turnwire_event::{Body, IdGenerator, MessageId, ProviderState, Role, ToolUseId};
use turnwire_model::Delta;

/// The most bytes of a tool's name: twice what any provider allows.
const NAME_BYTES_MAX: usize = 256;

/// The provider broke a rule of the stream; the code of the rule is for the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedStream(pub(crate) &'static str);

const MESSAGE_TOO_LARGE: MalformedStream = MalformedStream("message_too_large");
const TOO_MANY_BLOCKS: MalformedStream = MalformedStream("too_many_blocks");
/// A block changed its kind, or the input of a tool came outside of its start and end.
const BLOCK_KIND: MalformedStream = MalformedStream("block_kind");
/// A tool has an empty or overlong name.
const TOOL_NAME: MalformedStream = MalformedStream("tool_name");
/// The delta is not a piece of a message.
const NO_PIECE: MalformedStream = MalformedStream("no_piece");

#[derive(Debug, PartialEq)]
enum BlockState {
    Empty,
    Text,
    Thinking,
    /// The input so far; `None` once it is complete.
    ToolUse(ToolUseId, Option<String>),
}

/// A message that is being streamed.
pub(crate) struct MessageBuilder<'a> {
    pub(crate) message_id: MessageId,
    /// The provider's id of its response.
    pub(crate) response_id: Option<String>,
    /// The tool uses of the message, with the names of the tools.
    pub(crate) tools: Vec<(ToolUseId, String)>,
    /// The tool uses whose input is unusable.
    pub(crate) broken: Vec<ToolUseId>,
    id_generator: &'a dyn IdGenerator,
    bytes_left: usize,
    blocks: Vec<BlockState>,
    /// Tool uses that ended without any input: that means `{}`, unless the message was truncated.
    without_input: Vec<ToolUseId>,
    provider_data: BTreeMap<u32, Value>,
}

impl<'a> MessageBuilder<'a> {
    pub(crate) fn new(id_generator: &'a dyn IdGenerator, bytes_max: usize) -> Self {
        Self {
            message_id: MessageId(id_generator.ulid()),
            id_generator,
            bytes_left: bytes_max,
            blocks: Vec::new(),
            tools: Vec::new(),
            broken: Vec::new(),
            without_input: Vec::new(),
            provider_data: BTreeMap::new(),
            response_id: None,
        }
    }

    /// The event that starts the message.
    pub(crate) fn start_event(&self, model: &str) -> Body {
        Body::MessageStart(MessageStart {
            message_id: self.message_id,
            role: Role::Assistant,
            model: model.to_owned(),
        })
    }

    /// Adds a [`Delta`] and returns its event; `None` if clients are sent nothing for it.
    pub(crate) fn push(&mut self, delta: Delta) -> Result<Option<Body>, MalformedStream> {
        let message_id = self.message_id;
        match delta {
            Delta::Text { block, text } => {
                self.count_bytes(text.len())?;
                self.set_kind(block, BlockState::Text)?;
                Ok((!text.is_empty()).then(|| {
                    Body::TextDelta(TextDelta {
                        message_id,
                        content_block_index: block,
                        text,
                    })
                }))
            }
            Delta::Thinking {
                block,
                text,
                signature,
            } => {
                self.count_bytes(text.len() + signature.as_ref().map_or(0, String::len))?;
                self.set_kind(block, BlockState::Thinking)?;
                Ok((!text.is_empty() || signature.is_some()).then(|| {
                    Body::ThinkingDelta(ThinkingDelta {
                        message_id,
                        content_block_index: block,
                        text,
                        signature,
                        // Set by the session, which sees the whole turn.
                        after_text: false,
                    })
                }))
            }
            Delta::ToolStart { block, name, .. } => self.start_tool(block, name).map(Some),
            Delta::ToolInput { block, fragment } => self.add_tool_input(block, fragment),
            Delta::ToolEnd { block } => self.end_tool(block).map(Some),
            Delta::Started { response_id } => {
                self.count_bytes(response_id.len())?;
                self.response_id = Some(response_id);
                Ok(None)
            }
            // The provider wants the data back with the block; later data replaces earlier.
            Delta::ProviderData { block, data } => {
                self.count_bytes(data.to_string().len())?;
                self.block_mut(block)?;
                self.provider_data.insert(block, data);
                Ok(None)
            }
            // The reader of the stream handles these.
            Delta::PartialUsage { .. } | Delta::Stop { .. } => Err(NO_PIECE),
        }
    }

    /// Takes the [`ProviderState`] that `provider` wants back with the message.
    pub(crate) fn take_provider_data(&mut self, provider: &str) -> ProviderState {
        ProviderState {
            by: provider.to_owned(),
            blocks: std::mem::take(&mut self.provider_data),
        }
    }

    fn start_tool(&mut self, block: u32, tool_name: String) -> Result<Body, MalformedStream> {
        if tool_name.is_empty() || tool_name.len() > NAME_BYTES_MAX {
            return Err(TOOL_NAME);
        }
        let tool_use_id = ToolUseId(self.id_generator.ulid());
        let state = self.block_mut(block)?;
        if *state != BlockState::Empty {
            return Err(BLOCK_KIND);
        }
        *state = BlockState::ToolUse(tool_use_id, Some(String::new()));
        self.tools.push((tool_use_id, tool_name.clone()));
        Ok(Body::ToolUseStart(ToolUseStart {
            message_id: self.message_id,
            content_block_index: block,
            tool_use_id,
            tool_name,
        }))
    }

    fn add_tool_input(
        &mut self,
        block: u32,
        partial_json: String,
    ) -> Result<Option<Body>, MalformedStream> {
        self.count_bytes(partial_json.len())?;
        let message_id = self.message_id;
        let BlockState::ToolUse(tool_use_id, Some(input)) = self.block_mut(block)? else {
            return Err(BLOCK_KIND);
        };
        input.push_str(&partial_json);
        let tool_use_id = *tool_use_id;
        Ok((!partial_json.is_empty()).then(|| {
            Body::ToolUseInputDelta(ToolUseInputDelta {
                message_id,
                content_block_index: block,
                tool_use_id,
                partial_json,
            })
        }))
    }

    fn end_tool(&mut self, block: u32) -> Result<Body, MalformedStream> {
        let message_id = self.message_id;
        let BlockState::ToolUse(tool_use_id, input) = self.block_mut(block)? else {
            return Err(BLOCK_KIND);
        };
        let input = input.take().ok_or(BLOCK_KIND)?;
        let tool_use_id = *tool_use_id;
        if read_input(&input).is_none() {
            self.broken.push(tool_use_id);
        } else if input.trim().is_empty() {
            self.without_input.push(tool_use_id);
        }
        Ok(Body::ToolUseEnd(ToolUseEnd {
            message_id,
            content_block_index: block,
            tool_use_id,
            final_input: parse_input(&input),
        }))
    }

    /// Ends the tool uses that the provider left open. Their input was cut, even if it parses.
    pub(crate) fn close_tool_uses(&mut self) -> Vec<Body> {
        let open = self.blocks.iter().filter_map(|block| match block {
            BlockState::ToolUse(id, Some(_)) => Some(*id),
            _ => None,
        });
        self.broken.extend(open.collect::<Vec<_>>());
        let blocks = 0..self.blocks.len() as u32;
        blocks
            .filter_map(|block| self.end_tool(block).ok())
            .collect()
    }

    /// Marks the message as truncated at its length. A tool use without input may then have lost
    /// its input, and a tool that acts must not act on a guess.
    pub(crate) fn mark_truncated(&mut self) {
        self.broken.append(&mut self.without_input);
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), MalformedStream> {
        let bytes_left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = bytes_left.ok_or(MESSAGE_TOO_LARGE)?;
        Ok(())
    }

    fn set_kind(&mut self, block: u32, kind: BlockState) -> Result<(), MalformedStream> {
        let state = self.block_mut(block)?;
        if *state == BlockState::Empty {
            *state = kind;
            return Ok(());
        }
        (*state == kind).then_some(()).ok_or(BLOCK_KIND)
    }

    fn block_mut(&mut self, block: u32) -> Result<&mut BlockState, MalformedStream> {
        if block >= BLOCKS_MAX {
            return Err(TOO_MANY_BLOCKS);
        }
        let index = block as usize;
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || BlockState::Empty);
        }
        Ok(&mut self.blocks[index])
    }
}
