//! What viewers of chat streams were sent against the log (I1 to I5, laws 2, 3 and 5): a turn's
//! streams put together are the projection of its events, in one order, each frame once, words
//! joined, with one ending.
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

use turnwire_event::{SessionId, TurnId};
use turnwire_wire::pc3::{Cursor, Version};

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
    found: &mut Vec<Violation>,
) {
    let dues = ExpectedTurn::all(history, logs);
    for chat in &history.chats {
        answer(chat, logs, &dues, found);
    }
    for reading in streams::all(history, found) {
        // A turn of a session that is not in the history is not judged.
        let Some(due) = dues.get(&reading.turn) else {
            continue;
        };
        let mut broken = Vec::new();
        order(&reading, due, &mut broken);
        shape::check(&reading, due, &mut broken);
        text::check(history, &reading, due, &mut broken);
        found.extend(broken.into_iter().map(|what| Violation::Chat {
            client: reading.client.to_owned(),
            turn: reading.turn,
            what,
        }));
    }
}

/// Checks the head of one answer.
fn answer(
    chat: &ChatRecord,
    logs: &BTreeMap<SessionId, ParsedLog<'_>>,
    dues: &BTreeMap<TurnId, ExpectedTurn>,
    found: &mut Vec<Violation>,
) {
    let Some(head) = chat.head.as_ref() else {
        return;
    };
    let asked = match &chat.asked {
        ChatRequest::Submit(_) => head.turn(),
        ChatRequest::Resume(turn, _) => Some(*turn),
    };
    let mut tell = |turn: TurnId, what: ChatViolation| {
        found.push(Violation::Chat {
            client: chat.client.clone(),
            turn,
            what,
        });
    };
    let over = |due: &ExpectedTurn| match &chat.asked {
        ChatRequest::Resume(_, Some(cursor)) => due.is_over(*cursor).then(|| cursor.to_string()),
        ChatRequest::Resume(_, None) | ChatRequest::Submit(_) => None,
    };
    match (head.status, asked.and_then(|turn| dues.get(&turn))) {
        (204, Some(due)) if over(due).is_none() => {
            let cursor = format!("{:?}", chat.asked);
            tell(
                due.turn,
                ChatViolation::Over {
                    cursor,
                    status: 204,
                },
            );
        }
        (200, Some(due)) => {
            if let Some(cursor) = over(due) {
                tell(
                    due.turn,
                    ChatViolation::Over {
                        cursor,
                        status: 200,
                    },
                );
            }
            headers(chat, due, |what| tell(due.turn, what));
        }
        (200, None) => {
            // What was promised must be in the log of its session, if that is there to be judged.
            let session = head.session();
            if session.is_none_or(|session| logs.contains_key(&session)) {
                found.push(Violation::TurnLost {
                    session: head.header("x-session-id").to_owned(),
                    turn: head.header("x-response-id").to_owned(),
                });
            }
        }
        _ => {}
    }
}

fn headers(chat: &ChatRecord, due: &ExpectedTurn, mut tell: impl FnMut(ChatViolation)) {
    let Some(head) = &chat.head else { return };
    let expected = [
        ("content-type", "text/event-stream".to_owned()),
        ("cache-control", "no-cache, no-transform".to_owned()),
        ("x-accel-buffering", "no".to_owned()),
        ("transfer-encoding", String::new()),
        ("content-length", String::new()),
        ("x-session-id", due.session.to_string()),
        ("x-response-id", due.response.clone()),
    ];
    for (name, value) in expected {
        if head.header(name) != value {
            let found = head.header(name).to_owned();
            tell(ChatViolation::Head { name, found });
        }
    }
    let bound = due.version;
    if let Some(asked) = &chat.version
        && asked.parse::<Version>() != Ok(bound)
    {
        tell(ChatViolation::Version {
            asked: asked.clone(),
            bound: bound.to_string(),
        });
    }
}

/// The order of ids as a number pair: all frames of an event come before the next event's.
fn place(id: Cursor) -> (turnwire_event::Position, u8) {
    (id.position, id.frame.unwrap_or(u8::MAX))
}

/// I1 and I2: every frame once, in order, none missing, each as the log gives it.
fn order(reading: &ViewerStream<'_>, due: &ExpectedTurn, broken: &mut Vec<ChatViolation>) {
    let mut seen = BTreeSet::new();
    let mut before = reading.from;
    for frame in &reading.frames {
        let id = frame.id;
        if !seen.insert(place(id)) {
            broken.push(ChatViolation::Twice { id: id.to_string() });
            continue;
        }
        if let Some(before) = before.filter(|before| place(*before) >= place(id)) {
            broken.push(ChatViolation::NotRising {
                before: before.to_string(),
                after: id.to_string(),
            });
            continue;
        }
        before = Some(id);
        if id.position.is_persisted() {
            same(frame, due, broken);
        }
    }
    let has = |id: Cursor| reading.from.is_some_and(|from| place(id) <= place(from));
    let last = before.map(place);
    for (id, text) in &due.frames {
        let passed = last.is_some_and(|last| place(*id) < last);
        if passed && !has(*id) && !seen.contains(&place(*id)) {
            broken.push(ChatViolation::Missed {
                id: id.to_string(),
                text: text.clone(),
            });
        }
    }
    let ended = reading.frames.iter().any(|frame| frame.block.is_terminal());
    if reading.to_the_end && !ended && reading.from.is_none_or(|from| !due.is_over(from)) {
        let last = before.map(|id| id.to_string()).unwrap_or_default();
        broken.push(ChatViolation::Unended { last });
    }
}

fn same(frame: &streams::ViewedFrame, due: &ExpectedTurn, broken: &mut Vec<ChatViolation>) {
    let id = frame.id.to_string();
    let seen = frame.block.frame_text().to_owned();
    match due.frame(frame.id) {
        None => broken.push(ChatViolation::Lost { id, text: seen }),
        Some(text) if text != seen => broken.push(ChatViolation::Changed {
            id,
            seen,
            due: text.to_owned(),
        }),
        Some(_) => {}
    }
}
