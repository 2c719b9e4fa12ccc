//! A test harness for turns of a pack: the pack's files, one script for all models, tools made of
//! functions, and a recording emitter.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Value, json};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{Reason, ToolErrorClass, ToolType};
use turnwire_event::port::{
    BoxFuture, EventEmitter, HistoryBudget, HistoryError, HistoryReader, TurnContext, TurnInput,
    TurnOutcome, WorkerLauncher,
};
use turnwire_event::{Body, ContentBlock, Message, Role};
use turnwire_model::routing::ModelRouter;
use turnwire_model::{ModelProvider, ModelRequest, ModelScript, ProviderLookup, ScriptedProvider};
use turnwire_pack::{Pack, PackFiles, check};
use turnwire_tool::{ServiceFault, Tool, ToolFailure, ToolInvocation, Toolbox};

use super::recording_emitter::RecordingEmitter;
use super::turn_harness::{CountingIdGenerator, RecordingProvider, input};
use crate::turn_factory::TurnFactory;

/// The tools that the pack's agents may have.
const TOOLS: [&str; 5] = ["search", "points", "ticket", "show", "llm_feedback"];

/// A pack with three sub-agents; `more` is added to `pack.yaml`, `support` is the orchestrator's
/// reference to the third.
pub(super) fn pack(more: &str, support: &str) -> Arc<Pack> {
    build_pack(more, support, "[persona]")
}

/// [`pack`] with the orchestrator's `prompt_blocks`, of which there are `persona` and `brief`.
pub(super) fn pack_with(more: &str, blocks: &str) -> Arc<Pack> {
    build_pack(more, "support", blocks)
}

fn build_pack(more: &str, support: &str, blocks: &str) -> Arc<Pack> {
    let mut files: Vec<(String, String)> = vec![
        (
            "pack.yaml".into(),
            format!(
                "name: trial\nversion: '1.0.0'\ndefault_locale: en\n\
                 models: {{default: 'scripted:trial'}}\n{more}"
            ),
        ),
        (
            "orchestrator.yaml".into(),
            format!(
                "id: orchestrator\nversion: '1'\nkind: orchestrator\ndescription: Speaks.\n\
                 model: default\nprompt_blocks: {blocks}\n\
                 sub_agents: [shop, rewards, {support}]\ntools: [llm_feedback]\n\
                 history: {{max_messages: 60, max_tokens: 24000}}\n"
            ),
        ),
        ("prompts/persona.md".into(), "You are kind.\n".into()),
        ("prompts/brief.md".into(), "You are brief.\n".into()),
        ("locales/en.yaml".into(), locale("Searching...")),
        ("locales/de.yaml".into(), locale("Suche...")),
        ("tools.yaml".into(), tools()),
    ];
    for (id, tools, aliases) in [
        ("shop", "[search, show]", "[shopping]"),
        ("rewards", "[points, show]", "[]"),
        ("support", "[ticket]", "[]"),
    ] {
        files.push((format!("prompts/{id}.md"), format!("You are {id}.\n")));
        files.push((
            format!("verticals/{id}/agent.yaml"),
            format!(
                "id: {id}\nversion: '1'\nkind: sub_agent\nvertical: {id}\naliases: {aliases}\n\
                 description: 'All about {id}: ask it,  verbatim.'\nmodel: default\n\
                 prompt_blocks: [{id}]\ntools: {tools}\nemits: [searching_{id}]\n\
                 on_cancel: discard\ntimeout_ms: 5000\ndefault_status: searching_{id}\n\
                 history: {{max_messages: 20, max_tokens: 8000}}\n"
            ),
        ));
        files.push((
            format!("verticals/{id}/status_events.yaml"),
            format!(
                "- {{id: searching_{id}, description: It looks., \
                 default_render_key: status.searching_{id}, default_policy: transform, \
                 emitter_subagents: [{id}], lifecycle: active}}\n"
            ),
        ));
    }
    let report = check(&PackFiles::from_pairs(files), &|_| None);
    let findings = report.findings;
    Arc::new(report.pack.unwrap_or_else(|| panic!("{findings:#?}")))
}

fn locale(message: &str) -> String {
    let line = |id: &str| format!("status.searching_{id}: {{message: '{message}', phrase: x}}\n");
    ["shop", "rewards", "support"].map(line).concat()
}

fn tools() -> String {
    let tool = |name: &&str| {
        let function = if *name == "llm_feedback" {
            "llm_feedback"
        } else {
            "echo"
        };
        format!("  - {{name: {name}, connector: direct, function: {function}}}\n")
    };
    let tools: String = TOOLS.iter().map(tool).collect();
    format!("tools:\n{tools}")
}

