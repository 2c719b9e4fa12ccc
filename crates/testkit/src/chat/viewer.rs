//! A viewer whose line is cut again and again: wherever the bytes end. It comes back as an
//! `EventSource` does, with the id of the last frame it got whole, and stops when it is told that
//! there is nothing more.

use std::time::{Duration, Instant};

use turnwire_event::{SessionId, TurnId};
use turnwire_wire::pc3::Cursor;

use super::stream::{ChatRefused, ChatStream, ChatStreamEnd};
use super::submit::{ChatSubmit, CursorPlacement};
use crate::api::ApiClient;
use crate::history::FaultKind;
use crate::rng::SeededRng;
use crate::sse::Block;

/// How long a viewer may be without its ending.
const ENDING_WITHIN: Duration = Duration::from_secs(60);

/// Where in its turn a viewer stands, by the last frame it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerPosition {
    /// It has nothing, or only the turn's name.
    Opening,
    Inside,
    Between,
    /// It knows what the turn cost, and not how it ended.
    Ending,
    /// It has the terminal.
    Over,
}

/// A client that follows one turn over many streams.
#[derive(Debug)]
pub struct ChatViewer {
    api: ApiClient,
    name: String,
    turn: TurnId,
    version: Option<String>,
    rng: SeededRng,
    session: Option<SessionId>,
    last: Option<Cursor>,
    place: ViewerPosition,
    stream: Option<ChatStream>,
    terminal: Option<Block>,
    text: String,
}

impl ChatViewer {
    /// Submits a turn and follows it.
    pub async fn submit(
        api: &ApiClient,
        name: &str,
        question: &ChatSubmit,
        rng: SeededRng,
    ) -> Result<Self, ChatRefused> {
        let stream = ChatStream::submit(api, name, question).await?;
        let mut viewer = Self::of(api, name, stream.turn(), rng);
        viewer.session = Some(stream.session());
        viewer.version = question.asked_version().map(str::to_owned);
        viewer.stream = Some(stream);
        Ok(viewer)
    }

    /// Follows a turn that is there, from its start on.
    pub fn of(api: &ApiClient, name: &str, turn: TurnId, rng: SeededRng) -> Self {
        Self {
            api: api.clone(),
            name: name.to_owned(),
            turn,
            version: None,
            rng,
            session: None,
            last: None,
            place: ViewerPosition::Opening,
            stream: None,
            terminal: None,
            text: String::new(),
        }
    }

    /// Follows from a cursor on, as a submit gives one.
    #[must_use]
    pub fn since(mut self, cursor: Cursor) -> Self {
        self.last = Some(cursor);
        self
    }

    /// Says its version on every other resume; it must be the turn's.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// The turn it follows.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// The session, once it is known.
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The id of the last frame it has.
    pub fn last(&self) -> Option<Cursor> {
        self.last
    }

    /// Where it stands.
    pub fn place(&self) -> ViewerPosition {
        self.place
    }

    /// The frame that ended the turn, if it has it.
    pub fn terminal(&self) -> Option<&Block> {
        self.terminal.as_ref()
    }

    /// The words it has been sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Connects if it is not connected. An error is a server that is down or on its way out;
    /// what must not be is a panic.
    pub async fn resume(&mut self) -> Result<(), ChatStreamEnd> {
        if self.stream.is_some() {
            return Ok(());
        }
        let version = self.version.clone().filter(|_| self.rng.chance(50));
        let carry = CursorPlacement::any(&mut self.rng);
        let (name, turn, last) = (&self.name, self.turn, self.last);
        let opened =
            ChatStream::resume(&self.api, name, turn, last, carry, version.as_deref()).await;
        match opened {
            Ok(stream) => {
                assert_eq!(stream.turn(), turn, "{name}: another turn's stream");
                self.session = Some(stream.session());
                self.stream = Some(stream);
                Ok(())
            }
            Err(refused) if refused.is_over() => {
                assert!(
                    self.terminal.is_some(),
                    "{name} has {last:?} of {turn}, not its ending, and is told that it is over"
                );
                Err(ChatStreamEnd::Whole)
            }
            Err(refused) => {
                let later = matches!(refused.status(), 0 | 503);
                assert!(later, "{name} resumes {turn} at {last:?}: {refused}");
                Err(ChatStreamEnd::Lost(refused.to_string()))
            }
        }
    }

