//! Executes the tools of one message, all at once, each on a task of its own.
//!
//! ```text
//! tool.called a, tool.called b │ durable │ a runs, b runs │ tool.completed b, tool.failed a
//! ```
//! No tool with effects runs before its `tool.called` is durable, so that after a crash the log names
//! every tool that may have acted. Tools that only read do not wait (S2-070). A tool that fails,
//! panics or times out fails alone.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, timeout};
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::body::tool::{ToolCalled, ToolCompleted, ToolFailed};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::Emission;
use turnwire_event::{Actor, Body, Position};
use turnwire_model::ModelMessage;
use turnwire_tool::{LiveTask, Tool, ToolFailure, ToolInvocation};

use super::summary::summary;
use super::tool_request::{BROKEN_INPUT, ToolRequest, decline};
use super::tool_result::{millis, report_fault, stored_message, tool_result};
use super::worker_quota::abandoned_worker_events;
use crate::emitter::ambient;
use crate::resources::agent_context::{AgentContext, EmitResult};
use crate::resources::agent_resources::AgentResources;

/// The result of a tool that needs approval where no person can be asked.
const NO_APPROVER: &str =
    "not executed: a person has to allow this tool, and none can be asked here.";

/// How the tool of a [`ToolRequest`] ended.
pub(crate) struct ToolOutcome {
    /// The result as the model gets it.
    pub(crate) message: Arc<ModelMessage>,
    pub(crate) tool_type: ToolType,
    /// True if the result is for the prompts of sub-agents in later turns, too.
    pub(crate) is_retained: bool,
    pub(crate) result: Result<Value, ToolFailure>,
}

impl ToolOutcome {
    /// True if a data service has failed.
    pub(crate) fn has_fault(&self) -> bool {
        matches!(&self.result, Err(failure) if failure.fault.is_some())
    }
}

/// The result of a tool and how long the tool ran.
type TimedResult = (Result<Value, ToolFailure>, Duration);

/// Runs the tools of `requests` and returns their [`ToolOutcome`]s in the order they ended. In a
/// sub-agent a fatal failure ends the rest: it is the last outcome, and tools that still run are
/// dropped.
pub(crate) async fn run_tools(
    context: &AgentContext<'_>,
    requests: Vec<ToolRequest>,
) -> EmitResult<Vec<ToolOutcome>> {
    let resources = context.resources;
    let mut outcomes = Vec::with_capacity(requests.len());
    let (unapproved, requests): (Vec<_>, Vec<_>) = requests
        .into_iter()
        .partition(|request| lacks_approval(resources, request));
    for request in unapproved {
        let failure = ToolFailure::internal(NO_APPROVER);
        outcomes.push(ToolOutcome {
            message: decline(context, &request, failure.clone()).await?,
            tool_type: resources.tool_type(&request.name),
            is_retained: false,
            result: Err(failure),
        });
    }
    let mut last_effect = None;
    for request in &requests {
        let position = announce(context, request).await?;
        if has_effects(resources, request) {
            last_effect = Some(position);
        }
    }
    // When the last position is durable, all before it are.
    if let Some(position) = last_effect {
        context.emitter.committed(position).await?;
    }
    let mut tasks: JoinSet<TimedResult> = JoinSet::new();
    let mut running: HashMap<Id, ToolRequest> = HashMap::new();
    for request in requests {
        let failure = match resources.toolbox.get(&request.name) {
            _ if request.is_broken => ToolFailure::invalid_input(BROKEN_INPUT),
            Some(tool) => {
                let task = run_tool(context, Arc::clone(tool), &request);
                running.insert(ambient::spawn(&mut tasks, task).id(), request);
                continue;
            }
            None => unknown_tool(resources),
        };
        let result = (Err(failure), Duration::ZERO);
        outcomes.push(finish(context, request, result).await?);
    }
    loop {
        let wait_start = Instant::now();
        let joined = tasks.join_next_with_id().await;
        context.wait_meter.add(wait_start.elapsed());
        let Some(joined) = joined else {
            return Ok(outcomes);
        };
        let (id, result) = joined.unwrap_or_else(|panicked| {
            tracing::error!(trace_id = context.trace_id(), "a tool panicked");
            let failure = ToolFailure::internal("The tool broke and gave no result.");
            (panicked.id(), (Err(failure), Duration::ZERO))
        });
        if let Some(request) = running.remove(&id) {
            let outcome = finish(context, request, result).await?;
            let is_fatal = matches!(&outcome.result, Err(failure) if failure.fatal);
            outcomes.push(outcome);
            // Only a sub-agent fails with its tool; the orchestrator's model gets every failure as a
            // result.
            if is_fatal && resources.role.sub_agent_id().is_some() {
                return Ok(outcomes);
            }
        }
    }
}

