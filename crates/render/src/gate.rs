//! The interceptor of one turn: decides about each event, writes the words of statuses, and keeps
//! back what is shown together.
//!
//! The common way, an event that is forwarded while nothing is held, reads an array, adds one to a
//! counter and hands the event on; it allocates nothing. No stamp means `forward`.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::stream::TextDelta;
use turnwire_event::port::{Emission, Gate, Onward};
use turnwire_event::{ActorKind, Body, EventType, Render, RenderPolicy};
use turnwire_pack::Line;

use crate::filter::TextFilter;
use crate::hold::{HeldStatus, Hold, same_block};
use crate::kind::{Place, place};
use crate::sentence::combined;
use crate::table::Table;

/// One decision in so many is timed, so that the clock is not what a decision costs.
const TIMED_EVERY: u32 = 64;
/// Unregistered ids that a turn says in the server's log; the counter has them all.
const WARNINGS_MAX: u8 = 8;
/// Characters of such an id that the server's log gets.
const SHOWN_CHARS: usize = 48;
/// What the log has in place of an id that is not registered: no agent's prose gets there.
const UNREGISTERED: &str = "unregistered";

pub(crate) struct TurnGate {
    table: Arc<Table>,
    locale: String,
    filter: Option<Box<dyn TextFilter>>,
    /// While the filter is in a block: a delta of that block, without text.
    tail: Option<Emission>,
    hold: Hold,
    /// The texts of statuses that were emitted, by their place in the table.
    lines: Vec<Option<Line>>,
    group: u32,
    seen: u32,
    warned: u8,
}

/// What was decided: how it is shown, and for a status which it is.
#[derive(Clone, Copy)]
struct Decision {
    policy: RenderPolicy,
    status: Option<usize>,
}

impl TurnGate {
    pub(crate) fn new(
        table: Arc<Table>,
        locale: &str,
        filter: Option<Box<dyn TextFilter>>,
    ) -> Self {
        Self {
            table,
            locale: locale.to_owned(),
            filter,
            tail: None,
            hold: Hold::default(),
            lines: Vec::new(),
            group: 0,
            seen: 0,
            warned: 0,
        }
    }

    fn decide(&mut self, emission: &Emission) -> Decision {
        let began = self.seen.is_multiple_of(TIMED_EVERY).then(Instant::now);
        self.seen = self.seen.wrapping_add(1);
        let kind = emission.body.kind();
        let decision = match &emission.body {
            Body::StatusEmitted(status) => match self.table.find(&status.event_id, &emission.actor)
            {
                Some(index) if self.read(index) => Decision {
                    policy: self.table.status(index).policy,
                    status: Some(index),
                },
                _ => Decision {
                    policy: RenderPolicy::Suppress,
                    status: None,
                },
            },
            _ => Decision {
                policy: self.table.policy(kind),
                status: None,
            },
        };
        let meter = &self.table.meter;
        let row = meter.row(&emission.actor);
        meter.applied(row, kind, decision.policy);
        if let Some(index) = decision.status {
            meter.emitted(row, index, &self.table.status(index).id);
        }
        if let Some(began) = began {
            meter.decided(began.elapsed());
        }
        decision
    }

    /// Reads the text of a status, once a turn; whether there is one.
    fn read(&mut self, index: usize) -> bool {
        if self.lines.len() <= index {
            self.lines.resize(index + 1, None);
        }
        if self.lines[index].is_none()
            && let Some(pack) = &self.table.pack
        {
            let status = self.table.status(index);
            let locale = match status.policy {
                RenderPolicy::Forward => &pack.default_locale,
                RenderPolicy::Transform | RenderPolicy::Suppress | RenderPolicy::Batch => {
                    &self.locale
                }
            };
            self.lines[index] = pack.locales.line(locale, &status.render_key);
        }
        self.lines[index].is_some()
    }

