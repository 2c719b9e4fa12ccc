//! The cassette file that calls are recorded to, and the thread that writes it.
//!
//! ```text
//! recorders ─▶ bounded queue ─▶ thread ─▶ file, a whole call at a time
//! ```
//! No call waits for the thread. A call that exceeds the memory or queue limit is dropped with a
//! warning. The first write error is logged once, and nothing is written after it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use turnwire_event::content::sha256_hex;

use super::line;
use super::recorded_call::RecordedCall;
use super::salt::CassetteSalt;

/// Upper limit of calls in the queue: more than end while the disk writes one.
const QUEUE_MAX: usize = 256;
/// Upper limit of memory for recorded calls in bytes: several times the longest answer.
const RESERVED_BYTES_MAX: usize = 64 << 20;
/// Memory of a chunk besides its bytes.
const CHUNK_BYTES: usize = 64;

/// The cassette file cannot be written. The message is for the operator who named the file.
#[derive(Debug, thiserror::Error)]
pub enum CassetteWriterError {
    /// The operating system rejects the access.
    #[error("{file}: cannot write the recording: {cause}")]
    Unwritable {
        /// Path of the file.
        file: String,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// Another server has locked the file.
    #[error("{file}: another server is recording to this file; choose another file")]
    Locked {
        /// Path of the file.
        file: String,
    },
    /// The file exists and is not a cassette.
    #[error("{file}: the file exists and is not a cassette; choose another file")]
    NotACassette {
        /// Path of the file.
        file: String,
    },
}

enum WriterJob {
    /// Write the call with its digests, then release its memory.
    Write(Box<RecordedCall>, Bytes, MemoryReservation),
    /// Reply once everything before is written.
    Flush(SyncSender<()>),
}

/// Writes [`RecordedCall`]s to a cassette file.
#[derive(Debug)]
pub struct CassetteWriter {
    jobs: Option<SyncSender<WriterJob>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<WriterState>,
}

#[derive(Debug, Default)]
struct WriterState {
    /// Set after the first write error.
    has_failed: AtomicBool,
    /// Memory of calls that are recorded or queued, in bytes.
    reserved_bytes: AtomicUsize,
}

/// Memory reserved for one [`RecordedCall`]; released on drop.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    state: Arc<WriterState>,
    bytes: usize,
}

impl MemoryReservation {
    /// Reserves memory for a chunk of `bytes`; false if the limit is reached.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let chunk_bytes = bytes + CHUNK_BYTES;
        let reserved = &self.state.reserved_bytes;
        if reserved.fetch_add(chunk_bytes, Ordering::Relaxed) + chunk_bytes > RESERVED_BYTES_MAX {
            reserved.fetch_sub(chunk_bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += chunk_bytes;
        true
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        let reserved = &self.state.reserved_bytes;
        reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl CassetteWriter {
    /// Opens or creates a cassette file. Existing calls are kept, except for an incomplete one at
    /// the end.
    pub fn open(path: &Path) -> Result<Self, CassetteWriterError> {
        let name = || path.display().to_string();
        let unwritable = |cause| CassetteWriterError::Unwritable {
            file: name(),
            cause,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Only the server's own user may read recorded answers.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(unwritable)?;
        // An existing file may be readable by all, and another server may write to it.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .map_err(unwritable)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => CassetteWriterError::Locked { file: name() },
            TryLockError::Error(cause) => unwritable(cause),
        })?;
        let complete = complete_part(&file).map_err(unwritable)?;
        let not_a_cassette = || CassetteWriterError::NotACassette { file: name() };
        let (complete_length, mut salt) = complete.ok_or_else(not_a_cassette)?;
        file.set_len(complete_length).map_err(unwritable)?;
        file.seek(SeekFrom::End(0)).map_err(unwritable)?;
        // A new file, or one that predates salts: later calls are salted.
        if salt.as_written().is_none() {
            salt = CassetteSalt::random().map_err(unwritable)?;
            file.write_all(&line::header(&salt)).map_err(unwritable)?;
        }
        Self::start(Box::new(file), salt).map_err(unwritable)
    }

    /// Starts the thread that writes to `out`, whose header with `salt` is written already.
    fn start(out: Box<dyn Write + Send>, salt: CassetteSalt) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let state = Arc::new(WriterState::default());
        let thread_state = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("cassette".to_owned())
            .spawn(move || write(out, &salt, &queue, &thread_state))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            state,
        })
    }

    /// A memory reservation for a new call; `None` after a write error.
    pub(super) fn reserve(&self) -> Option<MemoryReservation> {
        let has_failed = self.state.has_failed.load(Ordering::Relaxed);
        (!has_failed).then(|| MemoryReservation {
            state: Arc::clone(&self.state),
            bytes: 0,
        })
    }

    /// Queues a [`RecordedCall`] for writing. Never blocks: a call is dropped if the queue is full.
    pub(super) fn enqueue(
        &self,
        call: Box<RecordedCall>,
        body: Bytes,
        reservation: MemoryReservation,
    ) {
        let Some(jobs) = &self.jobs else {
            return;
        };
        if let Err(full) = jobs.try_send(WriterJob::Write(call, body, reservation)) {
            // If the thread has ended, its error is logged already.
            if matches!(full, std::sync::mpsc::TrySendError::Full(_)) {
                tracing::warn!("a model call was not recorded: the write queue is full");
            }
        }
    }

    /// Blocks until all queued calls are written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if let Some(jobs) = &self.jobs
            && jobs.send(WriterJob::Flush(done)).is_ok()
        {
            // A thread that has ended writes nothing more.
            let _ = wait.recv();
        }
    }
}

impl Drop for CassetteWriter {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The thread writes the queued calls first, and it does not panic.
            let _ = thread.join();
        }
    }
}

/// The body of the thread: writes until all senders are dropped or a write fails.
fn write(
    mut out: Box<dyn Write + Send>,
    salt: &CassetteSalt,
    queue: &Receiver<WriterJob>,
    state: &WriterState,
) {
    for job in queue {
        match job {
            WriterJob::Write(mut call, body, reservation) => {
                // Hashing a long request takes time, so it is done here.
                call.salt = salt.clone();
                call.words_sha256 = salt.digest(&call.words_sha256);
                call.body_sha256 = salt.digest(&sha256_hex(&body));
                let lines = line::lines(&call);
                let result = out.write_all(&lines).and_then(|()| out.flush());
                drop(reservation);
                if let Err(cause) = result {
                    state.has_failed.store(true, Ordering::Relaxed);
                    tracing::error!(%cause, "recording stopped: writing the cassette failed");
                    return;
                }
            }
            WriterJob::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// Length of the complete calls in the file, and its last salt; `None` if the file is not a
/// cassette.
fn complete_part(file: &File) -> io::Result<Option<(u64, CassetteSalt)>> {
    let mut lines = BufReader::new(file);
    let (mut read, mut complete_length) = (0, 0);
    let mut salt = CassetteSalt::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = lines.read_until(b'\n', &mut line)?;
        if bytes == 0 {
            return Ok(Some((complete_length, salt)));
        }
        read += bytes as u64;
        if line.starts_with(br#"{"type":"cassette","#)
            && let Some(header_salt) = line::salt(&line)
        {
            (complete_length, salt) = (read, header_salt);
        } else if complete_length == 0 {
            return Ok(None);
        } else if line.starts_with(br#"{"type":"end","#) && line.ends_with(b"\n") {
            complete_length = read;
        }
    }
}

#[cfg(test)]
mod tests;
