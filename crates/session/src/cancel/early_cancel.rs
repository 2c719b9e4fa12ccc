//! Stops that came before their submit: a person may press stop before the submit was answered,
//! and the two may pass each other on the way.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::{Owner, SessionId};

use crate::error::Error;

/// How long a submit is waited for: longer than any request is under way.
const KEPT: Duration = Duration::from_secs(60);

/// Stops kept at once: each is some 1.5 KB at most (a key of 255 bytes, a person of 128, a reason
/// of 200 characters, and what holds them), so a flood holds 15 MB.
const KEPT_MAX: usize = 10_000;

/// Stops kept at once of one owner: more than anyone presses in a minute, and few enough that one
/// owner cannot take the places of all.
const KEPT_OF_ONE_MAX: usize = 100;

/// Which submit is meant: whose, where, by which key.
pub(crate) type SubmitKey = (Owner, SessionId, String);

/// The stops that wait for their submit.
#[derive(Default)]
pub(crate) struct EarlyCancels {
    waiting: Mutex<CancelTable>,
}

/// A stop that waits.
struct EarlyCancel {
    number: u64,
    reason: String,
}

#[derive(Default)]
struct CancelTable {
    stops: HashMap<Arc<SubmitKey>, EarlyCancel>,
    /// The same by number, which is the order they came in, with the time.
    ages: BTreeMap<u64, (Instant, Arc<SubmitKey>)>,
    /// How many are whose.
    counts: HashMap<Owner, usize>,
    next: u64,
}

impl CancelTable {
    /// Forgets what has waited too long.
    fn tidy(&mut self, now: Instant) {
        while let Some((_, (came, meant))) = self.ages.first_key_value() {
            if now.saturating_duration_since(*came) < KEPT {
                return;
            }
            let meant = meant.clone();
            self.remove(&meant);
        }
    }

    /// Takes one out; its place is free.
    fn remove(&mut self, meant: &SubmitKey) {
        let Some(stop) = self.stops.remove(meant) else {
            return;
        };
        self.ages.remove(&stop.number);
        if let Some(count) = self.counts.get_mut(&meant.0) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&meant.0);
            }
        }
    }
}

impl EarlyCancels {
    /// Keeps a stop until its submit comes.
    pub(crate) fn keep(&self, meant: SubmitKey, reason: String, now: Instant) -> Result<(), Error> {
        let mut waiting = self.waiting.lock();
        waiting.tidy(now);
        if waiting.stops.contains_key(&meant) {
            return Ok(()); // the first one counts, as with turns
        }
        let own = waiting.counts.get(&meant.0).copied().unwrap_or_default();
        if own >= KEPT_OF_ONE_MAX || waiting.stops.len() >= KEPT_MAX {
            return Err(Error::TooMany);
        }
        waiting.counts.insert(meant.0.clone(), own + 1);
        let (number, meant) = (waiting.next, Arc::new(meant));
        waiting.next += 1;
        waiting.ages.insert(number, (now, meant.clone()));
        waiting.stops.insert(meant, EarlyCancel { number, reason });
        Ok(())
    }

    /// The reason of the stop that waits for this submit, if one does.
    pub(crate) fn reason(&self, meant: &SubmitKey, now: Instant) -> Option<String> {
        let mut waiting = self.waiting.lock();
        waiting.tidy(now);
        waiting.stops.get(meant).map(|stop| stop.reason.clone())
    }

    /// The submit was taken, and stopped: the stop is used up.
    pub(crate) fn done(&self, meant: &SubmitKey) {
        self.waiting.lock().remove(meant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{TenantId, Ulid};

    fn meant(key: &str) -> SubmitKey {
        meant_by("p", key)
    }

    fn meant_by(who: &str, key: &str) -> SubmitKey {
        let owner = Owner {
            tenant: TenantId(0),
            principal: who.parse().expect("a principal"),
        };
        (owner, SessionId(Ulid(1)), key.to_owned())
    }

    #[test]
    fn a_stop_waits_for_its_submit_for_a_minute_and_is_used_once() {
        let (early, now) = (EarlyCancels::default(), Instant::now());
        early.keep(meant("a"), "x".into(), now).expect("kept");
        early.keep(meant("a"), "y".into(), now).expect("kept");
        assert_eq!(early.reason(&meant("a"), now).as_deref(), Some("x"));
        assert_eq!(early.reason(&meant("b"), now), None);
        early.done(&meant("a"));
        assert_eq!(early.reason(&meant("a"), now), None);
        // Asked for again: the old time must not take the new one away.
        let later = now + Duration::from_secs(30);
        early.keep(meant("a"), "z".into(), later).expect("kept");
        let then = now + Duration::from_secs(61);
        assert_eq!(early.reason(&meant("a"), then).as_deref(), Some("z"));
        assert_eq!(early.reason(&meant("a"), later + KEPT), None);
    }

    #[test]
    fn no_more_are_kept_than_may_be() {
        let (early, now) = (EarlyCancels::default(), Instant::now());
        for n in 0..KEPT_MAX {
            let who = format!("p{}", n / KEPT_OF_ONE_MAX);
            let kept = early.keep(meant_by(&who, &n.to_string()), String::new(), now);
            kept.expect("kept");
        }
        let one_more = || meant("more");
        let kept = early.keep(one_more(), String::new(), now);
        assert_eq!(kept, Err(Error::TooMany));
        assert_eq!(early.keep(one_more(), String::new(), now + KEPT), Ok(()));
    }

    #[test]
    fn one_owner_cannot_take_the_places_of_all() {
        let (early, now) = (EarlyCancels::default(), Instant::now());
        let keep =
            |who: &str, n: usize, at| early.keep(meant_by(who, &n.to_string()), String::new(), at);
        for n in 0..KEPT_OF_ONE_MAX {
            keep("p", n, now).expect("kept");
        }
        assert_eq!(keep("p", 1_000, now), Err(Error::TooMany));
        assert_eq!(keep("q", 1_000, now), Ok(()));
        // One that is used up has left its place.
        early.done(&meant_by("p", "0"));
        assert_eq!(keep("p", 1_001, now), Ok(()));
        assert_eq!(keep("p", 1_002, now), Err(Error::TooMany));
        assert_eq!(keep("p", 1_000, now + KEPT), Ok(()));
        assert_eq!(
            early.waiting.lock().counts.len(),
            1,
            "nothing is left of others"
        );
    }
}
