//! Viewers of a made-up story's chat streams: what a faultless server sends to one that submits
//! and stays, one that is cut and resumes, one that comes when all is over.

use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{Body, Event, EventType, Position, ResponseId, Seq, Sub, TurnId};
use turnwire_wire::pc3::{self, FrameCursor, WireVersion};

use super::record::{Chat, ChatAsk, ChatEnd, Frame, History};
use super::story::Story;
use super::watchers::{replayed, time, watched};
use crate::sse::{Block, Head};

/// As `watched`, and every turn also seen over its chat stream.
pub(super) fn viewed(story: &mut Story) -> History {
    let mut history = watched(story);
    let started = |event: &Event| matches!(event.body, Body::TurnStarted(_));
    let starts: Vec<usize> = (0..story.events.len())
        .filter(|&at| started(&story.events[at]))
        .collect();
    for start in starts {
        let turn = story.events[start].turn_id.expect("of a turn");
        let ends = |event: &Event| event.turn_id == Some(turn) && event.body.kind().is_terminal();
        let end = story.events.iter().position(ends).expect("it ends") + 1;
        let mut view = View { story, turn, start };
        history.chats.push(view.live(end));
        view.cut(end, &mut history.chats);
        history.chats.push(view.late());
    }
    history
}

struct View<'a> {
    story: &'a mut Story,
    turn: TurnId,
    start: usize,
}

impl View<'_> {
    fn head(&self, status: u16) -> Head {
        let response = ResponseId::from(self.turn);
        let headers = [
            ("content-type", "text/event-stream".to_owned()),
            ("cache-control", "no-cache, no-transform".to_owned()),
            ("x-accel-buffering", "no".to_owned()),
            ("x-session-id", self.story.session.to_string()),
            ("x-response-id", response.to_string()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        Head {
            status,
            headers: headers.to_vec(),
        }
    }

    fn chat(&self, client: &str, asked: ChatAsk, blocks: Vec<Frame>) -> Chat {
        let done = blocks
            .last()
            .is_some_and(|block| block.text.contains("[DONE]"));
        Chat {
            client: client.to_owned(),
            asked,
            version: None,
            head: Some(self.head(200)),
            blocks,
            tail: Vec::new(),
            to_the_end: done,
            end: Some(if done { ChatEnd::Whole } else { ChatEnd::Cut }),
        }
    }

    fn live(&self, end: usize) -> Chat {
        let blocks = self.blocks(None, self.start, end);
        let asked = ChatAsk::Submit(Some(self.story.session));
        self.chat("chat live", asked, blocks)
    }

    fn late(&self) -> Chat {
        let all = self.story.events.len();
        let blocks = self.blocks(None, all, all);
        self.chat("chat late", ChatAsk::Resume(self.turn, None), blocks)
    }

    /// Streams that are cut after some blocks, until the turn is over; then one that is told so.
    fn cut(&mut self, end: usize, chats: &mut Vec<Chat>) {
        let (mut from, mut cursor) = (self.start, None);
        loop {
            let upto = from + self.story.dice.index(end.saturating_sub(from) + 1);
            let mut blocks = self.blocks(cursor, from, upto);
            if from < end || self.story.dice.chance(50) {
                // The next block was on its way.
                let kept = blocks.len() - self.story.dice.index(blocks.len().min(2) + 1);
                let tail = blocks.drain(kept..).next();
                let tail = tail.map_or_else(String::new, |frame| frame.text);
                let cut = tail.len() - self.story.dice.index(tail.len() + 1);
                let mut chat = self.chat(
                    "chat cut",
                    ChatAsk::Resume(self.turn, cursor),
                    blocks.clone(),
                );
                chat.tail = tail.as_bytes()[..cut.min(tail.len().saturating_sub(1))].to_vec();
                chats.push(chat);
            } else {
                chats.push(self.chat(
                    "chat cut",
                    ChatAsk::Resume(self.turn, cursor),
                    blocks.clone(),
                ));
            }
            let mut ids = blocks.iter().enumerate().filter_map(|(number, frame)| {
                let block = Block::read(&frame.text, number == 0).expect("our own block");
                let ends = block.is_terminal();
                block.id().map(|id| (id, ends))
            });
            if let Some((id, over)) = ids.next_back() {
                cursor = Some(id);
                if over {
                    let asked = ChatAsk::Resume(self.turn, cursor);
                    let mut told = self.chat("chat cut", asked, Vec::new());
                    told.head = Some(self.head(204));
                    told.end = Some(ChatEnd::Lost);
                    chats.push(told);
                    return;
                }
            }
            from = (upto + self.story.dice.index(4)).min(end);
        }
    }

    /// What comes to one who asks at index `from` and is there up to index `upto`.
    fn blocks(&self, cursor: Option<FrameCursor>, from: usize, upto: usize) -> Vec<Frame> {
        let begin = self.story.events[self.start].id;
        let before = Position {
            seq: Seq(begin.seq.0 - 1),
            sub: Sub::LAST,
            ..begin
        };
        let since = cursor.map_or(before, |cursor| cursor.replay_start());
        let past = replayed(self.story, since, from, FinishedReplay::Deltas);
        let past = past.iter().map(|event| (from, event));
        let live = (from..upto).map(|at| (at, &self.story.events[at]));
        let mut frames = Vec::new();
        for (at, event) in past.chain(live) {
            if event.turn_id != Some(self.turn) || event.body.kind() == EventType::SessionCreated {
                continue;
            }
            let mut bytes = Vec::new();
            let cursor = cursor.unwrap_or(before.into());
            pc3::project_after(event, WireVersion::V05, &cursor, &mut bytes);
            let text = String::from_utf8(bytes).expect("JSON is UTF-8");
            for block in text.split_inclusive("\n\n") {
                let retry = if frames.is_empty() {
                    "retry: 1000\n"
                } else {
                    ""
                };
                frames.push(Frame {
                    at: time(at),
                    text: format!("{retry}{block}"),
                });
            }
        }
        frames
    }
}
