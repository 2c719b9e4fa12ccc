//! One chat stream: sends the request, reads the response head, then blocks to the end or the cut.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use turnwire_event::{ResponseId, SessionId, TurnId};
use turnwire_wire::pc3::FrameCursor;

use super::submit::{ChatSubmit, CursorPlacement};
use crate::api::ApiClient;
use crate::history::{ChatEnd, ChatRequest};
use crate::journal::ChatRecorder;
use crate::sse::{Block, Garbled, Head, Parser, Said};
use crate::watch::limited_stream::ByteLimitedStream;

/// Deadline for a block. Servers under load, under `strace` or after a kill are slow.
const DEADLINE: Duration = Duration::from_secs(60);
/// Maximum size of a response head or problem in bytes.
const HEAD_MAX: usize = 64 << 10;

/// The server refused the stream.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the stream was refused ({}): {body}", self.head.status)]
pub struct ChatRefused {
    /// The response head; its status is 0 if there was no response.
    pub head: Head,
    /// The response body, or the error.
    pub body: String,
}

impl ChatRefused {
    fn lost(why: impl std::fmt::Display) -> Self {
        Self {
            head: Head::default(),
            body: why.to_string(),
        }
    }

    /// The HTTP status; 0 if there was no response.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// True if the server answered 204: the viewer has all frames.
    pub fn is_over(&self) -> bool {
        self.head.status == 204
    }

