//! The message the model is writing: deltas in, the events that tell them out.
//!
//! It keeps what the house promises about a message: a block has one kind, a tool's input comes
//! between its start and its end, and the whole stays within bounds. A provider that breaks one
//! of these is stopped before it can write something that no log could tell again.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::body::stream::{
    MessageStart, TextDelta, ThinkingDelta, ToolUseEnd, ToolUseInputDelta, ToolUseStart,
};
use turnwire_event::fold::input::{parse_input, read_input};
use turnwire_event::fold::message::BLOCKS_MAX;
use turnwire_event::{Body, Kept, MessageId, Mint, Role, ToolUseId};
use turnwire_model::Delta;

/// Bytes of a tool's name: twice what any vendor allows.
const NAME_BYTES_MAX: usize = 256;

/// The provider broke its promise: which one, in a word for the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// More than a message may hold.
const FLOOD: Malformed = Malformed("message_too_large");
/// More blocks than a message may have.
const BLOCKS: Malformed = Malformed("too_many_blocks");
/// A block that changes its kind, or a tool's input outside of its start and end.
const KIND: Malformed = Malformed("block_kind");
/// A tool without a name, or with one that nobody gave.
const NAME: Malformed = Malformed("tool_name");
/// Something that is no piece of a message.
const NO_PIECE: Malformed = Malformed("no_piece");

#[derive(Debug, PartialEq)]
enum Block {
    Gap,
    Text,
    Thinking,
    /// The input so far; none once it is whole.
    Tool(ToolUseId, Option<String>),
}

