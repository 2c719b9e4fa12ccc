//! Checks snapshots against the log (I5, law 4): a snapshot at k is the state that the log gives at
//! k. [`super::text`] checks that the events after k lead to the final state.

use turnwire_event::{
    ActorKind, Body, ContentBlock, Event, Message, MessageStatus, Position, Role,
};

use super::parse::{ParsedClient, ParsedLog, ParsedSnapshot};
use super::record::{FaultKind, History};
use super::rows::has_result_of;
use super::violation::Violation;

/// The default maximum of messages in a snapshot (S3-029).
const MESSAGES_MAX: usize = 50;

/// Checks every snapshot a client was sent.
pub(super) fn check(
    history: &History,
    log: &ParsedLog<'_>,
    client: &ParsedClient<'_>,
    violations: &mut Vec<Violation>,
) {
    let was_killed = history.count(FaultKind::Kill) > 0;
    for snapshot in client.streams.iter().filter_map(|s| s.snapshot.as_ref()) {
        let mut differs = |subject: &str, expected: String, actual: String| {
            if expected != actual {
                violations.push(Violation::SnapshotDiffers {
                    client: client.name.to_owned(),
                    at: snapshot.at,
                    subject: subject.to_owned(),
                    expected,
                    actual,
                });
            }
        };
        summary(log, snapshot, &mut differs);
        messages(log, snapshot, was_killed, &mut differs);
        open_work(log, snapshot, &mut differs);
    }
}

/// What runs or waits at the snapshot, and the turn that ended last: as the log says at its position.
fn open_work(
    log: &ParsedLog<'_>,
    snapshot: &ParsedSnapshot,
    differs: &mut impl FnMut(&str, String, String),
) {
    let Some(open) = &snapshot.open else { return };
    let mut running: Vec<(&str, String)> = Vec::new();
    let mut last_ended = None;
    for event in log.events.iter().take_while(|e| e.id <= snapshot.at) {
        let is_hidden = event.head().suppressed;
        let mut start = |list, id: String| running.extend((!is_hidden).then_some((list, id)));
        let ended = match &event.body {
            Body::ToolCalled(tool) => {
                start("tools", tool.tool_use_id.to_string());
                None
            }
            Body::DelegateStarted(worker) => {
                start("workers", worker.worker_session_id.to_string());
                None
            }
            Body::ApprovalRequested(asked) => {
                start("approvals", asked.approval_id.to_string());
                None
            }
            Body::ToolCompleted(tool) => Some(tool.tool_use_id.to_string()),
            Body::ToolFailed(tool) => Some(tool.tool_use_id.to_string()),
            Body::DelegateCompleted(end) => Some(end.worker_session_id.to_string()),
            Body::DelegateFailed(end) => Some(end.worker_session_id.to_string()),
            Body::ApprovalResolved(end) => Some(end.approval_id.to_string()),
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                last_ended = event.turn_id;
                None
            }
            _ => None,
        };
        running.retain(|(_, id)| ended.as_ref() != Some(id));
    }
    for (list, key) in [
        ("tools", "tool_use_id"),
        ("workers", "worker_session_id"),
        ("approvals", "approval_id"),
    ] {
        let of_list = running.iter().filter(|(of, _)| *of == list);
        let expected: Vec<&str> = of_list.map(|(_, id)| id.as_str()).collect();
        let items = open[list].as_array().into_iter().flatten();
        let actual: Vec<&str> = items.filter_map(|item| item[key].as_str()).collect();
        differs(list, expected.join(" "), actual.join(" "));
    }
    let last_turn = snapshot.last_turn.as_ref();
    let last_turn = last_turn.and_then(|turn| turn["turn_id"].as_str());
    differs(
        "last_turn",
        last_ended.map_or_else(String::new, |turn| turn.to_string()),
        last_turn.unwrap_or_default().to_owned(),
    );
}

