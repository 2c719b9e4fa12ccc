//! What moves bytes in a guard: the program's output into frames, and input to the program.
//! Nothing here holds more than one piece at a time.

use std::io::{self, BufRead as _, Read, Write};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use parking_lot::Mutex;

use super::event::Event;
use super::frame::{End, Frame, Start};
use super::order::Mode;

/// One read; also what a frame holds.
const PIECE_BYTES: usize = 16 * 1_024;
/// What is passed on of the standard error; the rest is read and thrown away.
const ERROR_BYTES_MAX: usize = 64 * 1_024;
/// What a program may still write once it was told to end. Then the pipe is closed: one that
/// writes without end is not fed with time.
const LAST_BYTES_MAX: usize = 64 * 1_024;
/// What tells, beside a hang-up, that the server has closed its side. A hang-up is told unasked.
#[cfg(target_os = "linux")]
const CLOSED: rustix::event::PollFlags = rustix::event::PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: rustix::event::PollFlags = rustix::event::PollFlags::empty();
/// What is kept of the beginning of the standard error, for the word of the second stage.
const KEPT_BYTES: usize = 256;

/// Where frames go. Clones write to the same place, one frame at a time.
#[derive(Clone)]
pub(super) struct Report {
    out: Arc<Mutex<Box<dyn Write + Send>>>,
    /// Whether anybody still wants what the program writes.
    quiet: Arc<AtomicBool>,
    /// Frames begun and frames written: in between, a frame waits for the server to read.
    begun: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
}

impl Report {
    pub(super) fn new(mode: Mode) -> Self {
        let out: Box<dyn Write + Send> = match mode {
            Mode::Call => Box::new(io::stdout()),
            Mode::Pipe => Box::new(io::stderr()),
        };
        Self {
            out: Arc::new(Mutex::new(out)),
            quiet: Arc::default(),
            begun: Arc::default(),
            written: Arc::default(),
        }
    }

    pub(super) fn start(&self, start: Start) {
        self.write(&Frame::Start(start));
    }

    pub(super) fn end(&self, end: &End) {
        self.write(&Frame::End(end.clone()));
    }

    /// From now on nobody wants what the program writes.
    pub(super) fn hush(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants what the program writes.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// How many frames are written; none while one waits to be.
    pub(super) fn settled(&self) -> Option<usize> {
        let written = self.written.load(Ordering::Acquire);
        (self.begun.load(Ordering::Acquire) == written).then_some(written)
    }

    fn write(&self, frame: &Frame) {
        self.begun.fetch_add(1, Ordering::AcqRel);
        self.put(frame);
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    fn put(&self, frame: &Frame) {
        let mut out = self.out.lock();
        let bytes = frame.to_bytes();
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            // The server is gone, which its pipe tells too.
            self.hush();
        }
    }
}

/// Passes the standard output on, until its end.
pub(super) fn output(mut from: impl Read + Send + 'static, report: Report, tell: Sender<Event>) {
    thread::spawn(move || {
        let mut last = 0;
        pieces(&mut from, |piece| {
            if !report.is_quiet() {
                report.write(&Frame::Output(piece.to_vec()));
                return true;
            }
            last += piece.len();
            last <= LAST_BYTES_MAX
        });
        drop(from);
        let _ = tell.send(Event::Drained);
    });
}

/// Passes the beginning of the standard error on and reads all the rest; what is kept is the very
/// beginning.
pub(super) fn errors(
    mut from: impl Read + Send + 'static,
    report: Report,
    tell: Sender<Event>,
) -> Arc<Mutex<Vec<u8>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    thread::spawn(move || {
        let (mut passed, mut last) = (0, 0);
        pieces(&mut from, |piece| {
            let mut keep = keep.lock();
            let room = KEPT_BYTES.saturating_sub(keep.len()).min(piece.len());
            keep.extend_from_slice(&piece[..room]);
            drop(keep);
            if report.is_quiet() {
                last += piece.len();
                return last <= LAST_BYTES_MAX;
            }
            let more = piece.len().min(ERROR_BYTES_MAX - passed);
            if more > 0 {
                report.write(&Frame::ErrorOutput(piece[..more].to_vec()));
                passed += more;
            }
            true
        });
        drop(from);
        let _ = tell.send(Event::Drained);
    });
    kept
}

/// Every piece until the end, or until one is not wanted.
fn pieces(from: &mut impl Read, mut wanted: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(read) if wanted(&piece[..read]) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Writes the input of a call and closes it; a program that does not read it keeps a thread, and
/// nothing else, waiting.
pub(super) fn feed(mut to: ChildStdin, input: String) {
    thread::spawn(move || to.write_all(input.as_bytes()));
}

/// In a call anything that comes, or the end, is the wish to end.
pub(super) fn wish(tell: Sender<Event>) {
    thread::spawn(move || {
        loop {
            match io::stdin().lock().fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        let _ = tell.send(Event::Asked);
    });
}

/// In a talk all that comes goes to the program, and so does the end. What a program no longer
/// takes is thrown away, so that the server is never held up.
pub(super) fn forward(to: ChildStdin) {
    thread::spawn(move || {
        let mut to = Some(to);
        let mut from = io::stdin().lock();
        loop {
            let read = match from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok([]) | Err(_) => return,
                Ok(piece) => {
                    let open = to.as_mut();
                    let wrote = open.map(|to| to.write_all(piece).and_then(|()| to.flush()));
                    if let Some(Err(_)) = wrote {
                        to = None;
                    }
                    piece.len()
                }
            };
            from.consume(read);
        }
    });
}

/// Tells when the server has closed the standard input, also while the program takes nothing and
/// the way to it is stuck.
pub(super) fn closing(tell: Sender<Event>) {
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
        let _ = tell.send(Event::Closed);
    });
}
