//! A turn's emitter: every event of the turn passes here, is stamped with what wires would
//! otherwise have to remember, goes through the turn's gate, and is handed to the sequencer.
//!
//! ```text
//!   emit ──▶ gate.take ──▶ stamp ──▶ sequencer        one lock: what the gate holds back
//!              │ held        │                        keeps its place before what comes later
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
use turnwire_event::fold::rows;
use turnwire_event::port::{
    BoxFuture, Emission, EmitError, Emitter, Gate, MessageEnd, Onward, Refusal,
};
use turnwire_event::row::RowChange;
use turnwire_event::{
    Body, ContentBlock, EventType, Lane, Message, Position, Render, Trace, TurnId, metric,
};
use turnwire_log::{Draft, Refused, Room};

use crate::live::session::LiveSession;
use crate::live::turn_slot::StoppableEmitter;
use crate::turn::bind::PassThroughGate;
use crate::turn::ending::EndingContext;
use crate::turn::progress::{ProgressNote, TurnProgress, message_of};

/// What the emitter's lock protects.
struct EmitterState {
    /// Nothing of the producer is taken any more.
    sealed: bool,
    /// The turn was asked to stop: what has begun may end, and nothing else of it is taken.
    stopping: bool,
    /// A timer waits for what the gate holds.
    ticking: bool,
    /// How many emissions came, for timing one in some.
    count: u32,
    /// The last look at the clock.
    now: Instant,
    said: TurnProgress,
    gate: Box<dyn Gate>,
}

/// The emitter of one turn.
pub struct TurnEmitter {
    live: Arc<LiveSession>,
    turn: TurnId,
    trace: Option<Arc<Trace>>,
    desk: Mutex<EmitterState>,
    overhead: Histogram,
    /// The version of the agent's definition.
    definition: String,
    this: Weak<Self>,
}

/// One emission in so many is timed: a look at the clock costs as much as a delta's stamp.
const TIMED_EVERY: u32 = 8;

impl TurnEmitter {
    /// The emitter of `turn`, which has started.
    pub fn new(
        live: Arc<LiveSession>,
        turn: TurnId,
        trace: Option<Arc<Trace>>,
        gate: Box<dyn Gate>,
        agent_definition: &str,
    ) -> Arc<Self> {
        let desk = EmitterState {
            sealed: false,
            stopping: false,
            ticking: false,
            count: 0,
            now: clock(),
            said: TurnProgress::default(),
            gate,
        };
        Arc::new_cyclic(|this| Self {
            live,
            turn,
            trace,
            desk: Mutex::new(desk),
            overhead: metrics::histogram!(
                metric::STREAM_WRITER_OVERHEAD_MS,
                &metric::dimensions(agent_definition)
            ),
            definition: agent_definition.to_owned(),
            this: this.clone(),
        })
    }

    /// From here on nothing of the producer is taken; the session ends the turn. What is held
    /// back goes first.
    pub fn seal(&self) {
        let mut desk = self.desk.lock();
        self.let_go(&mut desk);
        desk.sealed = true;
    }

    /// The messages the turn has stored so far, and leaves none behind.
    pub(crate) fn take_messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.desk.lock().said.messages)
    }

    /// What is known of the turn beside its events, for its end: the gate goes with it.
    pub(crate) fn known(&self) -> EndingContext {
        let mut desk = self.desk.lock();
        EndingContext {
            types: desk.said.types.clone(),
            trace: self.trace.clone(),
            calls: desk.said.calls.clone(),
            definition: self.definition.clone(),
            hidden: desk.said.hidden.clone(),
            rest: None,
            gate: std::mem::replace(&mut desk.gate, Box::new(PassThroughGate)),
        }
    }

    fn draft(&self, emission: Emission, render: Option<Render>) -> Draft {
        // What a person thought belongs to no turn, whoever heard of it (as by the route).
        let turn = match emission.body.kind() {
            EventType::FeedbackRecorded => None,
            _ => Some(self.turn),
        };
        let mut draft = Draft::new(turn, emission.actor, emission.body);
        draft.trace = emission.trace.or_else(|| self.trace.clone());
        draft.render = render;
        draft.rows = rows(turn, &draft.actor, &draft.body);
        tell_call(&mut draft.rows, emission.provider_response_id);
        let message = emission.message;
        let message = message.map(|message| RowChange::MessagePut(self.turn, message));
        draft.rows.extend(message);
        draft
    }

    /// Gives one event that has passed the gate its place, and stamps it with what stands before
    /// it there: what came before it may have been held.
    fn place(
        &self,
        said: &mut TurnProgress,
        mut emission: Emission,
        render: Option<Render>,
    ) -> Result<Position, Refused> {
        let sequencer = &self.live.sequencer;
        if emission.body.kind().lane() == Lane::Internal {
            // Never an event: what is to be remembered of it is its message.
            let Some(message) = emission.message else {
                return Ok(sequencer.last());
            };
            let (at, _) = sequencer.put(vec![RowChange::MessagePut(self.turn, message)])?;
            return Ok(at);
        }
        said.stamp(&emission.actor, &mut emission.body);
        let render = said.cover(&emission.body, render);
        let draft = self.draft(emission, render);
        let (message, note) = (message_of(&draft), ProgressNote::of(&draft));
        // Room was looked for when the event came; what was held back must not wait for it.
        let (position, time) = sequencer.emit_one(draft, Room::Reserved)?;
        if let Some(message) = message {
            said.keep(message, (self.live.id, self.turn), time);
        }
        said.take_in(note, &self.definition);
        Ok(position)
    }

    /// Places everything that is held back.
    fn let_go(&self, desk: &mut EmitterState) {
        self.ask(desk, |gate, out| gate.flush(out));
    }

    /// Places what a gate gives when it is asked. One that breaks is not asked again.
    fn ask(&self, desk: &mut EmitterState, ask: impl FnOnce(&mut dyn Gate, Onward<'_>)) {
        let EmitterState { said, gate, .. } = &mut *desk;
        let mut out = |emission: Emission, render: Option<Render>| {
            // Refused: the turn or the session is over, nobody is left to be told.
            let _ = self.place(said, emission, render);
        };
        let asked = catch_unwind(AssertUnwindSafe(|| ask(gate.as_mut(), &mut out)));
        if asked.is_err() {
            tracing::error!(session = %self.live.id, turn = %self.turn, "a gate broke");
            desk.gate = Box::new(PassThroughGate);
        }
    }

    /// Sees to it that a timer waits for what the gate holds: one at most, none for nothing.
    fn tick(&self, desk: &mut EmitterState) {
        if desk.ticking {
            return;
        }
        let Some(mut due) = desk.gate.due() else {
            return;
        };
        desk.ticking = true;
        let this = self.this.clone();
        self.live.house.runner.runtime.spawn(async move {
            loop {
                tokio::time::sleep_until(due.into()).await;
                let emitter = this.upgrade();
                match emitter.and_then(|emitter| emitter.fire()) {
                    Some(later) => due = later,
                    None => return,
                }
            }
        });
    }

    /// The timer's time has come: what is due goes on, what waits for more of its message stays.
    /// Gives back when to come again.
    fn fire(&self) -> Option<Instant> {
        let mut desk = self.desk.lock();
        let now = clock();
        let is_due = |desk: &EmitterState| desk.gate.due().is_some_and(|due| due <= now);
        if is_due(&desk) {
            self.ask(&mut desk, |gate, out| gate.lapse(now, out));
        }
        if is_due(&desk) {
            // A gate that keeps what is due would have the timer come again at once, for ever.
            self.let_go(&mut desk);
        }
        let later = desk.gate.due().filter(|due| *due > now);
        desk.ticking = later.is_some();
        later
    }
}

