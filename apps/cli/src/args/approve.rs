//! What `turnwire approve` is told.

use clap::Args;
use turnwire_event::{ApprovalId, ResponseId, TurnId};

use super::ClientArgs;

/// Answer what a paused turn has asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --approval the answer is for every question of the turn that has none. When the last has its
answer, the next turn goes on; its id is printed.

Examples:
  turnwire approve 01J…                             yes to all that the turn asks
  turnwire approve 01J… --reject --comment 'Not this week.'
  turnwire approve 01J… --approval appr_01J…        yes to one of them")]
pub(crate) struct ApproveArgs {
    /// The turn that paused, by its turn id or its response id
    #[arg(value_name = "TURN", value_parser = turn)]
    pub(crate) turn: TurnId,
    #[command(flatten)]
    pub(crate) speaker: ClientArgs,
    /// Say no instead of yes
    #[arg(long)]
    pub(crate) reject: bool,
    /// Answer only this question
    #[arg(long, value_name = "ID")]
    pub(crate) approval: Option<ApprovalId>,
    /// What to say with it; the model is told what is said with --reject
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

fn turn(text: &str) -> Result<TurnId, String> {
    let response = || text.parse::<ResponseId>().ok().map(TurnId::from);
    let turn = text.parse().ok().or_else(response);
    turn.ok_or_else(|| "expected a turn id (01J…) or a response id (resp_01J…)".to_owned())
}
