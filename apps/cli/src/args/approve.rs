//! The arguments of `turnwire approve`.

use clap::Args;
use turnwire_event::{ApprovalId, TurnId};

use super::{ClientArgs, turn_id};

/// Answer the approval requests of a paused turn.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --approval, the answer is for every open approval request of the turn. The last answer starts
the turn that continues; its id is printed.

Examples:
  turnwire approve 01J…                             approve all requests of the turn
  turnwire approve 01J… --reject --comment 'Not this week.'
  turnwire approve 01J… --approval appr_01J…        approve one of them")]
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
    /// A comment on the decision; with --reject, the model receives it
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