/// Now, by the clock that timers go by.
fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl EmitterState {
    /// When an event came. Deltas come in crowds: for most of them the last look is good enough,
    /// unless the gate holds something or may hold this one for a time.
    fn look(&mut self, body: &Body) -> Instant {
        let crowd = matches!(
            body,
            Body::TextDelta(_) | Body::ThinkingDelta(_) | Body::ToolUseInputDelta(_)
        );
        if !crowd || self.gate.times(body.kind()) || self.count.is_multiple_of(TIMED_EVERY) {
            self.now = clock();
        }
        self.now
    }
}

/// Puts what the provider calls its answer into the row of the call that ends: it is no part of
/// the event, which clients see.
fn tell_call(rows: &mut [RowChange], theirs: Option<String>) {
    let ended = rows.iter_mut().find_map(|row| match row {
        RowChange::CallEnded {
            provider_response_id,
            ..
        } => Some(provider_response_id),
        _ => None,
    });
    if let Some(slot) = ended {
        *slot = theirs;
    }
}

fn refusal(refused: Refused) -> Refusal {
    metrics::counter!(metric::TURN_REFUSED_TOTAL).increment(1);
    match refused {
        Refused::Ended | Refused::Full => Refusal::Ended,
        Refused::Cancelled => Refusal::Cancelled,
        Refused::Closed => Refusal::Unavailable,
    }
}

impl StoppableEmitter for TurnEmitter {
    fn stop(&self, ask: &mut dyn FnMut()) {
        let mut desk = self.desk.lock();
        self.let_go(&mut desk);
        ask();
        desk.stopping = true;
    }
}

impl Emitter for TurnEmitter {
    fn emit(&self, emission: Emission) -> Result<Position, EmitError> {
        let mut desk = self.desk.lock();
        let desk = &mut *desk;
        if desk.sealed {
            return Err(refusal(Refused::Ended).into());
        }
        if desk.stopping && !emission.body.kind().is_closing() {
            return Err(refusal(Refused::Cancelled).into());
        }
        if self.live.sequencer.is_full() {
            return Err(EmitError::Full(Box::new(emission)));
        }
        let timed = desk.count.is_multiple_of(TIMED_EVERY);
        let now = desk.look(&emission.body);
        desk.count = desk.count.wrapping_add(1);
        let EmitterState { said, gate, .. } = desk;
        let mut placed = None;
        gate.take(emission, now, &mut |emission, render| {
            placed = Some(self.place(said, emission, render));
        });
        self.tick(desk);
        if timed {
            let took = clock().saturating_duration_since(now);
            self.overhead.record(took.as_secs_f64() * 1e3);
        }
        // The last that went on is this one, or one before it if this one is held: it has no
        // place yet, and stands behind everything that has.
        let at = placed.unwrap_or_else(|| Ok(self.live.sequencer.last()));
        at.map_err(|refused| refusal(refused).into())
    }

    fn complete(&self, end: MessageEnd) -> Result<Vec<ContentBlock>, Refusal> {
        self.end_message(&mut self.desk.lock(), end)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _ = self.live.sequencer.ready().await;
        })
    }

    fn committed(&self, at: Position) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move {
            let durable = self.live.sequencer.committed(at.seq).await;
            durable.map_err(refusal)?;
            // Whoever waits for this acts on it: not once the turn is asked to stop, also where
            // both became durable in the same breath.
            let desk = self.desk.lock();
            match (desk.stopping, desk.sealed) {
                (true, _) => Err(refusal(Refused::Cancelled)),
                (false, true) => Err(refusal(Refused::Ended)),
                (false, false) => Ok(()),
            }
        })
    }
}
