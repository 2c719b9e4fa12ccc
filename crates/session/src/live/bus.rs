//! Coalescing of `bus.*` events: the first notice of a kind is emitted at once, later ones within a
//! second are counted and emitted as one event. A flood of connects writes one event a second. A
//! warning about another subscription is an event of its own, up to [`NAMED_MAX`] in a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::Body;
use turnwire_event::body::bus::{HandlerWarning, SubscriberRegistered, SubscriberUnregistered};

/// A notice about a client, for operators who read the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusNotice {
    /// A client subscribed to the session.
    Registered,
    /// A client unsubscribed or disconnected.
    Unregistered,
    /// A client misbehaves or is slow.
    Warning {
        /// The name of the client's subscription.
        subscription: String,
        /// A code such as `client_too_slow`; also the kind that is counted.
        reason: &'static str,
    },
}

/// The time in which notices of one kind become one event.
const WINDOW: Duration = Duration::from_secs(1);

/// Subscriptions that the warnings of one reason name in one [`WINDOW`]: whoever looks for a slow
/// client finds it by name, and a flood of slow clients still writes few events.
const NAMED_MAX: usize = 16;

/// What the caller does after [`BusCoalescer::record`].
#[derive(Debug, PartialEq)]
pub(crate) enum BusAction {
    /// Emit this body now.
    Emit(Box<Body>),
    /// Call [`BusCoalescer::flush`] with this kind after this time.
    Flush(NoticeKind, Duration),
    /// Nothing: the notice was counted, and a flush is due.
    Counted,
}

/// Notices of one kind are counted together.
pub(crate) type NoticeKind = &'static str;

#[derive(Default)]
struct NoticeCount {
    count: u64,
    subscription: String,
    last_emitted: Option<Instant>,
    flush_due: bool,
    /// The subscriptions that warnings have named since `last_emitted`.
    named: Vec<String>,
}

impl NoticeCount {
    /// True for a warning about a subscription that no warning of this window has named.
    fn is_other_subscription(&self, subscription: &str) -> bool {
        let is_named = |name: &String| name == subscription;
        !subscription.is_empty() && self.named.len() < NAMED_MAX && !self.named.iter().any(is_named)
    }
}

/// The counts of one session, by kind. Reasons are a closed set of codes, so the map stays small.
#[derive(Default)]
pub(crate) struct BusCoalescer {
    counts: Mutex<HashMap<NoticeKind, NoticeCount>>,
}

impl BusCoalescer {
    /// Counts a notice, and returns what the caller does about it.
    pub(crate) fn record(&self, notice: BusNotice, now: Instant) -> BusAction {
        let (kind, subscription) = match notice {
            BusNotice::Registered => ("registered", String::new()),
            BusNotice::Unregistered => ("unregistered", String::new()),
            BusNotice::Warning {
                subscription,
                reason,
            } => (reason, subscription),
        };
        let mut counts = self.counts.lock();
        let entry = counts.entry(kind).or_default();
        let wait = entry
            .last_emitted
            .map(|last| WINDOW.saturating_sub(now.duration_since(last)));
        let is_in_window = entry.flush_due || wait.is_some_and(|wait| !wait.is_zero());
        if is_in_window && entry.is_other_subscription(&subscription) {
            entry.named.push(subscription.clone());
            let body = warning(kind, subscription, 1);
            return BusAction::Emit(Box::new(body));
        }
        entry.count += 1;
        entry.subscription = subscription;
        match wait {
            _ if entry.flush_due => BusAction::Counted,
            Some(wait) if !wait.is_zero() => {
                entry.flush_due = true;
                BusAction::Flush(kind, wait)
            }
            _ => {
                entry.last_emitted = Some(now);
                entry.named = vec![entry.subscription.clone()];
                BusAction::Emit(Box::new(body(kind, entry)))
            }
        }
    }

