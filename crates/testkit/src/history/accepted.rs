//! Checks accepted HTTP requests against the log (I1): an accepted turn is logged, an accepted
//! cancel is logged or came after the end, and accepted feedback is logged.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::{EventType, SessionId, TurnId};

use super::parse::ParsedLog;
use super::record::{History, RequestRecord};
use super::violation::Violation;

/// The types of every turn's events, by turn.
type TurnEventTypes = BTreeMap<TurnId, Vec<EventType>>;

/// Checks every successful submit, cancel and feedback request.
pub(super) fn check(
    history: &History,
    logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    violations: &mut Vec<Violation>,
) {
    let mut turns = TurnEventTypes::new();
    for event in logs.values().flat_map(|log| &log.events) {
        if let Some(turn) = event.turn_id {
            turns.entry(turn).or_default().push(event.body.kind());
        }
    }
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
            ["sessions", session, "turns"] if find_log(session, logs).is_some() => {
                check_turn(session, &answer, &turns, violations);
            }
            ["turns", id, "cancel"] => check_cancel(id, &answer, &turns, violations),
            ["sessions", session, "feedback"] => *feedback.entry(session).or_default() += 1,
            _ => {}
        }
    }
    for (session, accepted) in feedback {
        let Some(log) = find_log(session, logs) else {
            continue;
        };
        let recorded = log.events.iter().map(|e| e.body.kind());
        let logged = recorded
            .filter(|&k| k == EventType::FeedbackRecorded)
            .count();
        if logged < accepted {
            violations.push(Violation::FeedbackLost {
                session: session.to_owned(),
                accepted,
                logged,
            });
        }
    }
}

fn segments(request: &RequestRecord) -> Vec<&str> {
    let path = request.path.split('?').next().unwrap_or_default();
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// `None` for a session that is not in the history: the test deleted it, so it is not checked.
fn find_log<'a, 'b>(
    session: &str,
    logs: &'a BTreeMap<SessionId, ParsedLog<'b>>,
) -> Option<&'a ParsedLog<'b>> {
    logs.get(&session.parse().ok()?)
}

fn check_turn(
    session: &str,
    answer: &Value,
    turns: &TurnEventTypes,
    violations: &mut Vec<Violation>,
) {
    let turn = answer["turn_id"].as_str().unwrap_or_default();
    let kinds = turn.parse().ok().and_then(|turn: TurnId| turns.get(&turn));
    if !kinds.is_some_and(|kinds| kinds.contains(&EventType::TurnStarted)) {
        violations.push(Violation::TurnLost {
            session: session.to_owned(),
            turn: turn.to_owned(),
        });
    }
}

fn check_cancel(
    turn: &str,
    answer: &Value,
    turns: &TurnEventTypes,
    violations: &mut Vec<Violation>,
) {
    // A cancel may name the turn by its response id.
    let turn = turn.strip_prefix("resp_").unwrap_or(turn);
    let state = answer["state"].as_str().unwrap_or_default();
    // Turns of sessions that are not in the history are not checked.
    let Some(kinds) = turn.parse().ok().and_then(|id: TurnId| turns.get(&id)) else {
        return;
    };
    let is_logged = match state {
        "cancelling" => kinds.contains(&EventType::TurnCancelRequested),
        "cancelled" => kinds.contains(&EventType::TurnCancelled),
        "completed" => kinds.contains(&EventType::TurnCompleted),
        _ => false,
    };
    if !is_logged {
        violations.push(Violation::CancelLost {
            turn: turn.to_owned(),
            state: state.to_owned(),
        });
    }
}
