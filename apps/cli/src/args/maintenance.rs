//! The arguments of `turnwire compact` and `turnwire retention`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Rewrite the database without free space.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop the server first. The folder needs free space for a second database file. Afterwards the
server gives the space of removed events back by itself, also in a database of an older release.

Examples:
  turnwire compact                        the default data folder
  turnwire compact --home ./data")]
pub(crate) struct CompactArgs {
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

/// Manage the retention of events.
#[derive(Debug, Args)]
#[command(after_help = "\
Events older than `store.retention_s` are removed. A clock that leapt ahead removes nothing until
an operator confirms it.

Examples:
  turnwire retention confirm              the clock of this machine is right")]
pub(crate) struct RetentionArgs {
    #[command(subcommand)]
    pub(crate) command: RetentionCommand,
}

/// What to do with the retention.
#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Confirm that the clock of this machine is right.
    Confirm(ConfirmArgs),
}

/// Confirm that the clock of this machine is right.
#[derive(Debug, Args)]
#[command(after_help = "\
A server whose clock leapt ahead keeps events until the time is confirmed; its log says so. Check
the clock first: what has expired by the confirmed time is removed for good.

Examples:
  date -u                                 check the clock
  turnwire retention confirm              confirm it, also while the server runs")]
pub(crate) struct ConfirmArgs {
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}
