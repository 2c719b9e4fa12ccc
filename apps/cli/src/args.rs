//! The command line, as clap reads it and `--help` shows it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use turnwire_event::{Epoch, Owner, Position, Principal, Seq, SessionId, TenantId};

mod approve;
mod pack;
mod regression;
mod chat;
mod usage;

pub(crate) use approve::ApproveArgs;
pub(crate) use chat::{ChatArgs, CompletionsArgs, ManArgs, ReplayArgs, ReplayWire, SessionChoice};
pub(crate) use pack::{CheckArgs, InitArgs};
pub(crate) use regression::{RecordArgs, RerunArgs};
pub(crate) use usage::UsageArgs;

const EXAMPLES: &str = "\
Examples:
  turnwire serve                          serve on http://127.0.0.1:8421
  turnwire chat                           talk with it, line by line
  turnwire init assistant                 begin a pack of your own";

/// One log, every wire: a server for multi-agent turns, and tools to look into its log.
#[derive(Debug, Parser)]
#[command(name = "turnwire", version, after_help = EXAMPLES)]
pub(crate) struct CommandLine {
    /// The subcommand to run.
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The subcommand to run.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run the Turnwire server.
    Serve(ServeArgs),
    /// Talk with a running server, line by line.
    Chat(ChatArgs),
    /// Answer what a paused turn has asked.
    Approve(ApproveArgs),
    /// Follow a session's events.
    Tail(TailArgs),
    /// Print what a client of a wire would have got.
    Replay(ReplayArgs),
    /// Check a session's log: contiguity, terminals, pairs, hashes.
    Verify(VerifyArgs),
    /// Show what model calls came to, by day and model.
    Usage(UsageArgs),
    /// Make a script and a regression case of a stored session.
    Record(RecordArgs),
    /// Play a regression case against a running server.
    Rerun(RerunArgs),
    /// Check a pack: every mistake with its place and what to write instead.
    Check(CheckArgs),
    /// Write a small pack that passes the check.
    Init(InitArgs),
    /// Show every setting in force, and where it comes from.
    Config(ConfigArgs),
    /// Print the completions of a shell.
    Completions(CompletionsArgs),
    /// Print the manual, or write its pages into a folder.
    Man(ManArgs),
}

/// Run the Turnwire server.
#[derive(Debug, Args)]
#[command(after_help = PRECEDENCE, after_long_help = SERVE)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// Show every effective setting.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = ORIGINS, after_long_help = CONFIG)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    what: Option<ConfigCommand>,
    #[command(flatten)]
    show: ConfigShowArgs,
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show each value in force, its origin and what it is for; the same as no word at all.
    #[command(after_help = ORIGINS, after_long_help = CONFIG)]
    Show(ConfigShowArgs),
}

impl ConfigArgs {
    /// What to show: `config` and `config show` are the same.
    pub(crate) fn show(&self) -> &ConfigShowArgs {
        match &self.what {
            Some(ConfigCommand::Show(show)) => show,
            None => &self.show,
        }
    }
}

/// Show every effective setting.
#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const ORIGINS: &str = "\
SettingArgs come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults.";

const PRECEDENCE: &str = "\
SettingArgs come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults. A server ends on SIGTERM or Ctrl-C: it drains first; a second one ends it at once.";

const SERVE: &str = "\
SettingArgs come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults. A server ends on SIGTERM or Ctrl-C: it drains first; a second one ends it at once.

Examples:
  turnwire serve                          on http://127.0.0.1:8421, with the demo pack
  turnwire serve --pack assistant         a pack of your own (see turnwire init)
  turnwire serve --listen 127.0.0.1:0     on a free port, which it prints
  turnwire serve --home ./data --script demo.yaml
  turnwire serve --pack assistant --record cassettes/today.jsonl
  TURNWIRE_LOG=debug turnwire serve";

const CONFIG: &str = "\
SettingArgs come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults.

Examples:
  turnwire config show                    every value, its origin and what it is for
  turnwire config show --config prod.yaml what a server would make of this file
  turnwire config show --json | jq '.settings[] | select(.from != \"default\")'";

/// What a server can be told on its command line.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// The settings file [default: turnwire.yaml in the data folder, if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; a loopback address [default: 127.0.0.1:8421]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The pack to run [default: the demo pack that is built in]
    #[arg(long, value_name = "DIR")]
    pub(crate) pack: Option<PathBuf>,
    /// What every model of the pack says instead of its own words; without --pack, one agent with
    /// tools for trying speaks it
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Write what providers stream to this file, as a cassette that plays again
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The chat wire's version for turns that do not ask for one: 0.5 or 0.4 [default: 0.5]
    #[arg(long, value_name = "VERSION")]
    pub(crate) wire_version: Option<String>,
    /// Write the log on stderr as JSON; TURNWIRE_LOG says what is written [default: info]
    #[arg(long)]
    pub(crate) log_json: bool,
}

