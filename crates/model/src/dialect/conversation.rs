//! The message history in the form that vendors accept: user and assistant turns alternate, the
//! results of a message's tools directly follow it and stand together, no text is empty, and
//! provider data goes back only to the provider that sent it.
//!
//! ```text
//! request:       user  assistant(a, b)  tool(a)  user  tool(b)  assistant
//! conversation:  user  assistant(a, b)  user(results a, b; texts)   assistant
//! ```

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role, ToolUseId};

use crate::request::{ModelMessage, ModelRequest, value_text};

/// Characters of a tool name that every vendor accepts.
const NAME_CHARS_MAX: usize = 64;

/// A conversation, borrowed from a [`ModelRequest`].
#[derive(Debug, Default, PartialEq)]
pub(crate) struct VendorConversation<'a> {
    /// The system prompt and the text of system messages, in order.
    pub(crate) system: Vec<&'a str>,
    /// The turns; no two adjacent ones are of the same side.
    pub(crate) turns: Vec<ConversationTurn<'a>>,
}

/// The messages of one side without the other side in between.
#[derive(Debug, PartialEq)]
pub(crate) enum ConversationTurn<'a> {
    /// Tool results and the user's text.
    User {
        /// Results of the tools that the turn before called, in the order of the calls.
        results: Vec<ToolOutcome<'a>>,
        /// Text blocks of the user's messages; never blank.
        texts: Vec<&'a str>,
    },
    /// The model's messages. They are kept apart: blocks of one message belong together.
    Assistant(Vec<Vec<AssistantPart<'a>>>),
}

/// The result of one [`AssistantPart::ToolUse`].
#[derive(Debug, PartialEq)]
pub(crate) struct ToolOutcome<'a> {
    /// Id of the tool use, as sent to the vendor.
    pub(crate) id: String,
    /// Name of the tool, as in the tool use.
    pub(crate) name: Cow<'a, str>,
    pub(crate) content: &'a Value,
    pub(crate) is_error: bool,
}

impl ToolOutcome<'_> {
    /// The content as text: strings unchanged, any other value as JSON.
    pub(crate) fn text(&self) -> String {
        value_text(self.content)
    }

    /// The content as text in which an error is marked, for APIs without an error field.
    pub(crate) fn text_with_error(&self) -> String {
        match self.is_error {
            true => json!({"error": self.content}).to_string(),
            false => self.text(),
        }
    }
}

/// One block of a model's message, from a [`ContentBlock`].
#[derive(Debug, PartialEq)]
pub(crate) enum AssistantPart<'a> {
    /// Text that is not blank.
    Text {
        text: &'a str,
        provider_data: Option<&'a Value>,
    },
    /// Reasoning that came from this provider.
    Thinking {
        text: &'a str,
        signature: Option<&'a str>,
        provider_data: Option<&'a Value>,
    },
    /// A tool use that has a result.
    ToolUse {
        /// Id sent to the vendor: the provider's own id, else `tool_use_id`.
        id: String,
        /// Turnwire's id of the tool use.
        tool_use_id: ToolUseId,
        /// Name of the tool, reduced to characters that vendors accept.
        name: Cow<'a, str>,
        input: &'a Value,
        provider_data: Option<&'a Value>,
    },
    /// Data of a block that only this provider can read.
    Opaque(&'a Value),
}

/// Content of a tool result, and whether it is an error.
type ResultContent<'a> = (&'a Value, bool);

/// Builds the [`VendorConversation`] of a request to `provider`.
pub(crate) fn conversation<'a>(
    provider: &str,
    request: &'a ModelRequest,
) -> VendorConversation<'a> {
    let mut builder = ConversationBuilder {
        provider,
        results: results(request),
        ids: HashSet::new(),
        conversation: VendorConversation::default(),
    };
    let system = request.system.as_deref();
    builder.conversation.system.extend(system);
    for message in &request.messages {
        match message.role {
            Role::System => builder.conversation.system.extend(texts(message)),
            Role::User | Role::Tool => builder.user(message),
            Role::Assistant => builder.assistant(message),
        }
    }
    builder.append_results();
    builder.conversation.system.retain(|text| !is_blank(text));
    builder.conversation
}

/// A tool name that vendors accept. Models invent names, and a vendor that rejects one would reject
/// every later request with it in its history.
fn vendor_tool_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.len() <= NAME_CHARS_MAX && !name.is_empty() && name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    let chars = name.chars().take(NAME_CHARS_MAX);
    let sanitized: String = chars.map(|c| if is_allowed(c) { c } else { '_' }).collect();
    match sanitized.is_empty() {
        true => Cow::Borrowed("_"),
        false => Cow::Owned(sanitized),
    }
}

