//! The words of `chat`, `replay`, `completions` and `man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use turnwire_event::{ResponseId, SessionId, TurnId};
use turnwire_wire::pc3::WireVersion;

use super::ClientArgs;

const CHAT: &str = "\
Every line of the standard input is one turn; the answer goes to the standard output, everything
else to the standard error. Ctrl-C stops the turn on the screen and prints what became of it; a
second one leaves, and so does one at the prompt. When a tool waits for a person's word, a terminal
is asked; elsewhere the way to answer is printed. When the server goes away and comes back, the
conversation goes on.

Exits with 0, with 1 if a turn failed or its answer could not be written, 2 if it could not be
asked, 130 if it was cancelled; at a terminal only the leaving counts.

Examples:
  turnwire chat                           a new session
  turnwire chat what time is it           ask once
  turnwire chat --session last            go on where you were
  turnwire chat --json hello | jq .type   the events of a turn
  turnwire chat < questions.txt           one turn a line";

/// Talk with a running server.
#[derive(Debug, Args)]
#[command(after_long_help = CHAT)]
pub(crate) struct ChatArgs {
    /// Ask this, once [default: every line of the standard input]
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<String>,
    /// Pick up this session; `last` is the newest one [default: a new session]
    #[arg(long, value_name = "ID", value_parser = which)]
    pub(crate) session: Option<SessionChoice>,
    #[command(flatten)]
    pub(crate) speaker: ClientArgs,
    /// Show what the model thinks, not only how much
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Write the events as JSON, one a line, instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which session to pick up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// The newest of the principal.
    Last,
    /// The session with this id.
    Id(SessionId),
}

fn which(text: &str) -> Result<SessionChoice, String> {
    match text {
        "last" => Ok(SessionChoice::Last),
        id => match id.parse() {
            Ok(id) => Ok(SessionChoice::Id(id)),
            Err(_) => Err("expected a session id (sess_…) or `last`".to_owned()),
        },
    }
}

const REPLAY: &str = "\
The events go through the same code that serves clients. Of a session, what is stored is told as a
client that comes late is told it: on the session wire a finished message by its start and its end,
on pc3 with its words, joined. A running server does not mind. Of a file, each event is told as it
stands there: the lines of `turnwire tail --json`, answers of GET /sessions/{id}/events, or frames
of the session wire.

Exits with 0, or with 2 and the place if something cannot be read.

Examples:
  turnwire replay sess_01J… --wire pc3                   every turn, as its SSE bytes
  turnwire replay sess_01J… --wire pc3 --version 0.4 --turn resp_01J…
  turnwire replay events.jsonl --wire session            a recording, as frames
  turnwire tail sess_01J… --json | turnwire replay - --wire pc3";

/// Print what a client would have got.
#[derive(Debug, Args)]
#[command(after_long_help = REPLAY)]
pub(crate) struct ReplayArgs {
    /// A file of events, `-` for the standard input, or a session of the data folder
    #[arg(value_name = "FILE|SESSION")]
    pub(crate) source: String,
    /// Wire format to print
    #[arg(long, value_enum)]
    pub(crate) wire: ReplayWire,
    /// The version of pc3 [default: the one a turn was bound to, else 0.5]
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<WireVersion>,
    /// Only this turn (a turn id or a response id)
    #[arg(long, value_name = "ID", value_parser = turn)]
    pub(crate) turn: Option<TurnId>,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR", alias = "data")]
    pub(crate) home: Option<PathBuf>,
}

/// A way out of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayWire {
    /// Frames of the WebSocket, one a line.
    Session,
    /// Server-sent events of the chat wire.
    Pc3,
}

fn turn(text: &str) -> Result<TurnId, String> {
    let response = || text.parse::<ResponseId>().map(TurnId::from);
    let turn = text.parse().or_else(|_| response());
    turn.map_err(|_| "expected a turn id or a response id (resp_…)".to_owned())
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
  turnwire man ~/.local/share/man/man1  one page a command, for man to find")]
pub(crate) struct ManArgs {
    /// Write all pages into this folder [default: the first page to the standard output]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_an_id_or_the_last() {
        assert_eq!(which("last"), Ok(SessionChoice::Last));
        let id = "sess_00000000000000000000000001";
        assert_eq!(which(id), Ok(SessionChoice::Id(id.parse().expect("an id"))));
        assert!(which("first").is_err());
    }

    #[test]
    fn a_turn_is_named_by_either_of_its_ids() {
        let bare = turn("00000000000000000000000002");
        assert!(bare.is_ok());
        assert_eq!(turn("resp_00000000000000000000000002"), bare);
        assert!(turn("two").is_err());
    }
}
