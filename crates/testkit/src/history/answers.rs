//! What the server promised over HTTP against the log (I1): an accepted turn is there, an
//! accepted cancel was asked for or came too late, accepted feedback was written down.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::{EventType, SessionId};

use super::reading::Log;
use super::record::{History, Request};
use super::violation::Violation;

/// Checks every answered request that promised something.
pub(super) fn check(
    history: &History,
    logs: &BTreeMap<SessionId, Log<'_>>,
    found: &mut Vec<Violation>,
) {
    let mut feedback: BTreeMap<&str, usize> = BTreeMap::new();
    for request in history.requests.iter().filter(|r| r.method == "POST") {
        let Some((status, body)) = &request.answer else {
            continue;
        };
        if !(200..300).contains(status) {
            continue;
        }
        let answer: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        match segments(request)[..] {
            ["sessions", session, "turns"] => turn(session, &answer, logs, found),
            ["turns", id, "cancel"] => cancel(id, &answer, logs, found),
            ["sessions", session, "feedback"] => *feedback.entry(session).or_default() += 1,
            _ => {}
        }
    }
    for (session, accepted) in feedback {
        let Some(log) = find(session, logs) else {
            continue;
        };
        let recorded = log.events.iter().map(|e| e.body.kind());
        let logged = recorded
            .filter(|&k| k == EventType::FeedbackRecorded)
            .count();
        if logged < accepted {
            found.push(Violation::FeedbackLost {
                session: session.to_owned(),
                accepted,
                logged,
            });
        }
    }
}

fn segments(request: &Request) -> Vec<&str> {
    let path = request.path.split('?').next().unwrap_or_default();
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// A session that is not in the history was deleted on purpose and is not judged.
fn find<'a, 'b>(session: &str, logs: &'a BTreeMap<SessionId, Log<'b>>) -> Option<&'a Log<'b>> {
    logs.get(&session.parse().ok()?)
}

fn turn(
    session: &str,
    answer: &Value,
    logs: &BTreeMap<SessionId, Log<'_>>,
    found: &mut Vec<Violation>,
) {
    let Some(log) = find(session, logs) else {
        return;
    };
    let turn = answer["turn_id"].as_str().unwrap_or_default();
    let started = log.events.iter().any(|event| {
        event.body.kind() == EventType::TurnStarted
            && event.turn_id.is_some_and(|id| id.to_string() == turn)
    });
    if !started {
        found.push(Violation::TurnLost {
            session: session.to_owned(),
            turn: turn.to_owned(),
        });
    }
}

fn cancel(
    turn: &str,
    answer: &Value,
    logs: &BTreeMap<SessionId, Log<'_>>,
    found: &mut Vec<Violation>,
) {
    // A cancel may name the turn by its response id.
    let turn = turn.strip_prefix("resp_").unwrap_or(turn);
    let state = answer["state"].as_str().unwrap_or_default();
    let events = logs.values().flat_map(|log| &log.events);
    let kinds: Vec<EventType> = events
        .filter(|event| event.turn_id.is_some_and(|id| id.to_string() == turn))
        .map(|event| event.body.kind())
        .collect();
    if kinds.is_empty() {
        return;
    }
    let kept = match state {
        "cancelling" => kinds.contains(&EventType::TurnCancelRequested),
        "cancelled" => kinds.contains(&EventType::TurnCancelled),
        "completed" => kinds.contains(&EventType::TurnCompleted),
        _ => false,
    };
    if !kept {
        found.push(Violation::CancelLost {
            turn: turn.to_owned(),
            state: state.to_owned(),
        });
    }
}
