//! Cancels that arrive before their submit: a person may press stop before the submit is answered,
//! and the two requests may overtake each other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use turnwire_event::{Owner, SessionId};

use crate::error::Error;

/// How long a cancel waits for its submit: longer than any request is under way.
const TTL: Duration = Duration::from_secs(60);

/// Waiting cancels at once: each is some 1.5 KB at most (a key of 255 bytes, a principal of 128, a
/// reason of 200 characters, and the maps), so a flood takes 15 MB.
const CANCELS_MAX: usize = 10_000;

/// Waiting cancels of one owner: more than a person presses in a minute, and few enough that one
/// owner cannot fill the table.
const CANCELS_PER_OWNER_MAX: usize = 100;

/// The submit that a cancel waits for: its owner, session and idempotency key.
pub(crate) type SubmitKey = (Owner, SessionId, String);

/// The cancels that wait for their submit.
#[derive(Default)]
pub(crate) struct EarlyCancels {
    table: Mutex<CancelTable>,
}

/// A cancel that waits for its submit.
struct EarlyCancel {
    number: u64,
    reason: String,
}

#[derive(Default)]
struct CancelTable {
    cancels: HashMap<Arc<SubmitKey>, EarlyCancel>,
    /// The same cancels by number, which is their order of arrival, with their time.
    arrivals: BTreeMap<u64, (Instant, Arc<SubmitKey>)>,
    per_owner: HashMap<Owner, usize>,
    next_number: u64,
}

impl CancelTable {
    /// Removes the cancels that have waited longer than [`TTL`].
    fn remove_expired(&mut self, now: Instant) {
        while let Some((_, (arrived, submit))) = self.arrivals.first_key_value() {
            if now.saturating_duration_since(*arrived) < TTL {
                return;
            }
            let submit = submit.clone();
            self.remove(&submit);
        }
    }

    fn remove(&mut self, submit: &SubmitKey) {
        let Some(cancel) = self.cancels.remove(submit) else {
            return;
        };
        self.arrivals.remove(&cancel.number);
        if let Some(count) = self.per_owner.get_mut(&submit.0) {
            *count -= 1;
            if *count == 0 {
                self.per_owner.remove(&submit.0);
            }
        }
    }
}

impl EarlyCancels {
    /// Stores a cancel until its submit arrives. Of two for the same submit the first one counts.
    pub(crate) fn insert(
        &self,
        submit: SubmitKey,
        reason: String,
        now: Instant,
    ) -> Result<(), Error> {
        let mut table = self.table.lock();
        table.remove_expired(now);
        if table.cancels.contains_key(&submit) {
            return Ok(());
        }
        let of_owner = table.per_owner.get(&submit.0).copied().unwrap_or_default();
        if of_owner >= CANCELS_PER_OWNER_MAX || table.cancels.len() >= CANCELS_MAX {
            return Err(Error::TooMany);
        }
        table.per_owner.insert(submit.0.clone(), of_owner + 1);
        let (number, submit) = (table.next_number, Arc::new(submit));
        table.next_number += 1;
        table.arrivals.insert(number, (now, submit.clone()));
        table.cancels.insert(submit, EarlyCancel { number, reason });
        Ok(())
    }

    /// The reason of the cancel that waits for this submit.
    pub(crate) fn reason(&self, submit: &SubmitKey, now: Instant) -> Option<String> {
        let mut table = self.table.lock();
        table.remove_expired(now);
        table
            .cancels
            .get(submit)
            .map(|cancel| cancel.reason.clone())
    }

    /// Removes the cancel of a submit whose turn was accepted and cancelled.
    pub(crate) fn remove(&self, submit: &SubmitKey) {
        self.table.lock().remove(submit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{TenantId, Ulid};

    fn submit(key: &str) -> SubmitKey {
        submit_of("p", key)
    }

    fn submit_of(who: &str, key: &str) -> SubmitKey {
        let owner = Owner {
            tenant: TenantId(0),
            principal: who.parse().expect("a principal"),
        };
        (owner, SessionId(Ulid(1)), key.to_owned())
    }

    #[test]
    fn cancel_waits_a_minute_for_its_submit_and_is_used_once() {
        let (early, now) = (EarlyCancels::default(), Instant::now());
        early
            .insert(submit("a"), "x".into(), now)
            .expect("inserted");
        early
            .insert(submit("a"), "y".into(), now)
            .expect("inserted");
        assert_eq!(early.reason(&submit("a"), now).as_deref(), Some("x"));
        assert_eq!(early.reason(&submit("b"), now), None);
        early.remove(&submit("a"));
        assert_eq!(early.reason(&submit("a"), now), None);
        // Inserted again: the time of the first must not remove the second.
        let later = now + Duration::from_secs(30);
        early
            .insert(submit("a"), "z".into(), later)
            .expect("inserted");
        let then = now + Duration::from_secs(61);
        assert_eq!(early.reason(&submit("a"), then).as_deref(), Some("z"));
        assert_eq!(early.reason(&submit("a"), later + TTL), None);
    }

    #[test]
    fn cancels_are_refused_above_the_limit() {
        let (early, now) = (EarlyCancels::default(), Instant::now());
        for n in 0..CANCELS_MAX {
            let who = format!("p{}", n / CANCELS_PER_OWNER_MAX);
            let inserted = early.insert(submit_of(&who, &n.to_string()), String::new(), now);
            inserted.expect("inserted");
        }
        let one_more = || submit("more");
        let inserted = early.insert(one_more(), String::new(), now);
        assert_eq!(inserted, Err(Error::TooMany));
        assert_eq!(early.insert(one_more(), String::new(), now + TTL), Ok(()));
    }

    #[test]
    fn one_owner_cannot_fill_the_table() {
        let (early, now) = (EarlyCancels::default(), Instant::now());
        let insert = |who: &str, n: usize, at| {
            early.insert(submit_of(who, &n.to_string()), String::new(), at)
        };
        for n in 0..CANCELS_PER_OWNER_MAX {
            insert("p", n, now).expect("inserted");
        }
        assert_eq!(insert("p", 1_000, now), Err(Error::TooMany));
        assert_eq!(insert("q", 1_000, now), Ok(()));
        // A cancel that was used makes room for another.
        early.remove(&submit_of("p", "0"));
        assert_eq!(insert("p", 1_001, now), Ok(()));
        assert_eq!(insert("p", 1_002, now), Err(Error::TooMany));
        assert_eq!(insert("p", 1_000, now + TTL), Ok(()));
        assert_eq!(
            early.table.lock().per_owner.len(),
            1,
            "no counts of other owners remain"
        );
    }
}
