//! The arguments of `turnwire approve`.

use clap::Args;
use turnwire_event::{ApprovalId, TurnId};

use super::{ClientArgs, turn_id};

/// Answer the approval requests of a paused turn.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --approval, the answer is for every open approval request of the turn. The last answer starts
the turn that continues; its id is printed.

Shows the whole input of each tool and then asks; only what is typed after that counts. Where nobody
types, an approval needs --approval and --input-sha256, the digest that --show prints.

Examples:
  turnwire approve 01J…                             show all requests of the turn, and ask
  turnwire approve 01J… --reject --comment 'Not this week.'
  turnwire approve 01J… --show                      show them, and answer none
  turnwire approve 01J… --approval appr_01J… --input-sha256 5f0c…")]
pub(crate) struct ApproveArgs {
    /// The paused turn, by its turn id or its response id
    #[arg(value_name = "TURN", value_parser = turn_id)]
    pub(crate) turn: TurnId,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Reject instead of approve
    #[arg(long)]
    pub(crate) reject: bool,
    /// Answer only this approval request
    #[arg(long, value_name = "ID")]
    pub(crate) approval: Option<ApprovalId>,
    /// Show the whole input of each request, and answer none
    #[arg(long, conflicts_with_all = ["reject", "comment", "input_sha256"])]
    pub(crate) show: bool,
    /// Approve without a prompt, if the whole input has this SHA-256
    #[arg(
        long,
        value_name = "HEX",
        requires = "approval",
        conflicts_with = "reject"
    )]
    pub(crate) input_sha256: Option<String>,
    /// A comment on the decision; with --reject, the model receives it
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
