//! Joins the streams of each viewer: each continues where the previous one was cut. Reports invalid
//! blocks and invalid endings.

use std::collections::BTreeMap;
use std::time::Duration;

use turnwire_event::TurnId;
use turnwire_wire::pc3::FrameCursor;

use super::super::chat_violation::ChatViolation;
use super::super::record::{ChatEnd, ChatRecord, ChatRequest, FaultKind, History};
use super::super::violation::Violation;
use crate::sse::{Block, Said, begins};

/// A kill this soon after a terminal explains a missing sentinel.
const KILL_NEAR: Duration = Duration::from_secs(3);

/// A received frame with its time.
#[derive(Debug)]
pub(super) struct ViewedFrame {
    pub(super) at: Duration,
    pub(super) id: FrameCursor,
    pub(super) block: Block,
}

/// Everything that one viewer received of one turn after one cursor.
#[derive(Debug)]
pub(super) struct ViewerStream<'a> {
    pub(super) client: &'a str,
    pub(super) turn: TurnId,
    /// The cursor of the first request.
    pub(super) from: Option<FrameCursor>,
    pub(super) frames: Vec<ViewedFrame>,
    /// True if the viewer stays connected until the turn ends.
    pub(super) stays_to_end: bool,
}

impl ViewerStream<'_> {
    /// The cursor for the next resume.
    fn last(&self) -> Option<FrameCursor> {
        self.frames.last().map(|frame| frame.id).or(self.from)
    }
}

/// Joins the streams of each viewer and turn.
pub(super) fn all<'a>(
    history: &'a History,
    violations: &mut Vec<Violation>,
) -> Vec<ViewerStream<'a>> {
    let mut viewers: Vec<ViewerStream<'a>> = Vec::new();
    let mut latest: BTreeMap<(&str, TurnId), usize> = BTreeMap::new();
    for chat in &history.chats {
        let Some(head) = chat.head.as_ref().filter(|head| head.status == 200) else {
            continue;
        };
        let (turn, from) = match (&chat.request, head.turn()) {
            (ChatRequest::Resume(turn, cursor), _) => (*turn, *cursor),
            (ChatRequest::Submit(_), Some(turn)) => (turn, None),
            (ChatRequest::Submit(_), None) => continue,
        };
        let key = (chat.client.as_str(), turn);
        let continues = |index: &usize| {
            matches!(chat.request, ChatRequest::Resume(..)) && viewers[*index].last() == from
        };
        let index = latest.get(&key).copied().filter(continues);
        let index = index.unwrap_or_else(|| {
            viewers.push(ViewerStream {
                client: &chat.client,
                turn,
                from,
                frames: Vec::new(),
                stays_to_end: false,
            });
            viewers.len() - 1
        });
        latest.insert(key, index);
        read_stream(history, chat, &mut viewers[index], violations);
    }
    viewers
}

fn read_stream(
    history: &History,
    chat: &ChatRecord,
    viewer: &mut ViewerStream<'_>,
    violations: &mut Vec<Violation>,
) {
    viewer.stays_to_end |= chat.stays_to_end;
    let (mut has_sentinel, mut terminal_at) = (false, None);
    let (client, turn) = (viewer.client, viewer.turn);
    let sentinel = |reason: &str| Violation::Chat {
        client: client.to_owned(),
        turn,
        subject: ChatViolation::Sentinel {
            reason: reason.into(),
        },
    };
    for (number, frame) in chat.blocks.iter().enumerate() {
        let block = match Block::read(&frame.text, number == 0) {
            Ok(block) => block,
            Err(reason) => {
                violations.push(unreadable(chat, &reason.to_string(), &frame.text));
                continue;
            }
        };
        if has_sentinel {
            violations.push(sentinel("a block after it"));
        }
        match &block.said {
            Said::Pause => {}
            Said::Done if terminal_at.is_none() => {
                violations.push(sentinel("no terminal before it"))
            }
            Said::Done => has_sentinel = true,
            Said::Frame(id, ..) => {
                if block.is_terminal() {
                    terminal_at = Some(frame.at);
                }
                let (at, id) = (frame.at, *id);
                viewer.frames.push(ViewedFrame { at, id, block });
            }
        }
    }
    let tail = String::from_utf8_lossy(&chat.tail);
    if !begins(&chat.tail, chat.blocks.is_empty()) {
        violations.push(unreadable(
            chat,
            "an incomplete block that no valid block starts with",
            &tail,
        ));
    }
    match &chat.end {
        Some(ChatEnd::Invalid(reason)) => violations.push(unreadable(chat, reason, &tail)),
        Some(ChatEnd::Complete) if !has_sentinel || !chat.tail.is_empty() => {
            violations.push(sentinel("a complete stream must end with it"));
        }
        Some(ChatEnd::Lost) => {
            let killed = |at| history.near(FaultKind::Kill, at) < KILL_NEAR;
            if terminal_at.is_some_and(|at| !has_sentinel && !killed(at)) {
                violations.push(sentinel("missing after the terminal"));
            }
        }
        Some(ChatEnd::Complete | ChatEnd::Cut | ChatEnd::TimedOut) | None => {}
    }
}

fn unreadable(chat: &ChatRecord, reason: &str, text: &str) -> Violation {
    Violation::Unreadable {
        subject: format!("chat stream of {}", chat.client),
        reason: reason.to_owned(),
        text: text.chars().take(400).collect(),
    }
}
