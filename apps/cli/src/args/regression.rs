//! The words of `record` and `rerun`.

use std::path::PathBuf;

use clap::Args;
use turnwire_event::SessionId;

use super::ClientArgs;

const RECORD: &str = "\
Reads the session of a data folder, whoever it was answered by, and writes two files: script.yaml,
which makes the scripted model say the same to the same words, for the agent that speaks and for
every sub-agent; and case.yaml, what was asked turn by turn and what came of it. Tools run again when
the case is played. The files hold what people said and were answered: mind who reads them.

Exits with 0, or with 2 if it could not be done.

Examples:
  turnwire record sess_01J…                          into the folder sess_01J…
  turnwire record sess_01J… --data ./data --out cases/refund
  turnwire record sess_01J… --paced                  with the waits between the words";

/// Make a script and a regression case of a stored session.
#[derive(Debug, Args)]
#[command(after_long_help = RECORD)]
pub(crate) struct RecordArgs {
    /// Id of the session
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR", alias = "data")]
    pub(crate) home: Option<PathBuf>,
    /// Where to write the files [default: a folder called like the session]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Let the script wait as the model did
    #[arg(long)]
    pub(crate) paced: bool,
    /// Write over files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

const RERUN: &str = "\
Asks what the case asks, turn by turn, in a new session, and compares what comes with what the case
expects. What the case leaves out of `expect` is not compared.

Exits with 0 if all is as expected, 1 if something is not, 2 if it could not be tried.

Examples:
  turnwire serve --pack market --script cases/refund/script.yaml
  turnwire rerun cases/refund/case.yaml
  turnwire rerun cases/refund/case.yaml --json | jq '.turns[] | select(.ok | not)'";

/// Play a regression case against a running server.
#[derive(Debug, Args)]
#[command(after_long_help = RERUN)]
pub(crate) struct RerunArgs {
    /// The case, as `turnwire record` writes it
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) speaker: ClientArgs,
    /// How long one turn may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) timeout: u64,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
