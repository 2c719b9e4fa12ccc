//! The tools of one message, all at once, each on its own.
//!
//! ```text
//! tool.called a, tool.called b │ durable │ a runs, b runs │ tool.completed b, tool.failed a
//! ```
//! Nothing acts before its `tool.called` is durable, so that after a crash the log names
//! everything that may have acted. A tool that fails, breaks or takes too long fails alone.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, timeout};
use turnwire_event::body::agent::ErrorEmit;
use turnwire_event::body::status::Emitted;
use turnwire_event::body::tool::{Called, Completed, Failed};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{Emission, Refusal};
use turnwire_event::row::NewMessage;
use turnwire_event::{Actor, Body, ContentBlock, MessageId, Role, ToolUseId};
use turnwire_model::Said;
use turnwire_tool::{LiveTask, ServiceFault, Tool, ToolFailure, ToolInvocation};

use crate::emitter::ambient;
use crate::resources::agent_resources::{Desk, Means, not_executed};
use crate::tool_call::summary::summary;
use crate::tool_call::turn_workers;

/// What a model is told whose input for a tool cannot be read.
pub(crate) const BROKEN: &str =
    "The input was cut or is not a JSON object; ask again with a whole one.";

/// What a model is told whose tool needs a person's word where no person can be asked.
const UNASKED: &str = "not executed: a person has to allow this tool, and none can be asked here.";

/// A tool the model asked for.
pub(crate) struct Use {
    pub(crate) id: ToolUseId,
    pub(crate) name: String,
    pub(crate) input: Value,
    /// Whether its input is not what the model meant.
    pub(crate) broken: bool,
    /// Whether a person has said yes to it.
    pub(crate) allowed: bool,
}

/// The tools that `content` asks for, in its order.
pub(crate) fn uses(content: &[ContentBlock], broken: &[ToolUseId]) -> Vec<Use> {
    let asked = |block: &ContentBlock| match block {
        ContentBlock::ToolUse { id, name, input } => Some(Use {
            broken: broken.contains(id),
            allowed: false,
            id: *id,
            name: name.clone(),
            input: input.clone(),
        }),
        _ => None,
    };
    content.iter().filter_map(asked).collect()
}

/// Takes from `uses` those that are more than a message may ask for: the first are kept, in the
/// model's order.
pub(crate) fn excess(uses: &mut Vec<Use>, means: &Means) -> Vec<Use> {
    uses.split_off(uses.len().min(means.options.tool_calls_max))
}

/// What a model is told that asked for more tools than a message may.
pub(crate) fn too_many(means: &Means) -> String {
    let most = means.options.tool_calls_max;
    format!("not executed: at most {most} tools can be asked for at once.")
}

/// Gives tools that are not executed a result, because a model's vendor wants one for each, and
/// no `tool.called`, because nothing acts.
pub(crate) async fn leave_out(desk: &Desk<'_>, uses: Vec<Use>) -> Result<Vec<Arc<Said>>, Refusal> {
    let mut left = Vec::with_capacity(uses.len());
    for asked in uses {
        let why = ToolFailure::invalid_input(too_many(desk.means));
        left.push(decline(desk, &asked, why).await?);
    }
    Ok(left)
}

/// Gives one tool that is not executed its result.
pub(crate) async fn decline(
    desk: &Desk<'_>,
    asked: &Use,
    why: ToolFailure,
) -> Result<Arc<Said>, Refusal> {
    let means = desk.means;
    let name = means.shown(&asked.name).to_owned();
    let actor = Actor::tool(&name);
    let failed = Failed {
        tool_use_id: asked.id,
        tool_name: name,
        tool_type: means.kind(&asked.name),
        error_class: why.class,
        called: false,
    };
    let said = result(asked.id, Err(why.message));
    let mut message = message(desk, &said);
    message.metadata.extend([not_executed()]);
    let emission = Emission {
        message: Some(message),
        ..Emission::new(actor, Body::ToolFailed(failed))
    };
    desk.deliver(emission).await?;
    Ok(Arc::new(said))
}

/// How a tool ended.
pub(crate) struct Ended {
    /// What the model is told.
    pub(crate) said: Arc<Said>,
    /// What kind of tool it was.
    pub(crate) tool_type: ToolType,
    /// Whether its result is kept for later turns.
    pub(crate) remember: bool,
    /// What it gave.
    pub(crate) given: Result<Value, ToolFailure>,
}

/// What a tool gave and how long it took.
type Given = (Result<Value, ToolFailure>, Duration);

