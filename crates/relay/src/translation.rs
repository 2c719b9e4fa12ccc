//! From the inner vocabulary to events: what an upstream sent becomes what a native agent would have
//! emitted, so that everything behind it stays the same.
//!
//! [`Translation`] is pure: it keeps the state of one answer and returns emissions in order. Text and
//! reasoning become the blocks of one message; tools run elsewhere and only begin and end here.

use std::sync::Arc;

use serde_json::Value;
use turnwire_event::body::mcp::{McpCallProgressed, McpServerRef, McpToolsListed};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ThinkingDelta};
use turnwire_event::body::support::SupportNoted;
use turnwire_event::body::turn::TurnError;
use turnwire_event::fold::message::BLOCKS_MAX;
use turnwire_event::port::Emission;
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, Body, ContentBlock, IdGenerator, JsonObject, MessageId, ProviderState, Role, TokenUsage,
};

use crate::fault::UpstreamFault;
use crate::inner_event::InnerEvent;
use crate::tools::{Emissions, UpstreamTools};

/// The most notes of one answer: far more than any agent has.
const NOTES_MAX: usize = 64;
/// The most bytes of a sub-agent's answer that the orchestrator gets: dozens of pages.
const ANSWER_BYTES_MAX: usize = 65_536;

/// The kind of a piece, and of the block that it is added to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Text,
    /// Reasoning before the answer.
    Thinking,
    /// Reasoning within the answer.
    Reasoning,
}

/// The state of one answer.
pub(crate) struct Translation {
    ids: Arc<dyn IdGenerator>,
    /// Who speaks: the orchestrator or a worker of the session.
    actor: Actor,
    message_id: MessageId,
    model: String,
    has_message: bool,
    /// The text of a sub-agent, which is not streamed; `None` if the answer is a message.
    collected: Option<String>,
    /// The index and the kind of the block that is written.
    block: Option<(u32, PieceKind)>,
    tools: UpstreamTools,
    note_count: usize,
    /// The tokens that the upstream has reported.
    pub(crate) usage: TokenUsage,
    /// The last failure that was reported and did not end the answer.
    pub(crate) reported: Option<TurnError>,
}

impl Translation {
    /// The answer of the orchestrator or of a worker: its text is streamed as a message.
    pub(crate) fn streaming(ids: Arc<dyn IdGenerator>, model: &str, principal: &str) -> Self {
        Self {
            actor: Actor::ORCHESTRATOR,
            message_id: MessageId(ids.ulid()),
            model: model.to_owned(),
            has_message: false,
            collected: None,
            block: None,
            tools: UpstreamTools::new(Arc::clone(&ids), principal),
            note_count: 0,
            usage: TokenUsage::default(),
            reported: None,
            ids,
        }
    }

    /// The answer of the sub-agent `id`: its text is collected.
    pub(crate) fn collecting(ids: Arc<dyn IdGenerator>, id: &str, principal: &str) -> Self {
        let mut translation = Self::streaming(ids, "", principal);
        translation.tools.hide_ids();
        Self {
            actor: Actor::subagent(id),
            collected: Some(String::new()),
            ..translation
        }
    }

    /// Takes the text that was collected.
    pub(crate) fn take_text(&mut self) -> String {
        self.collected.take().unwrap_or_default()
    }

    /// The message of the answer.
    pub(crate) fn message_id(&self) -> MessageId {
        self.message_id
    }

    /// True once the message has started.
    pub(crate) fn has_message(&self) -> bool {
        self.has_message
    }

    /// Translates an event that does not end the answer.
    pub(crate) fn apply(&mut self, event: InnerEvent) -> Result<Emissions, UpstreamFault> {
        let body = match event {
            InnerEvent::Text(text) => return self.piece(PieceKind::Text, text),
            InnerEvent::Reasoning(text) => return self.piece(PieceKind::Reasoning, text),
            InnerEvent::Thinking(text) => return self.piece(PieceKind::Thinking, text),
            InnerEvent::ToolCallStart {
                id,
                name,
                tool_type,
            } => return self.tools.start(id, name, tool_type),
            InnerEvent::ToolResult { id, content } => return Ok(self.tools.result(&id, content)),
            InnerEvent::ToolCallEnd { id, is_error } => return Ok(self.tools.end(&id, is_error)),
            InnerEvent::Usage(usage) => {
                self.usage = usage;
                return Ok(Vec::new());
            }
            InnerEvent::SupportContent { text, sub_agent_id } => {
                return Ok(self.note(text, sub_agent_id));
            }
            InnerEvent::Error { error, .. } => {
                self.reported = Some(error.clone());
                Body::ErrorReported(error)
            }
            InnerEvent::Status {
                event_id,
                sub_agent_id,
                tool_id,
            } => {
                let of_tool = || self.tools.sub_agent_of(tool_id.as_deref()?);
                return Ok(vec![self.status(event_id, sub_agent_id.or_else(of_tool))]);
            }
            InnerEvent::McpListToolsStart(server) => {
                Body::McpListToolsStarted(McpServerRef { server })
            }
            InnerEvent::McpListToolsCompleted { server, tool_count } => {
                Body::McpListToolsCompleted(McpToolsListed { server, tool_count })
            }
            InnerEvent::McpSessionStart(server) => Body::McpSessionStarted(McpServerRef { server }),
            InnerEvent::McpSessionProgress {
                server,
                progress,
                total,
            } => Body::McpSessionProgressed(McpCallProgressed {
                server,
                progress,
                total,
            }),
            // Read by the caller, or of the session.
            InnerEvent::ResponseId(_)
            | InnerEvent::Episode
            | InnerEvent::Completed
            | InnerEvent::Cancelled(_)
            | InnerEvent::Sentinel
            | InnerEvent::Silent
            | InnerEvent::Unknown => return Ok(Vec::new()),
        };
        Ok(vec![Emission::new(self.actor.clone(), body)])
    }