    /// A status, whose words are written here and nowhere else (I-21).
    fn status(
        &mut self,
        mut emission: Emission,
        decision: Decision,
        now: Instant,
        out: Onward<'_>,
    ) {
        let Body::StatusEmitted(body) = &mut emission.body else {
            return out(emission, None);
        };
        let Some(index) = decision.status else {
            self.warn(&body.event_id);
            body.event_id = UNREGISTERED.to_owned();
            body.message.clear();
            return out(emission, Some(RenderPolicy::Suppress.into()));
        };
        self.table.status(index).mention_deprecation();
        let line = self.lines[index].as_ref();
        body.message = line.map_or_else(String::new, |line| line.message.clone());
        match decision.policy {
            RenderPolicy::Suppress => out(emission, Some(decision.policy.into())),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(emission, Some(decision.policy.into()));
            }
            RenderPolicy::Batch => {
                let held = HeldStatus { emission, index };
                self.hold.push_status(held, now, self.table.window);
                if self.hold.is_full() {
                    self.release(out);
                }
            }
        }
    }

    fn warn(&mut self, id: &str) {
        self.table.meter.unregistered();
        if self.warned < WARNINGS_MAX {
            self.warned += 1;
            let shown: String = id.chars().take(SHOWN_CHARS).collect();
            tracing::warn!(
                event_id = %shown.escape_default(),
                "a status was withheld: its id is not registered, or not for who emitted it"
            );
        }
    }

    /// Words of a message.
    fn text(&mut self, emission: Emission, policy: RenderPolicy, now: Instant, out: Onward<'_>) {
        let Some(emission) = self.filtered(emission, out) else {
            return;
        };
        match policy {
            RenderPolicy::Suppress => out(emission, stamp(policy)),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(emission, stamp(policy));
            }
            RenderPolicy::Batch => {
                if self.hold.has_statuses() {
                    self.release(out);
                }
                if let Err(emission) = self.hold.join(emission) {
                    self.release(out);
                    self.hold.put_text(emission, now + self.table.window);
                }
            }
        }
    }

    /// What the filter lets through of a delta; none if it keeps all of it for now. Only what the
    /// orchestrator says to the person passes the filter: reasoning is sealed by its provider and
    /// could not be shown to the model again if a word of it were changed.
    fn filtered(&mut self, mut emission: Emission, out: Onward<'_>) -> Option<Emission> {
        if self.filter.is_none() || emission.actor.kind() != ActorKind::Orchestrator {
            return Some(emission);
        }
        let goes_on = match (&self.tail, &emission.body) {
            (Some(tail), Body::TextDelta(delta)) => {
                matches!(&tail.body, Body::TextDelta(old) if same_block(old, delta))
            }
            _ => false,
        };
        if !goes_on {
            self.finish_tail(out);
        }
        let (Some(filter), Body::TextDelta(delta)) = (&mut self.filter, &mut emission.body) else {
            return Some(emission);
        };
        if delta.text.is_empty() {
            return Some(emission);
        }
        let mut said = String::with_capacity(delta.text.len());
        filter.push(&delta.text, &mut said);
        delta.text = said;
        let silent = delta.text.is_empty() && emission.message.is_none();
        if !goes_on {
            let blank = TextDelta {
                text: String::new(),
                ..*delta
            };
            self.tail = Some(Emission {
                trace: emission.trace.clone(),
                ..Emission::new(emission.actor.clone(), Body::TextDelta(blank))
            });
        }
        (!silent).then_some(emission)
    }

    /// The block that the filter is in has ended: what it kept back goes on.
    fn finish_tail(&mut self, out: Onward<'_>) {
        let (Some(mut tail), Some(filter)) = (self.tail.take(), &mut self.filter) else {
            return;
        };
        if let Body::TextDelta(delta) = &mut tail.body {
            filter.finish(&mut delta.text);
            if delta.text.is_empty() {
                return;
            }
        }
        let policy = self.table.policy(EventType::TextDelta);
        match policy {
            RenderPolicy::Suppress => out(tail, stamp(policy)),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(tail, stamp(policy));
            }
            RenderPolicy::Batch => {
                if let Err(tail) = self.hold.join(tail) {
                    self.release(out);
                    out(tail, stamp(policy));
                }
            }
        }
    }

    /// Lets go of what an event must stand behind.
    fn make_way(&mut self, body: &Body, policy: RenderPolicy, out: Onward<'_>) {
        let shown = policy != RenderPolicy::Suppress;
        match place(body.kind()) {
            Place::Aside => {
                let ends = match body {
                    Body::SubagentCompleted(end) => Some(&end.sub_agent_id),
                    Body::SubagentFailed(end) => Some(&end.sub_agent_id),
                    _ => None,
                };
                // What a sub-agent did stands between its beginning and its end.
                if ends.is_some_and(|id| self.hold.has_status_of(id)) {
                    self.release(out);
                }
            }
            Place::Beside if shown => self.release_text(out),
            Place::Behind if shown => self.release(out),
            Place::Beside | Place::Behind => {}
            Place::Within => {
                self.finish_tail(out);
                self.release_text(out);
            }
            Place::Last => {
                self.finish_tail(out);
                if shown {
                    self.release(out);
                } else {
                    self.release_text(out);
                }
            }
        }
    }

    fn release(&mut self, out: Onward<'_>) {
        self.release_text(out);
        self.release_statuses(out);
    }

    fn release_text(&mut self, out: Onward<'_>) {
        if let Some(text) = self.hold.take_text() {
            out(text, stamp(RenderPolicy::Batch));
        }
    }

    /// The statuses that are held, as one group; the last one has the sentence of all.
    fn release_statuses(&mut self, out: Onward<'_>) {
        let held = self.hold.take_statuses();
        let Some(last) = held.len().checked_sub(1) else {
            return;
        };
        self.group += 1;
        let mut members: Vec<usize> = Vec::with_capacity(held.len());
        for status in &held {
            if !members.contains(&status.index) {
                members.push(status.index);
            }
        }
        let lines: Vec<&Line> = members
            .iter()
            .filter_map(|&index| self.lines[index].as_ref())
            .collect();
        let locales = self.table.pack.as_ref().map(|pack| &pack.locales);
        let mut message = locales.map(|locales| combined(&lines, locales, &self.locale));
        let ids = members.iter().map(|&index| &self.table.status(index).id);
        let mut event_ids: Vec<String> = ids.cloned().collect();
        for (at, status) in held.into_iter().enumerate() {
            let mut render = Render {
                group: Some(self.group),
                ..RenderPolicy::Batch.into()
            };
            if at == last {
                render.message = message.take();
                render.event_ids = std::mem::take(&mut event_ids);
            }
            out(status.emission, Some(render));
        }
    }
}

impl Gate for TurnGate {
    fn take(&mut self, emission: Emission, now: Instant, out: Onward<'_>) {
        let decision = self.decide(&emission);
        let policy = decision.policy;
        if !self.hold.is_empty() {
            self.lapse(now, out);
        }
        match emission.body.kind() {
            EventType::StatusEmitted => self.status(emission, decision, now, out),
            EventType::TextDelta
                if self.filter.is_some()
                    || policy == RenderPolicy::Batch
                    || !self.hold.is_empty() =>
            {
                self.text(emission, policy, now, out);
            }
            _ => {
                if self.tail.is_some() || !self.hold.is_empty() {
                    self.make_way(&emission.body, policy, out);
                }
                out(emission, stamp(policy));
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.hold.due()
    }

    fn lapse(&mut self, now: Instant, out: Onward<'_>) {
        if self.hold.statuses_due(now) {
            self.release(out);
        } else if self.hold.text_due(now) {
            self.release_text(out);
        }
    }

    fn flush(&mut self, out: Onward<'_>) {
        self.finish_tail(out);
        self.release(out);
    }
}

fn stamp(policy: RenderPolicy) -> Option<Render> {
    (policy != RenderPolicy::Forward).then(|| policy.into())
}