    /// Reads one block; the viewer is disconnected when the stream has ended.
    pub async fn step(&mut self) -> Result<Block, ChatStreamEnd> {
        self.resume().await?;
        let stream = self.stream.as_mut().expect("just connected");
        let block = stream.block().await;
        match &block {
            Ok(block) => self.take(block),
            Err(ChatStreamEnd::Silent) => {}
            Err(_) => self.stream = None,
        }
        block
    }

    fn take(&mut self, block: &Block) {
        let Some(id) = block.id() else { return };
        self.last = Some(id);
        self.place = match block.event() {
            "response_id" => ViewerPosition::Opening,
            "text" | "reasoning" | "thinking" => ViewerPosition::Inside,
            "usage" => ViewerPosition::Ending,
            _ if block.is_terminal() => ViewerPosition::Over,
            _ => ViewerPosition::Between,
        };
        if block.event() == "text" {
            self.text += block.field("chunk").as_str().unwrap_or_default();
        }
        if block.is_terminal() {
            self.terminal = Some(block.clone());
        }
    }

    /// Reads until `bytes` more have come over the line, then is cut; says where. None if the
    /// stream ended otherwise, or nothing more came for a while.
    pub async fn cut_after(&mut self, bytes: u64, patience: Duration) -> Option<ViewerPosition> {
        if self.resume().await.is_err() {
            return None;
        }
        if let Some(stream) = &mut self.stream {
            stream.end_after(bytes);
            stream.patience = patience;
        }
        loop {
            match self.step().await {
                Ok(_) => {}
                Err(ChatStreamEnd::Cut) => {
                    self.api.journal().fault(FaultKind::Cut);
                    return Some(self.place);
                }
                Err(ChatStreamEnd::Silent) => {
                    self.drop_line(0);
                    return None;
                }
                Err(ChatStreamEnd::Garbled(why)) => panic!("{}: {why}", self.name),
                Err(ChatStreamEnd::Lost(_) | ChatStreamEnd::Whole) => return None,
            }
        }
    }

    /// Reads until it stands at a place, then is cut in the next block; says whether it was.
    pub async fn cut_at(&mut self, place: ViewerPosition, bytes: usize) -> bool {
        if self.resume().await.is_err() {
            return false;
        }
        loop {
            // One that has nothing yet stands at the opening too, and has nothing to be cut after.
            if self.place == place && self.last.is_some() {
                return self.drop_line(bytes);
            }
            match self.step().await {
                Ok(_) => {}
                Err(ChatStreamEnd::Garbled(why)) => panic!("{}: {why}", self.name),
                Err(
                    ChatStreamEnd::Lost(_)
                    | ChatStreamEnd::Whole
                    | ChatStreamEnd::Cut
                    | ChatStreamEnd::Silent,
                ) => return false,
            }
        }
    }

    /// Drops the line inside the next block, if there is one; says whether there was a line.
    pub fn drop_line(&mut self, bytes: usize) -> bool {
        let Some(stream) = self.stream.take() else {
            return false;
        };
        stream.cut(bytes);
        self.api.journal().fault(FaultKind::Cut);
        true
    }

    /// Reads until it has the turn's ending, over as many streams as it takes; gives the frame.
    pub async fn finish(&mut self) -> Block {
        let begun = Instant::now();
        loop {
            if self.resume().await.is_ok()
                && let Some(stream) = &self.stream
            {
                stream.stays();
            }
            let end = loop {
                match self.step().await {
                    Ok(_) => {}
                    Err(end) => break end,
                }
            };
            if let (Some(terminal), ChatStreamEnd::Whole) = (&self.terminal, &end) {
                return terminal.clone();
            }
            assert!(
                begun.elapsed() < ENDING_WITHIN && !matches!(end, ChatStreamEnd::Garbled(_)),
                "{} has {:?} of {} and never its ending: {end}",
                self.name,
                self.last.map(|id| id.to_string()),
                self.turn
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
