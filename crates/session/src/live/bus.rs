//! `bus.*` events, coalesced: the first of a kind goes out at once, those that follow within a
//! second are counted and go out as one. A flood of connects writes one event a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::Body;
use turnwire_event::body::bus::{HandlerWarning, SubscriberRegistered, SubscriberUnregistered};

/// What the hub has to say about a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
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
pub enum Action {
    /// Emit this now.
    Emit(Box<Body>),
    /// Call `flush` with this key after so long.
    Flush(Key, Duration),
    /// Nothing: it is counted.
    Counted,
}

/// What is counted together.
pub type Key = &'static str;

#[derive(Default)]
struct Count {
    count: u64,
    subscription: String,
    last: Option<Instant>,
    waiting: bool,
}

/// The counts of one session. Reasons are a closed set of words, so this stays small.
#[derive(Default)]
pub struct Bus {
    counts: Mutex<HashMap<Key, Count>>,
}

impl Bus {
    /// Takes a note.
    pub fn note(&self, note: Note, now: Instant) -> Action {
        let (key, subscription) = match note {
            Note::Registered => ("registered", String::new()),
            Note::Unregistered => ("unregistered", String::new()),
            Note::Warning {
                subscription,
                reason,
            } => (reason, subscription),
        };
        let mut counts = self.counts.lock();
        let entry = counts.entry(key).or_default();
        entry.count += 1;
        entry.subscription = subscription;
        if entry.waiting {
            return Action::Counted;
        }
        match entry
            .last
            .map(|last| WINDOW.saturating_sub(now.duration_since(last)))
        {
            Some(left) if !left.is_zero() => {
                entry.waiting = true;
                Action::Flush(key, left)
            }
            _ => {
                entry.last = Some(now);
                Action::Emit(Box::new(body(key, entry)))
            }
        }
    }

    /// What was counted under `key`, if anything.
    pub fn flush(&self, key: Key, now: Instant) -> Option<Body> {
        let mut counts = self.counts.lock();
        let entry = counts.get_mut(key)?;
        entry.waiting = false;
        entry.last = Some(now);
        (entry.count > 0).then(|| body(key, entry))
    }
}

fn body(key: Key, entry: &mut Count) -> Body {
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
        let bus = Bus::default();
        let start = Instant::now();
        let emitted = |count| Body::BusSubscriberRegistered(SubscriberRegistered { count });
        assert_eq!(
            bus.note(Note::Registered, start),
            Action::Emit(Box::new(emitted(1)))
        );
        let soon = start + Duration::from_millis(400);
        assert_eq!(
            bus.note(Note::Registered, soon),
            Action::Flush("registered", Duration::from_millis(600))
        );
        assert_eq!(bus.note(Note::Registered, soon), Action::Counted);
        let later = start + Duration::from_secs(1);
        assert_eq!(bus.flush("registered", later), Some(emitted(2)));
        assert_eq!(bus.flush("registered", later), None);
        let much_later = later + Duration::from_secs(1);
        assert_eq!(
            bus.note(Note::Registered, much_later),
            Action::Emit(Box::new(emitted(1)))
        );
    }

    #[test]
    fn warnings_are_counted_by_reason() {
        let bus = Bus::default();
        let now = Instant::now();
        for reason in ["client_too_slow", "redundant_cancel"] {
            let note = Note::Warning {
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
                Action::Emit(Box::new(Body::BusHandlerWarning(expected)))
            );
        }
    }
}
