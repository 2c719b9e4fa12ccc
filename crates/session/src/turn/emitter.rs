//! The emitter of a turn: every event of the turn goes through its gate, is stamped with facts that
//! wires would otherwise have to remember, and is handed to the sequencer.
//!
//! ```text
//!   emit ──▶ gate.take ──▶ stamp ──▶ sequencer        one lock: events that the gate holds back
//!              │ held        │                        precede those that are emitted later
//!   timer ─────┤ gate.lapse ─┤
//!   complete, ─┴ gate.flush ─┘
//!   cancel, every end
//! ```

mod complete;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Instant;

use metrics::Histogram;
use parking_lot::Mutex;
use turnwire_event::metric::{self, TurnDimensions};
use turnwire_event::port::{
    BoxFuture, Emission, EmitError, EmitRefusal, EventEmitter, EventGate, GateOutput, MeasuredSpan,
    MessageEnd,
};
use turnwire_event::row::RowChange;
use turnwire_event::{
    Body, CallId, ContentBlock, EventLane, EventType, Message, Position, RenderDecision,
    TokenUsage, TraceContext, TurnId, UpstreamId,
};
use turnwire_log::{EventDraft, OutboxRoom, SequencerError};

use super::bind::PassThroughGate;
use super::ending::EndingContext;
use super::progress::{ProgressNote, TurnProgress, stored_message};
use crate::error::Error;
use crate::live::response_claim::ResponseClaim;
use crate::live::session::LiveSession;
use crate::live::turn_slot::StoppableEmitter;

/// The state that the emitter's lock protects.
struct EmitterState {
    /// No event of the producer is accepted.
    sealed: bool,
    /// A cancel was requested: only events that close something open are accepted.
    stopping: bool,
    /// A timer task waits for the gate's next deadline.
    timer_running: bool,
    /// The number of emissions, of which one in [`TIMED_EVERY`] is timed.
    count: u32,
    /// The last reading of the clock.
    now: Instant,
    progress: TurnProgress,
    /// The id that the turn's upstream gave to its response.
    claim: Option<ResponseClaim>,
    gate: Box<dyn EventGate>,
}

/// The [`EventEmitter`] of one turn.
pub(crate) struct TurnEmitter {
    live: Arc<LiveSession>,
    turn: TurnId,
    trace: Option<Arc<TraceContext>>,
    state: Mutex<EmitterState>,
    overhead: Histogram,
    dimensions: TurnDimensions,
    this: Weak<Self>,
}

/// One emission in this many is timed: reading the clock costs as much as stamping a delta.
const TIMED_EVERY: u32 = 8;

impl TurnEmitter {
    /// The emitter of `turn`, whose `turn.started` is emitted.
    pub(crate) fn new(
        live: Arc<LiveSession>,
        turn: TurnId,
        trace: Option<Arc<TraceContext>>,
        (gate, is_relayed): (Box<dyn EventGate>, bool),
        dimensions: TurnDimensions,
    ) -> Arc<Self> {
        let state = EmitterState {
            sealed: false,
            stopping: false,
            timer_running: false,
            count: 0,
            now: timer_now(),
            progress: TurnProgress::new(is_relayed),
            claim: None,
            gate,
        };
        Arc::new_cyclic(|this| Self {
            live,
            turn,
            trace,
            state: Mutex::new(state),
            overhead: metrics::histogram!(
                metric::STREAM_WRITER_OVERHEAD_SECONDS,
                &dimensions.labels()
            ),
            dimensions,
            this: this.clone(),
        })
    }

    /// Emits the events held back, then refuses all later ones: the session ends the turn.
    pub(crate) fn seal(&self) {
        let mut state = self.state.lock();
        self.flush_gate(&mut state);
        state.sealed = true;
    }

    /// The time of the last event of the producer; of deltas only one in [`TIMED_EVERY`] counts.
    pub(crate) fn last_event_at(&self) -> Instant {
        self.state.lock().now
    }