    /// The code of a problem; empty if the body is not a problem.
    pub fn code(&self) -> String {
        let problem: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// How a chat stream ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatStreamEnd {
    /// The sentinel arrived, then the connection ended.
    #[error("complete")]
    Complete,
    /// The byte limit of [`ChatStream::end_after`] was reached.
    #[error("cut")]
    Cut,
    #[error("lost: {0}")]
    Lost(String),
    /// The bytes are not a valid chat stream.
    #[error("invalid: {0}")]
    Invalid(#[from] Garbled),
    /// Nothing arrived within the deadline; the stream may be alive.
    #[error("nothing came within the deadline")]
    TimedOut,
}

/// An open chat stream; dropping it cuts the connection.
#[derive(Debug)]
pub struct ChatStream {
    io: ByteLimitedStream,
    parser: Parser,
    recorder: ChatRecorder,
    head: Head,
    last: Option<FrameCursor>,
    /// Deadline for the next block.
    pub deadline: Duration,
}

impl ChatStream {
    /// Submits a turn and reads the response head.
    pub async fn submit(
        api: &ApiClient,
        name: &str,
        submit: &ChatSubmit,
    ) -> Result<Self, ChatRefused> {
        let request = ChatRequest::Submit(submit.requested_session());
        let recorder = api
            .journal()
            .chat(name, request, submit.requested_version());
        let body = submit.body();
        let mut request = format!("POST /chat/stream HTTP/1.1\r\nhost: {}\r\n", api.addr());
        let _ = write!(request, "accept: text/event-stream\r\n");
        let _ = write!(request, "content-type: application/json\r\n");
        let _ = write!(request, "content-length: {}\r\n", body.len());
        for (name, value) in submit.headers() {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        let opened = Self::open(api, request, &body, recorder, None).await;
        if let Err(refused) = &opened {
            let status = refused.status();
            let answer = (status > 0).then(|| (status, refused.body.clone()));
            api.journal().request("POST", "/chat/stream", &body, answer);
        }
        opened
    }

    /// Resumes the stream of a turn after a cursor.
    pub async fn resume(
        api: &ApiClient,
        name: &str,
        turn: TurnId,
        cursor: Option<FrameCursor>,
        placement: CursorPlacement,
        version: Option<&str>,
    ) -> Result<Self, ChatRefused> {
        Self::resume_with_buffer(api, name, turn, (cursor, placement), version, None).await
    }

    /// Resumes with a receive buffer of `buffer` bytes, for clients that stop reading.
    pub async fn resume_with_buffer(
        api: &ApiClient,
        name: &str,
        turn: TurnId,
        (cursor, placement): (Option<FrameCursor>, CursorPlacement),
        version: Option<&str>,
        buffer: Option<u32>,
    ) -> Result<Self, ChatRefused> {
        let recorder = api
            .journal()
            .chat(name, ChatRequest::Resume(turn, cursor), version);
        let mut path = format!("/chat/{}/stream", ResponseId::from(turn));
        let mut header = String::new();
        if let Some(cursor) = cursor {
            if placement != CursorPlacement::Header {
                let _ = write!(path, "?last_event_id={cursor}");
            }
            if placement != CursorPlacement::Query {
                let _ = write!(header, "last-event-id: {cursor}\r\n");
            }
        }
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", api.addr());
        let _ = write!(request, "accept: text/event-stream\r\n{header}");
        if let Some(version) = version {
            let _ = write!(request, "x-wire-version: {version}\r\n");
        }
        Self::open(api, request, "", recorder, buffer).await
    }

    async fn open(
        api: &ApiClient,
        mut request: String,
        body: &str,
        recorder: ChatRecorder,
        buffer: Option<u32>,
    ) -> Result<Self, ChatRefused> {
        for (name, value) in api.headers() {
            let value = value.to_str().unwrap_or_default();
            let _ = write!(request, "{name}: {value}\r\n");
        }
        let _ = write!(request, "\r\n{body}");
        let opened = tokio::time::timeout(DEADLINE, send_request(api, &request, buffer)).await;
        let opened = opened.unwrap_or_else(|_| Err(ChatRefused::lost("no answer in time")));
        let (mut io, head, early_body) =
            opened.inspect_err(|_| recorder.ended(ChatEnd::Lost, b""))?;
        recorder.answered(&head);
        if head.status != 200 {
            recorder.ended(ChatEnd::Lost, b"");
            let body =
                tokio::time::timeout(DEADLINE, read_problem(&mut io, &head, early_body)).await;
            let body = body.unwrap_or_default();
            return Err(ChatRefused { head, body });
        }
        let mut parser = Parser::default();
        parser.push(&early_body);
        Ok(Self {
            io,
            parser,
            recorder,
            head,
            last: None,
            deadline: DEADLINE,
        })
    }

    /// The head of the response.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The session of the stream.
    pub fn session(&self) -> SessionId {
        self.head.session().expect("an X-Session-Id")
    }

    /// The turn of the stream.
    pub fn turn(&self) -> TurnId {
        self.head.turn().expect("an X-Response-Id")
    }

    /// The id of the last complete frame.
    pub fn last(&self) -> Option<FrameCursor> {
        self.last
    }

    /// Ends the stream after `bytes` more bytes.
    pub fn end_after(&mut self, bytes: u64) {
        self.io.end_after(bytes);
    }

    /// Records that the viewer stays until the turn ends, and so must receive its terminal.
    pub fn stays(&self) {
        self.recorder.stays();
    }

    /// The next block of any kind.
    pub async fn block(&mut self) -> Result<Block, ChatStreamEnd> {
        let next = self.receive().await;
        match &next {
            Ok(block) => {
                self.recorder.received(&block.text);
                self.last = block.id().or(self.last);
            }
            Err(end) => self.record_end(end),
        }
        next
    }

    fn record_end(&self, end: &ChatStreamEnd) {
        let end = match end {
            ChatStreamEnd::Complete => ChatEnd::Complete,
            ChatStreamEnd::Cut => ChatEnd::Cut,
            ChatStreamEnd::Lost(_) => ChatEnd::Lost,
            ChatStreamEnd::Invalid(why) => ChatEnd::Invalid(why.to_string()),
            // The stream may continue.
            ChatStreamEnd::TimedOut => return,
        };
        self.recorder.ended(end, self.parser.tail());
    }

    async fn receive(&mut self) -> Result<Block, ChatStreamEnd> {
        loop {
            if let Some(block) = self.parser.take()? {
                return Ok(block);
            }
            let mut bytes = [0; 16 << 10];
            match tokio::time::timeout(self.deadline, self.io.read(&mut bytes)).await {
                Err(_) => return Err(ChatStreamEnd::TimedOut),
                Ok(Ok(0)) if self.io.is_at_limit() => return Err(ChatStreamEnd::Cut),
                Ok(Ok(0)) if self.parser.is_done() => return Err(ChatStreamEnd::Complete),
                Ok(Ok(0)) => return Err(ChatStreamEnd::Lost("the connection ended".into())),
                Ok(Err(why)) => return Err(ChatStreamEnd::Lost(why.to_string())),
                Ok(Ok(n)) => self.parser.push(&bytes[..n]),
            }
        }
    }

    /// The next frame; skips other blocks.
    pub async fn next(&mut self) -> Result<Block, ChatStreamEnd> {
        loop {
            let block = self.block().await?;
            if matches!(block.said, Said::Frame(..)) {
                return Ok(block);
            }
        }
    }

    /// Frames up to and including the first of a type.
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

    /// Frames up to the end of the stream, which must be complete.
    pub async fn read_to_end(&mut self) -> Result<Vec<Block>, ChatStreamEnd> {
        self.stays();
        let mut frames = Vec::new();
        loop {
            match self.next().await {
                Ok(frame) => frames.push(frame),
                Err(ChatStreamEnd::Complete) => return Ok(frames),
                Err(end) => return Err(end),
            }
        }
    }

    /// Cuts the stream after at most `bytes` bytes of the next block.
    pub fn cut(self, bytes: usize) {
        let buffered = self.parser.tail();
        let block = buffered.windows(2).position(|two| two == b"\n\n");
        // A complete block would count as received, so keep less than that.
        let limit = block.map_or(buffered.len(), |end| end + 1);
        self.recorder
            .ended(ChatEnd::Cut, &buffered[..bytes.min(limit)]);
    }
}

impl Drop for ChatStream {
    fn drop(&mut self) {
        // Blocks that were not read count as not received.
        self.recorder.ended(ChatEnd::Cut, b"");
    }
}

async fn send_request(
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
            return Err(ChatRefused::lost("the response head is too long"));
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
    let head = head.ok_or_else(|| ChatRefused::lost("invalid response head"))?;
    Ok((ByteLimitedStream::new(stream), head, early_body))
}

/// The body of a response that is not a stream.
async fn read_problem(io: &mut ByteLimitedStream, head: &Head, mut bytes: Vec<u8>) -> String {
    let length: usize = head.header("content-length").parse().unwrap_or(0);
    while bytes.len() < length.min(HEAD_MAX) {
        match io.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
