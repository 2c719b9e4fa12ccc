//! Chat streams of a [`SessionFixture`]: what a correct server sends to a viewer that submits
//! and stays, one that is cut and resumes, and one that connects after the turn.

use turnwire_event::fold::replay::FinishedReplay;
use turnwire_event::{Body, Event, EventType, Position, ResponseId, Seq, Sub, TurnId};
use turnwire_wire::pc3::{self, FrameCursor, WireVersion};

use super::fixture::SessionFixture;
use super::fixture_clients::{replayed, time, with_clients};
use super::record::{ChatEnd, ChatRecord, ChatRequest, History, ReceivedFrame};
use crate::sse::{Block, Head};

/// As [`with_clients`], with the chat streams of every turn added.
pub(super) fn with_viewers(fixture: &mut SessionFixture) -> History {
    let mut history = with_clients(fixture);
    let started = |event: &Event| matches!(event.body, Body::TurnStarted(_));
    let starts: Vec<usize> = (0..fixture.events.len())
        .filter(|&at| started(&fixture.events[at]))
        .collect();
    for start in starts {
        let turn = fixture.events[start].turn_id.expect("of a turn");
        let ends = |event: &Event| event.turn_id == Some(turn) && event.body.kind().is_terminal();
        let end = fixture.events.iter().position(ends).expect("it ends") + 1;
        let mut view = TurnViewers {
            fixture,
            turn,
            start,
        };
        history.chats.push(view.live(end));
        view.cut(end, &mut history.chats);
        history.chats.push(view.late());
    }
    history
}

struct TurnViewers<'a> {
    fixture: &'a mut SessionFixture,
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
            ("x-session-id", self.fixture.session.to_string()),
            ("x-response-id", response.to_string()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        Head {
            status,
            headers: headers.to_vec(),
        }
    }

    fn chat(&self, client: &str, request: ChatRequest, blocks: Vec<ReceivedFrame>) -> ChatRecord {
        let done = blocks
            .last()
            .is_some_and(|block| block.text.contains("[DONE]"));
        ChatRecord {
            client: client.to_owned(),
            request,
            version: None,
            head: Some(self.head(200)),
            blocks,
            tail: Vec::new(),
            stays_to_end: done,
            end: Some(if done {
                ChatEnd::Complete
            } else {
                ChatEnd::Cut
            }),
        }
    }

    fn live(&self, end: usize) -> ChatRecord {
        let blocks = self.blocks(None, self.start, end);
        let request = ChatRequest::Submit(Some(self.fixture.session));
        self.chat("chat live", request, blocks)
    }

    fn late(&self) -> ChatRecord {
        let all = self.fixture.events.len();
        let blocks = self.blocks(None, all, all);
        self.chat("chat late", ChatRequest::Resume(self.turn, None), blocks)
    }

    /// Streams that are cut after some blocks until the terminal; then a resume answered with 204.
    fn cut(&mut self, end: usize, chats: &mut Vec<ChatRecord>) {
        let (mut from, mut cursor) = (self.start, None);
        loop {
            let up_to = from + self.fixture.rng.index(end.saturating_sub(from) + 1);
            let mut blocks = self.blocks(cursor, from, up_to);
            if from < end || self.fixture.rng.chance(50) {
                // A part of the next block has arrived.
                let received = blocks.len() - self.fixture.rng.index(blocks.len().min(2) + 1);
                let tail = blocks.drain(received..).next();
                let tail = tail.map_or_else(String::new, |frame| frame.text);
                let cut = tail.len() - self.fixture.rng.index(tail.len() + 1);
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
            if let Some((id, is_terminal)) = ids.next_back() {
                cursor = Some(id);
                if is_terminal {
                    let request = ChatRequest::Resume(self.turn, cursor);
                    let mut ended = self.chat("chat cut", request, Vec::new());
                    ended.head = Some(self.head(204));
                    ended.end = Some(ChatEnd::Lost);
                    chats.push(ended);
                    return;
                }
            }
            from = (up_to + self.fixture.rng.index(4)).min(end);
        }
    }

    /// The blocks for a viewer that connects at index `from` and stays up to index `up_to`.
    fn blocks(&self, cursor: Option<FrameCursor>, from: usize, up_to: usize) -> Vec<ReceivedFrame> {
        let begin = self.fixture.events[self.start].id;
        let before = Position {
            seq: Seq(begin.seq.0 - 1),
            sub: Sub::LAST,
            ..begin
        };
        let since = cursor.map_or(before, |cursor| cursor.replay_start());
        let past = replayed(self.fixture, since, from, FinishedReplay::Deltas);
        let past = past.iter().map(|event| (from, event));
        let live = (from..up_to).map(|at| (at, &self.fixture.events[at]));
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
                frames.push(ReceivedFrame {
                    at: time(at),
                    text: format!("{retry}{block}"),
                });
            }
        }
        frames
    }
}