/// Runs `uses`; gives how they ended, in that order of time. One that fails beyond repair ends
/// the work: it is the last, and what still ran is dropped.
pub(crate) async fn work(desk: &Desk<'_>, uses: Vec<Use>) -> Result<Vec<Ended>, Refusal> {
    let means = desk.means;
    let mut ended = Vec::with_capacity(uses.len());
    let (unasked, uses): (Vec<_>, Vec<_>) =
        uses.into_iter().partition(|asked| is_unasked(means, asked));
    for asked in unasked {
        let why = ToolFailure::internal(UNASKED);
        ended.push(Ended {
            said: decline(desk, &asked, why.clone()).await?,
            tool_type: means.kind(&asked.name),
            remember: false,
            given: Err(why),
        });
    }
    let mut last = None;
    for asked in &uses {
        last = Some(announce(desk, asked).await?);
    }
    // What stands at the last place is durable when all before it is.
    if let Some(last) = last {
        desk.emitter.committed(last).await?;
    }
    let mut tasks: JoinSet<Given> = JoinSet::new();
    let mut running: HashMap<Id, Use> = HashMap::new();
    for asked in uses {
        let failure = match means.toolbox.get(&asked.name) {
            _ if asked.broken => ToolFailure::invalid_input(BROKEN),
            Some(tool) => {
                let task = run(desk, Arc::clone(tool), &asked);
                running.insert(ambient::spawn(&mut tasks, task).id(), asked);
                continue;
            }
            None => unknown(means),
        };
        ended.push(tell(desk, asked, (Err(failure), Duration::ZERO)).await?);
    }
    loop {
        let waiting = Instant::now();
        let joined = tasks.join_next_with_id().await;
        desk.meter.add(waiting.elapsed());
        let Some(joined) = joined else {
            return Ok(ended);
        };
        let (id, given) = match joined {
            Ok((id, given)) => (id, given),
            Err(broken) => {
                let failure = ToolFailure::internal("The tool broke and gave no result.");
                (broken.id(), (Err(failure), Duration::ZERO))
            }
        };
        if let Some(asked) = running.remove(&id) {
            let end = tell(desk, asked, given).await?;
            let fatal = matches!(&end.given, Err(failure) if failure.fatal);
            ended.push(end);
            // Whoever speaks has nobody to fail to: its model is told, whatever it was.
            if fatal && means.who.sub_agent().is_some() {
                return Ok(ended);
            }
        }
    }
}

/// Whether a person has to allow it and has not: whoever speaks has asked before, and nobody else
/// can.
fn is_unasked(means: &Means, asked: &Use) -> bool {
    let tool = means.toolbox.get(&asked.name).filter(|_| !asked.broken);
    tool.is_some_and(|tool| tool.approval()) && !asked.allowed
}

/// Says that a tool is about to act: to the person what is being done, to the log which tool.
async fn announce(desk: &Desk<'_>, asked: &Use) -> Result<turnwire_event::Position, Refusal> {
    let means = desk.means;
    let tool = means.toolbox.get(&asked.name).filter(|_| !asked.broken);
    let status = tool.and_then(|tool| tool.status());
    if let (Some(id), Some(_)) = (status, means.who.sub_agent()) {
        let emitted = Emitted {
            event_id: id.to_owned(),
            // Written by the interceptor, in the person's language.
            message: String::new(),
        };
        let actor = means.who.actor();
        desk.tell(actor, Body::StatusEmitted(emitted)).await?;
    }
    let called = Called {
        tool_use_id: asked.id,
        tool_name: means.shown(&asked.name).to_owned(),
        tool_type: means.kind(&asked.name),
        input_summary: shown(means, &asked.input),
    };
    let actor = Actor::tool(means.shown(&asked.name));
    desk.tell(actor, Body::ToolCalled(called)).await
}

/// What events show of a value: little of the speaker's, of a sub-agent's only its size (D-46).
fn shown(means: &Means, value: &Value) -> String {
    match means.who.sub_agent() {
        None => summary(value, means.options.summary_chars_max),
        Some(_) => format!("{} bytes", value.to_string().len()),
    }
}

fn unknown(means: &Means) -> ToolFailure {
    let names: Vec<&str> = means.tools.iter().map(|tool| tool.name.as_str()).collect();
    ToolFailure::invalid_input(if names.is_empty() {
        "There is no such tool; there are none.".to_owned()
    } else {
        format!("There is no such tool. There are: {}.", names.join(", "))
    })
}

