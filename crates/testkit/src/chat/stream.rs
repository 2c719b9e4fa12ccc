//! One chat stream: asks, reads the head, then block after block to the end or to the cut.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use turnwire_event::{ResponseId, SessionId, TurnId};
use turnwire_wire::pc3::Cursor;

use super::submit::{ChatSubmit, CursorPlacement};
use crate::api::ApiClient;
use crate::history::{ChatEnd, ChatRequest};
use crate::journal::ChatRecorder;
use crate::sse::{Block, Garbled, Head, Parser, Said};
use crate::watch::limited_stream::ByteLimitedStream;

/// How long to wait for a block. Servers under load, under `strace` or after a kill are slow.
const DEADLINE: Duration = Duration::from_secs(30);
/// The largest head or problem that is read.
const HEAD_MAX: usize = 64 << 10;

/// The stream was not opened: the head of the answer, and its body.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the stream was refused ({}): {body}", self.head.status)]
pub struct ChatRefused {
    /// The head; its status is 0 if there was no answer.
    pub head: Head,
    /// The body, or what went wrong.
    pub body: String,
}

impl ChatRefused {
    fn lost(why: impl std::fmt::Display) -> Self {
        Self {
            head: Head::default(),
            body: why.to_string(),
        }
    }

    /// The status; 0 if there was no answer.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Whether the server says that the viewer has everything (204).
    pub fn is_over(&self) -> bool {
        self.head.status == 204
    }

