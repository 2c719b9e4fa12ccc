//! What an agent works with, the same for the one that speaks and those that work for it: a
//! model, tools, bounds, and how its doings are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use turnwire_event::body::mcp::{Listed, Server};
use turnwire_event::code::{CallPurpose, ToolType};
use turnwire_event::port::{Emission, Emitter, Refusal, TurnContext};
use turnwire_event::row::Scope;
use turnwire_event::{Actor, Body, InvocationId, Message, Mint, Position, Trace};
use turnwire_model::ToolSpec;
use turnwire_tool::{ItemStore, Tool, ToolContext, Toolbox, deliver};

use crate::emitter::sub_agent_emitter::Voice;
use crate::options::Options;
use crate::resources::model_choice::{Choice, Standing};
use crate::resources::turn_budget::Purse;

/// The agent that speaks, as scripts and events name it.
const SPEAKER: &str = "orchestrator";
/// What a tool is called that a sub-agent asked for and does not have.
const UNKNOWN: &str = "unknown";

/// Which agent it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The one that speaks: its words stream.
    Speaker,
    /// The one that speaks in a session of its own, where it works for somebody.
    Worker(String),
    /// One that works for it: nobody sees its words (D-46).
    Sub(String),
}

impl Who {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Speaker => SPEAKER,
            Self::Worker(id) | Self::Sub(id) => id,
        }
    }

    /// The sub-agent's id; none for the one that speaks.
    pub(crate) fn sub_agent(&self) -> Option<&str> {
        match self {
            Self::Speaker | Self::Worker(_) => None,
            Self::Sub(id) => Some(id),
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        match self {
            Self::Speaker | Self::Worker(_) => Actor::ORCHESTRATOR,
            Self::Sub(id) => Actor::subagent(id),
        }
    }

    /// Who is shown its messages.
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Speaker | Self::Worker(_) => Scope::Shared,
            Self::Sub(id) => Scope::Agent(id.clone()),
        }
    }
}

/// The mark of a message that belongs to a sub-agent's work.
pub(crate) fn sub_agent(id: &str) -> Map<String, Value> {
    [("sub_agent_id".to_owned(), Value::String(id.to_owned()))]
        .into_iter()
        .collect()
}

/// The key of an invocation's id in the mark of its messages.
const INVOCATION: &str = "invocation_id";

/// The mark of a message of one invocation: two of one sub-agent may run at once, and what each
/// said must be told apart later.
pub(crate) fn invocation(id: &str, invocation: InvocationId) -> Map<String, Value> {
    let mut mark = sub_agent(id);
    mark.insert(INVOCATION.to_owned(), Value::String(invocation.to_string()));
    mark
}

/// The invocation that a message is of, if it is of one.
pub(crate) fn invocation_of(message: &Message) -> Option<&str> {
    message.metadata.get(INVOCATION)?.as_str()
}

/// The key that marks the result of a call that asked nobody.
const NOT_EXECUTED: &str = "not_executed";

/// The mark of the result of a call that asked nobody.
pub(crate) fn not_executed() -> (String, Value) {
    (NOT_EXECUTED.to_owned(), Value::Bool(true))
}

/// Whether a message is the result of a call that asked nobody.
pub(crate) fn is_not_executed(message: &Message) -> bool {
    message.metadata.get(NOT_EXECUTED) == Some(&Value::Bool(true))
}

/// What an agent works with.
pub(crate) struct Means {
    pub(crate) who: Who,
    pub(crate) options: Options,
    /// The models it asks.
    pub(crate) choice: Choice,
    pub(crate) toolbox: Toolbox,
    /// The tools as its model is told of them: those of the toolbox and those that ask.
    pub(crate) tools: Arc<[ToolSpec]>,
    /// The names of those that ask a sub-agent.
    pub(crate) asks: Vec<String>,
    pub(crate) mint: Arc<dyn Mint>,
}

impl Means {
    /// What kind of tool the model named.
    pub(crate) fn kind(&self, name: &str) -> ToolType {
        if self.asks.iter().any(|ask| ask == name) {
            return ToolType::SubAgent;
        }
        let tool = self.toolbox.get(name);
        tool.map_or(ToolType::Function, |tool| tool.tool_type())
    }