fn run(
    desk: &Desk<'_>,
    tool: Arc<dyn Tool>,
    asked: &Use,
) -> impl Future<Output = Given> + Send + 'static {
    let limit = tool.timeout().unwrap_or(desk.means.options.tool_timeout);
    let call = ToolInvocation {
        tool_use_id: asked.id,
        input: asked.input.clone(),
        emitter: Arc::clone(desk.emitter),
        context: Arc::clone(desk.scene),
    };
    let live = LiveTask::begin();
    async move {
        let _live = live;
        let begun = Instant::now();
        // Inside the task, so that a tool that breaks right away breaks only itself.
        let acting = async {
            // A stop may have come since this was found to be durable: the session is about to
            // drop the turn.
            let Ok(_part) = call.context.wards.enter() else {
                return pending().await;
            };
            tool.run(call).await
        };
        let given = timeout(limit, acting).await;
        let given = given.unwrap_or_else(|_| {
            let told = format!("The tool gave no result within {} ms.", limit.as_millis());
            Err(ToolFailure::new(ToolErrorClass::Timeout, told))
        });
        (given, begun.elapsed())
    }
}

/// Tells how a tool ended, with the message to the model that says the same.
async fn tell(desk: &Desk<'_>, asked: Use, (given, took): Given) -> Result<Ended, Refusal> {
    let means = desk.means;
    let tool_type = means.kind(&asked.name);
    let tool = means.toolbox.get(&asked.name);
    let remember = tool.is_some_and(|tool| tool.remember());
    let given = given.and_then(|result| {
        let json = result.to_string();
        let most = means.options.result_bytes_max;
        if json.len() > most {
            let told = format!("The result was larger than {most} bytes.");
            return Err(ToolFailure::internal(told));
        }
        Ok((result, json))
    });
    let name = means.shown(&asked.name).to_owned();
    let actor = Actor::tool(&name);
    let (body, told) = match &given {
        Ok((result, json)) => {
            let completed = Completed {
                tool_use_id: asked.id,
                tool_name: name,
                tool_type,
                duration_ms: millis(took),
                result_summary: shown(means, result),
                result_sha256: sha256_hex(json.as_bytes()),
            };
            (Body::ToolCompleted(completed), Ok(result.clone()))
        }
        Err(failure) => {
            let failed = Failed {
                tool_use_id: asked.id,
                tool_name: name,
                tool_type,
                error_class: failure.class,
                // Known to the writer, who sees the whole turn.
                called: false,
            };
            (Body::ToolFailed(failed), Err(failure.message.clone()))
        }
    };
    if let Err(failure) = &given {
        let which = (asked.id, tool_type);
        for (actor, body) in turn_workers::lost(desk.scene, which, failure.class).await {
            desk.tell(actor, body).await?;
        }
    }
    let said = result(asked.id, told);
    let emission = Emission {
        message: Some(message(desk, &said)),
        ..Emission::new(actor, body)
    };
    desk.deliver(emission).await?;
    if let Err(failure) = &given
        && let Some(fault) = &failure.fault
    {
        match desk.keeper {
            // Right here, and not when all tools have ended: its agent may not live to see that.
            Some(voice) => voice.keep(fault.clone()),
            None => report(desk, fault).await?,
        }
    }
    Ok(Ended {
        said: Arc::new(said),
        tool_type,
        remember,
        given: given.map(|(result, _)| result),
    })
}

/// What was said, as it is stored.
fn message(desk: &Desk<'_>, said: &Said) -> NewMessage {
    NewMessage {
        kept: turnwire_event::Kept::default(),
        id: MessageId(desk.means.mint.ulid()),
        role: said.role,
        content: said.content.clone(),
        metadata: desk.metadata(),
        scope: desk.means.who.scope(),
    }
}

/// What a model is told of a tool's end.
pub(crate) fn result(tool_use_id: ToolUseId, told: Result<Value, String>) -> Said {
    let is_error = told.is_err();
    let content = told.unwrap_or_else(Value::String);
    Said::new(
        Role::Tool,
        vec![ContentBlock::ToolResult {
            tool_use_id,
            content,
            is_error,
        }],
    )
}

/// Whole milliseconds, as events tell them.
pub(crate) fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The error that a data service's failure is, as clients are told it.
pub(crate) fn error_of(fault: &ServiceFault) -> TurnError {
    TurnError::envelope(&fault.enricher_id, fault.reason)
}

/// Tells that a data service failed; the turn goes on (axis 2).
pub(crate) async fn report(desk: &Desk<'_>, fault: &ServiceFault) -> Result<(), Refusal> {
    let who = &desk.means.who;
    desk.tell(who.actor(), Body::ErrorReported(error_of(fault)))
        .await?;
    let emit = ErrorEmit {
        sub_agent_id: who.sub_agent().map(str::to_owned),
        axis: 2,
        is_final: false,
    };
    desk.tell(who.actor(), Body::AgentErrorEmit(emit)).await?;
    Ok(())
}