    /// Takes the messages that the turn has stored so far.
    pub(crate) fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.state.lock().progress.messages)
    }

    /// Takes the claim on the id of the turn's response.
    pub(crate) fn take_claim(&self) -> Option<ResponseClaim> {
        self.state.lock().claim.take()
    }

    /// Takes the gate and copies the progress, for the end of the turn.
    pub(crate) fn ending_context(&self) -> EndingContext {
        let mut state = self.state.lock();
        EndingContext {
            tool_types: state.progress.tool_types.clone(),
            trace: self.trace.clone(),
            calls: state.progress.calls.clone(),
            dimensions: self.dimensions.clone(),
            hidden_tools: state.progress.hidden_tools.clone(),
            tool_agents: state.progress.tool_agents.clone(),
            stop_report: None,
            worker_ends: Vec::new(),
            gate: std::mem::replace(&mut state.gate, Box::new(PassThroughGate)),
        }
    }

    fn draft(&self, emission: Emission, render: Option<RenderDecision>) -> EventDraft {
        // Feedback belongs to no turn, also if a tool emits it (as with the HTTP route).
        let turn = match emission.body.kind() {
            EventType::FeedbackRecorded => None,
            _ => Some(self.turn),
        };
        let mut draft = EventDraft::with_rows(turn, emission.actor, emission.body);
        draft.trace = emission.trace.or_else(|| self.trace.clone());
        draft.render = render;
        draft.sub_agent_id = emission.sub_agent_id;
        set_provider_response_id(&mut draft.rows, emission.provider_response_id);
        let message = emission.message;
        let message = message.map(|message| RowChange::MessagePut(self.turn, message));
        draft.rows.extend(message);
        draft
    }

    /// Stamps an event that has passed the gate, and hands it to the sequencer. The stamp depends
    /// on the events before it in the log, which the gate may have held back.
    fn append(
        &self,
        progress: &mut TurnProgress,
        mut emission: Emission,
        render: Option<RenderDecision>,
    ) -> Result<Position, SequencerError> {
        let sequencer = &self.live.sequencer;
        if emission.body.kind().lane() == EventLane::Internal {
            // An internal event is never stored; only its message is.
            let Some(message) = emission.message else {
                return Ok(sequencer.last());
            };
            let (at, _) = sequencer.put(vec![RowChange::MessagePut(self.turn, message)])?;
            return Ok(at);
        }
        progress.stamp(&emission.actor, &mut emission.body);
        let render = progress.suppress_hidden(&emission.body, render);
        progress.note_tool(&emission);
        let draft = self.draft(emission, render);
        let (message, note) = (stored_message(&draft), ProgressNote::of(&draft));
        // `emit` checked for room when the event came; events held back must not wait for it.
        let (position, time) = sequencer.emit_one(draft, OutboxRoom::Reserved)?;
        if let Some(message) = message {
            progress.add_stored(message, (self.live.id, self.turn), time);
        }
        progress.apply(note, &self.dimensions);
        Ok(position)
    }

    /// Emits everything that the gate holds back.
    fn flush_gate(&self, state: &mut EmitterState) {
        self.run_gate(state, |gate, out| gate.flush(out));
    }

    /// Calls the gate and emits its output. A gate that panics is replaced.
    fn run_gate(
        &self,
        state: &mut EmitterState,
        call: impl FnOnce(&mut dyn EventGate, GateOutput<'_>),
    ) {
        let EmitterState { progress, gate, .. } = &mut *state;
        let mut out = |emission: Emission, render: Option<RenderDecision>| {
            // Refused: the turn or the session has ended, and no caller waits for the result.
            let _ = self.append(progress, emission, render);
        };
        let result = catch_unwind(AssertUnwindSafe(|| call(gate.as_mut(), &mut out)));
        if result.is_err() {
            tracing::error!(session = %self.live.id, turn = %self.turn, "a gate panicked");
            state.gate = Box::new(PassThroughGate);
        }
    }

    /// Spawns the timer task if the gate has a deadline and no timer task runs.
    fn ensure_timer(&self, state: &mut EmitterState) {
        if state.timer_running {
            return;
        }
        let Some(mut due) = state.gate.due() else {
            return;
        };
        state.timer_running = true;
        let this = self.this.clone();
        self.live.services.runner.runtime.spawn(async move {
            loop {
                tokio::time::sleep_until(due.into()).await;
                let emitter = this.upgrade();
                match emitter.and_then(|emitter| emitter.on_timer()) {
                    Some(next_due) => due = next_due,
                    None => return,
                }
            }
        });
    }

    /// Emits the events that are due, and returns the gate's next deadline.
    fn on_timer(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        let now = timer_now();
        let is_due = |state: &EmitterState| state.gate.due().is_some_and(|due| due <= now);
        if is_due(&state) {
            self.run_gate(&mut state, |gate, out| gate.lapse(now, out));
        }
        if is_due(&state) {
            // A gate that keeps an event past its deadline would make the timer spin.
            self.flush_gate(&mut state);
        }
        let next_due = state.gate.due().filter(|due| *due > now);
        state.timer_running = next_due.is_some();
        next_due
    }
}

