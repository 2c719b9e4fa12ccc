//! Reloads while the server runs: SIGHUP asks every part that reads files to read them again.
//!
//! ```text
//!   SIGHUP ─▶ Reloader ─▶ each part that was added, one after the other
//!                     └─▶ every ReloadRequests, at its own pace
//! ```
//!
//! A part that cannot be read keeps what it had. Its outcome is logged and counted in
//! `turnwire_reloads_total`. A part is added as a function (settings, lists of keys) or subscribes, if
//! it waits for something else too (the pack, which also looks for changes by itself).

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use turnwire_event::metric;

/// What a reload of one part did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The part uses what it read.
    Applied,
    /// The part has what it read already.
    Unchanged,
    /// What was read has a mistake, or cannot be read: the part keeps what it had. The text is for the
    /// log of the server, and has no secret.
    Refused(String),
}

impl ReloadOutcome {
    /// The label in metrics.
    fn status(&self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Refused(_) => "refused",
        }
    }
}

/// Reads the files of one part again. May block.
pub type ReloadPart = Box<dyn FnMut() -> ReloadOutcome + Send>;

/// The parts of a server that can be reloaded. Cheap to clone.
#[derive(Clone)]
pub struct Reloader {
    parts: Arc<Mutex<Vec<(&'static str, ReloadPart)>>>,
    /// The number of requests so far. The receivers are those of [`subscribe`](Self::subscribe); it is
    /// kept open by this sender.
    requests: watch::Sender<u64>,
}

impl Default for Reloader {
    fn default() -> Self {
        Self {
            parts: Arc::default(),
            requests: watch::Sender::new(0),
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.lock();
        let names = parts.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

/// Requests to reload, for a part that reloads by itself.
#[derive(Clone, Debug)]
pub struct ReloadRequests(watch::Receiver<u64>);

impl ReloadRequests {
    /// Waits for the next request; several that come meanwhile are one. Never ends when no more can
    /// come.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Reloader {
    /// Adds a part, which each reload calls. `name` is a label of `turnwire_reloads_total`.
    pub fn add(&self, name: &'static str, part: ReloadPart) {
        self.parts.lock().push((name, part));
    }

    /// Receives the requests from now on.
    pub fn subscribe(&self) -> ReloadRequests {
        ReloadRequests(self.requests.subscribe())
    }

    /// Reloads every part, and reports each.
    pub async fn reload(&self) {
        tracing::info!("reloading: settings, keys and the pack are read again");
        self.requests.send_modify(|requests| *requests += 1);
        let parts = self.parts.clone();
        let reloading = tokio::task::spawn_blocking(move || {
            for (name, part) in parts.lock().iter_mut() {
                report(name, &part());
            }
        });
        if reloading.await.is_err() {
            tracing::error!("a reload panicked: the parts after it keep what they have");
        }
    }
}

/// Logs and counts the outcome of a part's reload.
pub fn report(part: &'static str, outcome: &ReloadOutcome) {
    match outcome {
        ReloadOutcome::Applied => tracing::info!(part, "reloaded"),
        ReloadOutcome::Unchanged => tracing::debug!(part, "reloaded: nothing has changed"),
        ReloadOutcome::Refused(cause) => tracing::error!(
            part,
            cause,
            "the reload was refused; the server goes on with what it had"
        ),
    }
    let labels = [("part", part), ("status", outcome.status())];
    metrics::counter!(metric::RELOADS_TOTAL, &labels).increment(1);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn every_part_is_reloaded_also_after_one_that_refuses() {
        let reloader = Reloader::default();
        let count = Arc::new(AtomicU32::new(0));
        let outcomes = [
            ReloadOutcome::Refused("a mistake".to_owned()),
            ReloadOutcome::Unchanged,
            ReloadOutcome::Applied,
        ];
        for outcome in outcomes {
            let count = count.clone();
            let part = move || {
                count.fetch_add(1, Ordering::Relaxed);
                outcome.clone()
            };
            reloader.add("part", Box::new(part));
        }
        let mut requests = reloader.subscribe();
        reloader.reload().await;
        requests.next().await;
        assert_eq!(count.load(Ordering::Relaxed), 3);
        reloader.reload().await;
        reloader.reload().await;
        // Two requests that were not waited for are one.
        requests.next().await;
        let third = tokio::time::timeout(std::time::Duration::from_millis(20), requests.next());
        assert!(third.await.is_err());
        assert_eq!(count.load(Ordering::Relaxed), 9);
    }
}
