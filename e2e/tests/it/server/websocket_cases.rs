//! RFC 6455 on the real server, byte by byte: valid frames are accepted in any fragmentation,
//! invalid ones close their connection and no other.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_event::SessionId;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
const FIN: u8 = 0x80;

/// Long enough for a busy machine; only a broken server uses it up.
const PATIENCE: Duration = Duration::from_secs(60);

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A masked frame whose length is written as short as can be.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let short = u8::try_from(payload.len()).ok().filter(|len| *len < 126);
    let length = match (short, u16::try_from(payload.len())) {
        (Some(len), _) => vec![0x80 | len],
        (None, Ok(len)) => [&[0xfe][..], &len.to_be_bytes()].concat(),
        (None, Err(_)) => [&[0xff][..], &(payload.len() as u64).to_be_bytes()].concat(),
    };
    with_length(first, &length, payload)
}

/// A masked frame with its length as given, mask bit included.
fn with_length(first: u8, length: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[first], length, &MASK].concat();
    let masked = payload.iter().zip(MASK.iter().cycle());
    bytes.extend(masked.map(|(byte, mask)| byte ^ mask));
    bytes
}

fn text(payload: &[u8]) -> Vec<u8> {
    frame(FIN | TEXT, payload)
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(FIN | CLOSE, &[&code.to_be_bytes(), reason].concat())
}

/// What the server did.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SocketEvent {
    Text(Value),
    Pong(Vec<u8>),
    /// A close with its code, if it had one.
    Closed(Option<u16>),
    /// The line went dead without a close.
    Dropped,
}

/// A server with a session to connect to.
struct SocketFixture {
    server: TestServer,
    session: SessionId,
}

impl SocketFixture {
    async fn start() -> Self {
        Self::with(ServerOptions::default()).await
    }

    async fn with(options: ServerOptions) -> Self {
        let server = TestServer::start(options).await;
        let session = server.api().create().await.expect("a session");
        Self { server, session }
    }