/// True if a person has to approve the call and has not. The orchestrator has asked before; nobody
/// else can ask.
fn lacks_approval(resources: &AgentResources, request: &ToolRequest) -> bool {
    let tool = resources.toolbox.get(&request.name);
    let tool = tool.filter(|_| !request.is_broken);
    tool.is_some_and(|tool| tool.approval()) && !request.is_approved
}

/// True if the call runs a tool that may change something outside of the turn.
fn has_effects(resources: &AgentResources, request: &ToolRequest) -> bool {
    let tool = resources.toolbox.get(&request.name);
    tool.is_some_and(|tool| !request.is_broken && tool.has_effects())
}

/// Emits that a tool is about to run: a status for the user, `tool.called` for the log.
async fn announce(context: &AgentContext<'_>, request: &ToolRequest) -> EmitResult<Position> {
    let resources = context.resources;
    let tool = resources.toolbox.get(&request.name);
    let tool = tool.filter(|_| !request.is_broken);
    let status = tool.and_then(|tool| tool.status());
    if let (Some(id), Some(_)) = (status, resources.role.sub_agent_id()) {
        let emitted = StatusEmitted {
            event_id: id.to_owned(),
            // Written by the gate, in the user's language.
            message: String::new(),
            invocation_id: None,
        };
        context.emit_as_agent(Body::StatusEmitted(emitted)).await?;
    }
    let name = resources.public_tool_name(&request.name);
    let called = ToolCalled {
        upstream_id: None,
        tool_use_id: request.id,
        tool_name: name.to_owned(),
        tool_type: resources.tool_type(&request.name),
        input_summary: public_summary(resources, &request.input),
    };
    let emission = Emission::new(Actor::tool(name), Body::ToolCalled(called));
    context.deliver(emission).await
}

/// What events show of a value: a summary, or for a sub-agent only the size (D-46).
fn public_summary(resources: &AgentResources, value: &Value) -> String {
    match resources.role.sub_agent_id() {
        None => summary(value, resources.options.summary_chars_max),
        Some(_) => format!("{} bytes", value.to_string().len()),
    }
}

fn unknown_tool(resources: &AgentResources) -> ToolFailure {
    let specs = resources.tool_specs.iter();
    let names: Vec<&str> = specs.map(|tool| tool.name.as_str()).collect();
    ToolFailure::invalid_input(match names.is_empty() {
        true => "There is no such tool; there are none.".to_owned(),
        false => format!("There is no such tool. There are: {}.", names.join(", ")),
    })
}

fn run_tool(
    context: &AgentContext<'_>,
    tool: Arc<dyn Tool>,
    request: &ToolRequest,
) -> impl Future<Output = TimedResult> + Send + 'static {
    let default_timeout = context.resources.options.tool_timeout;
    let limit = tool.timeout().unwrap_or(default_timeout);
    let call = ToolInvocation {
        tool_use_id: request.id,
        input: request.input.clone(),
        emitter: Arc::clone(context.emitter),
        context: Arc::clone(context.tool_context),
    };
    let live = LiveTask::begin();
    async move {
        let _live = live;
        let started = Instant::now();
        // Called inside the task, so that a tool that panics at once fails alone.
        let execution = async {
            // A cancel may have come since `tool.called` became durable: the session is about to drop
            // the turn.
            let Ok(_child_task) = call.context.child_tasks.enter() else {
                return pending().await;
            };
            tool.run(call).await
        };
        let result = timeout(limit, execution).await;
        let result = result.unwrap_or_else(|_| {
            let message = format!("The tool gave no result within {} ms.", limit.as_millis());
            Err(ToolFailure::new(ToolErrorClass::Timeout, message))
        });
        (result, started.elapsed())
    }
}