    /// The code of a problem; empty if it is none.
    pub fn code(&self) -> String {
        let problem: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatStreamEnd {
    /// With its sentinel, and then the end of the connection.
    #[error("whole")]
    Whole,
    /// After as many bytes as it was told.
    #[error("cut")]
    Cut,
    #[error("lost: {0}")]
    Lost(String),
    /// With something that is no chat stream.
    #[error("garbled: {0}")]
    Garbled(#[from] Garbled),
    /// Nothing came for too long; it may be alive.
    #[error("nothing came within the deadline")]
    Silent,
}

/// One stream of a client.
#[derive(Debug)]
pub struct ChatStream {
    io: ByteLimitedStream,
    parser: Parser,
    page: ChatRecorder,
    head: Head,
    last: Option<Cursor>,
    /// How long to wait for a block.
    pub patience: Duration,
}

impl ChatStream {
    /// Submits a turn and reads the head of its stream.
    pub async fn submit(
        api: &ApiClient,
        name: &str,
        question: &ChatSubmit,
    ) -> Result<Self, ChatRefused> {
        let asked = ChatRequest::Submit(question.asked_session());
        let page = api.journal().chat(name, asked, question.asked_version());
        let body = question.body();
        let mut request = format!("POST /chat/stream HTTP/1.1\r\nhost: {}\r\n", api.addr());
        let _ = write!(request, "accept: text/event-stream\r\n");
        let _ = write!(request, "content-type: application/json\r\n");
        let _ = write!(request, "content-length: {}\r\n", body.len());
        for (name, value) in question.headers() {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        let opened = Self::open(api, request, &body, page, None).await;
        if let Err(refused) = &opened {
            let status = refused.status();
            let answer = (status > 0).then(|| (status, refused.body.clone()));
            api.journal().request("POST", "/chat/stream", &body, answer);
        }
        opened
    }

    /// Comes back into a turn's stream.
    pub async fn resume(
        api: &ApiClient,
        name: &str,
        turn: TurnId,
        cursor: Option<Cursor>,
        carry: CursorPlacement,
        version: Option<&str>,
    ) -> Result<Self, ChatRefused> {
        Self::resume_small(api, name, turn, (cursor, carry), version, None).await
    }

    /// The same with a receive buffer of so many bytes, for one that will stop reading.
    pub async fn resume_small(
        api: &ApiClient,
        name: &str,
        turn: TurnId,
        (cursor, carry): (Option<Cursor>, CursorPlacement),
        version: Option<&str>,
        buffer: Option<u32>,
    ) -> Result<Self, ChatRefused> {
        let page = api
            .journal()
            .chat(name, ChatRequest::Resume(turn, cursor), version);
        let mut path = format!("/chat/{}/stream", ResponseId::from(turn));
        let mut header = String::new();
        if let Some(cursor) = cursor {
            if carry != CursorPlacement::Header {
                let _ = write!(path, "?last_event_id={cursor}");
            }
            if carry != CursorPlacement::Query {
                let _ = write!(header, "last-event-id: {cursor}\r\n");
            }
        }
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", api.addr());
        let _ = write!(request, "accept: text/event-stream\r\n{header}");
        if let Some(version) = version {
            let _ = write!(request, "x-wire-version: {version}\r\n");
        }
        Self::open(api, request, "", page, buffer).await
    }

    async fn open(
        api: &ApiClient,
        mut request: String,
        body: &str,
        page: ChatRecorder,
        buffer: Option<u32>,
    ) -> Result<Self, ChatRefused> {
        for (name, value) in api.headers() {
            let value = value.to_str().unwrap_or_default();
            let _ = write!(request, "{name}: {value}\r\n");
        }
        let _ = write!(request, "\r\n{body}");
        let asked = tokio::time::timeout(DEADLINE, ask(api, &request, buffer)).await;
        let asked = asked.unwrap_or_else(|_| Err(ChatRefused::lost("no answer in time")));
        let (mut io, head, early_body) = asked.inspect_err(|_| page.ended(ChatEnd::Lost, b""))?;
        page.answered(&head);
        if head.status != 200 {
            page.ended(ChatEnd::Lost, b"");
            let body = tokio::time::timeout(DEADLINE, problem(&mut io, &head, early_body)).await;
            let body = body.unwrap_or_default();
            return Err(ChatRefused { head, body });
        }
        let mut parser = Parser::default();
        parser.push(&early_body);
        Ok(Self {
            io,
            parser,
            page,
            head,
            last: None,
            patience: DEADLINE,
        })
    }

    /// The head of the answer.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The session it is of.
    pub fn session(&self) -> SessionId {
        self.head.session().expect("an X-Session-Id")
    }

    /// The turn it is of.
    pub fn turn(&self) -> TurnId {
        self.head.turn().expect("an X-Response-Id")
    }

    /// The id of the last frame that came whole.
    pub fn last(&self) -> Option<Cursor> {
        self.last
    }

    /// Ends the stream after so many more bytes.
    pub fn end_after(&mut self, bytes: u64) {
        self.io.end_after(bytes);
    }

    /// The viewer will stay until the turn is over, and must be told.
    pub fn stays(&self) {
        self.page.stays();
    }

    /// The next block, whatever it is.
    pub async fn block(&mut self) -> Result<Block, ChatStreamEnd> {
        let next = self.receive().await;
        match &next {
            Ok(block) => {
                self.page.received(&block.text);
                self.last = block.id().or(self.last);
            }
            Err(end) => self.note(end),
        }
        next
    }

    fn note(&self, end: &ChatStreamEnd) {
        let end = match end {
            ChatStreamEnd::Whole => ChatEnd::Whole,
            ChatStreamEnd::Cut => ChatEnd::Cut,
            ChatStreamEnd::Lost(_) => ChatEnd::Lost,
            ChatStreamEnd::Garbled(why) => ChatEnd::Garbled(why.to_string()),
            // It may go on.
            ChatStreamEnd::Silent => return,
        };
        self.page.ended(end, self.parser.tail());
    }

    async fn receive(&mut self) -> Result<Block, ChatStreamEnd> {
        loop {
            if let Some(block) = self.parser.take()? {
                return Ok(block);
            }
            let mut bytes = [0; 16 << 10];
            match tokio::time::timeout(self.patience, self.io.read(&mut bytes)).await {
                Err(_) => return Err(ChatStreamEnd::Silent),
                Ok(Ok(0)) if self.io.is_spent() => return Err(ChatStreamEnd::Cut),
                Ok(Ok(0)) if self.parser.is_done() => return Err(ChatStreamEnd::Whole),
                Ok(Ok(0)) => return Err(ChatStreamEnd::Lost("the connection ended".into())),
                Ok(Err(why)) => return Err(ChatStreamEnd::Lost(why.to_string())),
                Ok(Ok(n)) => self.parser.push(&bytes[..n]),
            }
        }
    }

    /// The next frame, whatever comes before it.
    pub async fn next(&mut self) -> Result<Block, ChatStreamEnd> {
        loop {
            let block = self.block().await?;
            if matches!(block.said, Said::Frame(..)) {
                return Ok(block);
            }
        }
    }

    /// Frames up to and with the first of a type.
    pub async fn until(&mut self, event: &str) -> Result<Vec<Block>, ChatStreamEnd> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await?;
            let done = frame.event() == event;
            frames.push(frame);
            if done {
                return Ok(frames);
            }
        }
    }

    /// Frames up to the end of the stream, which must be whole.
    pub async fn read_to_end(&mut self) -> Result<Vec<Block>, ChatStreamEnd> {
        self.stays();
        let mut frames = Vec::new();
        loop {
            match self.next().await {
                Ok(frame) => frames.push(frame),
                Err(ChatStreamEnd::Whole) => return Ok(frames),
                Err(end) => return Err(end),
            }
        }
    }

    /// Is cut here, after at most `bytes` of what has come of the next block.
    pub fn cut(self, bytes: usize) {
        let come = self.parser.tail();
        let block = come.windows(2).position(|two| two == b"\n\n");
        // A block that came whole counts as had: less than that.
        let most = block.map_or(come.len(), |end| end + 1);
        self.page.ended(ChatEnd::Cut, &come[..bytes.min(most)]);
    }
}

impl Drop for ChatStream {
    fn drop(&mut self) {
        // Dropped as it is: what was not taken out is as if it had not come.
        self.page.ended(ChatEnd::Cut, b"");
    }
}

async fn ask(
    api: &ApiClient,
    request: &str,
    buffer: Option<u32>,
) -> Result<(ByteLimitedStream, Head, Vec<u8>), ChatRefused> {
    let stream = match buffer {
        None => TcpStream::connect(api.addr()).await,
        Some(bytes) => {
            let socket = TcpSocket::new_v4().map_err(ChatRefused::lost)?;
            socket
                .set_recv_buffer_size(bytes)
                .map_err(ChatRefused::lost)?;
            socket.connect(api.addr()).await
        }
    };
    let mut stream = stream.map_err(ChatRefused::lost)?;
    stream.set_nodelay(true).map_err(ChatRefused::lost)?;
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(ChatRefused::lost)?;
    let mut bytes = Vec::with_capacity(1_024);
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > HEAD_MAX {
            return Err(ChatRefused::lost("a head without end"));
        }
        if stream
            .read_buf(&mut bytes)
            .await
            .map_err(ChatRefused::lost)?
            == 0
        {
            return Err(ChatRefused::lost(
                "the connection ended before the head did",
            ));
        }
    };
    let early_body = bytes.split_off(end);
    let head = String::from_utf8(bytes).ok();
    let head = head.and_then(|text| Head::read(&text));
    let head = head.ok_or_else(|| ChatRefused::lost("not a head"))?;
    Ok((ByteLimitedStream::new(stream), head, early_body))
}

/// The body of an answer that is no stream.
async fn problem(io: &mut ByteLimitedStream, head: &Head, mut bytes: Vec<u8>) -> String {
    let length: usize = head.header("content-length").parse().unwrap_or(0);
    while bytes.len() < length.min(HEAD_MAX) {
        match io.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