/// True if `text` has only white space: vendors reject such text.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn texts(message: &ModelMessage) -> impl Iterator<Item = &str> {
    let texts = message.content.iter().filter_map(ContentBlock::as_text);
    texts.filter(|text| !is_blank(text))
}

fn results(request: &ModelRequest) -> HashMap<ToolUseId, ResultContent<'_>> {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => Some((*tool_use_id, (content, *is_error))),
        _ => None,
    });
    results.collect()
}

struct ConversationBuilder<'a, 'p> {
    provider: &'p str,
    results: HashMap<ToolUseId, ResultContent<'a>>,
    /// Ids that are used already: some servers number tool uses from the start in every answer.
    ids: HashSet<String>,
    conversation: VendorConversation<'a>,
}

impl<'a> ConversationBuilder<'a, '_> {
    fn user(&mut self, message: &'a ModelMessage) {
        self.append_results();
        for text in texts(message) {
            if let Some(ConversationTurn::User { texts, .. }) = self.conversation.turns.last_mut() {
                texts.push(text);
            } else {
                self.conversation.turns.push(ConversationTurn::User {
                    results: Vec::new(),
                    texts: vec![text],
                });
            }
        }
    }

    /// If the last turn is the model's, appends the results of its tool uses as a user turn.
    fn append_results(&mut self) {
        let Some(ConversationTurn::Assistant(messages)) = self.conversation.turns.last() else {
            return;
        };
        let outcomes = messages.iter().flatten().filter_map(|part| match part {
            AssistantPart::ToolUse {
                id,
                tool_use_id,
                name,
                ..
            } => {
                let (content, is_error) = *self.results.get(tool_use_id)?;
                Some(ToolOutcome {
                    id: id.clone(),
                    name: name.clone(),
                    content,
                    is_error,
                })
            }
            _ => None,
        });
        let results: Vec<_> = outcomes.collect();
        if !results.is_empty() {
            self.conversation.turns.push(ConversationTurn::User {
                results,
                texts: Vec::new(),
            });
        }
    }

    fn assistant(&mut self, message: &'a ModelMessage) {
        let parts = self.parts(message);
        if parts.is_empty() {
            return;
        }
        match self.conversation.turns.last_mut() {
            Some(ConversationTurn::Assistant(messages)) => messages.push(parts),
            Some(ConversationTurn::User { .. }) | None => {
                let turn = ConversationTurn::Assistant(vec![parts]);
                self.conversation.turns.push(turn);
            }
        }
    }

    fn parts(&mut self, message: &'a ModelMessage) -> Vec<AssistantPart<'a>> {
        let own = message.provider_data.by == self.provider && !message.provider_data.is_empty();
        let data_of = |n: u32| message.provider_data.blocks.get(&n).filter(|_| own);
        let mut parts = Vec::with_capacity(message.content.len());
        for (n, block) in (0_u32..).zip(&message.content) {
            let provider_data = data_of(n);
            match block {
                ContentBlock::Text { text } if is_blank(text) => {
                    parts.extend(provider_data.map(AssistantPart::Opaque));
                }
                ContentBlock::Text { text } => parts.push(AssistantPart::Text {
                    text,
                    provider_data,
                }),
                ContentBlock::Thinking { text, signature } if own => {
                    parts.push(AssistantPart::Thinking {
                        text,
                        signature: signature.as_deref(),
                        provider_data,
                    })
                }
                ContentBlock::ToolUse { id, name, input } if self.results.contains_key(id) => {
                    parts.push(AssistantPart::ToolUse {
                        id: self.vendor_id(*id, provider_data),
                        tool_use_id: *id,
                        name: vendor_tool_name(name),
                        input,
                        provider_data,
                    });
                }
                // Vendors reject a tool use without its result; the other blocks are not for a
                // model.
                ContentBlock::Thinking { .. }
                | ContentBlock::ToolUse { .. }
                | ContentBlock::ToolResult { .. }
                | ContentBlock::Component { .. }
                | ContentBlock::Data { .. } => {}
            }
        }
        let block_count = message.content.len() as u32;
        if own {
            let after_blocks = message.provider_data.blocks.range(block_count..);
            parts.extend(after_blocks.map(|(_, data)| AssistantPart::Opaque(data)));
        }
        parts
    }

    fn vendor_id(&mut self, tool_use_id: ToolUseId, provider_data: Option<&Value>) -> String {
        let provider_id = provider_data.and_then(|provider_data| provider_data.get("id")?.as_str());
        if let Some(id) = provider_id.filter(|id| !id.is_empty())
            && self.ids.insert(id.to_owned())
        {
            return id.to_owned();
        }
        tool_use_id.to_string()
    }
}

#[cfg(test)]
mod tests;