/// Logs the failure of a tool: clients are sent the class alone (D-83). The message for the model
/// may have content of the conversation, which the log must not have. A tool that only refused its
/// input is not worth a warning, and a data service writes a line of its own.
fn log_failure(context: &AgentContext<'_>, request: &ToolRequest, failure: &ToolFailure) {
    let is_warning = failure.fatal
        || matches!(
            failure.class,
            ToolErrorClass::Internal | ToolErrorClass::Timeout
        );
    if !is_warning {
        return;
    }
    let tool_context = context.tool_context;
    tracing::warn!(
        trace_id = context.trace_id(),
        session_id = %tool_context.session_id,
        turn_id = %tool_context.turn_id,
        agent = context.resources.role.name(),
        tool = context.resources.public_tool_name(&request.name),
        tool_use_id = %request.id,
        class = ?failure.class,
        fatal = failure.fatal,
        "a tool failed"
    );
}

/// Emits the end of a tool together with the message that gives its result to the model.
async fn finish(
    context: &AgentContext<'_>,
    request: ToolRequest,
    (result, duration): TimedResult,
) -> EmitResult<ToolOutcome> {
    let resources = context.resources;
    let tool_type = resources.tool_type(&request.name);
    let tool = resources.toolbox.get(&request.name);
    let is_retained = tool.is_some_and(|tool| tool.remember());
    let result = result.and_then(|value| {
        let json = value.to_string();
        let bytes_max = resources.options.result_bytes_max;
        if json.len() > bytes_max {
            let message = format!("The result was larger than {bytes_max} bytes.");
            return Err(ToolFailure::internal(message));
        }
        Ok((value, json))
    });
    let tool_name = resources.public_tool_name(&request.name).to_owned();
    let actor = Actor::tool(&tool_name);
    let (body, for_model) = match &result {
        Ok((value, json)) => {
            let completed = ToolCompleted {
                upstream_id: None,
                tool_use_id: request.id,
                tool_name,
                tool_type,
                duration_ms: millis(duration),
                result_summary: public_summary(resources, value),
                result_sha256: sha256_hex(json.as_bytes()),
            };
            (Body::ToolCompleted(completed), Ok(value.clone()))
        }
        Err(failure) => {
            let failed = ToolFailed {
                upstream_id: None,
                tool_use_id: request.id,
                tool_name,
                tool_type,
                error_class: failure.class,
                // Set by the session, which sees the whole turn.
                called: false,
            };
            (
                Body::ToolFailed(failed),
                Err(Value::from(failure.message.clone())),
            )
        }
    };
    if let Err(failure) = &result {
        log_failure(context, &request, failure);
        let tool = (request.id, tool_type);
        let events = abandoned_worker_events(context.tool_context, tool, failure.class).await;
        for (actor, body) in events {
            context.emit(actor, body).await?;
        }
    }
    let message = tool_result(request.id, for_model);
    let emission = Emission {
        message: Some(stored_message(context, &message)),
        ..Emission::new(actor, body)
    };
    context.deliver(emission).await?;
    if let Err(failure) = &result
        && let Some(fault) = &failure.fault
    {
        match context.deferred_to {
            // At once, and not when all tools have ended: the sub-agent may be stopped before that.
            Some(emitter) => emitter.defer(fault.as_ref().clone()),
            None => report_fault(context, fault).await?,
        }
    }
    Ok(ToolOutcome {
        message: Arc::new(message),
        tool_type,
        is_retained,
        result: result.map(|(value, _)| value),
    })
}
