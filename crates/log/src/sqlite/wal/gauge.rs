//! The size of the WAL as SQLite counts it, and the requests for a checkpoint.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::AppendError;

/// The default bound of the WAL: large enough that checkpoints are rare, small enough that opening
/// after a crash is fast.
pub const WAL_BYTES_MAX: u64 = 32 << 20;

/// Bytes of one frame: a page and its header.
const FRAME_BYTES: u64 = 4096 + 24;
/// The pause before another attempt to restart a WAL above its bound.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The size of the WAL, and the requests to the checkpoint thread.
#[derive(Debug)]
pub(crate) struct WalGauge {
    /// Frames in the WAL after the last commit, written by SQLite's commit hook.
    frames: AtomicU64,
    bytes_max: AtomicU64,
    /// True while the WAL has to be cut, not only written over.
    is_truncate_due: AtomicBool,
    request: Mutex<CheckpointRequest>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct CheckpointRequest {
    is_due: bool,
    is_stopped: bool,
    /// The disk error that a checkpoint met.
    failure: Option<String>,
}

impl Default for WalGauge {
    fn default() -> Self {
        Self {
            frames: AtomicU64::new(0),
            bytes_max: AtomicU64::new(WAL_BYTES_MAX),
            is_truncate_due: AtomicBool::new(false),
            request: Mutex::default(),
            wake: Condvar::new(),
        }
    }
}

impl WalGauge {
    pub(crate) fn set_frames(&self, frames: u64) {
        self.frames.store(frames, Ordering::Release);
    }

    /// Bytes of the frames in the WAL.
    pub(crate) fn bytes(&self) -> u64 {
        self.frames.load(Ordering::Acquire) * FRAME_BYTES
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Acquire)
    }

    pub(crate) fn set_bytes_max(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Release);
    }

    /// Bytes after which another checkpoint begins.
    pub(crate) fn step_bytes(&self) -> u64 {
        self.bytes_max() / 4
    }

    /// Wakes the checkpoint thread.
    pub(crate) fn request(&self) {
        self.request.lock().is_due = true;
        self.wake.notify_one();
    }

    /// Wakes the checkpoint thread, which tries until it has cut the WAL.
    pub(crate) fn request_truncate(&self) {
        self.is_truncate_due.store(true, Ordering::Release);
        self.request();
    }

    pub(crate) fn is_truncate_due(&self) -> bool {
        self.is_truncate_due.load(Ordering::Acquire)
    }

    /// The WAL was cut after the request.
    pub(crate) fn set_truncated(&self) {
        self.is_truncate_due.store(false, Ordering::Release);
    }

    /// Fails if a checkpoint met a disk error: what the file holds is unknown then.
    pub(crate) fn check(&self) -> Result<(), AppendError> {
        let request = self.request.lock();
        let failure = request.failure.as_ref();
        failure.map_or(Ok(()), |cause| Err(AppendError::Fatal(cause.clone())))
    }

    /// Waits for a request, or for the retry of a restart; false when the store is closed.
    pub(crate) fn wait(&self, retries: bool) -> bool {
        let mut request = self.request.lock();
        while !request.is_due && !request.is_stopped {
            if !retries {
                self.wake.wait(&mut request);
            } else if self.wake.wait_for(&mut request, RETRY_INTERVAL).timed_out() {
                break;
            }
        }
        request.is_due = false;
        !request.is_stopped
    }

    /// Ends the checkpoint thread.
    pub(crate) fn stop(&self) {
        self.request.lock().is_stopped = true;
        self.wake.notify_one();
    }

    /// Records a disk error.
    pub(crate) fn fail(&self, cause: String) {
        self.request.lock().failure = Some(cause);
    }
}
