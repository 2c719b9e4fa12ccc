//! The arguments of `chat`, `replay`, `completions` and `man`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use turnwire_event::{SessionId, TurnId, UpstreamId};
use turnwire_wire::pc3::WireVersion;

use super::ClientArgs;

const CHAT_HELP: &str = "\
Every line of standard input is one turn; the answer goes to standard output, everything else to
standard error. Ctrl-C stops the running turn and prints its receipt; a second Ctrl-C, or one at the
prompt, ends the chat. At a terminal, lines are edited and kept in a history
($XDG_STATE_HOME/turnwire/chat_history), and /help lists the commands. If a tool needs approval, a terminal asks for it; otherwise the command that
answers is printed. If the server restarts, the chat reconnects and continues.

Exits with 0; with 1 if a turn failed or its answer could not be written, 2 if a turn could not be
submitted, 130 if a turn was cancelled. At a terminal, only a Ctrl-C that ends the chat changes it.

Examples:
  turnwire chat                           a new session
  turnwire chat what time is it           ask once
  turnwire chat --session last            continue your last session
  turnwire chat --json hello | jq .type   the events of a turn
  turnwire chat < questions.txt           one turn per line";

/// Chat with a running server.
#[derive(Debug, Args)]
#[command(after_long_help = CHAT_HELP)]
pub(crate) struct ChatArgs {
    /// Ask this, once [default: every line of standard input]
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<String>,
    /// Continue this session; `last` is the newest one [default: a new session]
    #[arg(long, value_name = "ID", value_parser = session_choice)]
    pub(crate) session: Option<SessionChoice>,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Show the model's reasoning, not only its length
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Do not read or write the history of typed lines
    #[arg(long)]
    pub(crate) no_history: bool,
    /// Write the events as JSON, one per line, instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
}

/// The session to continue, from [`ChatArgs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// The newest session of the principal.
    Last,
    /// The session with this id.
    Id(SessionId),
}

fn session_choice(text: &str) -> Result<SessionChoice, String> {
    match text {
        "last" => Ok(SessionChoice::Last),
        id => match id.parse() {
            Ok(id) => Ok(SessionChoice::Id(id)),
            Err(_) => Err("expected a session id (sess_…) or `last`".to_owned()),
        },
    }
}

const REPLAY_HELP: &str = "\
The events pass through the same code that serves clients. A stored session is replayed as to a client
that connects late: on the session wire a finished message has only its start and end, on pc3 its text
is complete. A server may be running on the data folder. Events of a file are projected one by one; the
file has lines of `turnwire tail --json`, responses of GET /sessions/{id}/events, or frames of the
session wire.

Exits with 0, or with 2 and the position of what cannot be read.

Examples:
  turnwire replay sess_01J… --wire pc3                   every turn, as its SSE bytes
  turnwire replay sess_01J… --wire pc3 --version 0.4 --turn resp_01J…
  turnwire replay events.jsonl --wire session            a recording, as frames
  turnwire tail sess_01J… --json | turnwire replay - --wire pc3";

/// Print the bytes that a client receives.
#[derive(Debug, Args)]
#[command(after_long_help = REPLAY_HELP)]
pub(crate) struct ReplayArgs {
    /// A file of events, `-` for standard input, or a session of the data folder
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) source: String,
    /// Wire format to print
    #[arg(long, value_enum)]
    pub(crate) wire: ReplayWire,
    /// The version of pc3 [default: the version the turn was bound to, else 0.5]
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<WireVersion>,
    /// Only this turn (a turn id or a response id)
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<TurnName>,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR", visible_alias = "data")]
    pub(crate) home: Option<PathBuf>,
}

/// What names a turn: its id, its own response id, or the one that an upstream gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnName {
    Turn(TurnId),
    Upstream(UpstreamId),
}

impl FromStr for TurnName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let turn = TurnId::named(text).map(Self::Turn);
        let name = turn.or_else(|_| text.parse().map(Self::Upstream));
        name.map_err(|_| "expected a turn id (01J…) or a response id (resp_01J…)")
    }
}

/// The wire whose bytes `turnwire replay` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayWire {
    /// Frames of the WebSocket, one per line.
    Session,
    /// Server-sent events of the chat wire.
    Pc3,
}

/// Print the completions of a shell.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  turnwire completions bash > ~/.local/share/bash-completion/completions/turnwire
  turnwire completions zsh > ~/.zfunc/_turnwire
  turnwire completions fish > ~/.config/fish/completions/turnwire.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to generate completions for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  turnwire man | man -l -               read it
  turnwire man ~/.local/share/man/man1  one page per command, for man to find")]
pub(crate) struct ManArgs {
    /// Write all pages into this folder [default: the first page to standard output]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_is_parsed_from_an_id_or_last() {
        assert_eq!(session_choice("last"), Ok(SessionChoice::Last));
        let id = "sess_00000000000000000000000001";
        let expected = Ok(SessionChoice::Id(id.parse().expect("an id")));
        assert_eq!(session_choice(id), expected);
        assert!(session_choice("first").is_err());
    }
}
