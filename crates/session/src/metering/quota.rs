//! Quotas: what one principal, and what one tenant, may use in a minute or on a day.
//!
//! | quota | counted |
//! |---|---|
//! | turns | when a turn is accepted |
//! | subscribes | when a stream of stored or live events is asked for |
//! | replay bytes | when stored events are read for a client; a replay that has begun ends |
//! | tokens, cost | in the commit that ends a model call, by UTC day |
//!
//! Those of a minute are kept in memory, those of a day are read from the store, so that a restart
//! forgets none of them. A turn that was accepted runs to its end whatever it costs: the next is refused.

mod scoped;

use std::time::{Duration, Instant};

use turnwire_event::{Owner, TenantId, Timestamp, metric};
use turnwire_log::UsageOn;

use scoped::ScopeQuotas;
pub use scoped::{QuotaKind, QuotaLimits, QuotaScope, QuotaState};

/// A quota is used up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quota of the {} is used up: {limit} {}", scope.name(), kind.name())]
pub struct QuotaExceeded {
    /// What may not be used.
    pub kind: QuotaKind,
    /// Whose quota it is.
    pub scope: QuotaScope,
    /// The whole of it.
    pub limit: u64,
    /// When the request is possible, if nothing else is used meanwhile.
    pub retry_in: Duration,
}

/// The quotas of all principals and tenants, and what they have used in this minute.
#[derive(Debug)]
pub(crate) struct Quotas {
    principals: ScopeQuotas<Owner>,
    tenants: ScopeQuotas<TenantId>,
}

/// A turn that counts; dropping it before [`keep`](Self::keep) gives it back.
#[must_use]
pub(crate) struct CountedTurn<'a> {
    quotas: &'a Quotas,
    owner: Option<Owner>,
}

impl CountedTurn<'_> {
    /// The turn is accepted.
    pub(crate) fn keep(mut self) {
        self.owner = None;
    }
}

impl Drop for CountedTurn<'_> {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            self.quotas.principals.give_back(QuotaKind::Turns, owner);
            let tenant = &owner.tenant;
            self.quotas.tenants.give_back(QuotaKind::Turns, tenant);
        }
    }
}

impl Quotas {
    /// Nobody has used anything in this minute.
    pub(crate) fn new(principal: QuotaLimits, tenant: QuotaLimits) -> Self {
        Self {
            principals: ScopeQuotas::new(QuotaScope::Principal, principal),
            tenants: ScopeQuotas::new(QuotaScope::Tenant, tenant),
        }
    }

    /// True if there is a quota by day, so that a submit needs the usage of the day.
    pub(crate) fn has_daily(&self) -> bool {
        self.principals.has_daily() || self.tenants.has_daily()
    }

    /// Counts a turn of `owner`, or refuses it.
    pub(crate) fn count_turn(&self, owner: &Owner) -> Result<CountedTurn<'_>, QuotaExceeded> {
        self.take(QuotaKind::Turns, owner)?;
        Ok(CountedTurn {
            quotas: self,
            owner: Some(owner.clone()),
        })
    }

    /// Counts a stream of `owner`, or refuses it.
    pub(crate) fn count_subscribe(&self, owner: &Owner) -> Result<(), QuotaExceeded> {
        self.take(QuotaKind::Subscribes, owner)
    }

    fn take(&self, kind: QuotaKind, owner: &Owner) -> Result<(), QuotaExceeded> {
        let now = Instant::now();
        counted(self.principals.take(kind, owner, now))?;
        let of_tenant = counted(self.tenants.take(kind, &owner.tenant, now));
        if of_tenant.is_err() {
            self.principals.give_back(kind, owner);
        }
        of_tenant
    }

    /// Refuses a replay for `owner` if no replay bytes are left.
    pub(crate) fn check_replay(&self, owner: &Owner) -> Result<(), QuotaExceeded> {
        let now = Instant::now();
        counted(self.principals.check_replay(owner, now))?;
        counted(self.tenants.check_replay(&owner.tenant, now))
    }

    /// Counts stored events that were read for `owner`.
    pub(crate) fn charge_replay(&self, owner: &Owner, bytes: u64) {
        let now = Instant::now();
        self.principals.charge_replay(owner, bytes, now);
        self.tenants.charge_replay(&owner.tenant, bytes, now);
    }

    /// Refuses a turn if tokens or cost of the day of `now` are used up; `used` is what that day came to.
    pub(crate) fn check_day(&self, used: UsageOn, now: Timestamp) -> Result<(), QuotaExceeded> {
        let retry_in = until_midnight(now);
        counted(self.principals.check_day(used.principal, retry_in))?;
        counted(self.tenants.check_day(used.tenant, retry_in))
    }

    /// The quotas that a submit of `owner` counts in; those of the day only with the usage of the day.
    pub(crate) fn submit_states(
        &self,
        owner: &Owner,
        used: Option<UsageOn>,
        now: Timestamp,
    ) -> Vec<QuotaState> {
        let at = Instant::now();
        let kinds = [QuotaKind::Turns];
        let mut states = self.principals.rate_states(&kinds, owner, at);
        states.extend(self.tenants.rate_states(&kinds, &owner.tenant, at));
        if let Some(used) = used {
            let full_in = until_midnight(now);
            states.extend(self.principals.day_states(used.principal, full_in));
            states.extend(self.tenants.day_states(used.tenant, full_in));
        }
        states
    }

    /// The quotas that streams and replays of `owner` count in.
    pub(crate) fn read_states(&self, owner: &Owner) -> Vec<QuotaState> {
        let at = Instant::now();
        let kinds = [QuotaKind::Subscribes, QuotaKind::ReplayBytes];
        let mut states = self.principals.rate_states(&kinds, owner, at);
        states.extend(self.tenants.rate_states(&kinds, &owner.tenant, at));
        states
    }
}

/// Counts a refusal in the metric of refused requests.
fn counted(result: Result<(), QuotaExceeded>) -> Result<(), QuotaExceeded> {
    if let Err(refused) = &result {
        let labels = [
            ("limit", refused.kind.name()),
            ("scope", refused.scope.name()),
        ];
        metrics::counter!(metric::LIMIT_REFUSED_TOTAL, &labels).increment(1);
    }
    result
}

/// The time until the next UTC day begins.
fn until_midnight(now: Timestamp) -> Duration {
    const DAY_MS: i64 = 24 * 3600 * 1000;
    let passed = now.as_millis().rem_euclid(DAY_MS);
    Duration::from_millis((DAY_MS - passed).unsigned_abs())
}

#[cfg(test)]
mod tests;
