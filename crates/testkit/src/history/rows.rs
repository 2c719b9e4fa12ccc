//! Rows against the log (I5): the log vouches for what was said. Each message row has the
//! content whose hash its event carries, each turn and tool call row the state its events give.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::body::tool::Completed;
use turnwire_event::code::{Decision, LlmErrorClass, ToolErrorClass, ToolType};
use turnwire_event::content::{content_json, sha256_hex};
use turnwire_event::{
    ActorKind, Body, ContentBlock, Event, Message, MessageId, MessageStatus, Role,
};

use super::parse::ParsedLog;
use super::violation::Violation;

/// Checks one session's rows.
pub(super) fn check(log: &ParsedLog<'_>, found: &mut Vec<Violation>) {
    let mut vouched: Vec<MessageId> = Vec::new();
    for event in &log.events {
        vouched.extend(message(log, event, found));
        turn(log, event, found);
    }
    tools(log, found);
    let mut seen: BTreeMap<MessageId, &Message> = BTreeMap::new();
    for row in &log.messages {
        let what = format!("message {}", row.id);
        if seen.insert(row.id, row).is_some() {
            differs(log, what.clone(), "one row", "two", found);
        }
        if row.status == MessageStatus::InProgress {
            differs(log, what.clone(), "an ended message", "in_progress", found);
        }
        if row.role == Role::Assistant && !vouched.contains(&row.id) {
            differs(log, what, "an event that vouches for it", "none", found);
        }
    }
}

fn differs(
    log: &ParsedLog<'_>,
    what: String,
    expected: impl ToString,
    found_value: impl ToString,
    found: &mut Vec<Violation>,
) {
    found.push(Violation::RowDiffers {
        session: log.id,
        what,
        expected: expected.to_string(),
        found: found_value.to_string(),
    });
}

fn row<'a>(
    log: &'a ParsedLog<'_>,
    id: MessageId,
    found: &mut Vec<Violation>,
) -> Option<&'a Message> {
    let row = log.messages.iter().find(|row| row.id == id);
    if row.is_none() {
        differs(log, format!("message {id}"), "a row", "none", found);
    }
    row
}

/// Checks the message an event vouches for, and says which one that is. What sub-agents say, and
/// what they give the orchestrator, is not shown to clients (D-46): they cannot check it.
fn message(log: &ParsedLog<'_>, event: &Event, found: &mut Vec<Violation>) -> Option<MessageId> {
    if event.actor.kind() == ActorKind::Subagent {
        return None;
    }
    let (id, hash, status) = match &event.body {
        Body::TurnStarted(started) => {
            let row = row(log, started.user_message_id, found)?;
            if row.content != started.input
                || row.role != Role::User
                || Some(row.turn_id) != event.turn_id
            {
                let told = format!("{:?}", started.input);
                differs(
                    log,
                    format!("user message {}", row.id),
                    told,
                    format!("{row:?}"),
                    found,
                );
            }
            return Some(row.id);
        }
        Body::LlmCallCompleted(call) => {
            if let Some(row) = log.messages.iter().find(|row| row.id == call.message_id)
                && (row.stop_reason, row.usage) != (Some(call.stop_reason), Some(call.usage))
            {
                let told = format!("{:?} {:?}", call.stop_reason, call.usage);
                let has = format!("{:?} {:?}", row.stop_reason, row.usage);
                differs(log, format!("message {}", row.id), told, has, found);
            }
            (
                call.message_id,
                call.content_sha256.clone(),
                MessageStatus::Complete,
            )
        }
        Body::LlmCallFailed(call) => {
            let status = match call.error_class {
                LlmErrorClass::Cancelled => MessageStatus::Cancelled,
                _ => MessageStatus::Failed,
            };
            (
                call.message_id?,
                call.content_sha256.clone().unwrap_or_default(),
                status,
            )
        }
        Body::ToolCompleted(tool) => {
            if tool.tool_type != ToolType::SubAgent {
                result(log, tool, found);
            }
            return None;
        }
        _ => return None,
    };
    let row = row(log, id, found)?;
    compare_hash(
        log,
        format!("message {id}"),
        &hash,
        content_json(&row.content).1,
        found,
    );
    if row.status != status || row.role != Role::Assistant || Some(row.turn_id) != event.turn_id {
        differs(
            log,
            format!("message {id}"),
            format!("{status:?}"),
            format!("{row:?}"),
            found,
        );
    }
    Some(id)
}