/// A message being written.
pub(crate) struct Draft<'a> {
    pub(crate) message_id: MessageId,
    mint: &'a dyn Mint,
    bytes_left: usize,
    blocks: Vec<Block>,
    tools: Vec<(ToolUseId, String)>,
    broken: Vec<ToolUseId>,
    /// Those that ended before any of their input came: `{}` is meant by it, unless it was cut.
    bare: Vec<ToolUseId>,
    kept: BTreeMap<u32, Value>,
    response_id: Option<String>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(mint: &'a dyn Mint, bytes_max: usize) -> Self {
        Self {
            message_id: MessageId(mint.ulid()),
            mint,
            bytes_left: bytes_max,
            blocks: Vec::new(),
            tools: Vec::new(),
            broken: Vec::new(),
            bare: Vec::new(),
            kept: BTreeMap::new(),
            response_id: None,
        }
    }

    /// The event that begins it.
    pub(crate) fn start(&self, model: &str) -> Body {
        Body::MessageStart(MessageStart {
            message_id: self.message_id,
            role: Role::Assistant,
            model: model.to_owned(),
        })
    }

    /// Takes in a delta; gives the event that tells it, if there is something to tell.
    pub(crate) fn take(&mut self, delta: Delta) -> Result<Option<Body>, Malformed> {
        let message_id = self.message_id;
        match delta {
            Delta::Text { block, text } => {
                self.grow(text.len())?;
                self.same(block, Block::Text)?;
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
                self.grow(text.len() + signature.as_ref().map_or(0, String::len))?;
                self.same(block, Block::Thinking)?;
                Ok((!text.is_empty() || signature.is_some()).then(|| {
                    Body::ThinkingDelta(ThinkingDelta {
                        message_id,
                        content_block_index: block,
                        text,
                        signature,
                        // Known to the writer, who sees the whole turn.
                        after_text: false,
                    })
                }))
            }
            Delta::ToolStart { block, name, .. } => self.tool_start(block, name).map(Some),
            Delta::ToolInput { block, fragment } => self.tool_input(block, fragment),
            Delta::ToolEnd { block } => self.tool_end(block).map(Some),
            Delta::Begun { response_id } => {
                self.grow(response_id.len())?;
                self.response_id = Some(response_id);
                Ok(None)
            }
            Delta::Keep { block, data } => self.keep(block, data).map(|()| None),
            // Whoever reads the stream takes these.
            Delta::Spent { .. } | Delta::Stop { .. } => Err(NO_PIECE),
        }
    }

    /// Keeps what the provider wants back with a block; a later one takes its place.
    fn keep(&mut self, block: u32, data: Value) -> Result<(), Malformed> {
        self.grow(data.to_string().len())?;
        self.slot(block)?;
        self.kept.insert(block, data);
        Ok(())
    }

    /// What `by` wants back with the message; it gives nothing away afterwards.
    pub(crate) fn take_kept(&mut self, by: &str) -> Kept {
        Kept {
            by: by.to_owned(),
            blocks: std::mem::take(&mut self.kept),
        }
    }

    /// What the provider calls its answer.
    pub(crate) fn response_id(&self) -> Option<&str> {
        self.response_id.as_deref()
    }

    fn tool_start(&mut self, block: u32, tool_name: String) -> Result<Body, Malformed> {
        if tool_name.is_empty() || tool_name.len() > NAME_BYTES_MAX {
            return Err(NAME);
        }
        let tool_use_id = ToolUseId(self.mint.ulid());
        let slot = self.slot(block)?;
        if *slot != Block::Gap {
            return Err(KIND);
        }
        *slot = Block::Tool(tool_use_id, Some(String::new()));
        self.tools.push((tool_use_id, tool_name.clone()));
        Ok(Body::ToolUseStart(ToolUseStart {
            message_id: self.message_id,
            content_block_index: block,
            tool_use_id,
            tool_name,
        }))
    }

    fn tool_input(&mut self, block: u32, partial_json: String) -> Result<Option<Body>, Malformed> {
        self.grow(partial_json.len())?;
        let message_id = self.message_id;
        let Block::Tool(tool_use_id, Some(raw)) = self.slot(block)? else {
            return Err(KIND);
        };
        raw.push_str(&partial_json);
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

    fn tool_end(&mut self, block: u32) -> Result<Body, Malformed> {
        let message_id = self.message_id;
        let Block::Tool(tool_use_id, raw) = self.slot(block)? else {
            return Err(KIND);
        };
        let raw = raw.take().ok_or(KIND)?;
        let tool_use_id = *tool_use_id;
        if read_input(&raw).is_none() {
            self.broken.push(tool_use_id);
        } else if raw.trim().is_empty() {
            self.bare.push(tool_use_id);
        }
        Ok(Body::ToolUseEnd(ToolUseEnd {
            message_id,
            content_block_index: block,
            tool_use_id,
            final_input: parse_input(&raw),
        }))
    }

    /// Ends the tool uses that the provider left open: their input was cut, whatever of it parses.
    pub(crate) fn close(&mut self) -> Vec<Body> {
        let left_open = self.blocks.iter().filter_map(|block| match block {
            Block::Tool(id, Some(_)) => Some(*id),
            _ => None,
        });
        self.broken.extend(left_open.collect::<Vec<_>>());
        let blocks = 0..self.blocks.len() as u32;
        blocks
            .filter_map(|block| self.tool_end(block).ok())
            .collect()
    }

    /// The answer was cut at its length: where nothing of a tool's input came, nobody knows what
    /// it would have been, and a tool that acts must not act on a guess.
    pub(crate) fn cut(&mut self) {
        self.broken.append(&mut self.bare);
    }

    /// The tools whose input is not what the model meant.
    pub(crate) fn broken(&self) -> &[ToolUseId] {
        &self.broken
    }

    /// The tools it asks for.
    pub(crate) fn tools(&self) -> &[(ToolUseId, String)] {
        &self.tools
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(FLOOD)?;
        Ok(())
    }

    fn same(&mut self, block: u32, kind: Block) -> Result<(), Malformed> {
        let slot = self.slot(block)?;
        if *slot == Block::Gap {
            *slot = kind;
            return Ok(());
        }
        (*slot == kind).then_some(()).ok_or(KIND)
    }

    fn slot(&mut self, block: u32) -> Result<&mut Block, Malformed> {
        if block >= BLOCKS_MAX {
            return Err(BLOCKS);
        }
        let at = block as usize;
        while self.blocks.len() <= at {
            self.blocks.push(Block::Gap);
        }
        Ok(&mut self.blocks[at])
    }
}
