//! The record of a fake provider: every request, the progress of its answer, and closed
//! connections. Tests wait on it by condition.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::dialect::Dialect;
use super::http::HttpRequest;

/// Deadline for a condition; then the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

/// The progress of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerProgress {
    /// Being sent, or in a scripted pause.
    Sending,
    /// The socket's buffers are full.
    Blocked,
    /// Stalled until the test calls [`release`](super::FakeProvider::release).
    Held,
    /// The whole answer was sent.
    Sent,
    /// The caller closed the connection before the end.
    Left,
    /// The script cut the answer.
    Cut,
}

/// One recorded request and the progress of its answer.
#[derive(Clone, Debug)]
pub struct ProviderCall {
    /// The request's index, from zero.
    pub number: usize,
    /// The connection's index, from zero.
    pub connection: usize,
    /// The format by the path; `None` for an unknown path.
    pub dialect: Option<Dialect>,
    pub method: String,
    pub path: String,
    /// The query string without the question mark.
    pub query: String,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null if it is not JSON.
    pub body: Value,
    /// The body as received.
    pub text: String,
    /// The status of the response, once sent.
    pub status: Option<u16>,
    /// Why request validation rejected the request, if it did.
    pub refused: Option<String>,
    /// Bytes of the body that the socket accepted.
    pub written: u64,
    /// The current progress of the answer.
    pub progress: AnswerProgress,
    /// True after the connection was closed by either side.
    pub closed: bool,
}

impl ProviderCall {
    /// A header's value, by its name in lower case; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.iter().filter(|(key, _)| key == name);
        values.next().map_or("", |(_, value)| value)
    }
}

#[derive(Debug, Default)]
pub(crate) struct CallState {
    pub(crate) calls: Vec<ProviderCall>,
    pub(crate) connections: usize,
    pub(crate) open: BTreeSet<usize>,
    pub(crate) released: BTreeSet<usize>,
}

/// The shared record; every change wakes all waiting tests.
#[derive(Debug)]
pub(crate) struct CallJournal {
    state: watch::Sender<CallState>,
}

impl CallJournal {
    pub(crate) fn new() -> Self {
        Self {
            state: watch::Sender::new(CallState::default()),
        }
    }

    /// Reads the current state.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&CallState) -> T) -> T {
        read(&self.state.borrow())
    }

    /// Records a new connection and returns its index.
    pub(crate) fn opened(&self) -> usize {
        let mut number = 0;
        self.state.send_modify(|state| {
            number = state.connections;
            state.connections += 1;
            state.open.insert(number);
        });
        number
    }

    /// Records that a connection is closed.
    pub(crate) fn closed(&self, connection: usize) {
        self.state.send_modify(|state| {
            state.open.remove(&connection);
            let of = state.calls.iter_mut();
            for call in of.filter(|call| call.connection == connection) {
                call.closed = true;
                match call.progress {
                    AnswerProgress::Sending | AnswerProgress::Blocked | AnswerProgress::Held => {
                        call.progress = AnswerProgress::Left;
                    }
                    AnswerProgress::Sent | AnswerProgress::Left | AnswerProgress::Cut => {}
                }
            }
        });
    }

    /// Records a request and returns its index.
    pub(crate) fn arrived(&self, connection: usize, request: &HttpRequest) -> usize {
        let mut number = 0;
        self.state.send_modify(|state| {
            number = state.calls.len();
            state.calls.push(ProviderCall {
                number,
                connection,
                dialect: Dialect::of(&request.path),
                method: request.method.clone(),
                path: request.path.clone(),
                query: request.query.clone(),
                headers: request.headers.clone(),
                body: serde_json::from_slice(&request.body).unwrap_or_default(),
                text: String::from_utf8_lossy(&request.body).into_owned(),
                status: None,
                refused: None,
                written: 0,
                progress: AnswerProgress::Sending,
                closed: false,
            });
        });
        number
    }

    pub(crate) fn update(&self, number: usize, change: impl FnOnce(&mut ProviderCall)) {
        self.state.send_modify(|state| {
            if let Some(call) = state.calls.get_mut(number) {
                change(call);
            }
        });
    }

    /// Continues a stalled answer.
    pub(crate) fn release(&self, number: usize) {
        self.state.send_modify(|state| {
            state.released.insert(number);
        });
    }

    /// Waits until a stalled answer may continue.
    pub(crate) async fn released(&self, number: usize) {
        let mut changes = self.state.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = changes
            .wait_for(|state| state.released.contains(&number))
            .await;
    }

    /// Waits until `condition` returns a value, and returns it. Panics after [`DEADLINE`].
    pub(crate) async fn until<T>(
        &self,
        description: &str,
        mut condition: impl FnMut(&CallState) -> Option<T>,
    ) -> T {
        let mut changes = self.state.subscribe();
        let wait = async {
            let mut result = None;
            let _ = changes
                .wait_for(|state| {
                    result = condition(state);
                    result.is_some()
                })
                .await;
            result
        };
        match tokio::time::timeout(DEADLINE, wait).await {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => panic!(
                "the fake provider did not see {description} within {DEADLINE:?}: {:#?}",
                self.read(|state| state.calls.clone())
            ),
        }
    }
}
