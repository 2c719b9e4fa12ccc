//! The file that is recorded to, and the thread that writes it.
//!
//! ```text
//! recorders ─▶ bounded queue ─▶ thread ─▶ file, a whole call at a time
//! ```
//! Nobody waits for the thread. What finds no room is left out and told; the first failure to write
//! is told once, and nothing is written after it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use turnwire_event::content::sha256_hex;

use super::call::Call;
use super::line;
use super::salt::Salt;

/// Calls that wait to be written: more than end in the time that a disk takes for one.
const QUEUE_MAX: usize = 256;
/// Bytes of all calls that are being recorded or wait: what a server can spare, and several times
/// the longest answer.
const BYTES_MAX: usize = 64 << 20;
/// What a chunk takes besides its bytes.
const CHUNK_BYTES: usize = 64;

/// A file that cannot be recorded to. Said to the person who named it.
#[derive(Debug, thiserror::Error)]
pub enum DeckError {
    /// The system refuses it.
    #[error("{file}: cannot be recorded to: {cause}")]
    Unwritable {
        /// Which file.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// Another server records to it.
    #[error("{file}: another server records to it; name another file")]
    Taken {
        /// Which file.
        file: String,
    },
    /// There is something else in it.
    #[error("{file}: is there and is no cassette; name another file to record to")]
    Foreign {
        /// Which file.
        file: String,
    },
}

enum Job {
    /// Write it with its digests, then give its bytes back.
    Write(Box<Call>, Bytes, Hold),
    /// Say so once everything before is written.
    Flush(SyncSender<()>),
}

/// Where calls are recorded to.
#[derive(Debug)]
pub struct Deck {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether writing has failed.
    stopped: AtomicBool,
    /// Bytes of calls in memory.
    held: AtomicUsize,
}

/// Bytes that a call holds; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Hold {
    /// Takes room for a chunk of `bytes`; says whether there was some.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes + CHUNK_BYTES;
        let held = self.shared.held.fetch_add(more, Ordering::Relaxed);
        if held + more > BYTES_MAX {
            self.shared.held.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Deck {
    /// Opens a file to record to; what a cassette there has is kept, but for a call that was not
    /// written to its end.
    pub fn open(path: &Path) -> Result<Self, DeckError> {
        let name = || path.display().to_string();
        let refused = |cause| DeckError::Unwritable {
            file: name(),
            cause,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // What people were answered is for whoever runs the server alone.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(refused)?;
        // One that was there may have been for all to read, and another server may write to it.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .map_err(refused)?;
        file.try_lock().map_err(|why| match why {
            TryLockError::WouldBlock => DeckError::Taken { file: name() },
            TryLockError::Error(cause) => refused(cause),
        })?;
        let (whole, mut salt) = match whole(&file).map_err(refused)? {
            Some(whole) => whole,
            None => return Err(DeckError::Foreign { file: name() }),
        };
        file.set_len(whole).map_err(refused)?;
        file.seek(SeekFrom::End(0)).map_err(refused)?;
        // A file that is new, or from before there were salts: what follows has one.
        if salt.written().is_none() {
            salt = Salt::random().map_err(refused)?;
            file.write_all(&line::header(&salt)).map_err(refused)?;
        }
        Self::start(Box::new(file), salt).map_err(refused)
    }

    /// Records to `out`, which has its header with `salt` already.
    fn start(out: Box<dyn Write + Send>, salt: Salt) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("cassette".to_owned())
            .spawn(move || write(out, &salt, &queue, &own))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            shared,
        })
    }

    /// Room for a new call; none once writing has failed.
    pub(super) fn hold(&self) -> Option<Hold> {
        let stopped = self.shared.stopped.load(Ordering::Relaxed);
        (!stopped).then(|| Hold {
            shared: Arc::clone(&self.shared),
            bytes: 0,
        })
    }

    /// Has a call written. Never waits: a call that finds the queue full is left out.
    pub(super) fn put(&self, call: Box<Call>, body: Bytes, hold: Hold) {
        let Some(jobs) = &self.jobs else {
            return;
        };
        if let Err(full) = jobs.try_send(Job::Write(call, body, hold)) {
            // Where the thread is gone, why was told when it went.
            if matches!(full, std::sync::mpsc::TrySendError::Full(_)) {
                tracing::warn!("a call is not recorded: too many wait to be written");
            }
        }
    }

    /// Waits until everything that was put before is written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if let Some(jobs) = &self.jobs
            && jobs.send(Job::Flush(done)).is_ok()
        {
            // A thread that ends instead has nothing left to write.
            let _ = wait.recv();
        }
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It writes what waits, and does not panic.
            let _ = thread.join();
        }
    }
}

/// The thread: writes until nobody is left who could put something, or writing fails.
fn write(mut out: Box<dyn Write + Send>, salt: &Salt, queue: &Receiver<Job>, shared: &Shared) {
    for job in queue {
        match job {
            Job::Write(mut call, body, hold) => {
                // Done here, because it takes its time where a request is long.
                call.salt = salt.clone();
                call.words_sha256 = salt.over(&call.words_sha256);
                call.body_sha256 = salt.over(&sha256_hex(&body));
                let lines = line::lines(&call);
                let written = out.write_all(&lines).and_then(|()| out.flush());
                drop(hold);
                if let Err(cause) = written {
                    shared.stopped.store(true, Ordering::Relaxed);
                    tracing::error!(%cause, "recording has stopped: the cassette cannot be written");
                    return;
                }
            }
            Job::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// How many bytes of the file are a cassette with whole calls, and its last salt: none if it is
/// something else.
fn whole(file: &File) -> io::Result<Option<(u64, Salt)>> {
    let mut lines = BufReader::new(file);
    let (mut read, mut whole) = (0, 0);
    let mut salt = Salt::default();
    let mut written = Vec::new();
    loop {
        written.clear();
        let bytes = lines.read_until(b'\n', &mut written)?;
        if bytes == 0 {
            return Ok(Some((whole, salt)));
        }
        read += bytes as u64;
        if written.starts_with(br#"{"type":"cassette","#)
            && let Some(found) = line::salt(&written)
        {
            (whole, salt) = (read, found);
        } else if whole == 0 {
            return Ok(None);
        } else if written.starts_with(br#"{"type":"end","#) && written.ends_with(b"\n") {
            whole = read;
        }
    }
}

#[cfg(test)]
mod tests;