fn summary(
    log: &ParsedLog<'_>,
    snapshot: &ParsedSnapshot,
    differs: &mut impl FnMut(&str, String, String),
) {
    let (mut turns, mut cost, mut open) = (0u64, 0f64, None);
    for event in log.events.iter().take_while(|e| e.id <= snapshot.at) {
        match &event.body {
            Body::TurnStarted(_) => {
                turns += 1;
                // A turn that starts during another was withdrawn from the queue and ends at once.
                open = open.or(event.turn_id);
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                open = open.filter(|_| open != event.turn_id);
            }
            Body::LlmCallCompleted(call) => cost += call.usage.cost_usd,
            Body::LlmCallFailed(call) => cost += call.usage.cost_usd,
            _ => {}
        }
    }
    let session = &snapshot.session;
    let open = open.map_or(serde_json::Value::Null, |turn| turn.to_string().into());
    let status = if open.is_null() {
        serde_json::Value::Null
    } else {
        "in_flight".into()
    };
    differs(
        "turn_count",
        turns.to_string(),
        session["turn_count"].to_string(),
    );
    differs(
        "current_turn_id",
        open.to_string(),
        session["current_turn_id"].to_string(),
    );
    differs(
        "current_turn_status",
        status.to_string(),
        session["current_turn_status"].to_string(),
    );
    let snapshot_cost = session["cost_so_far_usd"].as_f64().unwrap_or(f64::NAN);
    // Sums of the same numbers in the same order; only printing may round.
    if (snapshot_cost - cost).abs() > 1e-9 || snapshot_cost.is_nan() {
        differs(
            "cost_so_far_usd",
            cost.to_string(),
            session["cost_so_far_usd"].to_string(),
        );
    }
}

/// Since when a message may be in a snapshot (for streamed messages the start of their call) and
/// since when it must be (its event), by the log.
fn write_positions(log: &ParsedLog<'_>, row: &Message) -> Option<(Position, Position)> {
    let mut call_started = None;
    for event in log.events.iter().filter(|e| e.turn_id == Some(row.turn_id)) {
        let own = event.actor.kind() != ActorKind::Subagent;
        if own && matches!(event.body, Body::LlmCallStarted(_)) {
            call_started = Some(event.id);
        }
        if writes(event, row) {
            let from = call_started.filter(|_| row.role == Role::Assistant);
            return Some((from.unwrap_or(event.id), event.id));
        }
    }
    None
}

fn writes(event: &Event, row: &Message) -> bool {
    match &event.body {
        Body::TurnStarted(started) => started.user_message_id == row.id,
        Body::LlmCallCompleted(call) => call.message_id == row.id,
        Body::LlmCallFailed(call) => call.message_id == Some(row.id),
        Body::ToolCompleted(tool) => has_result_of(row, tool.tool_use_id),
        Body::ToolFailed(tool) => has_result_of(row, tool.tool_use_id),
        Body::DataLoaded(data) => row.content.iter().any(
            |block| matches!(block, ContentBlock::Data { data_id, .. } if *data_id == data.id),
        ),
        Body::ComponentRendered(shown) => row.content.iter().any(|block| {
            matches!(block, ContentBlock::Component { tool_use_id, .. } if *tool_use_id == shown.tool_call.id)
        }),
        _ => false,
    }
}

/// True for a message in progress without a row: a crash lost it right after its start.
fn is_lost(log: &ParsedLog<'_>, message: &Message) -> bool {
    message.status == MessageStatus::InProgress && log.messages.iter().all(|m| m.id != message.id)
}

fn messages(
    log: &ParsedLog<'_>,
    snapshot: &ParsedSnapshot,
    was_killed: bool,
    differs: &mut impl FnMut(&str, String, String),
) {
    let in_snapshot = |row: &Message| snapshot.messages.iter().find(|m| m.id == row.id);
    let due: Vec<&Message> = log
        .messages
        .iter()
        .filter(|row| match write_positions(log, row) {
            Some((_, done)) if done <= snapshot.at => true,
            Some((from, _)) if from <= snapshot.at => in_snapshot(row).is_some(),
            Some(_) | None => false,
        })
        .collect();
    let lost = |message: &&Message| was_killed && is_lost(log, message);
    let limit = MESSAGES_MAX.saturating_sub(snapshot.messages.iter().filter(lost).count());
    let due = &due[due.len().saturating_sub(limit)..];
    let ids = |list: &mut dyn Iterator<Item = &Message>| -> String {
        list.map(|m| m.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    differs(
        "messages",
        ids(&mut due.iter().copied()),
        ids(&mut snapshot.messages.iter().filter(|m| !lost(m))),
    );
    for row in due {
        let Some(message) = in_snapshot(row) else {
            continue;
        };
        let subject = format!("message {}", row.id);
        if message.status == MessageStatus::InProgress {
            let (stored, part) = (row.text(), message.text());
            // After a crash the row may be shorter than the text that was sent.
            if !stored.starts_with(&part) && !part.starts_with(&stored) {
                differs(&subject, stored, part);
            }
        } else {
            differs(&subject, format!("{row:?}"), format!("{message:?}"));
        }
    }
}
