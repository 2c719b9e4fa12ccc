//! The arguments of `turnwire token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use turnwire_event::{Principal, TenantId};
use turnwire_identity::Scope;

use super::TENANT;

/// Create, list and revoke API tokens.
#[derive(Debug, Args)]
#[command(after_help = "\
A server with auth.mode tokens accepts these tokens. Its file has only their hashes: a token is shown
once, when it is created. A running server takes changes over within a second.

Examples:
  turnwire token create --principal ann > ann.token
  turnwire token create --principal monitoring --scope metrics
  turnwire token list
  turnwire token revoke tok_0f3a91c2b7de")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// What to do with API tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it.
    Create(TokenCreateArgs),
    /// List the tokens of the file.
    List(TokenListArgs),
    /// Revoke a token by its id.
    Revoke(TokenRevokeArgs),
}

/// Which file of tokens.
#[derive(Debug, Args)]
pub(crate) struct TokenFileArgs {
    /// The settings file of the server [default: turnwire.yaml in the data folder, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The data folder of the server [default: $TURNWIRE_HOME, else ~/.turnwire]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The file of tokens [default: the setting auth.tokens_file, else tokens.json in the data
    /// folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Create a token and print it.
#[derive(Debug, Args)]
#[command(after_help = "\
The token goes to standard output and is not stored; the id by which it can be revoked goes to
standard error.

Scopes: own (everything of the principal), tenant:read (read what others of the tenant own), review
(decide approvals of the tenant), admin (usage and audit of all tenants, jobs of its own, /metrics),
metrics (/metrics), act_as (act for other principals of the tenant, for schedulers).

Examples:
  turnwire token create --principal ann
  turnwire token create --principal ann --tenant 3c33212c-d119-4ef1-8db0-2ca93cd3b2dd --expires 90d
  turnwire token create --principal scheduler --scope own --scope act_as --label cron")]
pub(crate) struct TokenCreateArgs {
    #[command(flatten)]
    pub(crate) file: TokenFileArgs,
    /// Who sends requests with the token
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Principal,
    /// The principal's tenant, a UUID
    #[arg(long, value_name = "UUID", default_value = TENANT)]
    pub(crate) tenant: TenantId,
    /// What the token allows; may be given several times
    #[arg(long, value_name = "SCOPE", default_value = "own")]
    pub(crate) scope: Vec<Scope>,
    /// When the token ends: a number of days, hours or minutes, such as 90d, 12h or 30m [default:
    /// never]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) expires: Option<Duration>,
    /// What the token is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
}

/// List the tokens of the file.
#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    #[command(flatten)]
    pub(crate) file: TokenFileArgs,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Revoke a token by its id.
#[derive(Debug, Args)]
#[command(after_help = "\
Open connections of the token are closed; turns that it started go on.

Examples:
  turnwire token revoke tok_0f3a91c2b7de")]
pub(crate) struct TokenRevokeArgs {
    #[command(flatten)]
    pub(crate) file: TokenFileArgs,
    /// The id, as `turnwire token list` shows it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Parses `90d`, `12h` or `30m`.
fn lifetime(text: &str) -> Result<Duration, String> {
    let expected = || "a number of days, hours or minutes, such as 90d, 12h or 30m".to_owned();
    let split = text.len().checked_sub(1).ok_or_else(expected)?;
    let (number, unit) = text.split_at_checked(split).ok_or_else(expected)?;
    let seconds: u64 = match unit {
        "d" => 24 * 3600,
        "h" => 3600,
        "m" => 60,
        _ => return Err(expected()),
    };
    let number: u32 = number.parse().map_err(|_| expected())?;
    (1..=100_000)
        .contains(&number)
        .then(|| Duration::from_secs(seconds * u64::from(number)))
        .ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetime_is_a_number_with_a_unit() {
        let read = |text: &str| lifetime(text).map(|time| time.as_secs());
        assert_eq!(read("90d"), Ok(90 * 86_400));
        assert_eq!(read("12h"), Ok(12 * 3_600));
        assert_eq!(read("1m"), Ok(60));
        for bad in ["", "d", "0d", "90", "90s", "-1d", "9é", "1000000d"] {
            assert!(lifetime(bad).is_err(), "{bad}");
        }
    }
}
