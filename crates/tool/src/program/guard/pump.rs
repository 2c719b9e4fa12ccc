//! The threads of a guard that copy bytes: the output of the program into frames, and input to the
//! program. Each holds one piece at a time.

use std::io::{self, BufRead as _, Read, Write};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use parking_lot::Mutex;

use super::event::GuardEvent;
use super::frame::GuardFrame;
use super::order::GuardMode;

/// The limit of one read, and so of one frame.
const PIECE_BYTES: usize = 16 * 1_024;
/// The limit of standard error that is forwarded; further bytes are read and dropped.
const ERROR_BYTES_MAX: usize = 64 * 1_024;
/// The limit of output after the end was requested. Then the pipe is closed, so that a program that
/// writes without end does not keep the guard busy.
const MUTED_BYTES_MAX: usize = 64 * 1_024;
/// The poll flag for a socket that the server has closed. A hang-up is always reported.
#[cfg(target_os = "linux")]
const CLOSED: rustix::event::PollFlags = rustix::event::PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: rustix::event::PollFlags = rustix::event::PollFlags::empty();
/// The limit of the beginning of standard error that is kept, for [`super::exec::exec_failure`].
const BEGINNING_BYTES: usize = 256;

/// Writes frames to the server. Clones write to the same stream, one frame at a time.
#[derive(Clone)]
pub(super) struct FrameWriter {
    out: Arc<Mutex<Box<dyn Write + Send>>>,
    /// The output of the program is not wanted any more.
    muted: Arc<AtomicBool>,
    /// Frames started and frames written: in between, a frame waits for the server to read.
    started: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
}

impl FrameWriter {
    pub(super) fn new(mode: GuardMode) -> Self {
        let out: Box<dyn Write + Send> = match mode {
            GuardMode::Call => Box::new(io::stdout()),
            GuardMode::Pipe => Box::new(io::stderr()),
        };
        Self {
            out: Arc::new(Mutex::new(out)),
            muted: Arc::default(),
            started: Arc::default(),
            written: Arc::default(),
        }
    }

    /// Drops the output of the program from now on.
    pub(super) fn mute(&self) {
        self.muted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_muted(&self) -> bool {
        self.muted.load(Ordering::Relaxed)
    }

    /// The number of frames written; `None` while one waits.
    pub(super) fn written(&self) -> Option<usize> {
        let written = self.written.load(Ordering::Acquire);
        (self.started.load(Ordering::Acquire) == written).then_some(written)
    }

    pub(super) fn write(&self, frame: &GuardFrame) {
        self.started.fetch_add(1, Ordering::AcqRel);
        let mut out = self.out.lock();
        let bytes = frame.to_bytes();
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            // The server has exited; the thread that waits for its socket sees that too.
            self.mute();
        }
        drop(out);
        self.written.fetch_add(1, Ordering::AcqRel);
    }
}

/// Forwards standard output until its end.
pub(super) fn forward_output(
    from: impl Read + Send + 'static,
    frames: FrameWriter,
    events: Sender<GuardEvent>,
) {
    let frame = |piece: &[u8]| Some(GuardFrame::Output(piece.to_vec()));
    forward(from, frames, events, frame);
}

/// Forwards the beginning of standard error and drops further bytes. Returns the first
/// [`BEGINNING_BYTES`], as they arrive.
pub(super) fn forward_errors(
    from: impl Read + Send + 'static,
    frames: FrameWriter,
    events: Sender<GuardEvent>,
) -> Arc<Mutex<Vec<u8>>> {
    let beginning = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&beginning);
    let mut room = ERROR_BYTES_MAX;
    forward(from, frames, events, move |piece| {
        let mut beginning = shared.lock();
        let missing = BEGINNING_BYTES.saturating_sub(beginning.len());
        beginning.extend_from_slice(&piece[..missing.min(piece.len())]);
        let length = piece.len().min(room);
        room -= length;
        (length > 0).then(|| GuardFrame::ErrorOutput(piece[..length].to_vec()))
    });
    beginning
}

/// Writes the frame of every piece until the end, or until [`MUTED_BYTES_MAX`] are dropped.
fn forward(
    mut from: impl Read + Send + 'static,
    frames: FrameWriter,
    events: Sender<GuardEvent>,
    mut frame: impl FnMut(&[u8]) -> Option<GuardFrame> + Send + 'static,
) {
    thread::spawn(move || {
        let mut muted_bytes = 0;
        read_pieces(&mut from, |piece| {
            let frame = frame(piece);
            if frames.is_muted() {
                muted_bytes += piece.len();
                return muted_bytes <= MUTED_BYTES_MAX;
            }
            if let Some(frame) = frame {
                frames.write(&frame);
            }
            true
        });
        drop(from);
        let _ = events.send(GuardEvent::OutputEnded);
    });
}

/// Calls `take` with every piece until the end, or until it returns false.
fn read_pieces(from: &mut impl Read, mut take: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(length) if take(&piece[..length]) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Writes the input of a call and closes it. A program that does not read it blocks only this thread.
pub(super) fn write_input(mut to: ChildStdin, input: String) {
    thread::spawn(move || to.write_all(input.as_bytes()));
}

/// In a call, any byte on standard input, or its end, requests the end of the program.
pub(super) fn watch_for_end_request(events: Sender<GuardEvent>) {
    thread::spawn(move || {
        let _ = io::stdin().lock().read_exact(&mut [0]);
        let _ = events.send(GuardEvent::EndRequested);
    });
}

/// Forwards standard input and its end to a piped program. Bytes that the program does not read any
/// more are dropped, so that the server is never blocked.
pub(super) fn forward_input(to: ChildStdin) {
    thread::spawn(move || {
        let mut to = Some(to);
        let mut from = io::stdin().lock();
        loop {
            let length = match from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok([]) | Err(_) => return,
                Ok(piece) => {
                    let program = to.as_mut();
                    let written = program.map(|to| to.write_all(piece).and_then(|()| to.flush()));
                    if let Some(Err(_)) = written {
                        to = None;
                    }
                    piece.len()
                }
            };
            from.consume(length);
        }
    });
}

/// Reports when the server has closed standard input, also while [`forward_input`] is blocked.
pub(super) fn watch_for_close(events: Sender<GuardEvent>) {
    use rustix::event::{PollFd, poll};
    thread::spawn(move || {
        let stdin = io::stdin();
        loop {
            let mut fds = [PollFd::new(&stdin, CLOSED)];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        let _ = events.send(GuardEvent::InputClosed);
    });
}
