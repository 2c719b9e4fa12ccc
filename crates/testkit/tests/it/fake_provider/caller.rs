//! Callers of the fake provider: one that reads all of an answer, and one by hand.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use turnwire_testkit::provider::{Dialect, FakeProvider};

const GEMINI: &str = "/v1beta/models/gemini-fake:streamGenerateContent?alt=sse";

pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "/v1/messages",
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Responses => "/v1/responses",
        Dialect::Gemini => GEMINI,
    }
}

/// A request that the provider takes.
pub(crate) fn request(dialect: Dialect) -> Value {
    let messages = json!([{"role": "user", "content": "hello"}]);
    match dialect {
        Dialect::Anthropic => {
            json!({"model": "m", "max_tokens": 9, "stream": true, "messages": messages})
        }
        Dialect::Chat => json!({"model": "m", "stream": true, "messages": messages}),
        Dialect::Responses => json!({"model": "m", "stream": true, "input": "hello"}),
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}),
    }
}

pub(crate) fn headers(dialect: Dialect) -> Vec<(&'static str, &'static str)> {
    let mut headers = vec![("host", "localhost"), ("content-type", "application/json")];
    match dialect {
        Dialect::Anthropic => {
            headers.extend([("x-api-key", "k"), ("anthropic-version", "2026-10-21")]);
        }
        Dialect::Chat | Dialect::Responses => headers.push(("authorization", "Bearer k")),
        Dialect::Gemini => headers.push(("x-goog-api-key", "k")),
    }
    headers
}

/// What came back: the status, and the body as far as it came, with whether it came whole.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
    pub(crate) whole: bool,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

pub(crate) async fn send(provider: &FakeProvider, dialect: Dialect, body: &Value) -> Got {
    post(provider, path(dialect), &headers(dialect), body).await
}

pub(crate) async fn post(
    provider: &FakeProvider,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Got {
    let stream = TcpStream::connect(provider.addr()).await.expect("a port");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP");
    let connection = tokio::spawn(connection);
    let mut builder = Request::post(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let request = builder.body(Full::new(Bytes::from(body.to_string())));
    let response = sender.send_request(request.expect("a request")).await;
    let response = response.expect("an answer");
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut got = Got {
        status,
        bytes: Vec::new(),
        whole: true,
    };
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => got.bytes.extend(frame.into_data().expect("data")),
            Err(_) => {
                got.whole = false;
                break;
            }
        }
    }
    connection.abort();
    got
}

/// A caller by hand, who may stop reading or leave when it likes.
pub(crate) async fn by_hand(provider: &FakeProvider, dialect: Dialect) -> TcpStream {
    let mut stream = TcpStream::connect(provider.addr()).await.expect("a port");
    let body = request(dialect).to_string();
    let mut head = format!("POST {} HTTP/1.1\r\n", path(dialect));
    for (name, value) in headers(dialect) {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    stream
}
