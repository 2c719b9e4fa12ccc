//! The hashes of stored messages and tool results, to compare with those that events promise.
//!
//! A message is kept as its hash, turn and role, some 150 bytes, so that the messages of a long session
//! need little memory however large they are.

use std::collections::HashMap;

use turnwire_event::content::{content_json, sha256_hex};
use turnwire_event::{ContentBlock, Message, MessageId, MessageStatus, Role, ToolUseId, TurnId};

/// The SHA-256 of a content, from its bytes or from 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash(String);

impl ContentHash {
    /// The hash of the content of a message.
    pub(crate) fn of(content: &[ContentBlock]) -> Self {
        Self(content_json(content).1)
    }

    /// True if `hex` is this hash.
    pub(crate) fn is(&self, hex: &str) -> bool {
        self.0 == hex
    }
}

/// A stored message without its content.
#[derive(Clone, Debug)]
pub(crate) struct MessageDigest {
    pub(crate) turn: TurnId,
    pub(crate) role: Role,
    pub(crate) content: ContentHash,
    is_complete: bool,
}

/// The contents that are stored beside a log.
#[derive(Debug, Default)]
pub(crate) struct StoredContents {
    messages: HashMap<MessageId, MessageDigest>,
    results: HashMap<ToolUseId, ContentHash>,
}

impl StoredContents {
    /// Adds a message and the tool results in it.
    pub(crate) fn add(&mut self, message: &Message) {
        let is_complete = message.status != MessageStatus::InProgress;
        let digest = MessageDigest {
            turn: message.turn_id,
            role: message.role,
            content: ContentHash::of(&message.content),
            is_complete,
        };
        self.messages.insert(message.id, digest);
        if is_complete {
            self.results.extend(result_hashes(message));
        }
    }

    /// A message by its id.
    pub(crate) fn get(&self, id: MessageId) -> Option<&MessageDigest> {
        self.messages.get(&id)
    }

    /// The hash of a complete message.
    pub(crate) fn message(&self, id: MessageId) -> Option<&ContentHash> {
        let digest = self.messages.get(&id)?;
        digest.is_complete.then_some(&digest.content)
    }

    /// The hash of the result of a tool call.
    pub(crate) fn result(&self, id: ToolUseId) -> Option<&ContentHash> {
        self.results.get(&id)
    }
}

impl FromIterator<Message> for StoredContents {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut contents = Self::default();
        for message in messages {
            contents.add(&message);
        }
        contents
    }
}

/// The hash of each tool result in a message.
fn result_hashes(message: &Message) -> impl Iterator<Item = (ToolUseId, ContentHash)> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            ..
        } => {
            let json = serde_json::to_string(content).ok()?;
            Some((*tool_use_id, ContentHash(sha256_hex(json.as_bytes()))))
        }
        _ => None,
    })
}
