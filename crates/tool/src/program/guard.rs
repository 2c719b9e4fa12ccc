//! The guard: a process between the server and one program, so that no program outlives its call or
//! the server (S3-074, R-17).
//!
//! ```text
//! server ─ socket ─▶ guard (own session, subreaper) ──▶ program ──▶ its descendants
//!   the socket closes: the server has exited     the guard exits: the program is killed
//! ```
//! The guard is the subreaper of all its descendants: an orphaned descendant becomes a child of the
//! guard, so when the guard has no child, no descendant is left. To end a program, the guard sends
//! TERM to all descendants, waits for the grace period, then sends KILL until none is left. It does
//! the same with the descendants of a program that exits by itself.
//!
//! A program runs as the same user as its guard and can stop (SIGSTOP) or kill the guard, but not
//! unnoticed: a program cannot open the guard's socket through `/proc`, as it could a pipe, and hold
//! it open; the death of the server wakes a stopped guard; and the server kills the descendants that
//! a guard has not ended in time (`kill_descendants`).
//!
//! [`run`] is the main function of `turnwire __guard`; [`super::runner`] is the server's side. The
//! guard uses threads, and tokio only to receive signals, because it waits for few things: its
//! children, its pipes and a timer.

pub mod frame;
pub mod order;
#[cfg_attr(not(target_os = "linux"), path = "guard/tree_other.rs")]
mod tree;
pub(crate) mod orphans;
mod event;
mod inspection;
mod server;
mod signals;
mod pump;
mod exec;
mod watch;

use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _};
use std::process::ExitCode;
use std::sync::mpsc::channel;

use frame::{GuardFrame, ProgramEnded};
use order::GuardOrder;
use pump::FrameWriter;
use server::ParentServer;
use watch::ProgramWatch;

pub use inspection::deny_inspection;

pub(crate) use tree::kill_descendants;

/// The first argument of a guard process, `turnwire __guard`.
pub const ARGUMENT: &str = "__guard";
/// The argument with which a guard starts this binary again, as the process that sets the limits
/// and then executes the program; see [`exec`].
const EXEC_ARGUMENT: &str = "--exec";
/// The longest [`GuardOrder`] that is read; the tool limits arguments and input to far less.
const ORDER_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// The exit code of a process without a valid order or arguments: it was started by hand, or its
/// server does not need the program any more. It has started nothing.
pub(super) const EXIT_USAGE: u8 = 2;

/// The main function of `turnwire __guard`: guards a program, or, with `--exec`, becomes the program.
pub fn run() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.iter().position(|arg| arg == EXEC_ARGUMENT) {
        Some(index) => exec::become_program(&args[index + 1..]),
        None => guard_program(&args),
    }
}

/// Starts the program of the [`GuardOrder`] on standard input, with `args` for this binary, and waits
/// until the program and all its descendants have ended.
fn guard_program(args: &[OsString]) -> ExitCode {
    let (sender, events) = channel();
    // Before the program starts: a signal that ends the guard must not leave a program running.
    let listening = ParentServer::bind().and_then(|server| signals::listen(&sender, server));
    if listening.is_err() || tree::adopt().is_err() {
        return ExitCode::FAILURE;
    }
    let Some(order) = read_order() else {
        return ExitCode::from(EXIT_USAGE);
    };
    let frames = FrameWriter::new(order.mode);
    let ended = match ProgramWatch::start(order, args, &frames, (sender, events)) {
        Ok(watch) => watch.until_empty(),
        Err(exit) => ProgramEnded::unstarted(exit),
    };
    frames.write(&GuardFrame::End(ended));
    ExitCode::SUCCESS
}

/// The path of this binary; on Linux it stays valid after the file was replaced on disk.
pub(crate) fn own_binary() -> OsString {
    if cfg!(target_os = "linux") {
        return OsString::from("/proc/self/exe");
    }
    let file = std::env::current_exe().unwrap_or_default();
    file.into_os_string()
}

/// Reads the first line of standard input; `None` if it is not a valid [`GuardOrder`].
fn read_order() -> Option<GuardOrder> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(ORDER_BYTES_MAX);
    input.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}
