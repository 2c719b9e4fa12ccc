//! The results of a session's turns as its log shows them, from a stored session or from a running
//! server, so that the two can be compared.

use std::collections::{BTreeSet, HashMap};

use turnwire_event::body::turn::TurnStarted;
use turnwire_event::content::sha256_hex;
use turnwire_event::{Body, ContentBlock, Event, Message, Role, ToolUseId, TurnId};

use crate::regression::test_case::{CalledSubAgent, CalledTool, TurnResult};
use crate::terminal::wording::code_name;

/// A turn of a log, with its [`TurnResult`].
#[derive(Debug)]
pub(crate) struct ObservedTurn {
    pub(crate) id: TurnId,
    pub(crate) started: TurnStarted,
    /// `None` while the turn runs.
    pub(crate) result: Option<TurnResult>,
}

/// The turns that start in `events`, in order.
pub(crate) fn turns(events: &[Event], messages: &[Message]) -> Vec<ObservedTurn> {
    let started = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(started) => Some((event.turn_id?, started)),
        _ => None,
    });
    let turn = |(id, started): (TurnId, &TurnStarted)| {
        let events = events.iter().filter(|event| event.turn_id == Some(id));
        let events: Vec<&Event> = events.collect();
        let messages = messages.iter().filter(|message| message.turn_id == id);
        ObservedTurn {
            id,
            started: started.clone(),
            result: ending(&events).map(|(status, error)| TurnResult {
                status: Some(status),
                error,
                ..result(&events, messages)
            }),
        }
    };
    started.map(turn).collect()
}

/// The status of the turn's terminal, and the code of its error.
fn ending(events: &[&Event]) -> Option<(String, Option<String>)> {
    events.iter().find_map(|event| match &event.body {
        Body::TurnCompleted(end) => {
            let error = end.error.as_ref().map(|error| code_name(error.code));
            Some((code_name(end.status), error))
        }
        Body::TurnCancelled(_) => Some(("cancelled".to_owned(), None)),
        _ => None,
    })
}

/// Everything but the ending.
fn result<'m>(events: &[&Event], messages: impl Iterator<Item = &'m Message>) -> TurnResult {
    let mut text = String::new();
    let mut inputs = HashMap::new();
    for message in messages.filter(|message| message.role == Role::Assistant) {
        text.push_str(&message.text());
        for block in &message.content {
            if let ContentBlock::ToolUse { id, input, .. } = block {
                inputs.insert(*id, sha256_hex(input.to_string().as_bytes()));
            }
        }
    }
    let (mut components, mut errors, mut sub_agents) = (Vec::new(), Vec::new(), Vec::new());
    let mut sub_agent = |id: &str, end| {
        let id = id.to_owned();
        sub_agents.push(CalledSubAgent { id, end });
    };
    for event in events {
        match &event.body {
            Body::ComponentRendered(shown) => components.push(shown.tool_call.name.clone()),
            Body::DataLoaded(data) => components.push(data.data_type.clone()),
            Body::ErrorReported(error) => errors.push(code_name(error.code)),
            Body::SubagentCompleted(end) => sub_agent(&end.sub_agent_id, code_name(end.outcome)),
            Body::SubagentFailed(end) => sub_agent(&end.sub_agent_id, code_name(end.error_class)),
            _ => {}
        }
    }
    components.sort();
    errors.sort();
    sub_agents.sort();
    TurnResult {
        text: Some(text),
        tools: Some(tools(events, &inputs)),
        sub_agents: Some(sub_agents),
        statuses: Some(statuses(events)),
        components: Some(components),
        errors: Some(errors),
        ..TurnResult::default()
    }
}

fn tools(events: &[&Event], inputs: &HashMap<ToolUseId, String>) -> Vec<CalledTool> {
    let mut summaries = HashMap::new();
    let mut tools = Vec::new();
    for event in events {
        let (id, name, end) = match &event.body {
            Body::ToolCalled(tool) => {
                summaries.insert(tool.tool_use_id, tool.input_summary.clone());
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
            input: summaries.get(&id).cloned(),
            input_sha256: inputs.get(&id).cloned(),
            end,
        });
    }
    tools.sort();
    tools
}

/// The statuses that announce a tool: the next event of their emitter is a tool call. The other
/// statuses depend on timing.
fn statuses(events: &[&Event]) -> Vec<String> {
    let mut pending: HashMap<Option<&str>, Vec<&str>> = HashMap::new();
    let mut ids = BTreeSet::new();
    for event in events {
        let span = event.trace.as_ref().map(|trace| trace.span_id.as_str());
        let pending = pending.entry(span).or_default();
        match &event.body {
            Body::StatusEmitted(status) => pending.push(&status.event_id),
            Body::ToolCalled(_) => ids.extend(pending.drain(..).map(str::to_owned)),
            _ => pending.clear(),
        }
    }
    ids.into_iter().collect()
}
