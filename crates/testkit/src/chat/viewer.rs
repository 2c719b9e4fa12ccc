//! A viewer whose connection is cut repeatedly, anywhere in a block. It resumes as an `EventSource`
//! does, with the id of the last complete frame, and stops when the server answers that no frame
//! is left.

use std::time::{Duration, Instant};

use turnwire_event::{SessionId, TurnId};
use turnwire_wire::pc3::FrameCursor;

use super::stream::{ChatRefused, ChatStream, ChatStreamEnd};
use super::submit::{ChatSubmit, CursorPlacement};
use crate::api::ApiClient;
use crate::history::FaultKind;
use crate::rng::SeededRng;
use crate::sse::Block;

/// Deadline for a viewer to receive the terminal.
const ENDING_WITHIN: Duration = Duration::from_secs(60);

/// The position of a viewer in its turn, by its last frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerPosition {
    /// No frame, or only `response_id`.
    Opening,
    Inside,
    Between,
    /// After `usage`, before the terminal.
    Ending,
    /// After the terminal frame.
    Over,
}

/// A client that reads one turn over many streams.
#[derive(Debug)]
pub struct ChatViewer {
    api: ApiClient,
    name: String,
    turn: TurnId,
    version: Option<String>,
    rng: SeededRng,
    session: Option<SessionId>,
    last: Option<FrameCursor>,
    place: ViewerPosition,
    stream: Option<ChatStream>,
    terminal: Option<Block>,
    text: String,
}

impl ChatViewer {
    /// Submits a turn and reads it.
    pub async fn submit(
        api: &ApiClient,
        name: &str,
        submit: &ChatSubmit,
        rng: SeededRng,
    ) -> Result<Self, ChatRefused> {
        let stream = ChatStream::submit(api, name, submit).await?;
        let mut viewer = Self::of(api, name, stream.turn(), rng);
        viewer.session = Some(stream.session());
        viewer.version = submit.requested_version().map(str::to_owned);
        viewer.stream = Some(stream);
        Ok(viewer)
    }

    /// Reads an existing turn from its start.
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

    /// Reads after a cursor, such as the one in a submit response.
    #[must_use]
    pub fn since(mut self, cursor: FrameCursor) -> Self {
        self.last = Some(cursor);
        self
    }

    /// Sends the wire version on about half of the resumes; it must be the turn's.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// The turn of this viewer.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// The session; `None` before the first response.
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The id of the last complete frame.
    pub fn last(&self) -> Option<FrameCursor> {
        self.last
    }

    /// The position by the last frame.
    pub fn place(&self) -> ViewerPosition {
        self.place
    }

    /// The terminal frame, if received.
    pub fn terminal(&self) -> Option<&Block> {
        self.terminal.as_ref()
    }

    /// The text received so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Connects if disconnected. An error means that the server is down or draining; any other
    /// refusal is a panic.
    pub async fn resume(&mut self) -> Result<(), ChatStreamEnd> {
        if self.stream.is_some() {
            return Ok(());
        }
        let version = self.version.clone().filter(|_| self.rng.chance(50));
        let placement = CursorPlacement::any(&mut self.rng);
        let (name, turn, last) = (&self.name, self.turn, self.last);
        let opened =
            ChatStream::resume(&self.api, name, turn, last, placement, version.as_deref()).await;
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
                    "{name} has {last:?} of {turn} and not its terminal, but the server answered 204"
                );
                Err(ChatStreamEnd::Complete)
            }
            Err(refused) => {
                let later = matches!(refused.status(), 0 | 503);
                assert!(later, "{name} resumes {turn} at {last:?}: {refused}");
                Err(ChatStreamEnd::Lost(refused.to_string()))
            }
        }
    }

    /// Reads one block; disconnects when the stream ends.
    pub async fn step(&mut self) -> Result<Block, ChatStreamEnd> {
        self.resume().await?;
        let stream = self.stream.as_mut().expect("just connected");
        let block = stream.block().await;
        match &block {
            Ok(block) => self.apply_block(block),
            Err(ChatStreamEnd::TimedOut) => {}
            Err(_) => self.stream = None,
        }
        block
    }

    fn apply_block(&mut self, block: &Block) {
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

    /// Reads `bytes` more bytes, then cuts the stream and returns where. `None` if the stream
    /// ended before, or nothing arrived within the deadline.
    pub async fn cut_after(&mut self, bytes: u64, deadline: Duration) -> Option<ViewerPosition> {
        if self.resume().await.is_err() {
            return None;
        }
        if let Some(stream) = &mut self.stream {
            stream.end_after(bytes);
            stream.deadline = deadline;
        }
        loop {
            match self.step().await {
                Ok(_) => {}
                Err(ChatStreamEnd::Cut) => {
                    self.api.journal().fault(FaultKind::Cut);
                    return Some(self.place);
                }
                Err(ChatStreamEnd::TimedOut) => {
                    self.drop_connection(0);
                    return None;
                }
                Err(ChatStreamEnd::Invalid(why)) => panic!("{}: {why}", self.name),
                Err(ChatStreamEnd::Lost(_) | ChatStreamEnd::Complete) => return None,
            }
        }
    }

    /// Reads up to a position, then cuts the stream in the next block; false if it ended before.
    pub async fn cut_at(&mut self, place: ViewerPosition, bytes: usize) -> bool {
        if self.resume().await.is_err() {
            return false;
        }
        loop {
            // Without a frame there is nothing to cut after.
            if self.place == place && self.last.is_some() {
                return self.drop_connection(bytes);
            }
            match self.step().await {
                Ok(_) => {}
                Err(ChatStreamEnd::Invalid(why)) => panic!("{}: {why}", self.name),
                Err(
                    ChatStreamEnd::Lost(_)
                    | ChatStreamEnd::Complete
                    | ChatStreamEnd::Cut
                    | ChatStreamEnd::TimedOut,
                ) => return false,
            }
        }
    }

    /// Cuts the stream inside the next block; false if there is no stream.
    pub fn drop_connection(&mut self, bytes: usize) -> bool {
        let Some(stream) = self.stream.take() else {
            return false;
        };
        stream.cut(bytes);
        self.api.journal().fault(FaultKind::Cut);
        true
    }

    /// Reads up to the terminal, over as many streams as needed, and returns the terminal.
    pub async fn finish(&mut self) -> Block {
        let started = Instant::now();
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
            if let (Some(terminal), ChatStreamEnd::Complete) = (&self.terminal, &end) {
                return terminal.clone();
            }
            assert!(
                started.elapsed() < ENDING_WITHIN && !matches!(end, ChatStreamEnd::Invalid(_)),
                "{} has {:?} of {} and never its terminal: {end}",
                self.name,
                self.last.map(|id| id.to_string()),
                self.turn
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
