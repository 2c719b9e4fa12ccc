//! The interceptor of one turn: decides about each event, writes the words of statuses, and keeps
//! back what is shown together.
//!
//! The common way, an event that is forwarded while nothing is held, reads an array, adds one to a
//! counter and hands the event on; it allocates nothing. No stamp means `forward`.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::status::UNREGISTERED;
use turnwire_event::port::{Emission, Gate, Onward};
use turnwire_event::{Actor, Body, EventType, Render, RenderPolicy};
use turnwire_pack::LocaleLine;

use crate::filter::TextFilter;
use crate::hold::{HeldStatus, Hold};
use crate::kind::{Place, place};
use crate::sentence::combined;
use crate::speech::Speech;
use crate::table::Table;

/// One decision in so many is timed, so that the clock is not what a decision costs.
const TIMED_EVERY: u32 = 64;
/// Unregistered ids that a turn says in the server's log; the counter has them all.
const WARNINGS_MAX: u8 = 8;
/// The longest id that the server's log gets: as long as an id may be.
const SHOWN_BYTES: usize = 64;

pub(crate) struct TurnGate {
    table: Arc<Table>,
    locale: String,
    speech: Speech,
    hold: Hold,
    /// The texts of statuses that were emitted, by their place in the table.
    lines: Vec<Option<LocaleLine>>,
    group: u32,
    seen: u32,
    warned: u8,
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
            speech: Speech::new(filter),
            hold: Hold::default(),
            lines: Vec::new(),
            group: 0,
            seen: 0,
            warned: 0,
        }
    }

    /// Decides about an event that is not a status: the type says all.
    fn decide(&mut self, emission: &Emission) -> RenderPolicy {
        let began = self.begin();
        let kind = emission.body.kind();
        let policy = self.table.policy(kind);
        let meter = &self.table.meter;
        meter.applied(meter.row(&emission.actor), kind, policy);
        self.decided(began);
        policy
    }

    /// Decides about a status: which it is, unless it is withheld, and how it is shown.
    fn decide_status(&mut self, id: &str, actor: &Actor) -> Option<(usize, RenderPolicy)> {
        let began = self.begin();
        let found = self.table.find(id, actor);
        let found = found.filter(|&index| self.read(index));
        let meter = &self.table.meter;
        let row = meter.row(actor);
        let decision = found.map(|index| {
            let status = self.table.status(index);
            meter.emitted(row, index, &status.id);
            (index, status.policy)
        });
        let policy = decision.map_or(RenderPolicy::Suppress, |(_, policy)| policy);
        meter.applied(row, EventType::StatusEmitted, policy);
        self.decided(began);
        decision
    }

    fn begin(&mut self) -> Option<Instant> {
        let timed = self.seen.is_multiple_of(TIMED_EVERY);
        self.seen = self.seen.wrapping_add(1);
        timed.then(Instant::now)
    }

    fn decided(&self, began: Option<Instant>) {
        if let Some(began) = began {
            self.table.meter.decided(began.elapsed());
        }
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
    fn status(&mut self, mut emission: Emission, now: Instant, out: Onward<'_>) {
        let Body::StatusEmitted(body) = &mut emission.body else {
            return out(emission, None);
        };
        let Some((index, policy)) = self.decide_status(&body.event_id, &emission.actor) else {
            self.warn(&body.event_id, &emission.actor);
            body.event_id = UNREGISTERED.to_owned();
            body.message.clear();
            return out(emission, Some(RenderPolicy::Suppress.into()));
        };
        self.table.status(index).mention_deprecation();
        let line = self.lines[index].as_ref();
        body.message = line.map_or_else(String::new, |line| line.message.clone());
        match policy {
            RenderPolicy::Suppress => out(emission, Some(policy.into())),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(emission, Some(policy.into()));
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

    fn warn(&mut self, id: &str, actor: &Actor) {
        self.table.meter.unregistered();
        if self.warned < WARNINGS_MAX {
            self.warned += 1;
            tracing::warn!(
                event_id = nameable(id),
                bytes = id.len(),
                %actor,
                "a status was withheld: its id is not registered, or not for who emitted it"
            );
        }
    }

    /// Words of a message.
    fn text(&mut self, emission: Emission, policy: RenderPolicy, now: Instant, out: Onward<'_>) {
        if self.speech.leaves(&emission) {
            self.finish_block(out);
        }
        let Some(emission) = self.speech.pass(emission) else {
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
                if !self.hold.joins(&emission) {
                    self.release(out);
                    self.hold.put_text(emission, now + self.table.window);
                }
            }
        }
    }

    /// The block that the filter is in has ended: what it kept back goes on.
    fn finish_block(&mut self, out: Onward<'_>) {
        let Some(rest) = self.speech.finish() else {
            return;
        };
        let policy = self.table.policy(EventType::TextDelta);
        match policy {
            RenderPolicy::Suppress => out(rest, stamp(policy)),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(rest, stamp(policy));
            }
            RenderPolicy::Batch => {
                if !self.hold.joins(&rest) {
                    self.release(out);
                    out(rest, stamp(policy));
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
                self.finish_block(out);
                self.release_text(out);
            }
            Place::Last => {
                self.finish_block(out);
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
        let mut message = self.sentence(&members);
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

    /// What is said of these statuses together; one alone keeps its own words.
    fn sentence(&self, members: &[usize]) -> Option<String> {
        if let &[index] = members {
            return self.lines[index].as_ref().map(|line| line.message.clone());
        }
        let key = |&index: &usize| self.table.status(index).render_key.as_str();
        let keys: Vec<&str> = members.iter().map(key).collect();
        let pack = self.table.pack.as_ref()?;
        Some(combined(&keys, &pack.locales, &self.locale))
    }
}

impl Gate for TurnGate {
    fn take(&mut self, mut emission: Emission, now: Instant, out: Onward<'_>) {
        if !self.hold.is_empty() {
            self.lapse(now, out);
        }
        if matches!(emission.body, Body::StatusEmitted(_)) {
            return self.status(emission, now, out);
        }
        let policy = self.decide(&emission);
        let words = matches!(emission.body, Body::TextDelta(_));
        if words && (!self.speech.is_plain() || policy == RenderPolicy::Batch) {
            return self.text(emission, policy, now, out);
        }
        if self.speech.is_open() || !self.hold.is_empty() {
            self.make_way(&emission.body, policy, out);
        }
        if policy == RenderPolicy::Suppress && is_display(&emission.body) {
            // Its message is there for clients alone; the log keeps what it was.
            emission.message = None;
        }
        out(emission, stamp(policy));
    }

    fn due(&self) -> Option<Instant> {
        self.hold.due()
    }

    fn times(&self, kind: EventType) -> bool {
        !self.hold.is_empty() || self.table.policy(kind) == RenderPolicy::Batch
    }

    fn lapse(&mut self, now: Instant, out: Onward<'_>) {
        if self.hold.statuses_due(now) {
            self.release(out);
        } else if self.hold.text_due(now) {
            self.release_text(out);
        }
    }

    fn flush(&mut self, out: Onward<'_>) {
        self.finish_block(out);
        self.release(out);
    }
}

/// Whether its message is one that only clients are shown.
fn is_display(body: &Body) -> bool {
    matches!(body, Body::DataLoaded(_) | Body::ComponentRendered(_))
}

/// An id as the server's log may have it: only if it looks like one. Anything else is an agent's
/// prose, and may be about a person.
fn nameable(id: &str) -> Option<&str> {
    let first = id.bytes().next()?;
    let rest = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let named = first.is_ascii_lowercase() && id.len() <= SHOWN_BYTES && id.bytes().all(rest);
    named.then_some(id)
}

fn stamp(policy: RenderPolicy) -> Option<Render> {
    (policy != RenderPolicy::Forward).then(|| policy.into())
}

#[cfg(test)]
mod tests;