/// The time of tokio's clock, which timers use.
fn timer_now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl EmitterState {
    /// The time of an event. Deltas are frequent: the last reading of the clock is good enough for
    /// most of them, unless the gate holds an event or may delay this one.
    fn event_time(&mut self, body: &Body) -> Instant {
        let is_delta = matches!(
            body,
            Body::TextDelta(_) | Body::ThinkingDelta(_) | Body::ToolUseInputDelta(_)
        );
        if !is_delta || self.gate.times(body.kind()) || self.count.is_multiple_of(TIMED_EVERY) {
            self.now = timer_now();
        }
        self.now
    }
}

/// Sets the provider's id of its response in the row of the call that ends. The event, which
/// clients read, does not contain it.
fn set_provider_response_id(rows: &mut [RowChange], response_id: Option<String>) {
    for row in rows {
        if let RowChange::CallEnded {
            provider_response_id,
            ..
        } = row
        {
            *provider_response_id = response_id;
            return;
        }
    }
}

fn refusal(refused: SequencerError) -> EmitRefusal {
    metrics::counter!(metric::TURN_REFUSED_TOTAL).increment(1);
    match refused {
        SequencerError::Ended | SequencerError::Full => EmitRefusal::Ended,
        SequencerError::Cancelled => EmitRefusal::Cancelled,
        SequencerError::Closed => EmitRefusal::Unavailable,
    }
}

impl StoppableEmitter for TurnEmitter {
    fn stop(&self, request: &mut dyn FnMut()) {
        let mut state = self.state.lock();
        self.flush_gate(&mut state);
        request();
        state.stopping = true;
    }
}

impl EventEmitter for TurnEmitter {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.sealed {
            return Err(refusal(SequencerError::Ended).into());
        }
        if state.stopping && !emission.body.kind().is_closing() {
            return Err(refusal(SequencerError::Cancelled).into());
        }
        if self.live.sequencer.is_full() {
            return Err(EmitError::Full(Box::new(emission)));
        }
        let is_timed = state.count.is_multiple_of(TIMED_EVERY);
        let now = state.event_time(&emission.body);
        state.count = state.count.wrapping_add(1);
        let EmitterState { progress, gate, .. } = state;
        let mut appended = None;
        gate.take(emission, now, &mut |emission, render| {
            appended = Some(self.append(progress, emission, render));
        });
        self.ensure_timer(state);
        if is_timed {
            let elapsed = timer_now().saturating_duration_since(now);
            self.overhead.record(elapsed);
        }
        // The last appended event is this one, or an earlier one if the gate holds this one back:
        // it has no position yet, and follows everything that has.
        let at = appended.unwrap_or_else(|| Ok(self.live.sequencer.last()));
        at.map_err(|refused| refusal(refused).into())
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, EmitRefusal> {
        let mut state = self.state.lock();
        state.now = timer_now();
        self.end_message(&mut state, end)
    }

    fn report_usage(&self, call_id: CallId, usage: TokenUsage) {
        self.state.lock().progress.calls.report(call_id, usage);
    }

    fn record_span(&self, span: MeasuredSpan) {
        if let Some(tracer) = &self.live.services.tracer {
            tracer.record(self.turn, span);
        }
    }

    fn claim_response_id<'a>(&'a self, id: &'a UpstreamId) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let (live, owner) = (&self.live, self.live.owner.clone());
            // Claimed before the read: of two turns that ask at once, one gets the id.
            let Some(claim) = live.services.response_claims.claim(&owner, id) else {
                return false;
            };
            let wanted = id.clone();
            let share = live.turn_read_share();
            let read = share.read(live.services.store.clone(), move |store| {
                let turn = store.turn_of_response(&owner, &wanted)?;
                Ok::<_, Error>(turn)
            });
            let is_free = matches!(read.await, Ok(None));
            if is_free {
                self.state.lock().claim = Some(claim);
            }
            is_free
        })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _ = self.live.sequencer.ready().await;
        })
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), EmitRefusal>> {
        Box::pin(async move {
            let durable = self.live.sequencer.committed(at.seq).await;
            durable.map_err(refusal)?;
            // The caller acts on a success. It must not act after a cancel request, also if both
            // became durable in the same commit.
            let state = self.state.lock();
            match (state.stopping, state.sealed) {
                (true, _) => Err(refusal(SequencerError::Cancelled)),
                (false, true) => Err(refusal(SequencerError::Ended)),
                (false, false) => Ok(()),
            }
        })
    }
}