/// A tool made of a function.
pub(super) struct TestTool<F> {
    pub(super) name: &'static str,
    pub(super) tool_type: ToolType,
    pub(super) status: Option<&'static str>,
    pub(super) remember: bool,
    pub(super) work: F,
}

impl<F> Tool for TestTool<F>
where
    F: Fn(ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> + Send + Sync,
{
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "does what a test says"
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn tool_type(&self) -> ToolType {
        self.tool_type
    }

    fn status(&self) -> Option<&str> {
        self.status
    }

    fn remember(&self) -> bool {
        self.remember
    }

    fn has_effects(&self) -> bool {
        !matches!(self.tool_type, ToolType::Ccs | ToolType::Render)
    }

    fn run(&self, call: ToolInvocation) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        (self.work)(call)
    }
}

/// A data tool that returns the given results one after the other.
pub(super) fn service(
    name: &'static str,
    status: Option<&'static str>,
    given: Result<Value, ToolFailure>,
) -> Arc<dyn Tool> {
    Arc::new(TestTool {
        name,
        tool_type: ToolType::Ccs,
        status,
        remember: false,
        work: move |_| -> BoxFuture<'static, _> {
            let given = given.clone();
            Box::pin(async move { given })
        },
    })
}

/// The failure of a data service.
pub(super) fn unavailable(enricher_id: &str) -> ToolFailure {
    ToolFailure {
        fault: Some(Box::new(ServiceFault {
            enricher_id: enricher_id.into(),
            reason: Reason::UpstreamTimeout,
        })),
        ..ToolFailure::new(ToolErrorClass::EnvelopeError, "data unavailable")
    }
}

/// A fixed history: of the session, and of its sub-agents.
#[derive(Clone, Default)]
pub(super) struct AgentHistory {
    pub(super) session: Vec<Message>,
    pub(super) agents: Arc<Mutex<Vec<(String, Message)>>>,
    pub(super) asked: Arc<Mutex<Vec<(String, HistoryBudget)>>>,
}

impl HistoryReader for AgentHistory {
    fn recent(&self, _: HistoryBudget) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        Box::pin(async { Ok(self.session.clone()) })
    }

    fn of_agent(
        &self,
        agent: &str,
        budget: HistoryBudget,
    ) -> BoxFuture<'_, Result<Vec<Message>, HistoryError>> {
        self.asked.lock().push((agent.to_owned(), budget));
        let agents = self.agents.lock();
        let mine = agents.iter().filter(|(id, _)| id == agent || id == "*");
        let mine = mine.map(|(_, message)| message.clone()).collect();
        Box::pin(async move { Ok(mine) })
    }
}

/// One provider for all models.
struct SingleProvider(Arc<RecordingProvider>);

impl ProviderLookup for SingleProvider {
    fn provider(&self, model: &str) -> Option<Arc<dyn ModelProvider>> {
        let served = model.starts_with("scripted:");
        served.then(|| Arc::clone(&self.0) as Arc<dyn ModelProvider>)
    }
}

/// One turn of a pack that is ready to run.
pub(super) struct PackHarness {
    pub(super) pack: Arc<Pack>,
    pub(super) provider: Arc<RecordingProvider>,
    pub(super) recorder: Arc<RecordingEmitter>,
    pub(super) memory: AgentHistory,
    pub(super) input: TurnInput,
    /// The routing policy; `None` for that of the pack.
    pub(super) routing: Option<ModelRouter>,
    pub(super) delegate: Arc<dyn WorkerLauncher>,
    tools: Vec<Arc<dyn Tool>>,
}

impl PackHarness {
    /// All models play `yaml`; every tool returns `"given"` at once.
    pub(super) fn new(yaml: &str) -> Self {
        static PACK: OnceLock<Arc<Pack>> = OnceLock::new();
        let pack = PACK.get_or_init(|| pack("", "support"));
        Self::of(Arc::clone(pack), yaml)
    }

    pub(super) fn of(pack: Arc<Pack>, yaml: &str) -> Self {
        let model = ScriptedProvider::new(ModelScript::parse("test.yaml", yaml).expect("a script"));
        Self {
            pack,
            provider: Arc::new(RecordingProvider::new(move |request| model.stream(request))),
            recorder: Arc::default(),
            memory: AgentHistory::default(),
            input: input(),
            routing: None,
            delegate: Arc::new(turnwire_event::port::NoChildTasks),
            tools: Vec::new(),
        }
    }

