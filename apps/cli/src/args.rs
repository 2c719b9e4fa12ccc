//! The command line, as clap parses it and `--help` shows it.

use std::path::PathBuf;

use clap::builder::{FalseyValueParser, NonEmptyStringValueParser};
use clap::{Args, Parser, Subcommand};
use turnwire_event::{Epoch, Owner, Position, Principal, Seq, SessionId, TenantId, TurnId};

mod approve;
mod pack;
mod regression;
mod chat;
mod usage;
mod maintenance;
mod token;
mod export;
mod backup;
mod doctor;
mod jobs;

pub(crate) use approve::ApproveArgs;
pub(crate) use backup::{BackupArgs, RestoreArgs};
pub(crate) use chat::{
    ChatArgs, CompletionsArgs, ManArgs, ReplayArgs, ReplayWire, SessionChoice, TurnName,
};
pub(crate) use doctor::DoctorArgs;
pub(crate) use export::{ExportArgs, VerifyArgs, VerifyTarget};
pub(crate) use jobs::{AuditArgs, JobListArgs, JobSwitchArgs, JobsArgs, JobsCommand};
pub(crate) use maintenance::{CompactArgs, ConfirmArgs, RetentionArgs, RetentionCommand};
pub(crate) use pack::{CheckArgs, InitArgs};
pub(crate) use regression::{RecordArgs, RerunArgs};
pub(crate) use token::{
    TokenArgs, TokenCommand, TokenCreateArgs, TokenFileArgs, TokenListArgs, TokenRevokeArgs,
};
pub(crate) use usage::UsageArgs;

const EXAMPLES: &str = "\
Examples:
  turnwire serve                          serve on http://127.0.0.1:8421
  turnwire chat                           chat with the server, line by line
  turnwire init assistant                 create your own pack";

/// One log, every wire: a server for LLM agents, and tools for its sessions and logs.
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
    #[command(after_help = SERVE)]
    Serve(SettingArgs),
    /// Run the server in front of an agent that runs elsewhere.
    #[command(after_help = RELAY)]
    Relay(RelayArgs),
    /// Chat with a running server, line by line.
    Chat(ChatArgs),
    /// Answer the approval requests of a paused turn.
    Approve(ApproveArgs),
    /// Follow a session's events.
    Tail(TailArgs),
    /// Print the bytes that a client of a wire receives.
    Replay(ReplayArgs),
    /// Check a session's log, or an exported file: contiguity, terminals, pairs, hashes.
    #[command(after_help = VERIFY)]
    Verify(VerifyArgs),
    /// Write a session into one file that verify checks.
    Export(ExportArgs),
    /// Show token usage and cost, by day and model.
    Usage(UsageArgs),
    /// Write a script and a regression case from a stored session.
    Record(RecordArgs),
    /// Run a regression case against a running server.
    Rerun(RerunArgs),
    /// Check a pack: every mistake with its file, line and correction.
    Check(CheckArgs),
    /// Create a small pack that passes the check.
    Init(InitArgs),
    /// Check the folder, disk, clock, port, pack and settings of a server.
    Doctor(DoctorArgs),
    /// Copy a data folder and check the copy, also while a server runs.
    Backup(BackupArgs),
    /// Put a backup into the data folder of a stopped server.
    Restore(RestoreArgs),
    /// Rewrite the database without free space; the server must be stopped.
    Compact(CompactArgs),
    /// Confirm the clock to the retention.
    Retention(RetentionArgs),
    /// Create, list and revoke API tokens.
    Token(TokenArgs),
    /// List, pause and resume the jobs of schedulers.
    Jobs(JobsArgs),
    /// Show what was done, by whom and when.
    Audit(AuditArgs),
    /// Show every effective setting and its origin.
    #[command(after_help = CONFIG)]
    Config(ConfigArgs),
    /// Print the completions of a shell.
    Completions(CompletionsArgs),
    /// Print the manual, or write its pages into a folder.
    Man(ManArgs),
}

const SERVE: &str = "\
Settings come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults. SIGTERM or Ctrl-C drains and ends the server; a second one ends it at once.

Examples:
  turnwire serve                          on http://127.0.0.1:8421, with the demo pack
  turnwire serve --pack assistant         with your own pack (see turnwire init)
  turnwire serve --listen 127.0.0.1:0     on a free port, which is printed
  turnwire serve --home ./data --script demo.yaml
  turnwire serve --pack assistant --record cassettes/today.jsonl
  TURNWIRE_LOG=debug turnwire serve";

