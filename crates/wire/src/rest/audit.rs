//! `GET /audit` and `/jobs`: what was recorded of acts, and the jobs of schedulers.

use serde::{Deserialize, Serialize};
use turnwire_event::code::{AuditAction, AuditOutcome};
use turnwire_event::row::{AuditId, AuditRow, JobRow};
use turnwire_event::{ApprovalId, JobName, SessionId, Timestamp, TurnId};

/// 200 of `GET /audit`, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditList {
    /// One page of records; it may be empty and still have a next one.
    pub records: Vec<AuditRecord>,
    /// The `before` of the next page; null on the last page.
    pub next: Option<AuditId>,
}

/// One act, with names and ids and without content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditRecord {
    /// Identifies the record; later records have higher numbers.
    pub audit_id: AuditId,
    /// When it was done.
    pub at: Timestamp,
    /// The kind of act.
    pub action: AuditAction,
    /// Who did it: the principal of the token.
    pub actor: String,
    /// The principal for whom the actor did it, if that is another.
    pub acted_for: Option<String>,
    /// The session that it was done to. It may be deleted.
    pub session_id: Option<SessionId>,
    /// The turn; null for a scheduler whose job is paused.
    pub turn_id: Option<TurnId>,
    /// The approval that was decided.
    pub approval_id: Option<ApprovalId>,
    /// The job of the scheduler.
    pub job: Option<JobName>,
    /// What became of it, if there is more than one possibility.
    pub outcome: Option<AuditOutcome>,
}

impl From<AuditRow> for AuditRecord {
    fn from(AuditRow { id, entry }: AuditRow) -> Self {
        Self {
            audit_id: id,
            at: entry.at,
            action: entry.action,
            actor: entry.actor.to_string(),
            acted_for: entry.acted_for.map(|principal| principal.to_string()),
            session_id: entry.session_id,
            turn_id: entry.turn_id,
            approval_id: entry.approval_id,
            job: entry.job,
            outcome: entry.outcome,
        }
    }
}

/// 200 of `GET /jobs`, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobList {
    /// One page of jobs.
    pub jobs: Vec<Job>,
    /// The `after` of the next page; null on the last page.
    pub next: Option<JobName>,
}

/// A job that schedulers name when they start turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// The name within the tenant.
    pub job: JobName,
    /// True if no turn of the job starts.
    pub paused: bool,
    /// Since when the job is paused.
    pub paused_at: Option<Timestamp>,
    /// The principal of the token that paused the job.
    pub paused_by: Option<String>,
    /// When its scheduler asked for the first turn.
    pub created_at: Timestamp,
    /// The principal of the token that asked for the first turn.
    pub created_by: String,
    /// When a scheduler asked for the last turn.
    pub last_fired_at: Timestamp,
    /// What became of that.
    pub last_outcome: AuditOutcome,
}

impl From<JobRow> for Job {
    fn from(row: JobRow) -> Self {
        let (paused_at, paused_by) = row.paused.unzip();
        Self {
            job: row.name,
            paused: paused_at.is_some(),
            paused_at,
            paused_by: paused_by.map(|principal| principal.to_string()),
            created_at: row.created_at,
            created_by: row.created_by.to_string(),
            last_fired_at: row.fired_at,
            last_outcome: row.outcome,
        }
    }
}
