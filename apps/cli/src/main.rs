//! `turnwire`: one binary that serves, talks, follows, tells again and checks.
//!
//! Answers go to the standard output, everything else to the standard error. Exit codes: 0 as
//! asked, 1 a violation was found or a turn failed, 2 it could not be done, 130 interrupted.

mod terminal;
mod log_check;
mod session_source;
mod args;
mod connect;
mod regression;
mod command;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use turnwire_tool::guard;

use crate::args::{CliCommand, CommandLine};
use crate::command::{
    approve, chat, manual, pack, record, replay, rerun, serve, settings, tail, usage, verify,
};

// The server allocates small frames on many threads; the system's allocator keeps them all.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The server starts itself anew as the guard of a program. That is no command for people, so
    // the command line does not know it, and no time goes into reading one.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == guard::ARGUMENT)
    {
        return guard::run();
    }
    let done = match CommandLine::parse().command {
        CliCommand::Serve(args) => serve::run(&args),
        CliCommand::Tail(args) => here(tail::run(&args)).map(|()| ExitCode::SUCCESS),
        CliCommand::Verify(args) => here(verify::run(&args)),
        CliCommand::Usage(args) => here(usage::run(&args)).map(|()| ExitCode::SUCCESS),
        CliCommand::Approve(args) => here(approve::run(&args)).map(|()| ExitCode::SUCCESS),
        CliCommand::Chat(args) => here(chat::run(&args)),
        CliCommand::Record(args) => record::run(&args).map(|()| ExitCode::SUCCESS),
        CliCommand::Rerun(args) => here(rerun::run(&args)),
        CliCommand::Check(args) => pack::check(&args),
        CliCommand::Init(args) => pack::init(&args).map(|()| ExitCode::SUCCESS),
        CliCommand::Config(args) => settings::show(args.show()).map(|()| ExitCode::SUCCESS),
        CliCommand::Completions(args) => {
            manual::completions(&args);
            Ok(ExitCode::SUCCESS)
        }
        CliCommand::Man(args) => manual::man(&args).map(|()| ExitCode::SUCCESS),
        CliCommand::Replay(args) => replay::run(&args).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("turnwire: {}", tell(&error));
        ExitCode::from(2)
    })
}

/// An error with its causes, each said once: some repeat the one below.
fn tell(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        match told.as_str() {
            "" => cause,
            before if before.ends_with(&cause) => told,
            _ => format!("{told}: {cause}"),
        }
    })
}

/// Runs a small command on this thread.
fn here<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

#[cfg(test)]
mod tests {
    use super::tell;

    #[test]
    fn repeated_error_cause_is_left_out() {
        let inner = anyhow::anyhow!("the port is in use");
        assert_eq!(tell(&inner), "the port is in use");
        let doubled = anyhow::anyhow!("the port is in use").context("the port is in use");
        assert_eq!(tell(&doubled), "the port is in use");
        let both = anyhow::anyhow!("the port is in use").context("starting");
        assert_eq!(tell(&both), "starting: the port is in use");
    }
}
