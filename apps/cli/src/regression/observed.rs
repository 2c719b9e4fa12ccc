//! Derives the result of each turn from the events and messages of a session.
//!
//! `turnwire record` does so for a stored session and writes the results as expected ones;
//! `turnwire rerun` does so for a session on a running server and compares the two with
//! [`difference`](crate::regression::difference).

use std::collections::{BTreeSet, HashMap};

use turnwire_event::body::turn::TurnStarted;
use turnwire_event::content::sha256_hex;
use turnwire_event::{Body, ContentBlock, Event, Message, Role, ToolUseId, TurnId};

use crate::regression::test_case::{CalledSubAgent, CalledTool, TurnResult};
use crate::terminal::wording::code_name;

/// A turn that was read from a log, with its result in the form of an [`TurnResult`].
#[derive(Debug)]
pub(crate) struct ObservedTurn {
    pub(crate) id: TurnId,
    pub(crate) started: TurnStarted,
    /// `None` if the log has no terminal of the turn yet.
    pub(crate) result: Option<TurnResult>,
}

/// The turns whose `turn.started` is in `events`, in order. `messages` are the finished messages of
/// the session, oldest first.
pub(crate) fn turns(events: &[Event], messages: &[Message]) -> Vec<ObservedTurn> {
    let started_turns = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(started) => Some((event.turn_id?, started)),
        _ => None,
    });
    let observe = |(id, started): (TurnId, &TurnStarted)| {
        let turn_events = events.iter().filter(|event| event.turn_id == Some(id));
        let turn_events: Vec<&Event> = turn_events.collect();
        let turn_messages = messages.iter().filter(|message| message.turn_id == id);
        ObservedTurn {
            id,
            started: started.clone(),
            result: terminal_status(&turn_events).map(|(status, error)| TurnResult {
                status: Some(status),
                error,
                ..result_without_status(&turn_events, turn_messages)
            }),
        }
    };
    started_turns.map(observe).collect()
}

/// The status and the error code of the turn's terminal; `None` without a terminal.
fn terminal_status(events: &[&Event]) -> Option<(String, Option<String>)> {
    events.iter().find_map(|event| match &event.body {
        Body::TurnCompleted(end) => {
            let error = end.error.as_ref().map(|error| code_name(error.code));
            Some((code_name(end.status), error))
        }
        Body::TurnCancelled(_) => Some(("cancelled".to_owned(), None)),
        _ => None,
    })
}

/// The result of a turn with all fields except `status` and `error`. Lists whose order depends on
/// timing are sorted.
fn result_without_status<'m>(
    events: &[&Event],
    messages: impl Iterator<Item = &'m Message>,
) -> TurnResult {
    let mut text = String::new();
    let mut input_hashes = HashMap::new();
    for message in messages.filter(|message| message.role == Role::Assistant) {
        text.push_str(&message.text());
        for block in &message.content {
            if let ContentBlock::ToolUse { id, input, .. } = block {
                input_hashes.insert(*id, sha256_hex(input.to_string().as_bytes()));
            }
        }
    }
    let (mut components, mut errors, mut sub_agents) = (Vec::new(), Vec::new(), Vec::new());
    let mut push_sub_agent = |id: &str, end| {
        let id = id.to_owned();
        sub_agents.push(CalledSubAgent { id, end });
    };
    for event in events {
        match &event.body {
            Body::ComponentRendered(rendered) => {
                components.push(rendered.tool_call.name.clone());
            }
            Body::DataLoaded(data) => components.push(data.data_type.clone()),
            Body::ErrorReported(error) => errors.push(code_name(error.code)),
            Body::SubagentCompleted(completed) => {
                push_sub_agent(&completed.sub_agent_id, code_name(completed.outcome));
            }
            Body::SubagentFailed(failed) => {
                push_sub_agent(&failed.sub_agent_id, code_name(failed.error_class));
            }
            _ => {}
        }
    }
    components.sort();
    errors.sort();
    sub_agents.sort();
    TurnResult {
        text: Some(text),
        tools: Some(ended_tools(events, &input_hashes)),
        sub_agents: Some(sub_agents),
        statuses: Some(tool_statuses(events)),
        components: Some(components),
        errors: Some(errors),
        ..TurnResult::default()
    }
}

/// The tool uses that ended, sorted; `input_hashes` has the SHA-256 of each input. A tool that was
/// not executed has no `tool.called` and thus no `input`.
fn ended_tools(events: &[&Event], input_hashes: &HashMap<ToolUseId, String>) -> Vec<CalledTool> {
    let mut input_summaries = HashMap::new();
    let mut tools = Vec::new();
    for event in events {
        let (id, name, end) = match &event.body {
            Body::ToolCalled(tool) => {
                input_summaries.insert(tool.tool_use_id, tool.input_summary.clone());
                continue;
            }
            Body::ToolCompleted(tool) => {
                (tool.tool_use_id, &tool.tool_name, "completed".to_owned())
            }
            Body::ToolFailed(tool) => (
                tool.tool_use_id,
                &tool.tool_name,
                code_name(tool.error_class),
            ),
            _ => continue,
        };
        tools.push(CalledTool {
            name: name.clone(),
            input: input_summaries.get(&id).cloned(),
            input_sha256: input_hashes.get(&id).cloned(),
            end,
        });
    }
    tools.sort();
    tools
}

/// The ids of the statuses that announce a tool, each id once: in the trace span of the status, the
/// next event of another type is `tool.called`. Other statuses depend on timing.
fn tool_statuses(events: &[&Event]) -> Vec<String> {
    let mut pending_by_span: HashMap<Option<&str>, Vec<&str>> = HashMap::new();
    let mut announced = BTreeSet::new();
    for event in events {
        let span = event.trace.as_ref().map(|trace| trace.span_id.as_str());
        let pending = pending_by_span.entry(span).or_default();
        match &event.body {
            Body::StatusEmitted(status) => pending.push(&status.event_id),
            Body::ToolCalled(_) => announced.extend(pending.drain(..).map(str::to_owned)),
            _ => pending.clear(),
        }
    }
    announced.into_iter().collect()
}
