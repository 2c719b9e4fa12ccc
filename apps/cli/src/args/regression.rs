//! The arguments of `turnwire record` and `turnwire rerun`, which record a session as a regression
//! case and run the case again.

use std::path::PathBuf;

use clap::Args;
use turnwire_event::SessionId;

use super::ClientArgs;

const RECORD_HELP: &str = "\
Reads a session of a data folder, whichever model answered it, and writes two files:
  script.yaml   with it the scripted model gives the same answers to the same input, for the
                orchestrator and every sub-agent
  case.yaml     the input and the result of every turn
Tools run again when the case is run. The files contain the conversation: restrict who can
read them.

Exits with 0, or with 2 if the files could not be written.

Examples:
  turnwire record sess_01J…                          into the folder sess_01J…
  turnwire record sess_01J… --home ./data --out cases/refund
  turnwire record sess_01J… --paced                  with the delays between pieces of text";

/// Write a script and a regression case from a stored session.
#[derive(Debug, Args)]
#[command(after_long_help = RECORD_HELP)]
pub(crate) struct RecordArgs {
    /// Id of the session
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR", visible_alias = "data")]
    pub(crate) home: Option<PathBuf>,
    /// The folder to write to [default: a folder with the session's id]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the model's delays into the script
    #[arg(long)]
    pub(crate) paced: bool,
    /// Overwrite script.yaml and case.yaml if they exist
    #[arg(long)]
    pub(crate) force: bool,
}

const RERUN_HELP: &str = "\
Submits the turns of the case in a new session, one after the other, and compares the results with the
case. Results that the case leaves out of `expect` are not compared.

Exits with 0 if all turns are as expected, 1 if one is not, 2 if the case could not be run.

Examples:
  turnwire serve --pack market --script cases/refund/script.yaml
  turnwire rerun cases/refund/case.yaml
  turnwire rerun cases/refund/case.yaml --json | jq '.turns[] | select(.ok | not)'";

/// Run a regression case against a running server.
#[derive(Debug, Args)]
#[command(after_long_help = RERUN_HELP)]
pub(crate) struct RerunArgs {
    /// The case, as `turnwire record` writes it
    #[arg(value_name = "CASE")]
    pub(crate) case: PathBuf,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Time limit of one turn, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) timeout: u64,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
