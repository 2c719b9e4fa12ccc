//! From the inner vocabulary to events: what an upstream sent becomes what a native agent would have
//! emitted, so that everything behind it stays the same.
//!
//! [`Translation`] is pure: it keeps the state of one answer and returns emissions in order. Text and
//! reasoning become the blocks of one message; tools run elsewhere and only begin and end here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use turnwire_event::body::mcp::{McpCallProgressed, McpServerRef, McpToolsListed};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::stream::{MessageStart, TextDelta, ThinkingDelta};
use turnwire_event::body::support::SupportNoted;
use turnwire_event::body::tool::{ToolCalled, ToolCompleted, ToolFailed};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::fold::message::BLOCKS_MAX;
use turnwire_event::port::Emission;
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, Body, ContentBlock, IdGenerator, JsonObject, MessageId, ProviderState, Role, TokenUsage,
    ToolUseId,
};

use crate::fault::UpstreamFault;
use crate::inner_event::InnerEvent;
use crate::shown::shown;

/// The most tools that may be open at once, and the most notes of one answer: far more than any
/// agent has, and a bound for one that never ends them.
const OPEN_TOOLS_MAX: usize = 256;
const NOTES_MAX: usize = 64;
/// The most bytes of a sub-agent's answer that the orchestrator gets: dozens of pages.
const ANSWER_BYTES_MAX: usize = 65_536;
/// The prefix of tools whose results are shown.
const RENDER_PREFIX: &str = "render_";

/// A tool of the upstream that has begun.
struct OpenTool {
    tool_use_id: ToolUseId,
    name: String,
    tool_type: ToolType,
    since: Instant,
    /// SHA-256 of the result, once it has come.
    result_sha256: Option<String>,
    result_bytes: usize,
}

/// The kind of the block that pieces are added to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Reasoning,
}

/// The state of one answer.
pub(crate) struct Translation {
    ids: Arc<dyn IdGenerator>,
    /// Who speaks: the orchestrator or a worker of the session.
    actor: Actor,
    /// The principal of the turn: data of another one is not shown.
    principal: String,
    message_id: MessageId,
    model: String,
    has_message: bool,
    /// The text of a sub-agent, which is not streamed; `None` if the answer is a message.
    collected: Option<String>,
    /// The index and the kind of the block that is written.
    block: Option<(u32, BlockKind)>,
    tools: HashMap<String, OpenTool>,
    note_count: usize,
    /// The tokens that the upstream has reported.
    pub(crate) usage: TokenUsage,
    /// The last failure that was reported and did not end the answer.
    pub(crate) reported: Option<TurnError>,
}

/// The emissions of one event, in order.
pub(crate) type Emissions = Vec<Emission>;

impl Translation {
    /// The answer of the orchestrator or of a worker: its text is streamed as a message.
    pub(crate) fn streaming(ids: Arc<dyn IdGenerator>, model: &str, principal: &str) -> Self {
        Self {
            actor: Actor::ORCHESTRATOR,
            principal: principal.to_owned(),
            message_id: MessageId(ids.ulid()),
            model: model.to_owned(),
            has_message: false,
            collected: None,
            block: None,
            tools: HashMap::new(),
            note_count: 0,
            usage: TokenUsage::default(),
            reported: None,
            ids,
        }
    }

