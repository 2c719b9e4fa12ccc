//! Locks on idempotency keys: a second submit with the same key waits until the first has either
//! become durable or failed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use turnwire_event::row::KeyScope;

use crate::error::Error;

/// Keys locked at once: each is some 300 bytes, and a server takes fewer requests than this.
const SCOPES_MAX: usize = 50_000;

/// The keys that a submit holds or waits for.
#[derive(Default)]
pub(crate) struct IdempotencyLocks {
    scopes: Mutex<HashMap<KeyScope, Arc<AsyncMutex<()>>>>,
}

/// Removes the entry of a key on drop, unless another submit holds the key or waits for it.
struct KeyCleanup {
    locks: Arc<IdempotencyLocks>,
    scope: KeyScope,
}

impl Drop for KeyCleanup {
    fn drop(&mut self) {
        let mut scopes = self.locks.scopes.lock();
        // Each submit that holds or awaits the key has a clone of its mutex, and drops it first.
        if scopes
            .get(&self.scope)
            .is_some_and(|mutex| Arc::strong_count(mutex) == 1)
        {
            scopes.remove(&self.scope);
        }
    }
}

/// The lock on a key; dropping it lets the next submit with that key proceed.
pub(crate) struct KeyLockGuard {
    // Dropped in this order: the mutex is free before the entry is removed.
    _guard: OwnedMutexGuard<()>,
    _cleanup: KeyCleanup,
}

impl IdempotencyLocks {
    /// Waits until no other submit holds the key.
    pub(crate) async fn lock(self: &Arc<Self>, scope: KeyScope) -> Result<KeyLockGuard, Error> {
        let (cleanup, mutex) = self.entry(scope)?;
        let guard = mutex.lock_owned().await;
        Ok(KeyLockGuard {
            _guard: guard,
            _cleanup: cleanup,
        })
    }

    fn entry(
        self: &Arc<Self>,
        scope: KeyScope,
    ) -> Result<(KeyCleanup, Arc<AsyncMutex<()>>), Error> {
        let mut scopes = self.scopes.lock();
        if scopes.len() >= SCOPES_MAX && !scopes.contains_key(&scope) {
            return Err(Error::TooMany);
        }
        let mutex = scopes.entry(scope.clone()).or_default().clone();
        let cleanup = KeyCleanup {
            locks: self.clone(),
            scope,
        };
        Ok((cleanup, mutex))
    }
}
