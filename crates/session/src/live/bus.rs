//! `bus.*` events, coalesced: the first of a kind goes out at once, those that follow within a
//! second are counted and go out as one. A flood of connects writes one event a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::Body;
use turnwire_event::body::bus::{HandlerWarning, SubscriberRegistered, SubscriberUnregistered};

/// What the hub has to say about a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusNotice {
    /// A client subscribed.
    Registered,
    /// A client left.
    Unregistered,
    /// Something about a client deserves a look.
    Warning {
        /// Which client.
        subscription: String,
        /// What, in one word.
        reason: &'static str,
    },
}

const WINDOW: Duration = Duration::from_secs(1);

/// What to do about a note.
#[derive(Debug, PartialEq)]
pub enum BusAction {
    /// Emit this now.
    Emit(Box<Body>),
    /// Call `flush` with this key after so long.
    Flush(NoticeKind, Duration),
    /// Nothing: it is counted.
    Counted,
}

/// What is counted together.
pub type NoticeKind = &'static str;

#[derive(Default)]
struct NoticeCount {
    count: u64,
    subscription: String,
    last: Option<Instant>,
    waiting: bool,
}

/// The counts of one session. Reasons are a closed set of words, so this stays small.
#[derive(Default)]
pub struct BusCoalescer {
    counts: Mutex<HashMap<NoticeKind, NoticeCount>>,
}

impl BusCoalescer {
    /// Takes a note.
    pub fn note(&self, note: BusNotice, now: Instant) -> BusAction {
        let (key, subscription) = match note {
            BusNotice::Registered => ("registered", String::new()),
            BusNotice::Unregistered => ("unregistered", String::new()),
            BusNotice::Warning {
                subscription,
                reason,
            } => (reason, subscription),
        };
        let mut counts = self.counts.lock();
        let entry = counts.entry(key).or_default();
        entry.count += 1;
        entry.subscription = subscription;
        if entry.waiting {
            return BusAction::Counted;
        }
        match entry
            .last
            .map(|last| WINDOW.saturating_sub(now.duration_since(last)))
        {
            Some(left) if !left.is_zero() => {
                entry.waiting = true;
                BusAction::Flush(key, left)
            }
            _ => {
                entry.last = Some(now);
                BusAction::Emit(Box::new(body(key, entry)))
            }
        }
    }

    /// What was counted under `key`, if anything.
    pub fn flush(&self, key: NoticeKind, now: Instant) -> Option<Body> {
        let mut counts = self.counts.lock();
        let entry = counts.get_mut(key)?;
        entry.waiting = false;
        entry.last = Some(now);
        (entry.count > 0).then(|| body(key, entry))
    }
}

fn body(key: NoticeKind, entry: &mut NoticeCount) -> Body {
    let count = std::mem::take(&mut entry.count);
    match key {
        "registered" => Body::BusSubscriberRegistered(SubscriberRegistered { count }),
        "unregistered" => Body::BusSubscriberUnregistered(SubscriberUnregistered { count }),
        reason => Body::BusHandlerWarning(HandlerWarning {
            subscription_name: std::mem::take(&mut entry.subscription),
            reason: reason.to_owned(),
            count,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_with_a_count() {
        let bus = BusCoalescer::default();
        let start = Instant::now();
        let emitted = |count| Body::BusSubscriberRegistered(SubscriberRegistered { count });
        assert_eq!(
            bus.note(BusNotice::Registered, start),
            BusAction::Emit(Box::new(emitted(1)))
        );
        let soon = start + Duration::from_millis(400);
        assert_eq!(
            bus.note(BusNotice::Registered, soon),
            BusAction::Flush("registered", Duration::from_millis(600))
        );
        assert_eq!(bus.note(BusNotice::Registered, soon), BusAction::Counted);
        let later = start + Duration::from_secs(1);
        assert_eq!(bus.flush("registered", later), Some(emitted(2)));
        assert_eq!(bus.flush("registered", later), None);
        let much_later = later + Duration::from_secs(1);
        assert_eq!(
            bus.note(BusNotice::Registered, much_later),
            BusAction::Emit(Box::new(emitted(1)))
        );
    }

    #[test]
    fn warnings_are_counted_by_reason() {
        let bus = BusCoalescer::default();
        let now = Instant::now();
        for reason in ["client_too_slow", "redundant_cancel"] {
            let note = BusNotice::Warning {
                subscription: "ws-1".into(),
                reason,
            };
            let expected = HandlerWarning {
                subscription_name: "ws-1".into(),
                reason: reason.into(),
                count: 1,
            };
            assert_eq!(
                bus.note(note, now),
                BusAction::Emit(Box::new(Body::BusHandlerWarning(expected)))
            );
        }
    }
}
