//! Playing a reel: one delta a poll, each at its time. Between deltas it holds nothing but its
//! place, so dropping it is all there is to stopping it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;

use crate::delta::{Delta, ModelError};
use crate::script::reel::{Part, Reel};

use super::pace::Pace;

/// Deltas between two moments at which other tasks get their turn: few, so that a new turn is not
/// kept waiting by many that stream without a pause.
const YIELD_EVERY: u32 = 4;

/// A reel at some point of its playing.
pub(super) struct Play {
    reel: Arc<Reel>,
    /// Bytes the request showed the model.
    asked: u64,
    part: usize,
    /// How often the part was told to its end.
    told: u32,
    delta: usize,
    /// Whether the wait before the next delta was asked for.
    held: bool,
    pace: Pace,
    burst: u32,
    ended: bool,
}

/// What comes next in a reel.
enum Next {
    /// This, now.
    Say(Result<Delta, ModelError>),
    /// Look again once the pace allows.
    Wait,
    /// Nothing, ever.
    Never,
}

impl Play {
    pub(super) fn new(reel: Arc<Reel>, asked: u64) -> Self {
        Self {
            reel,
            asked,
            part: 0,
            told: 0,
            delta: 0,
            held: false,
            pace: Pace::default(),
            burst: 0,
            ended: false,
        }
    }

    fn next(&mut self) -> Next {
        let Some(part) = self.reel.parts.get(self.part) else {
            self.ended = true;
            return Next::Say(Ok(self.reel.stop(self.asked)));
        };
        match part {
            Part::Stall => Next::Never,
            Part::Fail(error) => {
                self.ended = true;
                Next::Say(Err(*error))
            }
            Part::Pause(pause) => {
                self.pace.pause(*pause);
                self.part += 1;
                Next::Wait
            }
            Part::Say { delay, times, .. } => {
                let length = part.len();
                if self.delta == length {
                    self.told += 1;
                    self.delta = 0;
                    if self.told >= *times || length == 0 {
                        self.part += 1;
                        self.told = 0;
                    }
                    return Next::Wait;
                }
                if !self.held && !delay.is_zero() {
                    self.held = true;
                    self.pace.follow(*delay);
                    return Next::Wait;
                }
                self.held = false;
                self.delta += 1;
                part.delta(self.delta - 1)
                    .map_or(Next::Wait, |delta| Next::Say(Ok(delta)))
            }
        }
    }
}

impl Stream for Play {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let play = &mut *self;
        if play.ended {
            return Poll::Ready(None);
        }
        loop {
            if ready!(play.pace.poll(cx)) {
                play.burst = 0;
            }
            if play.burst == YIELD_EVERY {
                play.burst = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match play.next() {
                Next::Say(said) => {
                    play.burst += 1;
                    return Poll::Ready(Some(said));
                }
                Next::Wait => {}
                Next::Never => return Poll::Pending,
            }
        }
    }
}
