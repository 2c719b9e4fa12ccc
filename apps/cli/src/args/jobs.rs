//! The arguments of `turnwire jobs` and `turnwire audit`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use turnwire_event::{JobName, Principal, SessionId, UtcDay};

use super::ClientArgs;

/// List, pause and resume the jobs of schedulers.
#[derive(Debug, Args)]
#[command(after_help = "\
A scheduler names a job with each turn that it starts. A paused job starts none: its scheduler is
answered with skipped_paused, and the audit has a record. A server with authentication asks for a
token with the scope admin.

Examples:
  turnwire jobs list                      the jobs of the tenant
  turnwire jobs pause daily-digest        no turn of it from now on
  turnwire jobs resume daily-digest
  turnwire audit --job daily-digest       what became of each request")]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    pub(crate) command: JobsCommand,
}

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List the jobs of a tenant.
    List(JobListArgs),
    /// Pause a job: its scheduler starts no turns.
    Pause(JobSwitchArgs),
    /// Resume a paused job.
    Resume(JobSwitchArgs),
}

/// List the jobs of a tenant.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  turnwire jobs list
  turnwire jobs list --json | jq -r '.jobs[] | select(.paused) | .job'")]
pub(crate) struct JobListArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Pause or resume a job.
#[derive(Debug, Args)]
#[command(after_help = "\
Turns that run or are queued go on, and requests that were skipped are not repeated. A job that is
in the state already stays as it is.

Examples:
  turnwire jobs pause daily-digest
  turnwire jobs resume daily-digest --server https://chat.example.com --token-file admin.token")]
pub(crate) struct JobSwitchArgs {
    /// The name of the job
    #[arg(value_name = "JOB")]
    pub(crate) job: JobName,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what was done, by whom and when.
#[derive(Debug, Args)]
#[command(after_help = "\
Turns of schedulers, paused and resumed jobs, deleted sessions and decisions on approvals, newest
first. A server with authentication asks for a token with the scope admin.

Examples:
  turnwire audit                          the newest 50 records of the tenant
  turnwire audit --job daily-digest --limit 10
  turnwire audit --action session_deleted --from 2026-11-01 --to 2026-11-30 --json")]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Only acts of this kind
    #[arg(long, value_name = "ACTION", value_parser = PossibleValuesParser::new(ACTIONS))]
    pub(crate) action: Option<String>,
    /// Only what was done to this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<SessionId>,
    /// Only what was done for this job
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<JobName>,
    /// Only what this principal did, or others did for it
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<Principal>,
    /// The first day (UTC), as in 2026-01-31
    #[arg(long, value_name = "DAY")]
    pub(crate) from: Option<UtcDay>,
    /// The last day (UTC), which is included
    #[arg(long, value_name = "DAY")]
    pub(crate) to: Option<UtcDay>,
    /// The most records to show
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The actions that are recorded.
const ACTIONS: [&str; 5] = [
    "job_fired",
    "job_paused",
    "job_resumed",
    "session_deleted",
    "approval_decided",
];

#[cfg(test)]
mod tests {
    use super::ACTIONS;
    use turnwire_event::code::{AuditAction, code_name};

    #[test]
    fn every_action_is_known() {
        for name in ACTIONS {
            let action: AuditAction = serde_json::from_value(name.into()).expect("an action");
            assert_eq!(code_name(&action), name);
        }
    }
}
