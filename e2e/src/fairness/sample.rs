//! What is measured: one request of a quiet owner.

use std::time::Duration;

/// The kinds of requests that quiet owners send in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuietKind {
    /// `POST /sessions`, up to the answer.
    Create,
    /// `POST /chat/stream`, up to the first text.
    FirstToken,
    /// `GET /sessions/{id}`, which issues an attach token.
    Session,
    /// `GET /sessions/{id}/events`, a page of 20.
    Events,
    /// An attach token, a WebSocket and a subscribe, up to the acknowledgement.
    Subscribe,
    /// A turn that runs a program, up to the text after it.
    Program,
}

impl QuietKind {
    /// All kinds in the order of the requests.
    pub const ALL: [Self; 6] = [
        Self::Create,
        Self::FirstToken,
        Self::Session,
        Self::Events,
        Self::Subscribe,
        Self::Program,
    ];

    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::FirstToken => "first token",
            Self::Session => "session",
            Self::Events => "events",
            Self::Subscribe => "subscribe",
            Self::Program => "program",
        }
    }
}

/// A request of a quiet owner with its latency.
#[derive(Clone, Debug)]
pub struct QuietSample {
    pub kind: QuietKind,
    /// Time from the planned start to the answer; the deadline for a failure.
    pub latency: Duration,
    /// Why there was no good answer.
    pub failure: Option<String>,
}