    /// Starts the message, if that has not happened.
    pub(crate) fn start_message(&mut self) -> Option<Emission> {
        if std::mem::replace(&mut self.has_message, true) {
            return None;
        }
        let start = Body::MessageStart(MessageStart {
            message_id: self.message_id,
            role: Role::Assistant,
            model: self.model.clone(),
        });
        Some(Emission::new(self.actor.clone(), start))
    }

    /// The ends of the tools that the upstream has left open.
    pub(crate) fn close_tools(&mut self) -> Emissions {
        self.tools.close()
    }

    /// A piece of the message. Pieces of one kind in a row are one block.
    fn piece(&mut self, kind: PieceKind, text: String) -> Result<Emissions, UpstreamFault> {
        if let Some(collected) = &mut self.collected {
            if kind == PieceKind::Text {
                collected.push_str(&text);
                collected.truncate(collected.floor_char_boundary(ANSWER_BYTES_MAX));
            }
            return Ok(Vec::new());
        }
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let index = match self.block {
            Some((index, open)) if open == kind => index,
            Some((index, _)) => index + 1,
            None => 0,
        };
        if index >= BLOCKS_MAX {
            return Err(UpstreamFault::Malformed);
        }
        self.block = Some((index, kind));
        let message_id = self.message_id;
        let delta = match kind {
            PieceKind::Text => Body::TextDelta(TextDelta {
                message_id,
                content_block_index: index,
                text,
            }),
            PieceKind::Thinking | PieceKind::Reasoning => Body::ThinkingDelta(ThinkingDelta {
                message_id,
                content_block_index: index,
                text,
                signature: None,
                // The upstream says which it is (S1-038).
                after_text: kind == PieceKind::Reasoning,
            }),
        };
        let start = self.start_message();
        let delta = Emission::new(self.actor.clone(), delta);
        Ok(start.into_iter().chain([delta]).collect())
    }

    /// A note for sub-agents of later turns: kept in the memory of the session, on no wire.
    fn note(&mut self, text: String, sub_agent_id: Option<String>) -> Emissions {
        self.note_count += 1;
        if text.trim().is_empty() || self.note_count > NOTES_MAX {
            return Vec::new();
        }
        let own = self.actor.sub_agent().map(str::to_owned);
        let sub_agent_id = own.or(sub_agent_id);
        let sub_agent_id = sub_agent_id.unwrap_or_else(|| "relay".to_owned());
        let mut metadata = JsonObject::default();
        metadata.set("sub_agent_id", &Value::from(sub_agent_id.as_str()));
        let message = NewMessage {
            id: MessageId(self.ids.ulid()),
            role: Role::System,
            content: vec![ContentBlock::text(text.as_str())],
            metadata,
            scope: MessageScope::Agents,
            provider_state: ProviderState::default(),
        };
        let noted = Body::SupportNoted(SupportNoted { sub_agent_id, text });
        vec![Emission {
            message: Some(message),
            ..Emission::new(self.actor.clone(), noted)
        }]
    }

    /// A status. Its id and who may emit it are checked where native statuses are. An upstream that is
    /// a sub-agent reports for itself alone.
    fn status(&self, event_id: String, reporter: Option<String>) -> Emission {
        let actor = match reporter {
            Some(id) if self.collected.is_none() => Actor::subagent(&id),
            Some(_) | None => self.actor.clone(),
        };
        let emitted = Body::StatusEmitted(StatusEmitted {
            event_id,
            message: String::new(),
            invocation_id: None,
        });
        Emission::new(actor, emitted)
    }
}

#[cfg(test)]
mod tests;
