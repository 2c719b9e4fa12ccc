//! Snapshots against the log (I5, law 4): a snapshot at k is the state the log gives at k. That
//! what follows k then makes the final state of it is checked where texts are put together.

use turnwire_event::{
    ActorKind, Body, ContentBlock, Event, Message, MessageStatus, Position, Role,
};

use super::parse::{ParsedClient, ParsedLog, ParsedSnapshot};
use super::record::{FaultKind, History};
use super::rows::holds_result;
use super::violation::Violation;

/// How many messages a snapshot holds at most, unless the server is told otherwise (S3-029).
const MESSAGES_MAX: usize = 50;

/// Checks every snapshot a client was sent.
pub(super) fn check(
    history: &History,
    log: &ParsedLog<'_>,
    client: &ParsedClient<'_>,
    found: &mut Vec<Violation>,
) {
    let killed = history.count(FaultKind::Kill) > 0;
    for snapshot in client.stretches.iter().filter_map(|s| s.snapshot.as_ref()) {
        let mut differs = |what: &str, expected: String, is: String| {
            if expected != is {
                found.push(Violation::SnapshotDiffers {
                    client: client.name.to_owned(),
                    at: snapshot.at,
                    what: what.to_owned(),
                    expected,
                    found: is,
                });
            }
        };
        summary(log, snapshot, &mut differs);
        messages(log, snapshot, killed, &mut differs);
    }
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
                // One that starts beside another is withdrawn from the queue, and ends at once.
                open = open.or(event.turn_id);
            }
            Body::TurnCompleted(_) | Body::TurnCancelled(_) => {
                open = open.filter(|_| open != event.turn_id);
            }
            Body::LlmCallCompleted(call) => cost += call.usage.cost_usd,
            _ => {}
        }
    }
    let told = &snapshot.session;
    let open = open.map_or(serde_json::Value::Null, |turn| turn.to_string().into());
    let status = if open.is_null() {
        serde_json::Value::Null
    } else {
        "in_flight".into()
    };
    differs(
        "turn_count",
        turns.to_string(),
        told["turn_count"].to_string(),
    );
    differs(
        "current_turn_id",
        open.to_string(),
        told["current_turn_id"].to_string(),
    );
    differs(
        "current_turn_status",
        status.to_string(),
        told["current_turn_status"].to_string(),
    );
    let told_cost = told["cost_so_far_usd"].as_f64().unwrap_or(f64::NAN);
    // Sums of the same numbers in the same order; only printing may round.
    if (told_cost - cost).abs() > 1e-9 || told_cost.is_nan() {
        differs(
            "cost_so_far_usd",
            cost.to_string(),
            told["cost_so_far_usd"].to_string(),
        );
    }
}

/// Where the log says a message row was written: its event, and for what streams the start of
/// its call, since it may be in flight from then on.
fn written(log: &ParsedLog<'_>, row: &Message) -> Option<(Position, Position)> {
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
        Body::ToolCompleted(tool) => holds_result(row, tool.tool_use_id),
        Body::ToolFailed(tool) => holds_result(row, tool.tool_use_id),
        Body::DataLoaded(data) => row.content.iter().any(
            |block| matches!(block, ContentBlock::Data { data_id, .. } if *data_id == data.id),
        ),
        Body::ComponentRendered(shown) => row.content.iter().any(|block| {
            matches!(block, ContentBlock::Component { tool_use_id, .. } if *tool_use_id == shown.tool_call.id)
        }),
        _ => false,
    }
}

/// A crash may cost a message that had just begun altogether.
fn is_lost(log: &ParsedLog<'_>, message: &Message) -> bool {
    message.status == MessageStatus::InProgress && log.messages.iter().all(|m| m.id != message.id)
}

fn messages(
    log: &ParsedLog<'_>,
    snapshot: &ParsedSnapshot,
    killed: bool,
    differs: &mut impl FnMut(&str, String, String),
) {
    let told = |row: &Message| snapshot.messages.iter().find(|m| m.id == row.id);
    let due: Vec<&Message> = log
        .messages
        .iter()
        .filter(|row| match written(log, row) {
            Some((_, done)) if done <= snapshot.at => true,
            Some((from, _)) if from <= snapshot.at => told(row).is_some(),
            Some(_) | None => false,
        })
        .collect();
    let lost = |message: &&Message| killed && is_lost(log, message);
    let kept = MESSAGES_MAX.saturating_sub(snapshot.messages.iter().filter(lost).count());
    let due = &due[due.len().saturating_sub(kept)..];
    let ids = |list: &mut dyn Iterator<Item = &Message>| -> String {
        list.map(|m| m.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    differs(
        "messages",
        ids(&mut due.iter().copied()),
        ids(&mut snapshot.messages.iter().filter(|m| !lost(m))),
    );
    for row in due {
        let Some(message) = told(row) else { continue };
        let what = format!("message {}", row.id);
        if message.status == MessageStatus::InProgress {
            let (whole, part) = (row.text(), message.text());
            // After a crash the row may be shorter than what had been said.
            if !whole.starts_with(&part) && !part.starts_with(&whole) {
                differs(&what, whole, part);
            }
        } else {
            differs(&what, format!("{row:?}"), format!("{message:?}"));
        }
    }
}
