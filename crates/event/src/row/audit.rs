//! The audit: one record for each act that somebody may have to account for later, and the jobs whose
//! turns it records. Both belong to a tenant and to no session, so they outlive their sessions; they
//! have names and ids, and nothing of what a session says.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::code::{AuditAction, AuditOutcome};
use crate::id::{ApprovalId, IdError, Owner, Principal, SessionId, TenantId, TurnId, text_serde};
use crate::job_name::JobName;

/// Who asks for something: the owner for whom it is done, and the service that acts for that owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    pub owner: Owner,
    /// The principal of the credential, if it is another than that of `owner`.
    pub service: Option<Principal>,
}

impl From<&Owner> for Requester {
    /// An owner that acts for itself.
    fn from(owner: &Owner) -> Self {
        Self {
            owner: owner.clone(),
            service: None,
        }
    }
}

/// The number of an [`AuditRow`]: rises with every record of any tenant, printed as `aud_17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditId(pub i64);

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aud_{}", self.0)
    }
}

impl FromStr for AuditId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.strip_prefix("aud_");
        let number = number.filter(|number| number.starts_with(|c: char| matches!(c, '1'..='9')));
        let number = number.and_then(|number| number.parse().ok());
        number.map(Self).ok_or(IdError { what: "audit id" })
    }
}

text_serde!(AuditId, "AuditId", {
    "type": "string",
    "pattern": "^aud_[1-9][0-9]{0,17}$",
});

/// One act, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub tenant: TenantId,
    pub action: AuditAction,
    /// Who acted: the principal of the credential.
    pub actor: Principal,
    /// The principal for whom the actor acted, if that is another.
    pub acted_for: Option<Principal>,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    pub approval_id: Option<ApprovalId>,
    pub job: Option<JobName>,
    pub outcome: Option<AuditOutcome>,
    /// Identifies the request of a scheduler, so that its repetition is not recorded again: the
    /// SHA-256 of its idempotency key with the scope of the key.
    pub request: Option<[u8; 32]>,
}

impl AuditEntry {
    /// An act of `by` without an object.
    pub fn new(at: Timestamp, action: AuditAction, by: &Requester) -> Self {
        let principal = &by.owner.principal;
        let (actor, acted_for) = match &by.service {
            Some(service) if service != principal => (service, Some(principal.clone())),
            Some(_) | None => (principal, None),
        };
        Self {
            at,
            tenant: by.owner.tenant,
            action,
            actor: actor.clone(),
            acted_for,
            session_id: None,
            turn_id: None,
            approval_id: None,
            job: None,
            outcome: None,
            request: None,
        }
    }
}

/// An [`AuditEntry`] with the number that the database gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub id: AuditId,
    pub entry: AuditEntry,
}

/// A job: known from its first scheduled turn on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    pub name: JobName,
    pub created_at: Timestamp,
    /// The principal of the credential that started the first turn.
    pub created_by: Principal,
    /// Since when and by whom the job is paused.
    pub paused: Option<(Timestamp, Principal)>,
    pub fired_at: Timestamp,
    /// What became of the last request of the scheduler.
    pub outcome: AuditOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_id_has_one_spelling() {
        let last = AuditId(i64::MAX);
        for id in [AuditId(1), AuditId(17), last] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for bad in [
            "",
            "aud_",
            "aud_0",
            "aud_01",
            "aud_-1",
            "aud_+1",
            "17",
            "aud_9223372036854775808",
        ] {
            assert!(bad.parse::<AuditId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn entry_names_the_service_and_for_whom_it_acted() {
        let principal = |name: &str| name.parse::<Principal>().expect("a principal");
        let ann = Owner {
            tenant: TenantId(7),
            principal: principal("ann"),
        };
        let recorded = |service: Option<&str>| {
            let by = Requester {
                owner: ann.clone(),
                service: service.map(principal),
            };
            let entry = AuditEntry::new(Timestamp::from_millis(1), AuditAction::JobFired, &by);
            (entry.actor.to_string(), entry.acted_for)
        };
        assert_eq!(recorded(None), ("ann".into(), None));
        assert_eq!(recorded(Some("ann")), ("ann".into(), None));
        let acting = ("cron".into(), Some(principal("ann")));
        assert_eq!(recorded(Some("cron")), acting);
    }
}
