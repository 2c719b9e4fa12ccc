//! What a fake provider saw and did: every request as it came, how much of its answer is out, and
//! who left when. Tests wait on it by condition.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use super::dialect::Dialect;
use super::http::HttpRequest;

/// How long a test waits for something to become true before it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerProgress {
    /// It is being sent, or pauses as the script wants.
    Sending,
    /// The caller's socket takes no more.
    Blocked,
    /// It waits for [`release`](super::FakeProvider::release).
    Held,
    /// All of it was sent.
    Sent,
    /// The caller left before that.
    Left,
    /// The script cut it.
    Cut,
}

/// One request and what became of it.
#[derive(Clone, Debug)]
pub struct ProviderCall {
    /// Which request, counted from zero.
    pub number: usize,
    /// Which connection it came on, counted from zero.
    pub connection: usize,
    /// The format it asked for; `None` if there is no such path.
    pub dialect: Option<Dialect>,
    pub method: String,
    pub path: String,
    /// What stands after the question mark.
    pub query: String,
    /// Its headers in the order they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body; null if that is no JSON.
    pub body: Value,
    /// Its body as it came.
    pub text: String,
    /// The status it was answered with.
    pub status: Option<u16>,
    /// Why the provider itself would not have it, apart from the script.
    pub refused: Option<String>,
    /// Bytes of the answer's body that the socket took.
    pub written: u64,
    /// What becomes of the answer.
    pub progress: AnswerProgress,
    /// Whether its connection is closed, by whomever.
    pub closed: bool,
}

impl ProviderCall {
    /// A header's value, by its name in lower case; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map_or("", |(_, value)| value)
    }
}

#[derive(Debug, Default)]
pub(crate) struct CallState {
    pub(crate) calls: Vec<ProviderCall>,
    pub(crate) connections: usize,
    pub(crate) open: BTreeSet<usize>,
    pub(crate) released: BTreeSet<usize>,
}

/// The journal: who changes it wakes everybody who waits.
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

    /// Reads something out of it.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&CallState) -> T) -> T {
        read(&self.state.borrow())
    }

    /// A connection was opened: its number.
    pub(crate) fn opened(&self) -> usize {
        let mut number = 0;
        self.state.send_modify(|state| {
            number = state.connections;
            state.connections += 1;
            state.open.insert(number);
        });
        number
    }

    /// A connection is closed.
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

    /// A request came: its number.
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

    pub(crate) fn note(&self, number: usize, change: impl FnOnce(&mut ProviderCall)) {
        self.state.send_modify(|state| {
            if let Some(call) = state.calls.get_mut(number) {
                change(call);
            }
        });
    }

    /// Lets a held answer go on.
    pub(crate) fn release(&self, number: usize) {
        self.state.send_modify(|state| {
            state.released.insert(number);
        });
    }

    /// Waits until a held answer may go on.
    pub(crate) async fn released(&self, number: usize) {
        let mut changes = self.state.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = changes
            .wait_for(|state| state.released.contains(&number))
            .await;
    }

    /// Waits until `found` finds something, and gives it. Fails the test when it takes too long.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut found: impl FnMut(&CallState) -> Option<T>,
    ) -> T {
        let mut changes = self.state.subscribe();
        let wait = async {
            let mut result = None;
            let _ = changes
                .wait_for(|state| {
                    result = found(state);
                    result.is_some()
                })
                .await;
            result
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => panic!(
                "the fake provider did not see {what} within {PATIENCE:?}: {:#?}",
                self.read(|state| state.calls.clone())
            ),
        }
    }
}
