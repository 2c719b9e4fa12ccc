//! The gate of one turn: decides the policy of each event, sets the text of statuses, and buffers
//! events that are shown together.
//!
//! The common case, a forwarded event while the buffer is empty, reads an array, increments a
//! counter and passes the event on, without an allocation. An event without a mark is forwarded.

use std::sync::Arc;
use std::time::Instant;

use turnwire_event::body::status::UNREGISTERED;
use turnwire_event::port::{Emission, EventGate, GateOutput};
use turnwire_event::{Actor, Body, EventType, RenderDecision, RenderPolicy};
use turnwire_pack::LocaleLine;

use crate::block_filter::BlockFilter;
use crate::buffer::{BufferedStatus, GateBuffer};
use crate::event_policy::{ReleaseBefore, counted_kind, release_before};
use crate::filter::TextFilter;
use crate::policy_table::PolicyTable;
use crate::sentence::combine_statuses;

/// One decision in this many is timed, so that reading the clock does not dominate the cost.
const TIMED_EVERY: u32 = 64;
/// The largest number of unregistered ids that a turn logs; the metric counts all of them.
const WARNINGS_MAX: u8 = 8;
/// The longest id that is logged: the length limit of status ids.
const LOGGED_ID_BYTES_MAX: usize = 64;

/// The [`EventGate`] of one turn.
pub(crate) struct TurnGate {
    table: Arc<PolicyTable>,
    locale: String,
    block_filter: BlockFilter,
    buffer: GateBuffer,
    /// The texts of the statuses that were emitted, by their index in the table.
    texts: Vec<Option<LocaleLine>>,
    group: u32,
    decisions: u32,
    warnings: u8,
}

impl TurnGate {
    pub(crate) fn new(
        table: Arc<PolicyTable>,
        locale: &str,
        filter: Option<Box<dyn TextFilter>>,
    ) -> Self {
        Self {
            table,
            locale: locale.to_owned(),
            block_filter: BlockFilter::new(filter),
            buffer: GateBuffer::default(),
            texts: Vec::new(),
            group: 0,
            decisions: 0,
            warnings: 0,
        }
    }

    /// The policy of an event that is not a status; it depends on the type alone.
    fn decide(&mut self, emission: &Emission) -> RenderPolicy {
        let started_at = self.start_timer();
        let kind = emission.body.kind();
        let policy = self.table.policy(kind);
        let metrics = &self.table.metrics;
        metrics.count_applied(
            metrics.row(emission.sub_agent()),
            counted_kind(&emission.body),
            policy,
        );
        self.record_decision_time(started_at);
        policy
    }

    /// The index and the policy of a status, or `None` if the status is withheld.
    fn decide_status(&mut self, id: &str, actor: &Actor) -> Option<(usize, RenderPolicy)> {
        let started_at = self.start_timer();
        let index = self.table.find(id, actor);
        let index = index.filter(|&index| self.load_text(index));
        let metrics = &self.table.metrics;
        let row = metrics.row(actor.sub_agent());
        let decision = index.map(|index| {
            let status = self.table.status(index);
            metrics.count_status(row, index, &status.id);
            (index, status.policy)
        });
        let policy = decision.map_or(RenderPolicy::Suppress, |(_, policy)| policy);
        metrics.count_applied(row, EventType::StatusEmitted, policy);
        self.record_decision_time(started_at);
        decision
    }

    fn start_timer(&mut self) -> Option<Instant> {
        let is_timed = self.decisions.is_multiple_of(TIMED_EVERY);
        self.decisions = self.decisions.wrapping_add(1);
        is_timed.then(Instant::now)
    }

    fn record_decision_time(&self, started_at: Option<Instant>) {
        if let Some(started_at) = started_at {
            self.table.metrics.record_decision(started_at.elapsed());
        }
    }

    /// Loads the text of a status, once per turn. Returns false if there is no text.
    fn load_text(&mut self, index: usize) -> bool {
        if self.texts.len() <= index {
            self.texts.resize(index + 1, None);
        }
        if self.texts[index].is_none()
            && let Some(pack) = &self.table.pack
        {
            let status = self.table.status(index);
            let locale = match status.policy {
                RenderPolicy::Forward => &pack.default_locale,
                RenderPolicy::Transform | RenderPolicy::Suppress | RenderPolicy::Batch => {
                    &self.locale
                }
            };
            self.texts[index] = pack.locales.line(locale, &status.render_key);
        }
        self.texts[index].is_some()
    }