/// A running server, and whom to speak for.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// URL of the running server
    #[arg(long, value_name = "URL", env = "TURNWIRE_SERVER", default_value = SERVER)]
    pub(crate) server: String,
    /// Whom to speak for
    #[arg(long, value_name = "NAME", default_value = PRINCIPAL)]
    pub(crate) principal: Principal,
    /// The principal's tenant, a UUID
    #[arg(long, value_name = "UUID", default_value = TENANT)]
    pub(crate) tenant: TenantId,
}

const SERVER: &str = "http://127.0.0.1:8421";
const PRINCIPAL: &str = "local";
const TENANT: &str = "00000000-0000-0000-0000-000000000000";

impl ClientArgs {
    /// Whom to speak for.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant,
            principal: self.principal.clone(),
        }
    }

    /// What a later command must be told to speak with the same server for the same owner; the
    /// environment is not counted on, because it may be another one by then.
    pub(crate) fn flags(&self) -> String {
        let values = [
            ("server", self.server.clone(), SERVER),
            ("principal", self.principal.to_string(), PRINCIPAL),
            ("tenant", self.tenant.to_string(), TENANT),
        ];
        let flag = |(name, value, default): (_, String, _)| match value == default {
            true => String::new(),
            false => format!(" --{name} {value}"),
        };
        values.map(flag).concat()
    }
}

/// Which log, and whose.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Id of the session
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    #[command(flatten)]
    pub(crate) speaker: ClientArgs,
    /// Read this data folder instead of asking a server
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Follow a session's events.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --from, everything the server still replays comes first, then what happens. What is too old
or too much comes as a snapshot. With --data the log is written out up to its end; words in flight
are not in it.

Examples:
  turnwire tail sess_01J…                      what there is, then what happens
  turnwire tail sess_01J… --from now --json    only what happens, as JSON
  turnwire tail sess_01J… --data ~/.turnwire   without a server")]
pub(crate) struct TailArgs {
    #[command(flatten)]
    pub(crate) place: SourceArgs,
    /// Begin after this event id, at the `start`, or `now`
    #[arg(long, value_name = "POSITION", default_value = "start", value_parser = from)]
    pub(crate) from: StartPosition,
    /// Follow the session's workers too
    #[arg(long, conflicts_with = "data")]
    pub(crate) workers: bool,
}

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartPosition {
    /// Starts after this position.
    After(Position),
    /// Starts with the next event.
    Now,
}

fn from(text: &str) -> Result<StartPosition, String> {
    match text {
        "start" => Ok(StartPosition::After(Position::persisted(
            Epoch::FIRST,
            Seq(0),
        ))),
        "now" => Ok(StartPosition::Now),
        id => match id.parse() {
            Ok(at) => Ok(StartPosition::After(at)),
            Err(_) => Err("expected an event id (evt_…), `start` or `now`".to_owned()),
        },
    }
}

/// Check a session's log.
#[derive(Debug, Args)]
#[command(after_help = "\
Exits with 0 if all is well, 1 if something is violated, 2 if it cannot be told.

Examples:
  turnwire verify sess_01J…                      ask the running server
  turnwire verify sess_01J… --data ~/.turnwire   read the data folder")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) place: SourceArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_help_of_the_whole_fits_on_one_screen() {
        let help = CommandLine::command().render_help().to_string();
        assert!(help.lines().count() <= 29, "{help}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{help}"
        );
    }

    #[test]
    fn every_command_shows_an_example_in_its_long_help() {
        for command in CommandLine::command().get_subcommands_mut() {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            assert!(help.contains(&format!("  turnwire {name}")), "{help}");
        }
    }

    #[test]
    fn a_later_command_is_told_only_what_is_not_the_default() {
        let speaker = |words: &[&str]| match CommandLine::parse_from(words).command {
            CliCommand::Chat(chat) => chat.speaker.flags(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            speaker(&[
                "turnwire",
                "chat",
                "--server",
                "http://[::1]:9",
                "--principal",
                "eve"
            ]),
            " --server http://[::1]:9 --principal eve"
        );
    }

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_position_is_an_id_or_one_of_two_words() {
        let at = |seq| Position::persisted(Epoch(1), Seq(seq));
        assert_eq!(from("start"), Ok(StartPosition::After(at(0))));
        assert_eq!(from("now"), Ok(StartPosition::Now));
        assert_eq!(from("evt_00010000000007"), Ok(StartPosition::After(at(7))));
        assert!(from("7").is_err());
    }
}
