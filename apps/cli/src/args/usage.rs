//! The arguments of `turnwire usage`.

use std::path::PathBuf;

use clap::Args;
use turnwire_event::UtcDay;

use super::ClientArgs;

/// Show token usage and cost.
#[derive(Debug, Args)]
#[command(after_help = "\
A call counts on the day it ended (UTC), also if its session was deleted since. A server shows the
usage of one tenant; a data folder shows all tenants.

Examples:
  turnwire usage                          the last 30 days
  turnwire usage --from 2026-11-01 --to 2026-11-30 --json
  turnwire usage --data ~/.turnwire       all tenants, without a server")]
pub(crate) struct UsageArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// The first day, as in 2026-01-31 [default: 29 days before the last]
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<UtcDay>,
    /// The last day [default: today]
    #[arg(long, value_name = "DAY")]
    pub(crate) to: Option<UtcDay>,
    /// Read this data folder instead of asking a server
    #[arg(long, value_name = "DIR", visible_alias = "home")]
    pub(crate) data: Option<PathBuf>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
