//! The command `turnwire`: serves, chats, follows sessions, and replays and checks their logs.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 a
//! violation was found or a turn failed, 2 the command could not run, 130 interrupted.

mod terminal;
mod log_check;
mod new_file;
mod session_file;
mod session_source;
mod args;
mod connect;
mod regression;
mod command;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use turnwire_client::Error;
use turnwire_tool::guard;

use crate::args::{CliCommand, CommandLine, RetentionCommand};
use crate::command::upkeep::{audit, backup, doctor, jobs, maintenance};
use crate::command::{
    approve, chat, export, manual, pack, record, replay, rerun, serve, settings, tail, token,
    usage, verify,
};
use crate::terminal::wording::error_text;

// The server allocates small frames on many threads; the system's allocator keeps that memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The server starts its own binary as the guard of a program. The guard is no command for
    // people, so the command line does not list it and is not parsed for it.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == guard::ARGUMENT)
    {
        return guard::run();
    }
    run(CommandLine::parse().command).unwrap_or_else(|error| {
        eprintln!("turnwire: {}", describe(&error));
        ExitCode::from(2)
    })
}

fn run(command: CliCommand) -> Result<ExitCode> {
    match command {
        CliCommand::Serve(args) => serve::run(args)?,
        CliCommand::Relay(args) => serve::relay(args)?,
        CliCommand::Tail(args) => block_on(tail::run(&args))?,
        CliCommand::Verify(args) => return block_on(verify::run(args)),
        CliCommand::Export(args) => block_on(export::run(&args))?,
        CliCommand::Usage(args) => block_on(usage::run(&args))?,
        CliCommand::Approve(args) => block_on(approve::run(&args))?,
        CliCommand::Chat(args) => return block_on(chat::run(&args)),
        CliCommand::Record(args) => record::run(&args)?,
        CliCommand::Rerun(args) => return block_on(rerun::run(&args)),
        CliCommand::Check(args) => return block_on(pack::check(&args)),
        CliCommand::Init(args) => pack::init(&args)?,
        CliCommand::Config(args) => settings::show(args.show())?,
        CliCommand::Doctor(args) => return block_on(doctor::run(&args)),
        CliCommand::Backup(args) => backup::backup(&args)?,
        CliCommand::Restore(args) => backup::restore(&args)?,
        CliCommand::Compact(args) => maintenance::compact(&args)?,
        CliCommand::Retention(args) => match &args.command {
            RetentionCommand::Confirm(args) => maintenance::confirm(args)?,
        },
        CliCommand::Token(args) => token::run(&args)?,
        CliCommand::Jobs(args) => block_on(jobs::run(&args))?,
        CliCommand::Audit(args) => block_on(audit::run(&args))?,
        CliCommand::Completions(args) => manual::completions(&args),
        CliCommand::Man(args) => manual::man(&args)?,
        CliCommand::Replay(args) => replay::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An error with its causes; a cause that its context already repeats is left out.
fn describe(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = match cause.downcast_ref::<Error>() {
            // With the flag that helps.
            Some(error @ Error::Certificate { .. }) => error_text(error),
            _ => cause.to_string(),
        };
        match text.as_str() {
            "" => cause,
            context if context.ends_with(&cause) => text,
            _ => format!("{text}: {cause}"),
        }
    })
}

/// Runs a client command on this thread.
fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn repeated_error_cause_is_left_out() {
        let inner = anyhow::anyhow!("the port is in use");
        assert_eq!(describe(&inner), "the port is in use");
        let doubled = anyhow::anyhow!("the port is in use").context("the port is in use");
        assert_eq!(describe(&doubled), "the port is in use");
        let both = anyhow::anyhow!("the port is in use").context("starting");
        assert_eq!(describe(&both), "starting: the port is in use");
    }
}
