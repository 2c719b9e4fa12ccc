//! Checks chat streams against the log (I1 to I5, laws 2, 3 and 5): the joined streams of a viewer
//! are the projection of the turn's events, in order, each frame once, with the stored text
//! and one ending.
//!
//! ```text
//! streams of one viewer ──► frames ✂ resume ──► frames        the log ──► pc3::project
//!                           └────── compared frame by frame, words by message ──────┘
//! ```

mod expected;
mod streams;
mod shape;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use turnwire_event::{ResponseId, SessionId, TurnId};
use turnwire_wire::pc3::{FrameCursor, WireVersion};

use super::chat_violation::ChatViolation;
use super::parse::ParsedLog;
use super::record::{ChatRecord, ChatRequest, History};
use super::violation::Violation;
use expected::ExpectedTurn;
use streams::ViewerStream;

/// Checks every chat stream.
pub(super) fn check(
    history: &History,
    logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    violations: &mut Vec<Violation>,
) {
    let expected_turns = ExpectedTurn::all(history, logs);
    for chat in &history.chats {
        check_head(chat, logs, &expected_turns, violations);
    }
    for viewer in streams::all(history, violations) {
        // Turns of sessions that are not in the history are not checked.
        let Some(expected) = expected_turns.get(&viewer.turn) else {
            continue;
        };
        let mut broken = Vec::new();
        check_order(&viewer, expected, &mut broken);
        shape::check(&viewer, expected, &mut broken);
        text::check(history, &viewer, expected, &mut broken);
        violations.extend(broken.into_iter().map(|subject| Violation::Chat {
            client: viewer.client.to_owned(),
            turn: viewer.turn,
            subject,
        }));
    }
}

/// Checks the response head of one stream.
fn check_head(
    chat: &ChatRecord,
    logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    expected_turns: &BTreeMap<TurnId, ExpectedTurn>,
    violations: &mut Vec<Violation>,
) {
    let Some(head) = chat.head.as_ref() else {
        return;
    };
    let turn = match &chat.request {
        ChatRequest::Submit(_) => head.turn(),
        ChatRequest::Resume(turn, _) => Some(*turn),
    };
    let mut report = |turn: TurnId, subject: ChatViolation| {
        violations.push(Violation::Chat {
            client: chat.client.clone(),
            turn,
            subject,
        });
    };
    let ended_cursor = |expected: &ExpectedTurn| match &chat.request {
        ChatRequest::Resume(_, Some(cursor)) => {
            expected.is_over(*cursor).then(|| cursor.to_string())
        }
        ChatRequest::Resume(_, None) | ChatRequest::Submit(_) => None,
    };
    match (head.status, turn.and_then(|turn| expected_turns.get(&turn))) {
        (204, Some(expected)) if ended_cursor(expected).is_none() => {
            let cursor = format!("{:?}", chat.request);
            report(
                expected.turn,
                ChatViolation::WrongStatus {
                    cursor,
                    status: 204,
                },
            );
        }
        (200, Some(expected)) => {
            if let Some(cursor) = ended_cursor(expected) {
                report(
                    expected.turn,
                    ChatViolation::WrongStatus {
                        cursor,
                        status: 200,
                    },
                );
            }
            check_headers(chat, expected, |subject| report(expected.turn, subject));
        }
        (200, None) => {
            // The turn must be in the log of its session, if the history has that session.
            let session = head.session();
            if session.is_none_or(|session| logs.contains_key(&session)) {
                violations.push(Violation::TurnLost {
                    session: head.header("x-session-id").to_owned(),
                    turn: head.header("x-response-id").to_owned(),
                });
            }
        }
        _ => {}
    }
}

fn check_headers(
    chat: &ChatRecord,
    expected: &ExpectedTurn,
    mut report: impl FnMut(ChatViolation),
) {
    let Some(head) = &chat.head else { return };
    let expected_headers = [
        ("content-type", "text/event-stream".to_owned()),
        ("cache-control", "no-cache, no-transform".to_owned()),
        ("x-accel-buffering", "no".to_owned()),
        ("transfer-encoding", String::new()),
        ("content-length", String::new()),
        ("x-session-id", expected.session.to_string()),
        // The head goes out before an upstream has given its id.
        ("x-response-id", ResponseId::from(expected.turn).to_string()),
    ];
    for (name, value) in expected_headers {
        if head.header(name) != value {
            let actual = head.header(name).to_owned();
            report(ChatViolation::Head { name, actual });
        }
    }
    let bound = expected.version;
    if let Some(requested) = &chat.version
        && requested.parse::<WireVersion>() != Ok(bound)
    {
        report(ChatViolation::Version {
            requested: requested.clone(),
            bound: bound.to_string(),
        });
    }
}

/// Sort key of frame ids: all frames of an event come before those of the next event.
fn order_key(id: FrameCursor) -> (turnwire_event::Position, u8) {
    (id.position, id.frame.unwrap_or(u8::MAX))
}

/// I1 and I2: every frame once, in order, without a gap, with the bytes of the projection.
fn check_order(
    viewer: &ViewerStream<'_>,
    expected: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let mut seen = BTreeSet::new();
    let mut before = viewer.from;
    for frame in &viewer.frames {
        let id = frame.id;
        if !seen.insert(order_key(id)) {
            broken.push(ChatViolation::Twice { id: id.to_string() });
            continue;
        }
        if let Some(before) = before.filter(|before| order_key(*before) >= order_key(id)) {
            broken.push(ChatViolation::NotRising {
                before: before.to_string(),
                after: id.to_string(),
            });
            continue;
        }
        before = Some(id);
        if id.position.is_persisted() {
            compare_frame(frame, expected, broken);
        }
    }
    let has = |id: FrameCursor| {
        viewer
            .from
            .is_some_and(|from| order_key(id) <= order_key(from))
    };
    let last = before.map(order_key);
    for (id, text) in &expected.frames {
        let passed = last.is_some_and(|last| order_key(*id) < last);
        if passed && !has(*id) && !seen.contains(&order_key(*id)) {
            broken.push(ChatViolation::Missed {
                id: id.to_string(),
                text: text.clone(),
            });
        }
    }
    let ended = viewer.frames.iter().any(|frame| frame.block.is_terminal());
    if viewer.stays_to_end && !ended && viewer.from.is_none_or(|from| !expected.is_over(from)) {
        let last = before.map(|id| id.to_string()).unwrap_or_default();
        broken.push(ChatViolation::Unended { last });
    }
}

fn compare_frame(
    frame: &streams::ViewedFrame,
    expected: &ExpectedTurn,
    broken: &mut Vec<ChatViolation>,
) {
    let id = frame.id.to_string();
    let seen = frame.block.frame_text().to_owned();
    match expected.frame(frame.id) {
        None => broken.push(ChatViolation::Lost { id, text: seen }),
        Some(text) if text != seen => broken.push(ChatViolation::Changed {
            id,
            seen,
            expected: text.to_owned(),
        }),
        Some(_) => {}
    }
}