const RELAY: &str = "\
Every turn is posted to the upstream, which answers with a stream of events; docs/relay.md describes
both. Clients, the log, replay and stop are those of turnwire serve. A pack may name the upstream as
${TURNWIRE_UPSTREAM}.

Examples:
  turnwire relay --upstream http://127.0.0.1:9000/turns
  turnwire relay --upstream http://127.0.0.1:9000/turns --pack assistant
  turnwire relay --upstream http://127.0.0.1:9000/v1/chat/completions --model my-agent";

const CONFIG: &str = "\
Settings come from flags, then TURNWIRE_<SECTION>_<KEY> in the environment, then the file, then
defaults.

Examples:
  turnwire config show                    every value, its origin and its purpose
  turnwire config show --config prod.yaml the values of a server with this file
  turnwire config show --json | jq '.settings[] | select(.from != \"default\")'";

const VERIFY: &str = "\
Exits with 0 if no violation was found, 1 if one was found, 2 if the check could not run.

Examples:
  turnwire verify sess_01J…                      ask the running server
  turnwire verify sess_01J… --data ~/.turnwire   read the data folder
  turnwire verify case-42.jsonl                  check the file of turnwire export";

/// Show every effective setting and its origin.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    #[command(flatten)]
    show: ConfigShowArgs,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show each effective value, its origin and its purpose (default).
    #[command(after_help = CONFIG)]
    Show(ConfigShowArgs),
}

impl ConfigArgs {
    /// The [`ConfigShowArgs`] of `config` or of `config show`, which are the same command.
    pub(crate) fn show(&self) -> &ConfigShowArgs {
        match &self.command {
            Some(ConfigCommand::Show(show)) => show,
            None => &self.show,
        }
    }
}

/// The arguments of `turnwire config show`.
#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The settings that have a flag.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// The settings file [default: turnwire.yaml in the data folder, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on; a loopback address [default: 127.0.0.1:8421]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The pack to run [default: a built-in one]
    #[arg(long, value_name = "DIR")]
    pub(crate) pack: Option<PathBuf>,
    /// A script that answers instead of every model of the pack; without --pack, it answers for one
    /// agent with tools to try
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Record provider streams to this file, as a cassette
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The chat wire's version for turns that request none: 0.5 or 0.4 [default: 0.5]
    #[arg(long, value_name = "VERSION")]
    pub(crate) wire_version: Option<String>,
    /// Write the log on stderr as JSON; TURNWIRE_LOG filters it [default: info]
    #[arg(long)]
    pub(crate) log_json: bool,
}

/// Run the server in front of an agent that runs elsewhere.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// URL of the agent that answers
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) upstream: String,
    /// The model or agent to ask for, if the upstream is a Chat Completions API
    #[arg(long, value_name = "NAME", conflicts_with = "pack", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

/// The server of a client command, and the owner in whose name it sends requests.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// URL of the running server, http:// or https://
    #[arg(long, value_name = "URL", env = "TURNWIRE_SERVER", default_value = SERVER)]
    pub(crate) server: String,
    /// The principal to act for
    #[arg(long, value_name = "NAME", default_value = PRINCIPAL)]
    pub(crate) principal: Principal,
    /// The principal's tenant, a UUID
    #[arg(long, value_name = "UUID", default_value = TENANT)]
    pub(crate) tenant: TenantId,
    /// The file with the API token, for a server with authentication
    #[arg(long, value_name = "FILE", env = "TURNWIRE_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A PEM file with certificates of authorities to trust for https, besides those of the system
    #[arg(long, value_name = "FILE", env = "TURNWIRE_CA_FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Send the token over http to another computer, where the network can read it
    #[arg(long, env = "TURNWIRE_ALLOW_HTTP_TOKEN", value_parser = FalseyValueParser::new())]
    pub(crate) allow_http_token: bool,
    /// The API token itself, from the environment alone: a command line is visible to others
    #[arg(skip = std::env::var("TURNWIRE_TOKEN").ok().filter(|token| !token.is_empty()))]
    pub(crate) token: Option<String>,
}

const SERVER: &str = "http://127.0.0.1:8421";
const PRINCIPAL: &str = "local";
const TENANT: &str = "00000000-0000-0000-0000-000000000000";

