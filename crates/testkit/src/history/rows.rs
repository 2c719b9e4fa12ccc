//! Checks rows against the log (I5): each message row has the content whose hash its event
//! contains, and each turn and tool call row has the state that its events give.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::body::tool::ToolCompleted;
use turnwire_event::code::{Decision, LlmErrorClass, ToolErrorClass, ToolType};
use turnwire_event::content::{content_json, sha256_hex};
use turnwire_event::{
    ActorKind, Body, ContentBlock, Event, Message, MessageId, MessageStatus, Role,
};

use super::parse::ParsedLog;
use super::violation::Violation;

/// Checks one session's rows.
pub(super) fn check(log: &ParsedLog<'_>, violations: &mut Vec<Violation>) {
    let mut logged_messages: Vec<MessageId> = Vec::new();
    for event in &log.events {
        logged_messages.extend(check_message(log, event, violations));
        check_turn(log, event, violations);
    }
    check_tools(log, violations);
    let mut seen: BTreeMap<MessageId, &Message> = BTreeMap::new();
    for row in &log.messages {
        let subject = format!("message {}", row.id);
        if seen.insert(row.id, row).is_some() {
            differs(log, subject.clone(), "one row", "two", violations);
        }
        if row.status == MessageStatus::InProgress {
            differs(
                log,
                subject.clone(),
                "an ended message",
                "in_progress",
                violations,
            );
        }
        if row.role == Role::Assistant && !logged_messages.contains(&row.id) {
            differs(
                log,
                subject,
                "an event with its hash",
                "no event",
                violations,
            );
        }
    }
}

fn differs(
    log: &ParsedLog<'_>,
    subject: String,
    expected: impl ToString,
    actual: impl ToString,
    violations: &mut Vec<Violation>,
) {
    violations.push(Violation::RowDiffers {
        session: log.id,
        subject,
        expected: expected.to_string(),
        actual: actual.to_string(),
    });
}

fn row<'a>(
    log: &'a ParsedLog<'_>,
    id: MessageId,
    violations: &mut Vec<Violation>,
) -> Option<&'a Message> {
    let row = log.messages.iter().find(|row| row.id == id);
    if row.is_none() {
        differs(log, format!("message {id}"), "a row", "no row", violations);
    }
    row
}

/// Checks the message row that an event refers to, and returns its id. Messages of sub-agents and
/// their results are not visible to clients (D-46) and not checked.
fn check_message(
    log: &ParsedLog<'_>,
    event: &Event,
    violations: &mut Vec<Violation>,
) -> Option<MessageId> {
    if event.actor.kind() == ActorKind::Subagent {
        return None;
    }
    let (id, hash, status) = match &event.body {
        Body::TurnStarted(started) => {
            let row = row(log, started.user_message_id, violations)?;
            if row.content != started.input
                || row.role != Role::User
                || Some(row.turn_id) != event.turn_id
            {
                let expected = format!("{:?}", started.input);
                differs(
                    log,
                    format!("user message {}", row.id),
                    expected,
                    format!("{row:?}"),
                    violations,
                );
            }
            return Some(row.id);
        }
        Body::LlmCallCompleted(call) => {
            if let Some(row) = log.messages.iter().find(|row| row.id == call.message_id)
                && (row.stop_reason, row.usage) != (Some(call.stop_reason), Some(call.usage))
            {
                let expected = format!("{:?} {:?}", call.stop_reason, call.usage);
                let has = format!("{:?} {:?}", row.stop_reason, row.usage);
                differs(
                    log,
                    format!("message {}", row.id),
                    expected,
                    has,
                    violations,
                );
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
                check_result(log, tool, violations);
            }
            return None;
        }
        _ => return None,
    };
    let row = row(log, id, violations)?;
    compare_hash(
        log,
        format!("message {id}"),
        &hash,
        content_json(&row.content).1,
        violations,
    );
    if row.status != status || row.role != Role::Assistant || Some(row.turn_id) != event.turn_id {
        differs(
            log,
            format!("message {id}"),
            format!("{status:?}"),
            format!("{row:?}"),
            violations,
        );
    }
    Some(id)
}

/// Checks the tool result that a `tool.completed` refers to. Nested steps of a tool were not
/// requested by a model and have no row.
fn check_result(log: &ParsedLog<'_>, tool: &ToolCompleted, violations: &mut Vec<Violation>) {
    let id = tool.tool_use_id;
    let is_requested = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse { id: use_id, .. } if *use_id == id);
    if !log
        .messages
        .iter()
        .any(|row| row.content.iter().any(is_requested))
    {
        return;
    }
    let subject = format!("result of {id}");
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
        None => differs(log, subject, "a row", "no row", violations),
        Some(content) => {
            let hash = sha256_hex(content.to_string().as_bytes());
            compare_hash(log, subject, &tool.result_sha256, hash, violations);
        }
    }
}

/// True if a message contains the result of a tool use.
pub(super) fn has_result_of(row: &Message, id: turnwire_event::ToolUseId) -> bool {
    row.content.iter().any(
        |block| matches!(block, ContentBlock::ToolResult { tool_use_id, .. } if *tool_use_id == id),
    )
}

fn compare_hash(
    log: &ParsedLog<'_>,
    subject: String,
    expected: &str,
    hash: String,
    violations: &mut Vec<Violation>,
) {
    if hash != expected {
        violations.push(Violation::HashDiffers {
            session: log.id,
            subject,
            expected: expected.to_owned(),
            actual: hash,
        });
    }
}

fn check_turn(log: &ParsedLog<'_>, event: &Event, violations: &mut Vec<Violation>) {
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
        differs(log, format!("turn {id}"), expected, state, violations);
    }
}

fn check_tools(log: &ParsedLog<'_>, violations: &mut Vec<Violation>) {
    let mut states: BTreeMap<String, &str> = BTreeMap::new();
    let mut approvals = Vec::new();
    for event in &log.events {
        match &event.body {
            Body::ApprovalRequested(question) => {
                let tool = question.tool_use_id.to_string();
                approvals.push((question.approval_id, event.turn_id, tool.clone()));
                states.insert(tool, "pending")
            }
            Body::ApprovalResolved(answer) if answer.decision == Decision::Reject => {
                let own = approvals.iter().find(|(id, ..)| *id == answer.approval_id);
                let turn = own.map(|(_, turn, _)| *turn);
                // A later message rejects all approval requests of its turn together.
                let rejected = approvals
                    .iter()
                    .filter(|(id, of, _)| match answer.by.as_str() {
                        "system" => Some(*of) == turn,
                        _ => *id == answer.approval_id,
                    });
                for (_, _, tool) in rejected {
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
                    ToolErrorClass::Cancelled | ToolErrorClass::NotExecuted => "cancelled",
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
                violations,
            );
        }
    }
    for (id, expected) in states {
        differs(
            log,
            format!("tool call {id}"),
            expected,
            "no row",
            violations,
        );
    }
}
