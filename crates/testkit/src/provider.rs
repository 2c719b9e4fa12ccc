//! A fake model provider: an HTTP server on the loopback with the wire formats of Anthropic Messages,
//! OpenAI Chat Completions, OpenAI Responses and Google Gemini. It sends scripted answers, injects
//! every kind of provider fault, and records all calls.
//!
//! It is written from the providers' documentation and their own client packages and shares no code
//! with the adapters under test, so that a mistake there does not repeat here.
//!
//! ```no_run
//! # async fn example() {
//! use turnwire_testkit::provider::{
//!     FakeProvider, MessagePart, ModelMessage, ProviderAnswer, ProviderError,
//! };
//!
//! let provider = FakeProvider::start().await;
//! provider.push(ProviderAnswer::refuse(ProviderError::Overloaded));
//! provider.push(ModelMessage::new([
//!     MessagePart::text(["Let me ", "look."]),
//!     MessagePart::call("call_1", "find_offers", &serde_json::json!({"query": "tent"})),
//! ]));
//! provider.push(ProviderAnswer::text(["Two tents."]).stall_at(3));
//! // … a client talks to `provider.base_url()` …
//! let second = provider.call(1).await;
//! assert_eq!(second.body["stream"], true);
//! provider.closed(2).await;
//! # }
//! ```

mod dialect;
mod message;
mod frame;
mod render_request;
mod error;
mod anthropic;
mod chat;
mod responses;
mod gemini;
mod answer;
mod plan;
mod http;
mod journal;
mod pairs;
mod check;
mod serve;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

pub use answer::{LineEnding, ProviderAnswer};
pub use dialect::Dialect;
pub use error::ProviderError;
pub use journal::{AnswerProgress, ProviderCall};
pub use message::{BlockOrder, FinishReason, MessagePart, ModelMessage, TokenCounts};
pub use responses::ErrorForm;

use journal::CallJournal;
use plan::AnswerPlan;
use render_request::RenderRequest;
use serve::{ProviderShared, ScriptLine};

/// How long an answer must make no progress to count as blocked for good.
const STILL: Duration = Duration::from_millis(400);

impl ProviderAnswer {
    /// The body of this answer in a format, for a request with all optional content: usage and
    /// encrypted reasoning. Pauses and stalls have no effect on it.
    pub fn bytes(&self, dialect: Dialect) -> Vec<u8> {
        let body = json!({
            "model": "fake-model",
            "stream_options": {"include_usage": true},
            "include": ["reasoning.encrypted_content"],
        });
        self.bytes_for(dialect, body)
    }

    /// The body of this answer in a format for a given request.
    pub fn bytes_for(&self, dialect: Dialect, request: Value) -> Vec<u8> {
        let path = "/v1/models/fake-model:streamGenerateContent";
        let request = RenderRequest::new(dialect, path, request, 0);
        AnswerPlan::new(self, dialect, &request).body()
    }
}

/// A fake provider; dropping it closes its port and all connections.
#[derive(Debug)]
pub struct FakeProvider {
    addr: SocketAddr,
    shared: Arc<ProviderShared>,
    task: AbortHandle,
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeProvider {
    /// Starts a provider with an empty script that accepts any key.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let shared = Arc::new(ProviderShared {
            journal: CallJournal::new(),
            script: Mutex::new(Vec::new()),
            key: Mutex::new(None),
        });
        let task = tokio::spawn(serve::accept(listener, Arc::clone(&shared))).abort_handle();
        Self { addr, shared, task }
    }

    /// The address of the listener.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL without a path: the base URL for Anthropic's and Google's clients.
    /// OpenAI's clients need `/v1` after it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Accepts only this API key from now on.
    pub fn require_key(&self, key: &str) {
        *self.shared.key.lock() = Some(key.to_owned());
    }

    /// Appends an answer for one call to the script.
    pub fn push(&self, answer: impl Into<ProviderAnswer>) {
        self.line("", answer.into(), false);
    }

    /// Answers one call whose body contains this text.
    pub fn push_if(&self, needle: &str, answer: impl Into<ProviderAnswer>) {
        self.line(needle, answer.into(), false);
    }

    /// Answers every call whose body contains this text; every call at all if it is empty.
    pub fn always(&self, needle: &str, answer: impl Into<ProviderAnswer>) {
        self.line(needle, answer.into(), true);
    }

    fn line(&self, needle: &str, answer: ProviderAnswer, repeats: bool) {
        self.shared.script.lock().push(ScriptLine {
            needle: needle.to_owned(),
            repeats,
            answer,
        });
    }

    /// The number of unused one-time lines of the script.
    pub fn unused_lines(&self) -> usize {
        let script = self.shared.script.lock();
        script.iter().filter(|line| !line.repeats).count()
    }

    /// Continues the answer of this call after a scripted stall.
    pub fn release(&self, call: usize) {
        self.shared.journal.release(call);
    }

    /// All recorded calls so far.
    pub fn calls(&self) -> Vec<ProviderCall> {
        self.shared.journal.read(|state| state.calls.clone())
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        self.shared.journal.read(|state| state.open.len())
    }

    /// The number of connections since the start.
    pub fn connections(&self) -> usize {
        self.shared.journal.read(|state| state.connections)
    }

    /// Waits for this call, counted from zero.
    pub async fn call(&self, number: usize) -> ProviderCall {
        self.wait_for_call(number, "it arrives", |_| true).await
    }

    /// Waits until this call's answer has a given progress.
    pub async fn reached(&self, number: usize, progress: AnswerProgress) -> ProviderCall {
        let subject = format!("it {progress:?}");
        self.wait_for_call(number, &subject, |call| call.progress == progress)
            .await
    }

    /// Waits until this call's connection is closed.
    pub async fn closed(&self, number: usize) -> ProviderCall {
        self.wait_for_call(number, "its connection closed", |call| call.closed)
            .await
    }

    /// Waits until `is` is true for this call; `what` describes it in the panic message.
    pub async fn wait_for_call(
        &self,
        number: usize,
        what: &str,
        is: impl Fn(&ProviderCall) -> bool,
    ) -> ProviderCall {
        let subject = format!("call {number} until {what}");
        let condition =
            |state: &journal::CallState| state.calls.get(number).filter(|c| is(c)).cloned();
        self.shared.journal.until(&subject, condition).await
    }

    /// Waits until `count` connections are open.
    pub async fn connections_open(&self, count: usize) {
        let subject = format!("{count} open connections");
        let condition = |state: &journal::CallState| (state.open.len() == count).then_some(());
        self.shared.journal.until(&subject, condition).await;
    }

    /// Waits until this call's answer is blocked by a caller that does not read, and stays blocked:
    /// the bytes written by then fill all buffers on the way.
    pub async fn still(&self, number: usize) -> ProviderCall {
        loop {
            let before = self.reached(number, AnswerProgress::Blocked).await;
            tokio::time::sleep(STILL).await;
            let after = self.call(number).await;
            if after.progress == AnswerProgress::Blocked && after.written == before.written {
                return after;
            }
        }
    }
}