    /// Handles a status. This is the only place that sets the text of a status (I-21).
    fn take_status(&mut self, mut emission: Emission, now: Instant, out: GateOutput<'_>) {
        let Body::StatusEmitted(body) = &mut emission.body else {
            return out(emission, None);
        };
        let Some((index, policy)) = self.decide_status(&body.event_id, &emission.actor) else {
            self.warn(&body.event_id, &emission.actor);
            body.event_id = UNREGISTERED.to_owned();
            body.message.clear();
            return out(emission, Some(RenderPolicy::Suppress.into()));
        };
        self.table.status(index).warn_if_deprecated();
        let line = self.texts[index].as_ref();
        body.message = line.map_or_else(String::new, |line| line.message.clone());
        match policy {
            RenderPolicy::Suppress => out(emission, Some(policy.into())),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(emission, Some(policy.into()));
            }
            RenderPolicy::Batch => {
                let buffered = BufferedStatus { emission, index };
                self.buffer.push_status(buffered, now, self.table.window);
                if self.buffer.is_full() {
                    self.release(out);
                }
            }
        }
    }

    fn warn(&mut self, id: &str, actor: &Actor) {
        self.table.metrics.count_unregistered();
        if self.warnings < WARNINGS_MAX {
            self.warnings += 1;
            tracing::warn!(
                event_id = loggable_id(id),
                bytes = id.len(),
                %actor,
                "status withheld: the id is not registered or the emitter may not use it"
            );
        }
    }

    /// Handles a text delta.
    fn take_text(
        &mut self,
        emission: Emission,
        policy: RenderPolicy,
        now: Instant,
        out: GateOutput<'_>,
    ) {
        if self.block_filter.starts_new_block(&emission) {
            self.finish_block(out);
        }
        let Some(emission) = self.block_filter.filter_delta(emission) else {
            return;
        };
        match policy {
            RenderPolicy::Suppress => out(emission, stamp(policy)),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(emission, stamp(policy));
            }
            RenderPolicy::Batch => {
                if self.buffer.has_statuses() {
                    self.release(out);
                }
                if !self.buffer.try_append_text(&emission) {
                    self.release(out);
                    self.buffer.buffer_text(emission, now + self.table.window);
                }
            }
        }
    }

    /// Ends the block that the filter is in and emits its delayed text.
    fn finish_block(&mut self, out: GateOutput<'_>) {
        let Some(delayed) = self.block_filter.finish() else {
            return;
        };
        let policy = self.table.policy(EventType::TextDelta);
        match policy {
            RenderPolicy::Suppress => out(delayed, stamp(policy)),
            RenderPolicy::Forward | RenderPolicy::Transform => {
                self.release(out);
                out(delayed, stamp(policy));
            }
            RenderPolicy::Batch => {
                if !self.buffer.try_append_text(&delayed) {
                    self.release(out);
                    out(delayed, stamp(policy));
                }
            }
        }
    }

    /// Releases the buffered events that must precede an event with `body`.
    fn release_preceding(&mut self, body: &Body, policy: RenderPolicy, out: GateOutput<'_>) {
        let is_visible = policy != RenderPolicy::Suppress;
        match release_before(body.kind()) {
            ReleaseBefore::Nothing => {
                let ended_subagent = match body {
                    Body::SubagentCompleted(end) => Some(&end.sub_agent_id),
                    Body::SubagentFailed(end) => Some(&end.sub_agent_id),
                    _ => None,
                };
                // The statuses of a sub-agent precede its end.
                if ended_subagent.is_some_and(|id| self.buffer.has_status_of(id)) {
                    self.release(out);
                }
            }
            ReleaseBefore::Text if is_visible => self.release_text(out),
            ReleaseBefore::TextAndStatuses if is_visible => self.release(out),
            ReleaseBefore::Text | ReleaseBefore::TextAndStatuses => {}
            ReleaseBefore::FilteredText => {
                self.finish_block(out);
                self.release_text(out);
            }
            ReleaseBefore::Everything => {
                self.finish_block(out);
                if is_visible {
                    self.release(out);
                } else {
                    self.release_text(out);
                }
            }
        }
    }

    fn release(&mut self, out: GateOutput<'_>) {
        self.release_text(out);
        self.release_statuses(out);
    }

    fn release_text(&mut self, out: GateOutput<'_>) {
        if let Some(text) = self.buffer.take_text() {
            out(text, stamp(RenderPolicy::Batch));
        }
    }

    /// Emits the buffered statuses as one group; the last one carries the combined sentence.
    fn release_statuses(&mut self, out: GateOutput<'_>) {
        let buffered = self.buffer.take_statuses();
        let Some(last_index) = buffered.len().checked_sub(1) else {
            return;
        };
        self.group += 1;
        let mut members: Vec<usize> = Vec::with_capacity(buffered.len());
        for status in &buffered {
            if !members.contains(&status.index) {
                members.push(status.index);
            }
        }
        let mut message = self.sentence(&members);
        let ids = members.iter().map(|&index| &self.table.status(index).id);
        let mut event_ids: Vec<String> = ids.cloned().collect();
        for (index, status) in buffered.into_iter().enumerate() {
            let mut render = RenderDecision {
                group: Some(self.group),
                ..RenderPolicy::Batch.into()
            };
            if index == last_index {
                render.message = message.take();
                render.event_ids = std::mem::take(&mut event_ids);
            }
            out(status.emission, Some(render));
        }
    }

    /// The combined text of these statuses; a single status keeps its own text.
    fn sentence(&self, members: &[usize]) -> Option<String> {
        if let &[index] = members {
            return self.texts[index].as_ref().map(|line| line.message.clone());
        }
        let key = |&index: &usize| self.table.status(index).render_key.as_str();
        let keys: Vec<&str> = members.iter().map(key).collect();
        let pack = self.table.pack.as_ref()?;
        Some(combine_statuses(&keys, &pack.locales, &self.locale))
    }
}

