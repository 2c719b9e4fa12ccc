//! Plays a cassette back as a [`ModelTransport`], with the same chunks at the same times.
//!
//! The recorded call that answers a request is the closest match:
//!
//! ```text
//! agent, call and user text  ▶  agent and call  ▶  agent
//! ```
//! Among equal matches it is the one played least often, in the order of recording: a second
//! conversation plays like the first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use tokio::time::{Instant, sleep_until};
use turnwire_event::code::LlmErrorClass;

use super::parse::{CassetteError, parse};
use super::recorded_call::{CallEnding, RecordedCall};
use super::salt::CassetteSalt;
use crate::delta::ModelError;
use crate::remote::{
    ChunkStream, ModelTransport, ResponseFuture, TransportRequest, TransportResponse,
};

/// Slowest playback: a hundred times the recorded time.
const PACE_MAX: f64 = 100.0;

/// A parsed cassette that can be played back.
#[derive(Clone, Debug)]
pub struct CassettePlayback(Arc<CassetteCalls>);

#[derive(Debug)]
struct CassetteCalls {
    calls: Vec<Arc<RecordedCall>>,
    /// Play count of each call. Locked only to pick a call.
    play_counts: Mutex<Vec<u32>>,
    pace: f64,
}

impl CassettePlayback {
    /// A cassette of [`RecordedCall`]s. Waits are the recorded ones times `pace`: 1 is real time, 0
    /// does not wait.
    pub fn new(calls: Vec<RecordedCall>, pace: f64) -> Self {
        Self(Arc::new(CassetteCalls {
            play_counts: Mutex::new(vec![0; calls.len()]),
            calls: calls.into_iter().map(Arc::new).collect(),
            pace: match pace.is_finite() {
                true => pace.clamp(0.0, PACE_MAX),
                false => 1.0,
            },
        }))
    }

    /// Parses a cassette from its text; `file` is named in errors.
    pub fn parse(file: &str, text: &str, pace: f64) -> Result<Self, CassetteError> {
        parse(file, text).map(|calls| Self::new(calls, pace))
    }

    /// The recorded calls, in the order in which they ended.
    pub fn calls(&self) -> &[Arc<RecordedCall>] {
        &self.0.calls
    }

    /// Picks the call for a user text with this SHA-256 and counts it as played.
    pub(super) fn pick(
        &self,
        agent: &str,
        call: u32,
        user_text_sha256: &str,
    ) -> Option<Arc<RecordedCall>> {
        // Most files have one salt, so the digest is cached.
        let mut cached_digest: Option<(&CassetteSalt, String)> = None;
        let CassetteCalls {
            calls, play_counts, ..
        } = &*self.0;
        let mut play_counts = play_counts.lock().unwrap_or_else(PoisonError::into_inner);
        let candidates = calls.iter().enumerate();
        let candidates = candidates.filter(|(_, candidate)| candidate.agent == agent);
        // Smallest key: best match, then fewest plays, then first recorded.
        let (at, best) = candidates.min_by_key(|(at, candidate)| {
            let digest = match cached_digest.take() {
                Some((salt, digest)) if *salt == candidate.salt => digest,
                _ => candidate.salt.digest(user_text_sha256),
            };
            let mismatch = match (candidate.call == call, candidate.words_sha256 == digest) {
                (true, true) => 0,
                (true, false) => 1,
                (false, _) => 2,
            };
            cached_digest = Some((&candidate.salt, digest));
            (mismatch, play_counts[*at], *at)
        })?;
        play_counts[at] = play_counts[at].saturating_add(1);
        Some(Arc::clone(best))
    }

    /// Factor applied to recorded waits.
    pub(super) fn pace(&self) -> f64 {
        self.0.pace
    }
}

impl ModelTransport for CassettePlayback {
    fn open(&self, request: TransportRequest) -> ResponseFuture {
        let cassette = self.clone();
        Box::pin(async move {
            match cassette.pick(&request.agent, request.call, &request.user_text_sha) {
                Some(call) => play(call, cassette.pace()).await,
                None => Err(no_match_error(&request.model, &request.agent, request.call)),
            }
        })
    }
}

/// Logs that no recorded call matches; returns the error.
pub(super) fn no_match_error(model: &str, agent: &str, call: u32) -> ModelError {
    tracing::warn!(
        model,
        agent,
        call,
        "the cassette has no call that matches the request"
    );
    LlmErrorClass::Internal.into()
}

/// Plays one call up to its head; the body is in the returned [`TransportResponse`].
pub(super) async fn play(
    call: Arc<RecordedCall>,
    pace: f64,
) -> Result<TransportResponse, ModelError> {
    let play = CallPlayback {
        started: Instant::now(),
        pace,
        next: 0,
        call,
    };
    let Some(head) = play.call.answer else {
        play.wait_until(play.call.ended_after).await;
        return match play.call.ending.clone() {
            CallEnding::Cut(error) => Err(error),
            // The consumer gave up before there was a response.
            CallEnding::End | CallEnding::Closed => std::future::pending().await,
        };
    };
    play.wait_until(head.after).await;
    Ok(TransportResponse {
        status: head.status,
        retry_after: head.retry_after,
        is_event_stream: head.events,
        chunks: play.chunks(),
    })
}

/// The playback of one [`RecordedCall`].
struct CallPlayback {
    call: Arc<RecordedCall>,
    started: Instant,
    pace: f64,
    next: usize,
}

impl CallPlayback {
    /// Waits until the item recorded at `after` is due.
    async fn wait_until(&self, after: Duration) {
        let due = self.started + after.mul_f64(self.pace);
        if due > Instant::now() {
            sleep_until(due).await;
        }
    }

    fn chunks(self) -> ChunkStream {
        let step = |play: Option<Self>| async move {
            let mut play = play?;
            let Some(chunk) = play.call.chunks.get(play.next) else {
                play.wait_until(play.call.ended_after).await;
                return match play.call.ending.clone() {
                    CallEnding::End => None,
                    CallEnding::Cut(error) => Some((Err(error), None)),
                    // The recording stopped here because its consumer did; wait for this consumer.
                    CallEnding::Closed => std::future::pending().await,
                };
            };
            play.wait_until(chunk.after).await;
            let bytes = chunk.bytes.clone();
            play.next += 1;
            Some((Ok(bytes), Some(play)))
        };
        unfold(Some(self), step).boxed()
    }
}

#[cfg(test)]
mod tests;
