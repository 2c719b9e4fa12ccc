//! Plays a [`CallPlan`]: one delta per poll, each at its time. Between deltas the stream holds only
//! its position, so dropping it stops it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;

use crate::delta::{Delta, ModelError};
use crate::script::call_plan::{CallPlan, PlanPart, StreamedContent};
use crate::script::pace::ScriptPace;

use super::delta_timer::DeltaTimer;

/// Deltas between two yields: few, so that a new turn does not wait for streams without pauses.
const YIELD_EVERY: u32 = 4;

/// A stream that plays a [`CallPlan`] at the pace of a [`DeltaTimer`].
pub(super) struct PlanStream {
    plan: Arc<CallPlan>,
    /// Size of the request's content in bytes.
    request_bytes: u64,
    part_index: usize,
    /// Completed repetitions of the part.
    repetitions: u32,
    delta_index: usize,
    /// True if the delay of the next delta has been started.
    is_delayed: bool,
    timer: DeltaTimer,
    pace: ScriptPace,
    deltas_since_yield: u32,
    is_done: bool,
}

/// The next action of the stream.
enum NextAction {
    /// Yield this item now.
    Yield(Result<Delta, ModelError>),
    /// Poll again once the timer is done.
    Wait,
    /// Stay pending until the stream is dropped.
    Never,
}

impl PlanStream {
    /// Must be called in a runtime: the pause before the first delta begins here.
    pub(super) fn new(plan: Arc<CallPlan>, request_bytes: u64, pace: ScriptPace) -> Self {
        let mut timer = DeltaTimer::default();
        if !pace.first.is_zero() {
            timer.wait_from_now(pace.first);
        }
        Self {
            plan,
            request_bytes,
            part_index: 0,
            repetitions: 0,
            delta_index: 0,
            is_delayed: false,
            timer,
            pace,
            deltas_since_yield: 0,
            is_done: false,
        }
    }

    fn next(&mut self) -> NextAction {
        let Some(part) = self.plan.parts.get(self.part_index) else {
            self.is_done = true;
            return NextAction::Yield(Ok(self.plan.stop(self.request_bytes)));
        };
        match part {
            PlanPart::Stall => NextAction::Never,
            PlanPart::Fail(error) => {
                self.is_done = true;
                NextAction::Yield(Err(error.clone()))
            }
            PlanPart::Pause(pause) => {
                self.timer.wait_from_now(*pause);
                self.part_index += 1;
                NextAction::Wait
            }
            PlanPart::Stream {
                delay,
                times,
                content,
                ..
            } => {
                let delay = match content {
                    StreamedContent::Text | StreamedContent::Thinking(_) => {
                        self.pace.word.max(*delay)
                    }
                    StreamedContent::Tool(_) => *delay,
                };
                let length = part.len();
                if self.delta_index == length {
                    self.repetitions += 1;
                    self.delta_index = 0;
                    if self.repetitions >= *times || length == 0 {
                        self.part_index += 1;
                        self.repetitions = 0;
                    }
                    return NextAction::Wait;
                }
                if !self.is_delayed && !delay.is_zero() {
                    self.is_delayed = true;
                    self.timer.wait_after_due(delay);
                    return NextAction::Wait;
                }
                self.is_delayed = false;
                self.delta_index += 1;
                part.delta(self.delta_index - 1)
                    .map_or(NextAction::Wait, |delta| NextAction::Yield(Ok(delta)))
            }
        }
    }
}

impl Stream for PlanStream {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        if stream.is_done {
            return Poll::Ready(None);
        }
        loop {
            if ready!(stream.timer.poll(cx)) {
                stream.deltas_since_yield = 0;
            }
            if stream.deltas_since_yield == YIELD_EVERY {
                stream.deltas_since_yield = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match stream.next() {
                NextAction::Yield(item) => {
                    stream.deltas_since_yield += 1;
                    return Poll::Ready(Some(item));
                }
                NextAction::Wait => {}
                NextAction::Never => return Poll::Pending,
            }
        }
    }
}