impl EventGate for TurnGate {
    fn take(&mut self, mut emission: Emission, now: Instant, out: GateOutput<'_>) {
        if !self.buffer.is_empty() {
            self.lapse(now, out);
        }
        if matches!(emission.body, Body::StatusEmitted(_)) {
            return self.take_status(emission, now, out);
        }
        let policy = self.decide(&emission);
        let is_text = matches!(emission.body, Body::TextDelta(_));
        if is_text && (!self.block_filter.is_pass_through() || policy == RenderPolicy::Batch) {
            return self.take_text(emission, policy, now, out);
        }
        if self.block_filter.has_open_block() || !self.buffer.is_empty() {
            self.release_preceding(&emission.body, policy, out);
        }
        if policy == RenderPolicy::Suppress && is_display(&emission.body) {
            // The message is for clients only; the log keeps the event.
            emission.message = None;
        }
        out(emission, stamp(policy));
    }

    fn due(&self) -> Option<Instant> {
        self.buffer.due()
    }

    fn times(&self, kind: EventType) -> bool {
        !self.buffer.is_empty() || self.table.policy(kind) == RenderPolicy::Batch
    }

    fn lapse(&mut self, now: Instant, out: GateOutput<'_>) {
        if self.buffer.statuses_due(now) {
            self.release(out);
        } else if self.buffer.text_due(now) {
            self.release_text(out);
        }
    }

    fn flush(&mut self, out: GateOutput<'_>) {
        self.finish_block(out);
        self.release(out);
    }
}

/// True if the message of the event is shown to clients only.
fn is_display(body: &Body) -> bool {
    matches!(body, Body::DataLoaded(_) | Body::ComponentRendered(_))
}

/// The id, if it has the form of a status id. Any other string may be text of an agent about a
/// person and is not logged.
fn loggable_id(id: &str) -> Option<&str> {
    let first = id.bytes().next()?;
    let is_id_byte = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let is_id =
        first.is_ascii_lowercase() && id.len() <= LOGGED_ID_BYTES_MAX && id.bytes().all(is_id_byte);
    is_id.then_some(id)
}

fn stamp(policy: RenderPolicy) -> Option<RenderDecision> {
    (policy != RenderPolicy::Forward).then(|| policy.into())
}

#[cfg(test)]
mod tests;