    async fn raw(&self) -> RawSocket {
        let attached = self.server.api().attach(self.session).await;
        let attached = attached.expect("a token");
        let url = attached["ws_url"].as_str().expect("an address");
        let (_, api) = url.split_once("://").expect("an address");
        let (host, path) = api.split_once('/').expect("a path");
        let mut io = TcpStream::connect(self.server.addr()).await.expect("open");
        io.set_nodelay(true).expect("an option");
        let request = format!(
            "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        io.write_all(request.as_bytes()).await.expect("written");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(io.read_u8().await.expect("an answer"));
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // The key is that of section 1.3, and so is the answer.
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        RawSocket { io }
    }

    /// Sends the bytes on a fresh connection and gives the first thing that comes back.
    async fn answer(&self, bytes: &[u8]) -> SocketEvent {
        let mut raw = self.raw().await;
        raw.send(bytes).await;
        raw.next().await
    }

    /// The bytes fail the connection, and the close says how.
    async fn fails(&self, what: &str, code: u16, bytes: &[u8]) {
        let seen = self.answer(bytes).await;
        let ended = SocketEvent::Closed(Some(code));
        assert_eq!(seen, ended, "{what}");
    }

    /// The server serves others as if nothing had been.
    async fn continue_on_disconnect(&self) {
        let api = self.server.api();
        let client = WatchClient::connect(&api, "after", self.session).await;
        let mut client = client.expect("a connection");
        client
            .subscribed(&SubscribeOptions::live())
            .await
            .expect("subscribed");
        let stderr = self.server.stderr();
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

/// A connection without a library.
struct RawSocket {
    io: TcpStream,
}

impl RawSocket {
    async fn send(&mut self, bytes: &[u8]) {
        // The server may have ended it already; what it did is seen by reading.
        let _ = self.io.write_all(bytes).await;
    }

    async fn next(&mut self) -> SocketEvent {
        let next = tokio::time::timeout(PATIENCE, self.read()).await;
        let next = next.expect("the server does something");
        next.unwrap_or(SocketEvent::Dropped)
    }

    async fn read(&mut self) -> Option<SocketEvent> {
        let first = self.io.read_u8().await.ok()?;
        let length = match self.io.read_u8().await.ok()? {
            126 => u64::from(self.io.read_u16().await.ok()?),
            127 => self.io.read_u64().await.ok()?,
            masked @ 128.. => panic!("a server does not mask: {masked}"),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        self.io.read_exact(&mut payload).await.ok()?;
        assert_eq!(first & 0xf0, FIN, "whole frames without extensions");
        Some(match first & 0xf {
            TEXT => SocketEvent::Text(serde_json::from_slice(&payload).expect("JSON")),
            PONG => SocketEvent::Pong(payload),
            CLOSE => {
                let code = payload.first_chunk().copied().map(u16::from_be_bytes);
                SocketEvent::Closed(code)
            }
            other => panic!("a frame that the server never sends: {other}"),
        })
    }
}

fn subscribe() -> Vec<u8> {
    SubscribeOptions::live().frame().to_string().into_bytes()
}

fn is_ack(seen: &SocketEvent) -> bool {
    matches!(seen, SocketEvent::Text(frame) if frame["type"] == "subscribe_ack")
}

#[tokio::test]
async fn message_is_read_in_any_fragmentation() {
    let fixture = SocketFixture::start().await;
    let message = subscribe();
    let (a, api) = message.split_at(9);
    let (b, c) = api.split_at(1);
    let fragments = [
        frame(TEXT, a),
        frame(FIN | PING, b"one"),
        frame(CONTINUATION, b),
        frame(CONTINUATION, b""),
        frame(FIN | PONG, b"nobody asked"),
        frame(FIN | PING, b""),
        frame(FIN | CONTINUATION, c),
    ]
    .concat();
    // In one write, and byte by byte.
    for size in [usize::MAX, 1] {
        let mut raw = fixture.raw().await;
        for piece in fragments.chunks(size) {
            raw.send(piece).await;
        }
        assert_eq!(raw.next().await, SocketEvent::Pong(b"one".to_vec()));
        assert_eq!(raw.next().await, SocketEvent::Pong(Vec::new()));
        let seen = raw.next().await;
        assert!(is_ack(&seen), "{seen:?}");
    }
    // A character may be cut by a fragment.
    let ping = json!({"type": "ping", "nonce": "κόσμε😀"});
    let bytes = ping.to_string().into_bytes();
    let mut raw = fixture.raw().await;
    raw.send(&text(&message)).await;
    assert!(is_ack(&raw.next().await));
    for (n, byte) in bytes.iter().enumerate() {
        let first = if n == 0 { TEXT } else { CONTINUATION };
        raw.send(&frame(first, &[*byte])).await;
    }
    raw.send(&frame(FIN | CONTINUATION, b"")).await;
    let pong = json!({"type": "pong", "nonce": "κόσμε😀"});
    // Connections that closed before are announced as events.
    let is_event =
        |seen: &SocketEvent| matches!(seen, SocketEvent::Text(frame) if frame["type"] == "event");
    let mut seen = raw.next().await;
    while is_event(&seen) {
        seen = raw.next().await;
    }
    assert_eq!(seen, SocketEvent::Text(pong));
    // A length may take more bytes than it needs: nothing is lost by being generous.
    for length in [&[0xfe, 0, 2][..], &[0xff, 0, 0, 0, 0, 0, 0, 0, 2]] {
        let ping = with_length(FIN | PING, length, b"ab");
        assert_eq!(
            fixture.answer(&ping).await,
            SocketEvent::Pong(b"ab".to_vec())
        );
    }
    fixture.continue_on_disconnect().await;
}

#[tokio::test]
async fn control_frames_must_be_short_and_unfragmented() {
    let fixture = SocketFixture::start().await;
    for size in [0, 1, 125] {
        let payload = vec![0xfe; size];
        let seen = fixture.answer(&frame(FIN | PING, &payload)).await;
        assert_eq!(seen, SocketEvent::Pong(payload), "{size}");
    }
    for opcode in [PING, PONG, CLOSE] {
        let long = frame(FIN | opcode, &[0x3; 126]);
        fixture.fails("too long", 1002, &long).await;
        let part = frame(opcode, b"");
        fixture.fails("in fragments", 1002, &part).await;
    }
    fixture.continue_on_disconnect().await;
}

#[tokio::test]
async fn forbidden_frames_close_the_connection() {
    let fixture = SocketFixture::start().await;
    let unmasked = [&[FIN | PING, 2][..], b"ab"].concat();
    fixture.fails("unmasked", 1002, &unmasked).await;
    let unmasked = [&[FIN | TEXT, 2][..], b"{}"].concat();
    fixture.fails("unmasked", 1002, &unmasked).await;
    for bit in [0x40, 0x20, 0x10, 0x70] {
        for opcode in [TEXT, PING, CLOSE] {
            let reserved = frame(FIN | bit | opcode, b"");
            fixture.fails("a reserved bit", 1002, &reserved).await;
        }
    }
    for opcode in (0x3..=0x7).chain(0xb..=0xf) {
        let reserved = frame(FIN | opcode, b"{}");
        fixture.fails("a reserved opcode", 1002, &reserved).await;
    }
    let lone = frame(FIN | CONTINUATION, &subscribe());
    fixture.fails("no start", 1002, &lone).await;
    let lone = frame(CONTINUATION, b"");
    fixture.fails("no start", 1002, &lone).await;
    let two = [frame(TEXT, b"{"), text(b"{}")].concat();
    fixture.fails("a start within a message", 1002, &two).await;
    fixture
        .fails("binary", 1003, &frame(FIN | BINARY, b"\0"))
        .await;
    fixture.continue_on_disconnect().await;
}

#[tokio::test]
async fn invalid_utf8_closes_the_connection() {
    let fixture = SocketFixture::start().await;
    let bad: [&[u8]; 8] = [
        b"\xce\xba\xed\xa0\x80edited",
        b"\xff",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\x80",
        b"\"cut \xf0\x9f\x98",
    ];
    for bytes in bad {
        assert_eq!(
            fixture.answer(&text(bytes)).await,
            SocketEvent::Closed(Some(1007))
        );
    }
    // Without waiting for the rest of the message.
    let seen = fixture.answer(&frame(TEXT, b"\"\xed\xa0\x80")).await;
    assert_eq!(seen, SocketEvent::Closed(Some(1007)));
    fixture.continue_on_disconnect().await;
}

#[tokio::test]
async fn close_is_answered_and_invalid_close_ends_connection() {
    let fixture = SocketFixture::start().await;
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999,
    ] {
        let seen = fixture.answer(&close(code, "bye 😀".as_bytes())).await;
        assert_eq!(seen, SocketEvent::Closed(Some(code)));
    }
    let empty = fixture.answer(&frame(FIN | CLOSE, b"")).await;
    assert_eq!(empty, SocketEvent::Closed(None));
    for code in [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
    ] {
        fixture
            .fails(&code.to_string(), 1002, &close(code, b""))
            .await;
    }
    fixture
        .fails("one byte", 1002, &frame(FIN | CLOSE, &[3]))
        .await;
    let reason = close(1000, b"\xce\xba\xed\xa0\x80");
    fixture.fails("no UTF-8", 1007, &reason).await;

    // Nothing counts after a close.
    let after = [
        close(1000, b""),
        frame(FIN | PING, b"late"),
        close(999, b""),
    ]
    .concat();
    let mut raw = fixture.raw().await;
    raw.send(&after).await;
    assert_eq!(raw.next().await, SocketEvent::Closed(Some(1000)));
    assert_eq!(raw.next().await, SocketEvent::Dropped);
    fixture.continue_on_disconnect().await;
}

#[tokio::test]
async fn close_is_answered_mid_stream() {
    let words = "0123456789".repeat(40);
    let script = ModelScript::new().on("", [ScriptStep::slow(&words, 400, 1).repeat(1_000)]);
    let fixture = SocketFixture::with(ServerOptions::script(script)).await;
    let api = fixture.server.api();
    let turn = api.submit(fixture.session, "go").await.expect("accepted");
    for _ in 0..20 {
        let mut raw = fixture.raw().await;
        raw.send(&text(&subscribe())).await;
        while !matches!(raw.next().await, SocketEvent::Text(frame) if frame["type"] == "event") {}
        raw.send(&close(1000, b"")).await;
        loop {
            match raw.next().await {
                SocketEvent::Text(_) => {}
                other => break assert_eq!(other, SocketEvent::Closed(Some(1000))),
            }
        }
    }
    api.cancel(turn.turn_id).await.expect("an answer");
    fixture.continue_on_disconnect().await;
}

#[tokio::test]
async fn oversize_length_closes_before_its_bytes() {
    let fixture = SocketFixture::start().await;
    let lengths = [65_537, 1 << 20, 1 << 40, u64::MAX >> 1, 1 << 63, u64::MAX];
    for length in lengths {
        let written = [&[0xff], &u64::to_be_bytes(length)[..]].concat();
        let head = with_length(FIN | TEXT, &written, b"{");
        fixture.fails(&length.to_string(), 1009, &head).await;
    }
    // Small frames do not get round it.
    let part = vec![b' '; 10_000];
    let mut many = frame(TEXT, &part);
    for _ in 0..6 {
        many.extend(frame(CONTINUATION, &part));
    }
    let seen = fixture.answer(&many).await;
    assert_eq!(seen, SocketEvent::Closed(Some(1009)));
    fixture.continue_on_disconnect().await;
}
