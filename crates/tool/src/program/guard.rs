//! The guard: a process between the server and one program, so that no program outlives its call or
//! the server (S3-074, R-17).
//!
//! ```text
//! server ─ socket ─▶ guard (own session, subreaper) ──▶ program ──▶ its descendants
//!   end of the socket = the server has exited    end of the guard = the program is killed
//! ```
//! The guard is the subreaper of all descendants, so none is left exactly when the guard has no
//! child. To end a program it sends TERM to all, waits for the grace period, then sends KILL until
//! none is left; the same happens to the descendants of a program that exits by itself.
//!
//! A program has the rights of its guard and can stop or kill it, but not unnoticed: the socket
//! cannot be opened a second time, the death of the server wakes a stopped guard, and the server
//! kills what a guard does not end in time (`kill_descendants`).
//!
//! [`run`] is all of `turnwire __guard`; the server's side is [`super::runner`]. The guard uses
//! threads only: it waits for one child, two pipes and a clock.

pub mod frame;
pub mod order;
#[cfg_attr(not(target_os = "linux"), path = "guard/tree_other.rs")]
mod tree;
mod event;
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

pub(crate) use tree::kill_descendants;

/// The argument that makes this binary a guard.
pub const ARGUMENT: &str = "__guard";
/// The argument after it that makes the process execute the program.
const EXEC: &str = "--exec";
/// The limit of the order; the tool limits arguments and input to far less.
const ORDER_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// The exit code of a guard without a valid order, for example one started by hand.
const USAGE: u8 = 2;

/// Runs the program of the order on standard input, until none of its processes is left.
pub fn run() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.iter().position(|arg| arg == EXEC) {
        Some(at) => exec::become_program(&args[at + 1..]),
        None => guard(&args),
    }
}

fn guard(args: &[OsString]) -> ExitCode {
    let (sender, events) = channel();
    // Before the program starts: a signal that ends the guard must not leave a program behind.
    let bound = ParentServer::bind().and_then(|server| signals::listen(&sender, server));
    if bound.is_err() || tree::adopt().is_err() {
        return ExitCode::FAILURE;
    }
    let Some(order) = read_order() else {
        return ExitCode::from(USAGE);
    };
    let frames = FrameWriter::new(order.mode);
    let end = match ProgramWatch::start(order, args, &frames, (sender, events)) {
        Ok(watch) => watch.until_empty(),
        Err(exit) => ProgramEnded::unstarted(exit),
    };
    frames.write(&GuardFrame::End(end));
    ExitCode::SUCCESS
}

/// The file of this process, also after it was replaced on disk.
pub(crate) fn own_binary() -> OsString {
    if cfg!(target_os = "linux") {
        return OsString::from("/proc/self/exe");
    }
    let file = std::env::current_exe().unwrap_or_default();
    file.into_os_string()
}

/// Reads the order from the first line of standard input.
fn read_order() -> Option<GuardOrder> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(ORDER_BYTES_MAX);
    input.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}
