//! The arguments of `check` and `init`, for people who write packs.

use std::path::PathBuf;

use clap::Args;

/// Check a pack for mistakes.
#[derive(Debug, Args)]
#[command(after_help = "\
Reports all mistakes at once, each with its file, line and column, what is wrong and what to write
instead. A server refuses to start on the same mistakes. Exits with 0 if there is no error, 1 if there
is one, 2 if the folder cannot be read.

With --against it also refuses a pack that lacks a status id which was active in the earlier version:
clients know statuses by their ids. Deprecate the id first; a rename is an id that is deprecated and one
that is added.

With --online it also calls every model that the pack uses over the network once, with a message of a few
words, and reports what the provider says. This needs the keys and costs a few tokens.

Examples:
  turnwire check packs/market                          before a commit
  turnwire check packs/market --against released/market   before a release
  turnwire check my_pack --online                      after a change of models or keys
  turnwire check packs/market --json                   for an editor or a build")]
pub(crate) struct CheckArgs {
    /// Folder of the pack
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// Folder of an earlier version of the pack, whose status ids must still be there
    #[arg(long, value_name = "OLD_PACK")]
    pub(crate) against: Option<PathBuf>,
    /// Call every model of the pack once over the network
    #[arg(long)]
    pub(crate) online: bool,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Create a small pack.
#[derive(Debug, Args)]
#[command(after_help = "\
The folder must be new or empty. The pack passes `turnwire check`.

Examples:
  turnwire init assistant                 one orchestrator, one sub-agent, one tool
  turnwire init market --demo             a copy of the demo pack, to change it
  turnwire serve --pack assistant")]
pub(crate) struct InitArgs {
    /// The folder to write; its name becomes the pack's
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Write the demo pack instead of a small one
    #[arg(long)]
    pub(crate) demo: bool,
}
