//! Decides when to read a pack again: when its folder or one of its key files has changed, or on
//! a request (SIGHUP).
//!
//! A check is a `stat` of each file. A change is read once two checks in a row see the same, so that
//! a folder is not read while it is being written.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use turnwire_event::metric;

use super::look::FileFingerprint;
use super::reload::ReloadRequests;
use super::{PackHost, PackLoadError, PackSource};

/// The largest number of files that are checked; a valid pack has fewer.
const FILES_MAX: usize = 2_000;
/// The deepest nesting of folders; a pack has three levels.
const DEPTH_MAX: usize = 8;

impl PackHost {
    /// Watches until dropped, with a check after each `every`; without it, on `requests` only.
    pub async fn watch(self: Arc<Self>, every: Option<Duration>, mut requests: ReloadRequests) {
        let mut seen = self.fingerprint().await;
        // What the pack was read from is not known: it may have changed since.
        let mut reported = None;
        loop {
            let tick = async {
                match every {
                    Some(every) => tokio::time::sleep(every).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = requests.next() => {
                    seen = self.fingerprint().await;
                    let outcome = self.renew().await;
                    reported = self.report(outcome).then_some(seen);
                }
                () = tick => {
                    let now = self.fingerprint().await;
                    if now == seen && Some(now) != reported {
                        let outcome = self.reload().await;
                        reported = self.report(outcome).then_some(now);
                    }
                    seen = now;
                }
            }
        }
    }

    /// Logs and counts the outcome of a reload; false if the pack could not be read, which may be
    /// temporary.
    fn report(&self, outcome: Result<bool, PackLoadError>) -> bool {
        let status = match outcome {
            Ok(true) => {
                let pack = self.pack();
                tracing::info!(pack = %pack.name, version = %pack.version, "the pack was read again; new turns use it");
                "applied"
            }
            Ok(false) => return true,
            Err(PackLoadError::Wrong(findings)) => {
                for finding in &findings {
                    tracing::error!("{finding}");
                }
                tracing::error!(
                    mistakes = findings.len(),
                    "the changed pack was not applied; turns go on with the one before"
                );
                "refused"
            }
            Err(PackLoadError::Unreadable(error)) => {
                tracing::error!(%error, "the pack cannot be read; turns go on with the one before");
                "unreadable"
            }
        };
        metrics::counter!(metric::PACK_RELOADS_TOTAL, "status" => status).increment(1);
        status != "unreadable"
    }

    /// A hash over the [`FileFingerprint`] of every file; equal as long as nothing was written.
    async fn fingerprint(&self) -> u64 {
        let PackSource::Folder(dir) = self.source.clone() else {
            return 0;
        };
        let key_files = self.key_files();
        let look = tokio::task::spawn_blocking(move || {
            let mut hasher = DefaultHasher::new();
            let mut remaining = FILES_MAX;
            look(&dir, DEPTH_MAX, &mut remaining, &mut hasher);
            // One that is not there counts for nothing: to learn of it is no change.
            let present = key_files
                .into_iter()
                .filter_map(|file| Some((FileFingerprint::at(&file)?, file)));
            present.for_each(|look| look.hash(&mut hasher));
            hasher.finish()
        });
        look.await.unwrap_or_default()
    }
}

fn look(dir: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let Ok(about) = std::fs::metadata(&path) else {
            continue;
        };
        path.hash(hasher);
        if about.is_dir() {
            if depth > 0 {
                look(&path, depth - 1, left, hasher);
            }
            continue;
        }
        FileFingerprint::of(&about).hash(hasher);
    }
}
