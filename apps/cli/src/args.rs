//! The command line, as clap reads it and `--help` shows it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use turnwire_event::{Epoch, Owner, Position, Principal, Seq, SessionId, TenantId};

const EXAMPLES: &str = "\
Examples:
  turnwire serve                          serve on http://127.0.0.1:8421 with the built-in script
  turnwire serve --home ./data --script demo.yaml
  turnwire tail sess_01J… --from start    follow a session, from its beginning
  turnwire tail sess_01J… --json | jq .   the events as they are, one a line
  turnwire verify sess_01J…               check order, turns, tools and the hash chain
  turnwire verify sess_01J… --data ~/.turnwire
";

/// One log, every wire: a server for multi-agent turns, and tools to look into its log.
#[derive(Debug, Parser)]
#[command(name = "turnwire", version, after_help = EXAMPLES)]
pub(crate) struct Line {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server.
    Serve(Serve),
    /// Follow a session's events.
    Tail(Tail),
    /// Check a session's log: contiguity, terminals, pairs, hashes.
    Verify(Verify),
    /// Show every setting in force, and where it comes from.
    Config(Config),
}

/// Run the server.
#[derive(Debug, Args)]
#[command(after_help = PRECEDENCE)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// Show every setting.
#[derive(Debug, Args)]
#[command(after_help = PRECEDENCE)]
pub(crate) struct Config {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const PRECEDENCE: &str = "\
Settings come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults. A server ends on SIGTERM or Ctrl-C: it drains first; a second one ends it at once.";

/// What a server can be told on its command line.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// The settings file [default: turnwire.yaml in the data folder, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; a loopback address [default: 127.0.0.1:8421]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// What the scripted model says [default: the built-in script]
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Write the log on stderr as JSON; TURNWIRE_LOG says what is written [default: info]
    #[arg(long)]
    pub(crate) log_json: bool,
}

/// Which log, and whose.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    /// The running server
    #[arg(
        long,
        value_name = "URL",
        env = "TURNWIRE_SERVER",
        default_value = "http://127.0.0.1:8421"
    )]
    pub(crate) server: String,
    /// Read this data folder instead of asking a server
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Whom to speak for
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(crate) principal: Principal,
    /// The principal's tenant, a UUID
    #[arg(
        long,
        value_name = "UUID",
        default_value = "00000000-0000-0000-0000-000000000000"
    )]
    pub(crate) tenant: TenantId,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl Place {
    /// Whom to speak for.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant,
            principal: self.principal.clone(),
        }
    }
}

/// Follow a session's events.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --from, everything the server still replays comes first, then what happens. What is too old
or too much comes as a snapshot. With --data the log is written out up to its end; words in flight
are not in it.")]
pub(crate) struct Tail {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Begin after this event id, at the `start`, or `now`
    #[arg(long, value_name = "POSITION", default_value = "start", value_parser = from)]
    pub(crate) from: From,
}

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// After a position.
    After(Position),
    /// With what comes.
    Now,
}

fn from(text: &str) -> Result<From, String> {
    match text {
        "start" => Ok(From::After(Position::persisted(Epoch::FIRST, Seq(0)))),
        "now" => Ok(From::Now),
        id => match id.parse() {
            Ok(at) => Ok(From::After(at)),
            Err(_) => Err("expected an event id (evt_…), `start` or `now`".to_owned()),
        },
    }
}

/// Check a session's log.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 if all is well, 1 if something is violated, 2 if it cannot be told."
)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Line::command().debug_assert();
    }

    #[test]
    fn a_position_is_an_id_or_one_of_two_words() {
        let at = |seq| Position::persisted(Epoch(1), Seq(seq));
        assert_eq!(from("start"), Ok(From::After(at(0))));
        assert_eq!(from("now"), Ok(From::Now));
        assert_eq!(from("evt_00010000000007"), Ok(From::After(at(7))));
        assert!(from("7").is_err());
    }
}
