//! Playing: a cassette as a transport, with the same chunks at the same times.
//!
//! Which recorded call answers a request is found by what is most alike:
//!
//! ```text
//! agent, call and words  ▶  agent and call  ▶  agent
//! ```
//! and among those that are, the one that was played least, in the order of recording: a second
//! conversation plays as the first did.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use tokio::time::{Instant, sleep_until};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::port::BoxFuture;

use super::call::{Call, Ending};
use super::read::{CassetteError, read};
use super::salt::Salt;
use crate::delta::ModelError;
use crate::remote::{Ask, Reply, Transport};

/// The slowest a cassette is played: a hundred times its own time.
const PACE_MAX: f64 = 100.0;

/// A cassette in a player.
#[derive(Clone, Debug)]
pub struct Tape(Arc<Reel>);

#[derive(Debug)]
struct Reel {
    calls: Vec<Arc<Call>>,
    /// How often each was played. Held only to find one.
    plays: Mutex<Vec<u32>>,
    pace: f64,
}

impl Tape {
    /// Plays `calls`. Waits are as they were times `pace`: 1 is real time, 0 does not wait.
    pub fn new(calls: Vec<Call>, pace: f64) -> Self {
        Self(Arc::new(Reel {
            plays: Mutex::new(vec![0; calls.len()]),
            calls: calls.into_iter().map(Arc::new).collect(),
            pace: if pace.is_finite() {
                pace.clamp(0.0, PACE_MAX)
            } else {
                1.0
            },
        }))
    }

    /// Reads a cassette from its text; `file` is named in errors.
    pub fn parse(file: &str, text: &str, pace: f64) -> Result<Self, CassetteError> {
        read(file, text).map(|calls| Self::new(calls, pace))
    }

    /// The calls on it.
    pub fn calls(&self) -> &[Arc<Call>] {
        &self.0.calls
    }

    /// The call that answers words with this SHA-256; it counts as played.
    pub(super) fn pick(&self, agent: &str, call: u32, words_sha256: &str) -> Option<Arc<Call>> {
        // Most files have one salt, so that one digest does for all of their calls.
        let mut salted: Option<(&Salt, String)> = None;
        let mut plays = self.0.plays.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = self
            .0
            .calls
            .iter()
            .enumerate()
            .filter(|(_, one)| one.agent == agent);
        // Least alike is least of all: what fits best, then what was played least, then the first.
        let (at, found) = alike.min_by_key(|(at, one)| {
            let words = match salted.take() {
                Some((salt, words)) if *salt == one.salt => words,
                _ => one.salt.over(words_sha256),
            };
            let unlike = match (one.call == call, one.words_sha256 == words) {
                (true, true) => 0,
                (true, false) => 1,
                (false, _) => 2,
            };
            salted = Some((&one.salt, words));
            (unlike, plays[*at], *at)
        })?;
        plays[at] = plays[at].saturating_add(1);
        Some(Arc::clone(found))
    }

    /// How a call of it is played.
    pub(super) fn pace(&self) -> f64 {
        self.0.pace
    }
}

impl Transport for Tape {
    fn open(&self, ask: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let tape = self.clone();
        Box::pin(async move {
            match tape.pick(&ask.agent, ask.call, &ask.user_text_sha) {
                Some(call) => play(call, tape.pace()).await,
                None => Err(unknown(&ask.model, &ask.agent, ask.call)),
            }
        })
    }
}

/// Says what was asked and is not there.
pub(super) fn unknown(model: &str, agent: &str, call: u32) -> ModelError {
    tracing::warn!(
        model,
        agent,
        call,
        "a cassette has no call that answers this"
    );
    LlmErrorClass::Internal.into()
}

/// Plays one call, as far as its head; the rest is in the reply.
pub(super) async fn play(call: Arc<Call>, pace: f64) -> Result<Reply, ModelError> {
    let play = Play {
        begun: Instant::now(),
        pace,
        next: 0,
        call,
    };
    let Some(head) = play.call.answer else {
        play.at(play.call.ended_after).await;
        return match play.call.ending {
            Ending::Cut(error) => Err(error),
            // Nobody answered before whoever asked had enough.
            Ending::End | Ending::Closed => std::future::pending().await,
        };
    };
    play.at(head.after).await;
    Ok(Reply {
        status: head.status,
        retry_after: head.retry_after,
        events: head.events,
        chunks: play.chunks(),
    })
}

/// A call at some point of its playing.
struct Play {
    call: Arc<Call>,
    begun: Instant,
    pace: f64,
    next: usize,
}

impl Play {
    /// Waits until what came `after` the call began is due.
    async fn at(&self, after: Duration) {
        let due = self.begun + after.mul_f64(self.pace);
        if due > Instant::now() {
            sleep_until(due).await;
        }
    }

    fn chunks(self) -> BoxStream<'static, Result<bytes::Bytes, ModelError>> {
        let step = |play: Option<Self>| async move {
            let mut play = play?;
            let Some(chunk) = play.call.chunks.get(play.next) else {
                play.at(play.call.ended_after).await;
                return match play.call.ending {
                    Ending::End => None,
                    Ending::Cut(error) => Some((Err(error), None)),
                    // It might have gone on; whoever listens has enough, or waits as they did.
                    Ending::Closed => std::future::pending().await,
                };
            };
            play.at(chunk.after).await;
            let bytes = chunk.bytes.clone();
            play.next += 1;
            Some((Ok(bytes), Some(play)))
        };
        unfold(Some(self), step).boxed()
    }
}

#[cfg(test)]
mod tests;
