//! Submits with a key, one at a time a key: the second waits until it is known what became of
//! the first.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as Gate, OwnedMutexGuard};
use turnwire_event::row::KeyScope;

use crate::error::Error;

/// Keys at work at once: each is some 300 bytes, and a server takes fewer requests than this.
const SCOPES_MAX: usize = 50_000;

/// The keys at work now. A key is here while someone holds it or waits for it.
#[derive(Default)]
pub(crate) struct IdempotencyLocks {
    scopes: Mutex<HashMap<KeyScope, Arc<Gate<()>>>>,
}

/// A place in the line of a key; leaving the line tidies up.
struct KeyCleanup {
    keys: Arc<IdempotencyLocks>,
    scope: KeyScope,
}

impl Drop for KeyCleanup {
    fn drop(&mut self) {
        let mut scopes = self.keys.scopes.lock();
        // Whoever holds the key or waits for it has the gate too, and lets go of it first.
        if scopes
            .get(&self.scope)
            .is_some_and(|gate| Arc::strong_count(gate) == 1)
        {
            scopes.remove(&self.scope);
        }
    }
}

/// The key is held; dropping this lets the next one in.
pub(crate) struct KeyLockGuard {
    // Dropped in this order: the gate is open before the seat is left.
    _guard: OwnedMutexGuard<()>,
    _seat: KeyCleanup,
}

impl IdempotencyLocks {
    /// Waits until nobody else holds the key.
    pub(crate) async fn hold(self: &Arc<Self>, scope: KeyScope) -> Result<KeyLockGuard, Error> {
        let (seat, gate) = self.seat(scope)?;
        let guard = gate.lock_owned().await;
        Ok(KeyLockGuard {
            _guard: guard,
            _seat: seat,
        })
    }

    fn seat(self: &Arc<Self>, scope: KeyScope) -> Result<(KeyCleanup, Arc<Gate<()>>), Error> {
        let mut scopes = self.scopes.lock();
        if scopes.len() >= SCOPES_MAX && !scopes.contains_key(&scope) {
            return Err(Error::TooMany);
        }
        let gate = scopes.entry(scope.clone()).or_default().clone();
        let seat = KeyCleanup {
            keys: self.clone(),
            scope,
        };
        Ok((seat, gate))
    }
}