    /// Replaces a tool.
    pub(super) fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// The factory with the tools of the test.
    pub(super) fn factory(&self) -> TurnFactory {
        let mut toolbox = Toolbox::new();
        for name in TOOLS {
            let mine = self.tools.iter().find(|tool| tool.name() == name);
            let plain = || service(name, None, Ok(json!("given")));
            let tool = mine.cloned().unwrap_or_else(plain);
            toolbox = toolbox.with(tool).expect("names differ");
        }
        let factory = TurnFactory::with_tools(
            Arc::clone(&self.pack),
            Arc::new(SingleProvider(Arc::clone(&self.provider))),
            &toolbox,
            Arc::new(CountingIdGenerator::default()),
        );
        match &self.routing {
            Some(routing) => factory.routing(Arc::new(routing.clone())),
            None => factory,
        }
    }

    /// The future of the turn.
    pub(super) fn run(&self) -> BoxFuture<'static, TurnOutcome> {
        let cohort = self.pack.cohort(self.input.owner.principal.as_str());
        let assembly = self.factory().bind(&self.input, &cohort);
        (assembly.work)(TurnContext {
            delegate: Arc::clone(&self.delegate),
            child_tasks: Arc::new(turnwire_event::port::NoChildTasks),
            input: self.input.clone(),
            emitter: Arc::clone(&self.recorder) as Arc<dyn EventEmitter>,
            history: Arc::new(self.memory.clone()),
        })
    }

    /// The events, one line each, without the deltas of messages.
    pub(super) fn story(&self) -> Vec<String> {
        self.recorder.bodies().iter().filter_map(line).collect()
    }

    /// The requests of `agent`.
    pub(super) fn requests_of(&self, agent: &str) -> Vec<ModelRequest> {
        let requests = self.provider.requests.lock();
        let mine = requests.iter().filter(|request| request.agent == agent);
        mine.cloned().collect()
    }

    /// All events and all requests as one text.
    pub(super) fn everything(&self) -> String {
        let requests = self.provider.requests.lock();
        format!("{:?}\n{requests:?}", self.recorder.emissions())
    }
}

/// The text of a message.
pub(super) fn words(content: &[ContentBlock]) -> String {
    content.iter().filter_map(ContentBlock::as_text).collect()
}

/// The tool results in a request, in order.
pub(super) fn results(request: &ModelRequest) -> Vec<(Value, bool)> {
    let results = request
        .messages
        .iter()
        .filter(|results| results.role == Role::Tool);
    results
        .flat_map(|results| &results.content)
        .filter_map(|block| match block {
            ContentBlock::ToolResult {
                content, is_error, ..
            } => Some((content.clone(), *is_error)),
            _ => None,
        })
        .collect()
}

fn code(error: &TurnError) -> String {
    let mut code = serde_json::to_value(error.code)
        .expect("a code")
        .to_string();
    code = code.trim_matches('"').to_owned();
    if let Some(id) = &error.sub_agent_id {
        code = format!("{code}({id})");
    }
    if let Some(id) = &error.enricher_id {
        code = format!("{code}({id})");
    }
    let failed: Vec<String> = error.failed.iter().map(self::code).collect();
    if !failed.is_empty() {
        code = format!("{code}[{}]", failed.join(", "));
    }
    code
}

fn word(value: impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).expect("plain data");
    json.as_str().unwrap_or_default().to_owned()
}

/// One event as a line; `None` for the deltas of a message.
fn line((actor, body): &(turnwire_event::Actor, Body)) -> Option<String> {
    let detail = match body {
        Body::RouteDecided(_)
        | Body::MessageStart(_)
        | Body::TextDelta(_)
        | Body::ToolUseStart(_)
        | Body::ToolUseInputDelta(_)
        | Body::ToolUseEnd(_) => return None,
        Body::MessageComplete(message) => {
            let text = words(&message.final_content);
            return (!text.is_empty()).then(|| format!("says {text:?}"));
        }
        Body::LlmCallStarted(call) => format!(" {}", word(call.purpose)),
        Body::LlmCallFailed(call) => format!(" {}", word(call.error_class)),
        Body::ToolFailed(tool) => format!(" {}", word(tool.error_class)),
        Body::SubagentCompleted(end) => format!(" {}", word(end.outcome)),
        Body::SubagentFailed(end) => format!(" {}", word(end.error_class)),
        Body::StatusEmitted(status) => format!(" {}", status.event_id),
        Body::ErrorReported(error) => format!(" {}", code(error)),
        Body::AgentErrorEmit(emit) => {
            let weight = if emit.is_final { " final" } else { "" };
            format!(" axis {}{weight}", emit.axis)
        }
        Body::PlanStepCompleted(step) => format!(" {}", word(step.status)),
        _ => String::new(),
    };
    Some(format!("{actor} {}{detail}", body.kind()))
}