    /// The event of the notices counted since the last one of this kind, if any.
    pub(crate) fn flush(&self, kind: NoticeKind, now: Instant) -> Option<Body> {
        let mut counts = self.counts.lock();
        let entry = counts.get_mut(kind)?;
        entry.flush_due = false;
        entry.last_emitted = Some(now);
        entry.named = vec![entry.subscription.clone()];
        (entry.count > 0).then(|| body(kind, entry))
    }
}

fn body(kind: NoticeKind, entry: &mut NoticeCount) -> Body {
    let count = std::mem::take(&mut entry.count);
    match kind {
        "registered" => Body::BusSubscriberRegistered(SubscriberRegistered { count }),
        "unregistered" => Body::BusSubscriberUnregistered(SubscriberUnregistered { count }),
        reason => warning(reason, std::mem::take(&mut entry.subscription), count),
    }
}

fn warning(reason: &str, subscription_name: String, count: u64) -> Body {
    Body::BusHandlerWarning(HandlerWarning {
        subscription_name,
        reason: reason.to_owned(),
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_within_a_second_become_one_event() {
        let bus = BusCoalescer::default();
        let start = Instant::now();
        let emitted = |count| Body::BusSubscriberRegistered(SubscriberRegistered { count });
        assert_eq!(
            bus.record(BusNotice::Registered, start),
            BusAction::Emit(Box::new(emitted(1)))
        );
        let soon = start + Duration::from_millis(400);
        assert_eq!(
            bus.record(BusNotice::Registered, soon),
            BusAction::Flush("registered", Duration::from_millis(600))
        );
        assert_eq!(bus.record(BusNotice::Registered, soon), BusAction::Counted);
        let later = start + Duration::from_secs(1);
        assert_eq!(bus.flush("registered", later), Some(emitted(2)));
        assert_eq!(bus.flush("registered", later), None);
        let much_later = later + Duration::from_secs(1);
        assert_eq!(
            bus.record(BusNotice::Registered, much_later),
            BusAction::Emit(Box::new(emitted(1)))
        );
    }

    #[test]
    fn warnings_are_counted_by_reason() {
        let bus = BusCoalescer::default();
        let now = Instant::now();
        for reason in ["client_too_slow", "redundant_cancel"] {
            let notice = BusNotice::Warning {
                subscription: "ws-1".into(),
                reason,
            };
            let expected = HandlerWarning {
                subscription_name: "ws-1".into(),
                reason: reason.into(),
                count: 1,
            };
            assert_eq!(
                bus.record(notice, now),
                BusAction::Emit(Box::new(Body::BusHandlerWarning(expected)))
            );
        }
    }

    // S3-093
    #[test]
    fn warnings_name_their_own_subscriptions() {
        let bus = BusCoalescer::default();
        let start = Instant::now();
        let slow = |name: &str, now| {
            let notice = BusNotice::Warning {
                subscription: name.into(),
                reason: "client_too_slow",
            };
            bus.record(notice, now)
        };
        let named = |name: &str, count| warning("client_too_slow", name.into(), count);
        let emitted = |name: &str| BusAction::Emit(Box::new(named(name, 1)));
        for name in ["ws-1", "ws-2", "ws-3"] {
            assert_eq!(slow(name, start), emitted(name));
        }
        let reason = "client_too_slow";
        assert_eq!(slow("ws-2", start), BusAction::Flush(reason, WINDOW));
        assert_eq!(slow("ws-2", start), BusAction::Counted);
        // Another one is named although a flush is due.
        assert_eq!(slow("ws-4", start), emitted("ws-4"));
        assert_eq!(bus.flush(reason, start + WINDOW), Some(named("ws-2", 2)));
        // A flood is bounded: the sixteen names of the window are used up.
        let later = start + WINDOW * 3;
        let flood: Vec<String> = (0..40).map(|n| format!("ws-{n}")).collect();
        let actions = flood.iter().map(|name| slow(name, later));
        let events = actions.filter(|action| matches!(action, BusAction::Emit(_)));
        assert_eq!(events.count(), NAMED_MAX);
        assert_eq!(bus.flush(reason, later + WINDOW), Some(named("ws-39", 24)));
    }
}
