//! A fake model provider: a real HTTP server on the loopback that speaks the true wire formats of
//! Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Google Gemini, says what a
//! script tells it, goes wrong in every way a provider can, and remembers what it saw.
//!
//! It is written from the providers' documentation and their own client packages and shares
//! nothing with the adapters under test: a mistake made there cannot be made here too.
//!
//! ```no_run
//! # async fn example() {
//! use turnwire_testkit::provider::{Answer, FakeProvider, Message, Part, Trouble};
//!
//! let provider = FakeProvider::start().await;
//! provider.push(Answer::refuse(Trouble::Overloaded));
//! provider.push(Message::new([
//!     Part::text(["Let me ", "look."]),
//!     Part::call("call_1", "find_offers", &serde_json::json!({"query": "tent"})),
//! ]));
//! provider.push(Answer::text(["Two tents."]).stall_at(3));
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

/// How long a blocked answer must not move to count as blocked for good.
const STILL: Duration = Duration::from_millis(400);

impl ProviderAnswer {
    /// The body that this answer has in a format, asked with everything that adds to it: usage,
    /// sealed reasoning. Pauses and stalls leave no trace in it.
    pub fn bytes(&self, dialect: Dialect) -> Vec<u8> {
        let body = json!({
            "model": "fake-model",
            "stream_options": {"include_usage": true},
            "include": ["reasoning.encrypted_content"],
        });
        self.bytes_for(dialect, body)
    }

    /// The body that this answer has in a format for this request.
    pub fn bytes_for(&self, dialect: Dialect, request: Value) -> Vec<u8> {
        let path = "/v1/models/fake-model:streamGenerateContent";
        let asked = RenderRequest::new(dialect, path, request, 0);
        AnswerPlan::new(self, dialect, &asked).body()
    }
}

/// The provider. Dropping it closes its port and all connections.
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
    /// A provider with an empty script, which takes any key.
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

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its address without a path: what Anthropic's and Google's clients take as base URL.
    /// OpenAI's take it with `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// From now on only this key is taken.
    pub fn require_key(&self, key: &str) {
        *self.shared.key.lock() = Some(key.to_owned());
    }

    /// Answers one call with this, after the lines that were given before.
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

    fn line(&self, needle: &str, answer: ProviderAnswer, stays: bool) {
        self.shared.script.lock().push(ScriptLine {
            needle: needle.to_owned(),
            stays,
            answer,
        });
    }

    /// How many lines of the script nobody has asked for.
    pub fn lines_left(&self) -> usize {
        let script = self.shared.script.lock();
        script.iter().filter(|line| !line.stays).count()
    }

    /// Lets the answer of this call go on where it stalls.
    pub fn release(&self, call: usize) {
        self.shared.journal.release(call);
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<ProviderCall> {
        self.shared.journal.read(|state| state.calls.clone())
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.shared.journal.read(|state| state.open.len())
    }

    /// How many connections there ever were.
    pub fn connections(&self) -> usize {
        self.shared.journal.read(|state| state.connections)
    }

    /// Waits for this call, counted from zero.
    pub async fn call(&self, number: usize) -> ProviderCall {
        self.call_until(number, "it come", |_| true).await
    }

    /// Waits until this call's answer is where the script or the caller stops it, or has ended.
    pub async fn reached(&self, number: usize, progress: AnswerProgress) -> ProviderCall {
        let what = format!("it {progress:?}");
        self.call_until(number, &what, |call| call.progress == progress)
            .await
    }

    /// Waits until this call's connection is closed.
    pub async fn closed(&self, number: usize) -> ProviderCall {
        self.call_until(number, "its connection closed", |call| call.closed)
            .await
    }

    /// Waits until this call is so.
    pub async fn call_until(
        &self,
        number: usize,
        what: &str,
        is: impl Fn(&ProviderCall) -> bool,
    ) -> ProviderCall {
        let what = format!("call {number} until {what}");
        let found = |state: &journal::CallState| state.calls.get(number).filter(|c| is(c)).cloned();
        self.shared.journal.until(&what, found).await
    }

    /// Waits until there are so many open connections.
    pub async fn connections_open(&self, count: usize) {
        let what = format!("{count} open connections");
        let found = |state: &journal::CallState| (state.open.len() == count).then_some(());
        self.shared.journal.until(&what, found).await;
    }

    /// Waits until this call's answer is blocked by a caller that does not read, and stays so:
    /// what is written by then is all that can be on its way.
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
