//! The arguments of `turnwire doctor`.

use clap::Args;

use super::SettingArgs;

/// Check the folder, the disk, the clock, the port, the pack and the settings.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes the flags of turnwire serve and changes nothing. Also while a server runs. A provider of the pack is
sent one request without a key, which costs nothing. Exits with 0 if there is no problem, 1 if there is one.

Examples:
  turnwire doctor                                  as turnwire serve would start here
  turnwire doctor --config prod.yaml --offline     without asking the providers
  turnwire doctor --json | jq '.checks[] | select(.level != \"ok\")'")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Do not ask the providers of the pack
    #[arg(long)]
    pub(crate) offline: bool,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
