//! The arguments of `turnwire backup` and `turnwire restore`.

use std::path::PathBuf;

use clap::Args;

/// Copy a data folder into a new folder and check the copy.
#[derive(Debug, Args)]
#[command(after_help = "\
Works while a server runs, whose commits do not wait. The copy appears under its name only when it
has passed its check. It has prompts and answers in it: its mode is 0700. The folders of programs
(work/) are not in it.

Examples:
  turnwire backup /backups/2026-11-30                    the default data folder
  turnwire backup /backups/2026-11-30 --home ./data --full
  turnwire backup /backups/2026-11-30 --json | jq -r .database.sha256")]
pub(crate) struct BackupArgs {
    /// The folder to create
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Check every index and every session instead of the newest sessions
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the manifest as JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Put a backup into a data folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop the server first. The backup is checked before anything is changed. Every session begins a new
epoch, so that clients that saw later events take a snapshot. What the folder has is kept beside it.

Examples:
  turnwire restore /backups/2026-11-30                   into the default data folder
  turnwire restore /backups/2026-11-30 --home ./data --force   replace the database that is there")]
pub(crate) struct RestoreArgs {
    /// The folder that turnwire backup created
    #[arg(value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// The data folder [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Replace the database of the folder if it has one
    #[arg(long)]
    pub(crate) force: bool,
    /// Check every index and every session instead of the newest sessions
    #[arg(long)]
    pub(crate) full: bool,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
