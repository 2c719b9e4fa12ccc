//! Viewers of a made-up story's chat streams: what a faultless server sends to one that submits
//! and stays, one that is cut and resumes, one that comes when all is over.

use turnwire_event::fold::replay::Missed;
use turnwire_event::{Body, Event, EventType, Position, ResponseId, Seq, Sub, TurnId};
use turnwire_wire::pc3::{self, Cursor, Version};

use super::fixture::SessionFixture;
use super::fixture_clients::{replayed, time, watched};
use super::record::{ChatEnd, ChatRecord, ChatRequest, History, ReceivedFrame};
use crate::sse::{Block, Head};

/// As `watched`, and every turn also seen over its chat stream.
pub(super) fn viewed(story: &mut SessionFixture) -> History {
    let mut history = watched(story);
    let started = |event: &Event| matches!(event.body, Body::TurnStarted(_));
    let starts: Vec<usize> = (0..story.events.len())
        .filter(|&at| started(&story.events[at]))
        .collect();
    for start in starts {
        let turn = story.events[start].turn_id.expect("of a turn");
        let ends = |event: &Event| event.turn_id == Some(turn) && event.body.kind().is_terminal();
        let end = story.events.iter().position(ends).expect("it ends") + 1;
        let mut view = TurnViewers { story, turn, start };
        history.chats.push(view.live(end));
        view.cut(end, &mut history.chats);
        history.chats.push(view.late());
    }
    history
}

struct TurnViewers<'a> {
    story: &'a mut SessionFixture,
    turn: TurnId,
    start: usize,
}

impl TurnViewers<'_> {
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

    fn chat(&self, client: &str, asked: ChatRequest, blocks: Vec<ReceivedFrame>) -> ChatRecord {
        let done = blocks
            .last()
            .is_some_and(|block| block.text.contains("[DONE]"));
        ChatRecord {
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

    fn live(&self, end: usize) -> ChatRecord {
        let blocks = self.blocks(None, self.start, end);
        let asked = ChatRequest::Submit(Some(self.story.session));
        self.chat("chat live", asked, blocks)
    }

    fn late(&self) -> ChatRecord {
        let all = self.story.events.len();
        let blocks = self.blocks(None, all, all);
        self.chat("chat late", ChatRequest::Resume(self.turn, None), blocks)
    }

    /// Streams that are cut after some blocks, until the turn is over; then one that is told so.
    fn cut(&mut self, end: usize, chats: &mut Vec<ChatRecord>) {
        let (mut from, mut cursor) = (self.start, None);
        loop {
            let upto = from + self.story.rng.index(end.saturating_sub(from) + 1);
            let mut blocks = self.blocks(cursor, from, upto);
            if from < end || self.story.rng.chance(50) {
                // The next block was on its way.
                let kept = blocks.len() - self.story.rng.index(blocks.len().min(2) + 1);
                let tail = blocks.drain(kept..).next();
                let tail = tail.map_or_else(String::new, |frame| frame.text);
                let cut = tail.len() - self.story.rng.index(tail.len() + 1);
                let mut chat = self.chat(
                    "chat cut",
                    ChatRequest::Resume(self.turn, cursor),
                    blocks.clone(),
                );
                chat.tail = tail.as_bytes()[..cut.min(tail.len().saturating_sub(1))].to_vec();
                chats.push(chat);
            } else {
                chats.push(self.chat(
                    "chat cut",
                    ChatRequest::Resume(self.turn, cursor),
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
                    let asked = ChatRequest::Resume(self.turn, cursor);
                    let mut told = self.chat("chat cut", asked, Vec::new());
                    told.head = Some(self.head(204));
                    told.end = Some(ChatEnd::Lost);
                    chats.push(told);
                    return;
                }
            }
            from = (upto + self.story.rng.index(4)).min(end);
        }
    }

    /// What comes to one who asks at index `from` and is there up to index `upto`.
    fn blocks(&self, cursor: Option<Cursor>, from: usize, upto: usize) -> Vec<ReceivedFrame> {
        let begin = self.story.events[self.start].id;
        let before = Position {
            seq: Seq(begin.seq.0 - 1),
            sub: Sub::LAST,
            ..begin
        };
        let since = cursor.map_or(before, |cursor| cursor.since());
        let past = replayed(self.story, since, from, Missed::Deltas);
        let past = past.iter().map(|event| (from, event));
        let live = (from..upto).map(|at| (at, &self.story.events[at]));
        let mut frames = Vec::new();
        for (at, event) in past.chain(live) {
            if event.turn_id != Some(self.turn) || event.body.kind() == EventType::SessionCreated {
                continue;
            }
            let mut bytes = Vec::new();
            let cursor = cursor.unwrap_or(before.into());
            pc3::project_after(event, Version::V05, &cursor, &mut bytes);
            let text = String::from_utf8(bytes).expect("JSON is UTF-8");
            for block in text.split_inclusive("\n\n") {
                let retry = if frames.is_empty() {
                    "retry: 1000\n"
                } else {
                    ""
                };
                frames.push(ReceivedFrame {
                    at: time(at),
                    text: format!("{retry}{block}"),
                });
            }
        }
        frames
    }
}