impl ClientArgs {
    /// The principal and tenant as an [`Owner`].
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            tenant: self.tenant,
            principal: self.principal.clone(),
        }
    }

    /// The principal and tenant, as far as a flag names them: a token names them already.
    pub(crate) fn named_owner(&self) -> (Option<Principal>, Option<TenantId>) {
        let principal = (self.principal.as_str() != PRINCIPAL).then(|| self.principal.clone());
        let tenant = (self.tenant != TenantId::default()).then_some(self.tenant);
        (principal, tenant)
    }

    /// The flags with which a later command reaches the same server for the same owner. They do
    /// not rely on the environment, which may differ by then.
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
        let file = |(name, path): (_, &Option<PathBuf>)| match path {
            Some(path) => format!(" --{name} {}", path.display()),
            None => String::new(),
        };
        let files = [("token-file", &self.token_file), ("ca-file", &self.ca_file)];
        let allowed = if self.allow_http_token {
            " --allow-http-token"
        } else {
            ""
        };
        values.map(flag).concat() + &files.map(file).concat() + allowed
    }
}

/// A session, and the server or data folder to read it from.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Id of the session
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Read this data folder instead of asking a server
    #[arg(long, value_name = "DIR", visible_alias = "home")]
    pub(crate) data: Option<PathBuf>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Follow a session's events.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --from, all events that the server still replays come first, then new ones. If there are too
many, or they are too old, a snapshot comes instead. With --data the log is printed up to its end; it
does not contain text that is still streaming.

Examples:
  turnwire tail sess_01J…                      past events, then new ones
  turnwire tail sess_01J… --from now --json    only new events, as JSON
  turnwire tail sess_01J… --data ~/.turnwire   without a server")]
pub(crate) struct TailArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Begin after this event id, at the `start`, or `now`
    #[arg(long, value_name = "POSITION", default_value = "start", value_parser = start_position)]
    pub(crate) from: StartPosition,
    /// Follow the session's workers too
    #[arg(long, conflicts_with = "data")]
    pub(crate) workers: bool,
}

/// The first event of `turnwire tail`, from [`TailArgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartPosition {
    /// Starts after this [`Position`].
    After(Position),
    /// Starts with the next event.
    Now,
}

fn start_position(text: &str) -> Result<StartPosition, String> {
    let after = match text {
        "now" => return Ok(StartPosition::Now),
        "start" => Ok(Position::persisted(Epoch::FIRST, Seq(0))),
        id => id.parse(),
    };
    after
        .map(StartPosition::After)
        .map_err(|_| "expected an event id (evt_…), `start` or `now`".to_owned())
}

/// Parses a turn by its [`TurnId`] or its response id.
fn turn_id(text: &str) -> Result<TurnId, String> {
    let turn = TurnId::named(text);
    turn.map_err(|_| "expected a turn id (01J…) or a response id (resp_01J…)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn top_level_help_fits_on_one_screen() {
        let help = CommandLine::command().render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
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
    fn flags_for_a_later_command_leave_out_defaults() {
        let flags = |arguments: &[&str]| match CommandLine::parse_from(arguments).command {
            CliCommand::Chat(chat) => chat.client.flags(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            flags(&[
                "turnwire",
                "chat",
                "--server",
                "http://[::1]:9",
                "--principal",
                "eve"
            ]),
            " --server http://[::1]:9 --principal eve"
        );
        assert_eq!(
            flags(&[
                "turnwire",
                "chat",
                "--ca-file",
                "ca.pem",
                "--allow-http-token"
            ]),
            " --ca-file ca.pem --allow-http-token"
        );
    }

    #[test]
    fn command_line_definition_is_valid() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn start_position_is_an_event_id_start_or_now() {
        let at = |seq| Position::persisted(Epoch(1), Seq(seq));
        assert_eq!(start_position("start"), Ok(StartPosition::After(at(0))));
        assert_eq!(start_position("now"), Ok(StartPosition::Now));
        let seventh = Ok(StartPosition::After(at(7)));
        assert_eq!(start_position("evt_00010000000007"), seventh);
        assert!(start_position("7").is_err());
    }

    #[test]
    fn turn_is_parsed_from_its_turn_id_or_response_id() {
        let turn = turn_id("00000000000000000000000002");
        assert!(turn.is_ok());
        assert_eq!(turn_id("resp_00000000000000000000000002"), turn);
        assert!(turn_id("two").is_err());
        assert_eq!(
            "resp_00000000000000000000000002".parse(),
            turn.map(TurnName::Turn).map_err(|_| "")
        );
        let given = "chatcmpl-7".parse();
        assert!(matches!(given, Ok(TurnName::Upstream(_))), "{given:?}");
        assert!("no name".parse::<TurnName>().is_err());
    }
}
