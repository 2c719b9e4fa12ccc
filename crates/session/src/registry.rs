//! The sessions in memory: each at most once, opened when wanted, let go when idle.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use turnwire_event::{SessionId, metric};

use crate::error::Error;
use crate::live::{House, Live};
use crate::replay::blocking;

/// The open sessions.
#[derive(Default)]
pub struct Registry {
    open: Mutex<HashMap<SessionId, Arc<Live>>>,
}

impl Registry {
    /// A session, from memory or from the store.
    pub async fn get(&self, house: &Arc<House>, id: SessionId) -> Result<Arc<Live>, Error> {
        if let Some(live) = self.open.lock().get(&id) {
            return Ok(live.clone());
        }
        let (row, tail) = blocking(house.store(), move |store| {
            let row = store.session(id)?.ok_or(Error::SessionNotFound)?;
            let tail = store.tail(id)?.ok_or(Error::SessionNotFound)?;
            Ok::<_, Error>((row, tail))
        })
        .await?;
        self.insert(
            Live::open(house.clone(), row, tail, None),
            house.options.open_max,
        )
    }

    /// Puts a session in; if another was quicker, that one is the session.
    pub fn insert(&self, live: Arc<Live>, max: usize) -> Result<Arc<Live>, Error> {
        let mut open = self.open.lock();
        if open.len() >= max && !open.contains_key(&live.id) {
            open.retain(|_, live| !free(live));
            if open.len() >= max {
                return Err(Error::TooMany);
            }
        }
        let live = open.entry(live.id).or_insert(live).clone();
        metrics::gauge!(metric::SESSIONS_OPEN).set(open.len() as f64);
        Ok(live)
    }

    /// Takes a session out.
    pub fn remove(&self, id: SessionId) -> Option<Arc<Live>> {
        self.open.lock().remove(&id)
    }

    /// Everyone now in memory.
    pub fn all(&self) -> Vec<Arc<Live>> {
        self.open.lock().values().cloned().collect()
    }

    /// Those with a turn in flight.
    pub fn running(&self) -> Vec<Arc<Live>> {
        self.open
            .lock()
            .values()
            .filter(|live| live.slot.lock().is_some())
            .cloned()
            .collect()
    }

    /// Lets the idle ones go.
    pub fn unload(&self) {
        let mut open = self.open.lock();
        // Only the map holds it, so nobody can be about to use it.
        open.retain(|_, live| !(Arc::strong_count(live) == 1 && live.is_idle()));
        metrics::gauge!(metric::SESSIONS_OPEN).set(open.len() as f64);
    }
}

/// Whether a session could go at once if room is needed.
fn free(live: &Arc<Live>) -> bool {
    Arc::strong_count(live) == 1 && live.slot.lock().is_none() && live.sequencer.is_settled()
}
