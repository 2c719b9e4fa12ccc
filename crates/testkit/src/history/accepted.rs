//! What the server promised over HTTP against the log (I1): an accepted turn is there, an
//! accepted cancel was asked for or came too late, accepted feedback was written down.

use std::collections::BTreeMap;

use serde_json::Value;
use turnwire_event::{EventType, SessionId, TurnId};

use super::parse::ParsedLog;
use super::record::{History, RequestRecord};
use super::violation::Violation;

/// The types of every turn's events, by turn.
type TurnEventTypes = BTreeMap<TurnId, Vec<EventType>>;

/// Checks every answered request that promised something.
pub(super) fn check(
    history: &History,
    logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    found: &mut Vec<Violation>,
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
            ["sessions", session, "turns"] if find(session, logs).is_some() => {
                turn(session, &answer, &turns, found);
            }
            ["turns", id, "cancel"] => cancel(id, &answer, &turns, found),
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

fn segments(request: &RequestRecord) -> Vec<&str> {
    let path = request.path.split('?').next().unwrap_or_default();
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// A session that is not in the history was deleted on purpose and is not judged.
fn find<'a, 'b>(
    session: &str,
    logs: &'a BTreeMap<SessionId, ParsedLog<'b>>,
) -> Option<&'a ParsedLog<'b>> {
    logs.get(&session.parse().ok()?)
}

fn turn(session: &str, answer: &Value, turns: &TurnEventTypes, found: &mut Vec<Violation>) {
    let turn = answer["turn_id"].as_str().unwrap_or_default();
    let kinds = turn.parse().ok().and_then(|turn: TurnId| turns.get(&turn));
    if !kinds.is_some_and(|kinds| kinds.contains(&EventType::TurnStarted)) {
        found.push(Violation::TurnLost {
            session: session.to_owned(),
            turn: turn.to_owned(),
        });
    }
}

fn cancel(turn: &str, answer: &Value, turns: &TurnEventTypes, found: &mut Vec<Violation>) {
    // A cancel may name the turn by its response id.
    let turn = turn.strip_prefix("resp_").unwrap_or(turn);
    let state = answer["state"].as_str().unwrap_or_default();
    // A turn of a session that is not in the history is not judged.
    let Some(kinds) = turn.parse().ok().and_then(|id: TurnId| turns.get(&id)) else {
        return;
    };
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
