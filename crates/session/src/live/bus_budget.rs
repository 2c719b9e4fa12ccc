//! The bound of `bus.*` events in the log of one session: clients that come and go, or misbehave, for
//! months must not fill it. Events of clients and warnings have a bound each.
//!
//! ```text
//!   unknown ──first event──▶ the stored ones are counted ──▶ left: n ──▶ … ──▶ 1: a warning that
//!                            meanwhile events wait                             this is the last ──▶ 0
//! ```
//! Stored events that expire make room: they are counted again when the session is next loaded.

use parking_lot::Mutex;
use turnwire_event::body::bus::HandlerWarning;
use turnwire_event::{Body, EventType, TypeSet, metric};

/// The reason of the last event within the bound.
const LIMIT_REASON: &str = HandlerWarning::BUS_EVENTS_LIMIT;
/// Events that wait until the stored ones are counted: the coalescer emits few a second, and a count
/// takes milliseconds.
const WAITING_MAX: usize = 64;

/// The `bus.*` events that share a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusClass {
    /// Clients that subscribe and leave.
    Subscribers,
    Warnings,
}

impl BusClass {
    fn of(body: &Body) -> Self {
        match body.kind() {
            EventType::BusHandlerWarning => Self::Warnings,
            _ => Self::Subscribers,
        }
    }

    /// The types of the class in the log.
    pub(crate) fn types(self) -> TypeSet {
        match self {
            Self::Warnings => TypeSet::EMPTY.with(EventType::BusHandlerWarning),
            Self::Subscribers => TypeSet::EMPTY
                .with(EventType::BusSubscriberRegistered)
                .with(EventType::BusSubscriberUnregistered),
        }
    }
}

/// What becomes of an event.
#[derive(Debug, PartialEq)]
pub(crate) enum BusDecision {
    Emit(Box<Body>),
    /// The event waits: count the stored events of the class, then call [`BusBudget::set_stored`].
    Count(BusClass),
    /// The event waits for a count that is under way, or exceeds the bound.
    Nothing,
}

/// What is left of the bound of one class.
#[derive(Debug)]
enum ClassBudget {
    /// The stored events are not counted yet; the events that wait for that.
    Unknown(Vec<Body>),
    Left(u64),
}

impl ClassBudget {
    fn take(&mut self, body: Body) -> Option<Body> {
        match self {
            Self::Unknown(_) => None,
            Self::Left(0) => {
                count_dropped();
                None
            }
            Self::Left(left) => {
                *left -= 1;
                match *left {
                    0 => Some(Body::BusHandlerWarning(HandlerWarning {
                        subscription_name: String::new(),
                        reason: LIMIT_REASON.to_owned(),
                        count: 1,
                    })),
                    _ => Some(body),
                }
            }
        }
    }
}

fn count_dropped() {
    metrics::counter!(metric::BUS_EVENTS_DROPPED_TOTAL).increment(1);
}

/// The bounds of one session.
#[derive(Debug)]
pub(crate) struct BusBudget {
    subscribers: Mutex<ClassBudget>,
    warnings: Mutex<ClassBudget>,
}

impl BusBudget {
    /// The budget of a new session, which has no events: `max` of each class.
    pub(crate) fn full(max: u64) -> Self {
        Self {
            subscribers: Mutex::new(ClassBudget::Left(max)),
            warnings: Mutex::new(ClassBudget::Left(max)),
        }
    }

    /// The budget of a session whose stored events are not counted.
    pub(crate) fn unknown() -> Self {
        Self {
            subscribers: Mutex::new(ClassBudget::Unknown(Vec::new())),
            warnings: Mutex::new(ClassBudget::Unknown(Vec::new())),
        }
    }

    fn of(&self, class: BusClass) -> &Mutex<ClassBudget> {
        match class {
            BusClass::Subscribers => &self.subscribers,
            BusClass::Warnings => &self.warnings,
        }
    }

    /// Decides about an event of the [`BusCoalescer`](super::bus::BusCoalescer).
    pub(crate) fn take(&self, body: Body) -> BusDecision {
        let class = BusClass::of(&body);
        let mut budget = self.of(class).lock();
        if let ClassBudget::Unknown(waiting) = &mut *budget {
            let is_first = waiting.is_empty();
            match waiting.len() < WAITING_MAX {
                true => waiting.push(body),
                false => count_dropped(),
            }
            return match is_first {
                true => BusDecision::Count(class),
                false => BusDecision::Nothing,
            };
        }
        match budget.take(body) {
            Some(body) => BusDecision::Emit(Box::new(body)),
            None => BusDecision::Nothing,
        }
    }

    /// Sets the number of stored events of a class, of which `max` are allowed; `None` if they could
    /// not be counted: the next event tries again. Returns the events to emit now.
    pub(crate) fn set_stored(&self, class: BusClass, stored: Option<u64>, max: u64) -> Vec<Body> {
        let mut budget = self.of(class).lock();
        let ClassBudget::Unknown(waiting) = &mut *budget else {
            return Vec::new();
        };
        let waiting = std::mem::take(waiting);
        let Some(stored) = stored else {
            return Vec::new();
        };
        *budget = ClassBudget::Left(match (class, max.saturating_sub(stored)) {
            // The last one was a warning.
            (BusClass::Subscribers, 1) => 0,
            (_, left) => left,
        });
        let emitted = waiting.into_iter().filter_map(|body| budget.take(body));
        emitted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::body::bus::{SubscriberRegistered, SubscriberUnregistered};

    fn registered() -> Body {
        Body::BusSubscriberRegistered(SubscriberRegistered { count: 1 })
    }

    fn left() -> Body {
        Body::BusSubscriberUnregistered(SubscriberUnregistered { count: 1 })
    }

    fn warning(reason: &str) -> Body {
        Body::BusHandlerWarning(HandlerWarning {
            subscription_name: String::new(),
            reason: reason.to_owned(),
            count: 1,
        })
    }

    // S3-045
    #[test]
    fn last_event_of_the_bound_says_so() {
        let budget = BusBudget::full(3);
        let emit = |body| BusDecision::Emit(Box::new(body));
        assert_eq!(budget.take(registered()), emit(registered()));
        assert_eq!(budget.take(left()), emit(left()));
        assert_eq!(budget.take(registered()), emit(warning(LIMIT_REASON)));
        assert_eq!(budget.take(left()), BusDecision::Nothing);
        let slow = warning("client_too_slow");
        assert_eq!(budget.take(slow.clone()), emit(slow), "another bound");
    }

    #[test]
    fn events_wait_until_the_stored_ones_are_counted() {
        let budget = BusBudget::unknown();
        let class = BusClass::Subscribers;
        assert_eq!(budget.take(registered()), BusDecision::Count(class));
        assert_eq!(budget.take(left()), BusDecision::Nothing);
        assert_eq!(budget.set_stored(class, None, 10), []);
        assert_eq!(budget.take(registered()), BusDecision::Count(class));
        assert_eq!(budget.take(left()), BusDecision::Nothing);
        let emitted = budget.set_stored(class, Some(7), 10);
        assert_eq!(emitted, [registered(), left()]);
        let last = Box::new(warning(LIMIT_REASON));
        assert_eq!(budget.take(registered()), BusDecision::Emit(last));
        assert_eq!(budget.take(left()), BusDecision::Nothing);
        for stored in [9, 10, 12] {
            let budget = BusBudget::unknown();
            assert_eq!(budget.take(registered()), BusDecision::Count(class));
            assert_eq!(budget.set_stored(class, Some(stored), 10), [], "{stored}");
        }
    }
}
