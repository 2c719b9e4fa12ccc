//! The streams of one viewer put together: each goes on where the one before it was cut. What is
//! no stream, or ends as none may, is told here.

use std::collections::BTreeMap;
use std::time::Duration;

use turnwire_event::TurnId;
use turnwire_wire::pc3::Cursor;

use super::super::chat_violation::ChatViolation;
use super::super::record::{ChatEnd, ChatRecord, ChatRequest, FaultKind, History};
use super::super::violation::Violation;
use crate::sse::{Block, Said, begins};

/// A terminal whose sentinel a kill kept back came just before it.
const KILL_NEAR: Duration = Duration::from_secs(3);

/// A frame that came.
#[derive(Debug)]
pub(super) struct ViewedFrame {
    pub(super) at: Duration,
    pub(super) id: Cursor,
    pub(super) block: Block,
}

/// What one viewer was sent of one turn from one place on.
#[derive(Debug)]
pub(super) struct ViewerStream<'a> {
    pub(super) client: &'a str,
    pub(super) turn: TurnId,
    /// What it said that it has.
    pub(super) from: Option<Cursor>,
    pub(super) frames: Vec<ViewedFrame>,
    /// Whether it stayed until it was told the end.
    pub(super) to_the_end: bool,
}

impl ViewerStream<'_> {
    /// The cursor it would resume with.
    fn last(&self) -> Option<Cursor> {
        self.frames.last().map(|frame| frame.id).or(self.from)
    }
}

/// Puts the streams of each viewer together.
pub(super) fn all<'a>(history: &'a History, found: &mut Vec<Violation>) -> Vec<ViewerStream<'a>> {
    let mut readings: Vec<ViewerStream<'a>> = Vec::new();
    let mut latest: BTreeMap<(&str, TurnId), usize> = BTreeMap::new();
    for chat in &history.chats {
        let Some(head) = chat.head.as_ref().filter(|head| head.status == 200) else {
            continue;
        };
        let (turn, from) = match (&chat.asked, head.turn()) {
            (ChatRequest::Resume(turn, cursor), _) => (*turn, *cursor),
            (ChatRequest::Submit(_), Some(turn)) => (turn, None),
            (ChatRequest::Submit(_), None) => continue,
        };
        let key = (chat.client.as_str(), turn);
        let goes_on = |index: &usize| {
            matches!(chat.asked, ChatRequest::Resume(..)) && readings[*index].last() == from
        };
        let index = latest.get(&key).copied().filter(goes_on);
        let index = index.unwrap_or_else(|| {
            readings.push(ViewerStream {
                client: &chat.client,
                turn,
                from,
                frames: Vec::new(),
                to_the_end: false,
            });
            readings.len() - 1
        });
        latest.insert(key, index);
        read(history, chat, &mut readings[index], found);
    }
    readings
}

fn read(
    history: &History,
    chat: &ChatRecord,
    reading: &mut ViewerStream<'_>,
    found: &mut Vec<Violation>,
) {
    reading.to_the_end |= chat.to_the_end;
    let (mut done, mut ended) = (false, None);
    let (client, turn) = (reading.client, reading.turn);
    let sentinel = |why: &str| Violation::Chat {
        client: client.to_owned(),
        turn,
        what: ChatViolation::Sentinel { why: why.into() },
    };
    for (number, frame) in chat.blocks.iter().enumerate() {
        let block = match Block::read(&frame.text, number == 0) {
            Ok(block) => block,
            Err(why) => {
                found.push(unreadable(chat, &why.to_string(), &frame.text));
                continue;
            }
        };
        if done {
            found.push(sentinel("something came after it"));
        }
        match &block.said {
            Said::Pause => {}
            Said::Done if ended.is_none() => found.push(sentinel("no terminal before it")),
            Said::Done => done = true,
            Said::Frame(id, ..) => {
                if block.is_terminal() {
                    ended = Some(frame.at);
                }
                let (at, id) = (frame.at, *id);
                reading.frames.push(ViewedFrame { at, id, block });
            }
        }
    }
    let tail = String::from_utf8_lossy(&chat.tail);
    if !begins(&chat.tail, chat.blocks.is_empty()) {
        found.push(unreadable(chat, "a piece that no block begins with", &tail));
    }
    match &chat.end {
        Some(ChatEnd::Garbled(why)) => found.push(unreadable(chat, why, &tail)),
        Some(ChatEnd::Whole) if !done || !chat.tail.is_empty() => {
            found.push(sentinel("a stream that is whole ends with it"));
        }
        Some(ChatEnd::Lost) => {
            let killed = |at| history.near(FaultKind::Kill, at) < KILL_NEAR;
            if ended.is_some_and(|at| !done && !killed(at)) {
                found.push(sentinel("the terminal came without it"));
            }
        }
        Some(ChatEnd::Whole | ChatEnd::Cut | ChatEnd::Silent) | None => {}
    }
}

fn unreadable(chat: &ChatRecord, why: &str, text: &str) -> Violation {
    Violation::Unreadable {
        what: format!("chat stream of {}", chat.client),
        why: why.to_owned(),
        text: text.chars().take(400).collect(),
    }
}