/// Checks the result a `tool.completed` vouches for. Steps that a tool tells of itself were not
/// asked for by a model and have no row.
fn result(log: &ParsedLog<'_>, tool: &Completed, found: &mut Vec<Violation>) {
    let id = tool.tool_use_id;
    let asked = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse { id: asked, .. } if *asked == id);
    if !log.messages.iter().any(|row| row.content.iter().any(asked)) {
        return;
    }
    let what = format!("result of {id}");
    let mut blocks = log.messages.iter().flat_map(|row| &row.content);
    let stored = blocks.find_map(|block| match block {
        ContentBlock::ToolResult {
            tool_use_id,
            content,
            ..
        } if *tool_use_id == id => Some(content),
        _ => None,
    });
    match stored {
        None => differs(log, what, "a row", "none", found),
        Some(content) => {
            let hash = sha256_hex(content.to_string().as_bytes());
            compare_hash(log, what, &tool.result_sha256, hash, found);
        }
    }
}

/// Whether a message is the result of a tool use.
pub(super) fn holds_result(row: &Message, id: turnwire_event::ToolUseId) -> bool {
    row.content.iter().any(
        |block| matches!(block, ContentBlock::ToolResult { tool_use_id, .. } if *tool_use_id == id),
    )
}

fn compare_hash(
    log: &ParsedLog<'_>,
    what: String,
    told: &str,
    hash: String,
    found: &mut Vec<Violation>,
) {
    if hash != told {
        found.push(Violation::HashDiffers {
            session: log.id,
            what,
            told: told.to_owned(),
            found: hash,
        });
    }
}

fn turn(log: &ParsedLog<'_>, event: &Event, found: &mut Vec<Violation>) {
    let expected = match &event.body {
        Body::TurnCompleted(_) => "completed",
        Body::TurnCancelled(_) => "cancelled",
        _ => return,
    };
    let Some(id) = event.turn_id.map(|id| id.to_string()) else {
        return;
    };
    let row = log
        .raw
        .turns
        .iter()
        .find(|row| row["turn_id"] == id.as_str());
    let state = row.map_or(&Value::Null, |row| &row["state"]);
    if state != expected {
        differs(log, format!("turn {id}"), expected, state, found);
    }
}

fn tools(log: &ParsedLog<'_>, found: &mut Vec<Violation>) {
    let mut states: BTreeMap<String, &str> = BTreeMap::new();
    let mut asked = Vec::new();
    for event in &log.events {
        match &event.body {
            Body::ApprovalRequested(question) => {
                let tool = question.tool_use_id.to_string();
                asked.push((question.approval_id, event.turn_id, tool.clone()));
                states.insert(tool, "pending")
            }
            Body::ApprovalResolved(answer) if answer.decision == Decision::Reject => {
                let own = asked.iter().find(|(id, ..)| *id == answer.approval_id);
                let turn = own.map(|(_, turn, _)| *turn);
                // Where the conversation went on, it went on without all that was asked together.
                let gone = asked.iter().filter(|(id, of, _)| match answer.by.as_str() {
                    "system" => Some(*of) == turn,
                    _ => *id == answer.approval_id,
                });
                for (_, _, tool) in gone {
                    if let Some(state) = states.get_mut(tool).filter(|state| **state == "pending") {
                        *state = "cancelled";
                    }
                }
                continue;
            }
            Body::ToolCalled(t) => states.insert(t.tool_use_id.to_string(), "running"),
            Body::ToolCompleted(t) => states.insert(t.tool_use_id.to_string(), "completed"),
            Body::ToolFailed(t) => {
                let state = match t.error_class {
                    ToolErrorClass::Cancelled => "cancelled",
                    _ => "failed",
                };
                states.insert(t.tool_use_id.to_string(), state)
            }
            _ => continue,
        };
    }
    for row in &log.raw.tool_calls {
        let id = row["tool_use_id"].as_str().unwrap_or_default();
        let expected = states.remove(id).unwrap_or("no such row");
        if row["status"] != expected {
            differs(
                log,
                format!("tool call {id}"),
                expected,
                &row["status"],
                found,
            );
        }
    }
    for (id, expected) in states {
        differs(log, format!("tool call {id}"), expected, "no row", found);
    }
}
