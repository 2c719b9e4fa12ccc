//! `turnwire`: one binary that serves, follows and checks.
//!
//! Answers go to the standard output, everything else to the standard error. Exit codes: 0 as
//! asked, 1 a violation was found, 2 it could not be done.

mod clean;
mod paint;
mod line;
mod turns;
mod verify;
mod source;
mod args;
mod open;
mod tail;
mod check;
mod settings;
mod serve;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use crate::args::{Command, Line};

// The server allocates small frames on many threads; the system's allocator keeps them all.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Line::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Tail(args) => here(tail::run(&args)).map(|()| ExitCode::SUCCESS),
        Command::Verify(args) => here(check::run(&args)),
        Command::Config(args) => settings::show(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("turnwire: {error:#}");
        ExitCode::from(2)
    })
}

/// Runs a small command on this thread.
fn here<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(command)
}
