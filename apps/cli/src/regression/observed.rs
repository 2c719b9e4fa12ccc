//! What came of a session's turns, as anyone who may read its log can see it: the same for a stored
//! session and for one that a server has just run, so that the two can be compared.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use turnwire_event::body::turn::TurnStarted;
use turnwire_event::content::sha256_hex;
use turnwire_event::{Body, ContentBlock, Event, Message, Role, ToolUseId, TurnId};

use crate::regression::test_case::{ExpectedSubAgent, ExpectedTool, ExpectedTurn};

/// A turn that was seen.
#[derive(Debug)]
pub(crate) struct ObservedTurn {
    pub(crate) id: TurnId,
    pub(crate) started: TurnStarted,
    /// None while it runs.
    pub(crate) came: Option<ExpectedTurn>,
}

/// The turns whose beginning is among `events`, in order.
pub(crate) fn turns(events: &[Event], messages: &[Message]) -> Vec<ObservedTurn> {
    let started_turns = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted(started) => Some((event.turn_id?, started)),
        _ => None,
    });
    started_turns
        .map(|(id, started)| {
            let own = || events.iter().filter(move |event| event.turn_id == Some(id));
            let turn_messages = messages.iter().filter(|message| message.turn_id == id);
            ObservedTurn {
                id,
                started: started.clone(),
                came: end(own()).map(|(status, error)| ExpectedTurn {
                    status: Some(status),
                    error,
                    ..course(&own().collect::<Vec<_>>(), turn_messages)
                }),
            }
        })
        .collect()
}

/// A code as the log writes it.
pub(crate) fn word(code: impl Serialize) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

/// How the turn ended: its status, and the code of what failed.
fn end<'e>(mut events: impl Iterator<Item = &'e Event>) -> Option<(String, Option<String>)> {
    events.find_map(|event| match &event.body {
        Body::TurnCompleted(end) => {
            let error = end.error.as_ref().map(|error| word(error.code));
            Some((word(end.status), error))
        }
        Body::TurnCancelled(_) => Some(("cancelled".to_owned(), None)),
        _ => None,
    })
}

/// What happened between its beginning and its end.
fn course<'m>(events: &[&Event], messages: impl Iterator<Item = &'m Message>) -> ExpectedTurn {
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
    for event in events {
        match &event.body {
            Body::ComponentRendered(shown) => components.push(shown.tool_call.name.clone()),
            Body::DataLoaded(data) => components.push(data.data_type.clone()),
            Body::ErrorReported(error) => errors.push(word(error.code)),
            Body::SubagentCompleted(end) => sub_agents.push(ExpectedSubAgent {
                id: end.sub_agent_id.clone(),
                end: word(end.outcome),
            }),
            Body::SubagentFailed(end) => sub_agents.push(ExpectedSubAgent {
                id: end.sub_agent_id.clone(),
                end: word(end.error_class),
            }),
            _ => {}
        }
    }
    components.sort();
    errors.sort();
    sub_agents.sort();
    ExpectedTurn {
        status: None,
        error: None,
        text: Some(text),
        tools: Some(tools(events, &inputs)),
        sub_agents: Some(sub_agents),
        statuses: Some(statuses(events)),
        components: Some(components),
        errors: Some(errors),
    }
}

fn tools(events: &[&Event], inputs: &HashMap<ToolUseId, String>) -> Vec<ExpectedTool> {
    let called = events.iter().filter_map(|event| match &event.body {
        Body::ToolCalled(called) => Some((called.tool_use_id, called.input_summary.clone())),
        _ => None,
    });
    let summaries: HashMap<ToolUseId, String> = called.collect();
    let ended = events.iter().filter_map(|event| match &event.body {
        Body::ToolCompleted(tool) => {
            let end = "completed".to_owned();
            Some((tool.tool_use_id, &tool.tool_name, end))
        }
        Body::ToolFailed(tool) => Some((tool.tool_use_id, &tool.tool_name, word(tool.error_class))),
        _ => None,
    });
    let mut tools: Vec<ExpectedTool> = ended
        .map(|(id, name, end)| ExpectedTool {
            name: name.clone(),
            input: summaries.get(&id).cloned(),
            input_sha256: inputs.get(&id).cloned(),
            end,
        })
        .collect();
    tools.sort();
    tools
}

/// The statuses that announce a tool: the next thing that whoever emitted them did is a call. The
/// others only say that something takes its time, and come or do not come with the day's weather.
fn statuses(events: &[&Event]) -> Vec<String> {
    let mut waiting: HashMap<Option<&str>, Vec<&str>> = HashMap::new();
    let mut ids = BTreeSet::new();
    for event in events {
        let span = event.trace.as_ref().map(|trace| trace.span_id.as_str());
        let waiting = waiting.entry(span).or_default();
        match &event.body {
            Body::StatusEmitted(status) => waiting.push(&status.event_id),
            Body::ToolCalled(_) => ids.extend(waiting.drain(..).map(str::to_owned)),
            _ => waiting.clear(),
        }
    }
    ids.into_iter().collect()
}