    /// What there is to tell of the tool servers whose tools it has: they were listed when the
    /// pack was loaded, nothing is asked now.
    pub(crate) fn servers(&self) -> Vec<Body> {
        let mut counts: Vec<(&str, u32)> = Vec::new();
        for server in self.toolbox.iter().filter_map(|tool| tool.server()) {
            match counts.iter_mut().find(|(name, _)| *name == server) {
                Some((_, count)) => *count += 1,
                None => counts.push((server, 1)),
            }
        }
        let told = counts.into_iter().flat_map(|(name, tool_count)| {
            let server = name.to_owned();
            let listed = Listed {
                server: server.clone(),
                tool_count,
            };
            [
                Body::McpListToolsStarted(Server { server }),
                Body::McpListToolsCompleted(listed),
            ]
        });
        told.collect()
    }

    /// The name of a tool as everyone may see it. One that a sub-agent's model made up is words
    /// of that model, and those are for nobody else (D-46).
    pub(crate) fn shown<'a>(&self, name: &'a str) -> &'a str {
        match self.who {
            Who::Sub(_) if self.toolbox.get(name).is_none() => UNKNOWN,
            Who::Sub(_) | Who::Worker(_) | Who::Speaker => name,
        }
    }
}

/// A tool as a model is told of it.
pub(crate) fn spec(tool: &Arc<dyn Tool>) -> ToolSpec {
    ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        input_schema: tool.input_schema(),
    }
}

/// Time spent waiting for models and tools: what is left of an invocation is the house's own.
#[derive(Debug, Default)]
pub(crate) struct Meter(AtomicU64);

impl Meter {
    pub(crate) fn add(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// What becomes of a data service's failure (axis 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Faults {
    /// It is told at once, and the turn goes on.
    Told,
    /// It is kept: the turn may end with it (S1-102).
    Kept,
}

/// Where an agent works: its means within one turn.
#[derive(Clone)]
pub(crate) struct Desk<'a> {
    pub(crate) means: &'a Means,
    pub(crate) emitter: &'a Arc<dyn Emitter>,
    pub(crate) scene: &'a Arc<ToolContext>,
    pub(crate) meter: &'a Meter,
    /// Which of its models it asks.
    pub(crate) standing: &'a Standing,
    /// What the turn has left for model calls.
    pub(crate) purse: &'a Arc<Purse>,
    /// When its time is over.
    pub(crate) until: Instant,
    /// Where failures of data services are kept; told at once if nowhere.
    pub(crate) keeper: Option<&'a Voice>,
    /// The invocation it is; none for the one that speaks.
    pub(crate) invocation: Option<InvocationId>,
    /// What its model calls are for.
    pub(crate) purpose: CallPurpose,
    /// The span it works in; the turn's own if none.
    pub(crate) span: Option<Arc<Trace>>,
}

impl Desk<'_> {
    /// Hands one event over.
    pub(crate) async fn tell(&self, actor: Actor, body: Body) -> Result<Position, Refusal> {
        self.deliver(Emission::new(actor, body)).await
    }

    /// What its messages are marked with.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        match (self.means.who.sub_agent(), self.invocation) {
            (None, _) => Map::new(),
            (Some(id), None) => sub_agent(id),
            (Some(id), Some(invocation_id)) => invocation(id, invocation_id),
        }
    }

    /// Hands one event over, with what was said with it.
    pub(crate) async fn deliver(&self, mut emission: Emission) -> Result<Position, Refusal> {
        if emission.trace.is_none() {
            emission.trace.clone_from(&self.span);
        }
        deliver(&**self.emitter, emission).await
    }
}

/// The surroundings of the tools that `agent` uses in `turn`.
pub(crate) fn scene(
    turn: &TurnContext,
    agent: Option<&str>,
    trace: Option<Arc<Trace>>,
    definition: &str,
) -> Arc<ToolContext> {
    let input = &turn.input;
    Arc::new(ToolContext {
        owner: input.owner.clone(),
        session_id: input.session_id,
        turn_id: input.turn_id,
        episode_id: input.episode_id,
        locale: input.locale.clone(),
        location: input.location.clone(),
        agent: agent.map(str::to_owned),
        trace,
        items: ItemStore::new(),
        definition: definition.to_owned(),
        wards: Arc::clone(&turn.wards),
        delegate: Arc::clone(&turn.delegate),
    })
}
