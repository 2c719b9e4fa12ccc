//! The guard: a process between the server and one program, so that no program outlives the call
//! or the server it works for (S3-074, R-17).
//!
//! ```text
//! server ─ socket ─▶ guard (own session, reaper of all below) ──▶ program ──▶ whatever it starts
//!   the socket's end = the server is gone      the guard's end = the program is killed
//! ```
//! Orphans come to the guard and to nobody else, so the tree below it is empty exactly when the
//! system says that the guard has no child. Ending means TERM to all, the grace, then KILL until
//! none is left; it is the same for a program that ends by itself and leaves others behind.
//!
//! A program has the rights of its guard, so it can stop or kill it, but not unseen: the socket
//! cannot be opened a second time, the server's death wakes a guard that is stopped, and what a
//! guard does not end in time the server does (`kill_rest`).
//!
//! `run` is the whole of `turnwire __guard`; the server's side is the workshop. It works with
//! threads alone: what it waits for is one child, two pipes and a clock.

pub mod frame;
pub mod order;
#[cfg_attr(not(target_os = "linux"), path = "guard/tree_other.rs")]
mod tree;
mod event;
mod server;
mod signals;
mod pump;
mod stage;
mod watch;

use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _};
use std::process::ExitCode;
use std::sync::mpsc::channel;

use frame::End;
use order::Order;
use pump::Report;
use server::Server;
use watch::Watch;

pub(crate) use tree::kill_rest;

/// The word that makes a guard of this binary.
pub const WORD: &str = "__guard";
/// The word after it that makes the second stage, which becomes the program.
const EXEC: &str = "--exec";
/// Of the order; arguments and input are bounded far below it by the tool.
const ORDER_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// What a guard tells when it was called by hand or got no order.
const USAGE: u8 = 2;

/// Guards one program, as the order on the standard input says, until nothing of it is left.
pub fn run() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.iter().position(|word| word == EXEC) {
        Some(at) => stage::become_program(&words[at + 1..]),
        None => guard(&words),
    }
}

fn guard(words: &[OsString]) -> ExitCode {
    let (tell, hear) = channel();
    // Before anything is started: a signal that ends the guard must find nothing to guard.
    let bound = Server::bind().and_then(|server| signals::listen(&tell, server));
    if bound.is_err() || tree::adopt().is_err() {
        return ExitCode::FAILURE;
    }
    let Some(order) = read_order() else {
        return ExitCode::from(USAGE);
    };
    let report = Report::new(order.mode);
    let end = match Watch::start(order, words, &report, (tell, hear)) {
        Ok(watch) => watch.until_empty(),
        Err(how) => End::unstarted(how),
    };
    report.end(&end);
    ExitCode::SUCCESS
}

/// The first line of the standard input.
fn read_order() -> Option<Order> {
    let mut line = Vec::new();
    let mut input = io::stdin().lock().take(ORDER_BYTES_MAX);
    input.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}