    /// The answer of the sub-agent `id`: its text is collected.
    pub(crate) fn collecting(ids: Arc<dyn IdGenerator>, id: &str, principal: &str) -> Self {
        Self {
            actor: Actor::subagent(id),
            collected: Some(String::new()),
            ..Self::streaming(ids, "", principal)
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
            InnerEvent::Text(text) => return self.piece(BlockKind::Text, text),
            InnerEvent::Reasoning(text) | InnerEvent::Thinking(text) => {
                return self.piece(BlockKind::Reasoning, text);
            }
            InnerEvent::ToolCallStart {
                id,
                name,
                tool_type,
            } => return self.start_tool(id, name, tool_type),
            InnerEvent::ToolResult { id, content } => return Ok(self.tool_result(&id, content)),
            InnerEvent::ToolCallEnd { id, is_error } => return Ok(self.end_tool(&id, is_error)),
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
            InnerEvent::Status { event_id, tool_id } => {
                return Ok(vec![self.status(event_id, tool_id.as_deref())]);
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
        let mut open: Vec<OpenTool> = self.tools.drain().map(|(_, tool)| tool).collect();
        open.sort_by_key(|tool| tool.tool_use_id.0);
        open.into_iter().map(failed).collect()
    }

    /// A piece of the message. Pieces of one kind in a row are one block.
    fn piece(&mut self, kind: BlockKind, text: String) -> Result<Emissions, UpstreamFault> {
        if let Some(collected) = &mut self.collected {
            if kind == BlockKind::Text {
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
            BlockKind::Text => Body::TextDelta(TextDelta {
                message_id,
                content_block_index: index,
                text,
            }),
            BlockKind::Reasoning => Body::ThinkingDelta(ThinkingDelta {
                message_id,
                content_block_index: index,
                text,
                signature: None,
                // Set by the session, which sees the whole turn.
                after_text: false,
            }),
        };
        let start = self.start_message();
        let delta = Emission::new(self.actor.clone(), delta);
        Ok(start.into_iter().chain([delta]).collect())
    }

    fn start_tool(
        &mut self,
        id: String,
        name: String,
        tool_type: ToolType,
    ) -> Result<Emissions, UpstreamFault> {
        if self.tools.contains_key(&id) {
            return Ok(Vec::new());
        }
        if self.tools.len() >= OPEN_TOOLS_MAX {
            return Err(UpstreamFault::Malformed);
        }
        let tool_use_id = ToolUseId(self.ids.ulid());
        let called = Body::ToolCalled(ToolCalled {
            tool_use_id,
            tool_name: name.clone(),
            tool_type,
            input_summary: String::new(),
        });
        let emission = Emission::new(Actor::tool(&name), called);
        let tool = OpenTool {
            tool_use_id,
            name,
            tool_type,
            since: Instant::now(),
            result_sha256: None,
            result_bytes: 0,
        };
        self.tools.insert(id, tool);
        Ok(vec![emission])
    }

    /// A result is shown if its tool is there to show something; no other is passed on (D-18).
    fn tool_result(&mut self, id: &str, content: Value) -> Emissions {
        let Some(tool) = self.tools.get_mut(id) else {
            return Vec::new();
        };
        let json = content.to_string();
        tool.result_bytes = json.len();
        tool.result_sha256 = Some(sha256_hex(json.as_bytes()));
        let Some(data_type) = tool.name.strip_prefix(RENDER_PREFIX) else {
            return Vec::new();
        };
        let rendered = (tool.tool_use_id, tool.name.as_str(), data_type);
        shown(content, rendered, &self.principal, &*self.ids)
    }

    fn end_tool(&mut self, id: &str, is_error: bool) -> Emissions {
        let Some(tool) = self.tools.remove(id) else {
            return Vec::new();
        };
        if is_error {
            return vec![failed(tool)];
        }
        let duration = tool.since.elapsed().as_millis();
        let completed = Body::ToolCompleted(ToolCompleted {
            tool_use_id: tool.tool_use_id,
            tool_name: tool.name.clone(),
            tool_type: tool.tool_type,
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
            result_summary: format!("{} bytes", tool.result_bytes),
            result_sha256: tool.result_sha256.unwrap_or_else(|| sha256_hex(b"")),
        });
        vec![Emission::new(Actor::tool(&tool.name), completed)]
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
    fn status(&self, event_id: String, tool_id: Option<&str>) -> Emission {
        let reporter = tool_id.map(|id| id.strip_prefix("ask_").unwrap_or(id));
        let actor = match reporter {
            Some(id) if self.collected.is_none() => Actor::subagent(id),
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

/// A tool that did not end well.
fn failed(tool: OpenTool) -> Emission {
    let failed = Body::ToolFailed(ToolFailed {
        tool_use_id: tool.tool_use_id,
        tool_name: tool.name.clone(),
        tool_type: tool.tool_type,
        error_class: ToolErrorClass::Internal,
        // Set by the session.
        called: false,
    });
    Emission::new(Actor::tool(&tool.name), failed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwire_event::{EventType, Ulid};

    use super::*;

    /// Counts up.
    struct Counter(std::sync::atomic::AtomicU64);

    impl IdGenerator for Counter {
        fn ulid(&self) -> Ulid {
            Ulid(u128::from(
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            ))
        }
    }

    fn ids() -> Arc<dyn IdGenerator> {
        Arc::new(Counter(1.into()))
    }

    fn kinds(emissions: &[Emission]) -> Vec<EventType> {
        emissions
            .iter()
            .map(|emission| emission.body.kind())
            .collect()
    }

    fn applied(translation: &mut Translation, event: InnerEvent) -> Emissions {
        translation.apply(event).expect("translated")
    }

    #[test]
    fn pieces_of_one_kind_are_one_block_of_one_message() {
        let mut translation = Translation::streaming(ids(), "relay:a", "me");
        let text = |text: &str| InnerEvent::Text(text.into());
        let first = applied(&mut translation, text("a"));
        assert_eq!(
            kinds(&first),
            [EventType::MessageStart, EventType::TextDelta]
        );
        let mut blocks = Vec::new();
        for event in [
            text("b"),
            InnerEvent::Reasoning("c".into()),
            text(""),
            text("d"),
        ] {
            for emission in applied(&mut translation, event) {
                match emission.body {
                    Body::TextDelta(delta) => blocks.push(delta.content_block_index),
                    Body::ThinkingDelta(delta) => blocks.push(delta.content_block_index),
                    body => panic!("{body:?}"),
                }
            }
        }
        assert_eq!(blocks, [0, 1, 2]);
    }

    #[test]
    fn blocks_and_open_tools_are_bounded() {
        let mut translation = Translation::streaming(ids(), "relay:a", "me");
        let alternate = |n: u32| match n % 2 {
            0 => InnerEvent::Text("t".into()),
            _ => InnerEvent::Reasoning("r".into()),
        };
        for n in 0..BLOCKS_MAX {
            applied(&mut translation, alternate(n));
        }
        let refused = translation.apply(alternate(BLOCKS_MAX));
        assert_eq!(refused, Err(UpstreamFault::Malformed));

        let mut translation = Translation::streaming(ids(), "relay:a", "me");
        let start = |n: usize| InnerEvent::ToolCallStart {
            id: n.to_string(),
            name: "search".into(),
            tool_type: ToolType::Function,
        };
        for n in 0..OPEN_TOOLS_MAX {
            assert_eq!(applied(&mut translation, start(n)).len(), 1);
        }
        assert!(applied(&mut translation, start(0)).is_empty(), "it is open");
        assert_eq!(
            translation.apply(start(OPEN_TOOLS_MAX)),
            Err(UpstreamFault::Malformed)
        );
        assert_eq!(translation.close_tools().len(), OPEN_TOOLS_MAX);
    }

    // S2-013
    #[test]
    fn text_of_a_sub_agent_is_collected_and_bounded() {
        let mut translation = Translation::collecting(ids(), "shop", "me");
        let long = "é".repeat(40_000);
        for event in [
            InnerEvent::Reasoning("thought".into()),
            InnerEvent::Text("oat ".into()),
            InnerEvent::Text(long.clone()),
        ] {
            assert!(applied(&mut translation, event).is_empty());
        }
        let text = translation.take_text();
        assert!(text.starts_with("oat é") && text.len() <= ANSWER_BYTES_MAX);
        assert!(text.len() > ANSWER_BYTES_MAX - 2);
    }

    // law 9
    #[test]
    fn data_of_another_principal_is_not_shown() {
        for (principal, shown) in [("me", 2), ("you", 0)] {
            let mut translation = Translation::streaming(ids(), "relay:a", "me");
            applied(
                &mut translation,
                InnerEvent::ToolCallStart {
                    id: "c1".into(),
                    name: "render_offer_list".into(),
                    tool_type: ToolType::Render,
                },
            );
            let content = json!({
                "enricher_id": "offer_search", "principal": principal, "status": "ok",
                "payload": {"items": [{"id": "OFF_1"}]},
            });
            let emissions = applied(
                &mut translation,
                InnerEvent::ToolResult {
                    id: "c1".into(),
                    content,
                },
            );
            assert_eq!(emissions.len(), shown, "{principal}");
            let told = format!("{emissions:?}");
            assert!(
                !told.contains("offer_search"),
                "no field of the envelope: {told}"
            );
        }
    }
}
