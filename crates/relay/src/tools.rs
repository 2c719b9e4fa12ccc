//! The tools of an upstream. They run there; here they begin and end, and what a `render_*` tool returns
//! is shown. A result may come before or after the end of its tool.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use turnwire_event::body::component::RenderingToolCall;
use turnwire_event::body::tool::{ToolCalled, ToolCompleted, ToolFailed};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, IdGenerator, ToolUseId, UpstreamId};

use crate::fault::UpstreamFault;
use crate::shown::shown;

/// The most tools that may be open at once, and the most ended ones whose results may still come: far
/// more than any agent has, and a bound for one that never ends them.
pub(crate) const OPEN_MAX: usize = 256;
/// The most ids of tools that clients get in one answer; later tools have their own.
const SHOWN_IDS_MAX: usize = 4_096;
/// The prefix of tools whose results are shown.
const RENDER_PREFIX: &str = "render_";

/// The prefix of tools that ask a sub-agent, as those of a native orchestrator are named.
const ASK_PREFIX: &str = "ask_";

/// The emissions of one event, in order.
pub(crate) type Emissions = Vec<Emission>;

/// A tool that has begun.
struct UpstreamTool {
    tool_use_id: ToolUseId,
    /// The id that clients of the chat wire get; `None` for the own one.
    upstream_id: Option<UpstreamId>,
    name: String,
    tool_type: ToolType,
    since: Instant,
    /// SHA-256 of the result, once it has come.
    result_sha256: Option<String>,
    result_bytes: usize,
}

impl UpstreamTool {
    fn rendering_call(&self) -> RenderingToolCall {
        RenderingToolCall {
            id: self.tool_use_id,
            upstream_id: self.upstream_id.clone(),
            name: self.name.clone(),
            tool_type: ToolType::Render,
        }
    }
}

/// The tools of one answer, by the upstream's ids.
pub(crate) struct UpstreamTools {
    ids: Arc<dyn IdGenerator>,
    /// The principal of the turn: data of another one is not shown.
    principal: String,
    open: HashMap<String, UpstreamTool>,
    /// Tools that show something and ended before their result came.
    ended: HashMap<String, UpstreamTool>,
    /// The ids that clients have; `None` if they get none, since several sub-agents may use the same.
    shown_ids: Option<HashSet<UpstreamId>>,
}

impl UpstreamTools {
    pub(crate) fn new(ids: Arc<dyn IdGenerator>, principal: &str) -> Self {
        Self {
            shown_ids: Some(HashSet::new()),
            ids,
            principal: principal.to_owned(),
            open: HashMap::new(),
            ended: HashMap::new(),
        }
    }

    /// From now on clients get the own ids of tools.
    pub(crate) fn hide_ids(&mut self) {
        self.shown_ids = None;
    }

    /// A tool begins. One that is open is not begun again.
    pub(crate) fn start(
        &mut self,
        id: String,
        name: String,
        tool_type: ToolType,
    ) -> Result<Emissions, UpstreamFault> {
        if self.open.contains_key(&id) {
            return Ok(Vec::new());
        }
        if self.open.len() >= OPEN_MAX {
            return Err(UpstreamFault::Malformed);
        }
        let tool_use_id = ToolUseId(self.ids.ulid());
        let upstream_id = self.shown_id(&id);
        let called = Body::ToolCalled(ToolCalled {
            upstream_id: upstream_id.clone(),
            tool_use_id,
            tool_name: name.clone(),
            tool_type,
            input_summary: String::new(),
        });
        let emission = Emission::new(Actor::tool(&name), called);
        let tool = UpstreamTool {
            tool_use_id,
            upstream_id,
            name,
            tool_type,
            since: Instant::now(),
            result_sha256: None,
            result_bytes: 0,
        };
        self.open.insert(id, tool);
        Ok(vec![emission])
    }

    /// The id of the upstream, if clients may have it: of a tool of the answer that they see, and not
    /// one that names two tools.
    fn shown_id(&mut self, id: &str) -> Option<UpstreamId> {
        let shown = self.shown_ids.as_mut()?;
        let id = id.parse::<UpstreamId>().ok()?;
        (shown.len() < SHOWN_IDS_MAX && shown.insert(id.clone())).then_some(id)
    }

    /// The sub-agent that the open tool call `id` asks.
    pub(crate) fn sub_agent_of(&self, id: &str) -> Option<String> {
        let tool = self.open.get(id)?;
        let asked = tool.name.strip_prefix(ASK_PREFIX);
        let is_sub_agent = tool.tool_type == ToolType::SubAgent || asked.is_some();
        is_sub_agent.then(|| asked.unwrap_or(&tool.name).to_owned())
    }

    /// A result is shown if its tool is there to show something; no other is passed on (D-18).
    pub(crate) fn result(&mut self, id: &str, content: Value) -> Emissions {
        if let Some(tool) = self.open.get_mut(id) {
            let json = content.to_string();
            tool.result_bytes = json.len();
            tool.result_sha256 = Some(sha256_hex(json.as_bytes()));
            return show(tool, content, &self.principal, &*self.ids);
        }
        let Some(tool) = self.ended.remove(id) else {
            return Vec::new();
        };
        show(&tool, content, &self.principal, &*self.ids)
    }

    /// A tool has ended. An end without a beginning means nothing.
    pub(crate) fn end(&mut self, id: &str, is_error: bool) -> Emissions {
        let Some(tool) = self.open.remove(id) else {
            return Vec::new();
        };
        if is_error {
            return vec![failed(tool)];
        }
        let duration = tool.since.elapsed().as_millis();
        let sha256 = tool.result_sha256.clone();
        let completed = Body::ToolCompleted(ToolCompleted {
            upstream_id: tool.upstream_id.clone(),
            tool_use_id: tool.tool_use_id,
            tool_name: tool.name.clone(),
            tool_type: tool.tool_type,
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
            result_summary: format!("{} bytes", tool.result_bytes),
            result_sha256: sha256.unwrap_or_else(|| sha256_hex(b"")),
        });
        let emission = Emission::new(Actor::tool(&tool.name), completed);
        let is_awaited = tool.result_sha256.is_none() && tool.name.starts_with(RENDER_PREFIX);
        if is_awaited && self.ended.len() < OPEN_MAX {
            self.ended.insert(id.to_owned(), tool);
        }
        vec![emission]
    }

    /// The ends of the tools that are still open.
    pub(crate) fn close(&mut self) -> Emissions {
        let mut open: Vec<UpstreamTool> = self.open.drain().map(|(_, tool)| tool).collect();
        open.sort_by_key(|tool| tool.tool_use_id.0);
        open.into_iter().map(failed).collect()
    }
}

/// What the result of a tool shows.
fn show(tool: &UpstreamTool, content: Value, principal: &str, ids: &dyn IdGenerator) -> Emissions {
    let Some(data_type) = tool.name.strip_prefix(RENDER_PREFIX) else {
        return Vec::new();
    };
    shown(content, (tool.rendering_call(), data_type), principal, ids)
}

/// A tool that did not end well.
fn failed(tool: UpstreamTool) -> Emission {
    let failed = Body::ToolFailed(ToolFailed {
        upstream_id: tool.upstream_id.clone(),
        tool_use_id: tool.tool_use_id,
        tool_name: tool.name.clone(),
        tool_type: tool.tool_type,
        error_class: ToolErrorClass::Internal,
        // Set by the session.
        called: false,
    });
    Emission::new(Actor::tool(&tool.name), failed)
}
