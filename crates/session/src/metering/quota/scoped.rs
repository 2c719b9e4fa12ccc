//! The quotas of one scope: of all principals, or of all tenants.

use std::hash::Hash;
use std::time::{Duration, Instant};

use turnwire_fair::{RateExceeded, Rates};
use turnwire_log::UsageSum;

use super::QuotaExceeded;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What a quota bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// Counted when they are accepted.
    Turns,
    /// Streams, counted when a client asks for them.
    Subscribes,
    /// The size of stored events that are read for a client.
    ReplayBytes,
    /// Tokens of model calls, as providers total them.
    Tokens,
    /// The cost of model calls, in millionths of a US dollar.
    Cost,
}

impl QuotaKind {
    /// The label in metrics and the member `quota` of problems.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns_per_minute",
            Self::Subscribes => "subscribes_per_minute",
            Self::ReplayBytes => "replay_bytes_per_minute",
            Self::Tokens => "tokens_per_day",
            Self::Cost => "cost_micro_usd_per_day",
        }
    }

    /// The time after which what was used counts no more.
    pub fn window(self) -> Duration {
        match self {
            Self::Turns | Self::Subscribes | Self::ReplayBytes => MINUTE,
            Self::Tokens | Self::Cost => DAY,
        }
    }
}

/// Whose quota it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaScope {
    /// Of one principal in its tenant.
    Principal,
    /// Of everybody in a tenant together.
    Tenant,
}

impl QuotaScope {
    /// The label in metrics and the member `scope` of problems.
    pub fn name(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Tenant => "tenant",
        }
    }
}

/// The quotas of each principal or of each tenant; `None` sets no quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Refused and repeated submits do not count.
    pub turns_per_minute: Option<u64>,
    /// Resumed chat streams, and subscribe frames of the session wire.
    pub subscribes_per_minute: Option<u64>,
    /// Of stored events that are read for clients.
    pub replay_bytes_per_minute: Option<u64>,
    /// As providers total them.
    pub tokens_per_day: Option<u64>,
    /// The cost of model calls, in millionths of a US dollar.
    pub cost_micro_usd_per_day: Option<u64>,
}

/// One quota and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaState {
    /// Turns, streams, bytes, tokens or cost.
    pub kind: QuotaKind,
    /// One principal, or everybody in a tenant.
    pub scope: QuotaScope,
    /// The whole of it.
    pub limit: u64,
    /// The part that can be used now.
    pub left: u64,
    /// The time until nothing of what was used counts any more.
    pub full_in: Duration,
}

/// The quotas of the owners of one scope.
#[derive(Debug)]
pub(super) struct ScopeQuotas<K> {
    scope: QuotaScope,
    turns: Option<Rates<K>>,
    subscribes: Option<Rates<K>>,
    replay_bytes: Option<Rates<K>>,
    tokens: Option<u64>,
    cost: Option<u64>,
}

impl<K: Clone + Eq + Hash> ScopeQuotas<K> {
    pub(super) fn new(scope: QuotaScope, limits: QuotaLimits) -> Self {
        let per_minute = |limit: Option<u64>| limit.map(|limit| Rates::new(limit, MINUTE));
        Self {
            scope,
            turns: per_minute(limits.turns_per_minute),
            subscribes: per_minute(limits.subscribes_per_minute),
            replay_bytes: per_minute(limits.replay_bytes_per_minute),
            tokens: limits.tokens_per_day,
            cost: limits.cost_micro_usd_per_day,
        }
    }

    pub(super) fn has_daily(&self) -> bool {
        self.tokens.is_some() || self.cost.is_some()
    }

    /// Uses one of a quota that is counted by pieces.
    pub(super) fn take(
        &self,
        kind: QuotaKind,
        owner: &K,
        now: Instant,
    ) -> Result<(), QuotaExceeded> {
        let Some(rates) = self.rates(kind) else {
            return Ok(());
        };
        let taken = rates.take(owner, now);
        taken.map_err(|refused| self.exceeded(kind, rates.limit(), refused))
    }

    pub(super) fn give_back(&self, kind: QuotaKind, owner: &K) {
        if let Some(rates) = self.rates(kind) {
            rates.give_back(owner);
        }
    }

    pub(super) fn check_replay(&self, owner: &K, now: Instant) -> Result<(), QuotaExceeded> {
        let Some(rates) = &self.replay_bytes else {
            return Ok(());
        };
        let checked = rates.check(owner, now);
        checked.map_err(|refused| self.exceeded(QuotaKind::ReplayBytes, rates.limit(), refused))
    }

    pub(super) fn charge_replay(&self, owner: &K, bytes: u64, now: Instant) {
        if let Some(rates) = &self.replay_bytes {
            rates.charge(owner, bytes, now);
        }
    }

    /// Refuses if what was `used` on a day, which ends in `retry_in`, is all that may be used.
    pub(super) fn check_day(
        &self,
        used: UsageSum,
        retry_in: Duration,
    ) -> Result<(), QuotaExceeded> {
        let used_up = self
            .day_states(used, retry_in)
            .find(|state| state.left == 0);
        used_up.map_or(Ok(()), |state| {
            Err(QuotaExceeded {
                kind: state.kind,
                scope: state.scope,
                limit: state.limit,
                retry_in,
            })
        })
    }

    pub(super) fn rate_states(
        &self,
        kinds: &[QuotaKind],
        owner: &K,
        now: Instant,
    ) -> Vec<QuotaState> {
        let states = kinds.iter().filter_map(|kind| {
            let rates = self.rates(*kind)?;
            let state = rates.state(owner, now);
            Some(QuotaState {
                kind: *kind,
                scope: self.scope,
                limit: rates.limit(),
                left: state.left,
                full_in: state.full_in,
            })
        });
        states.collect()
    }

    pub(super) fn day_states(
        &self,
        used: UsageSum,
        full_in: Duration,
    ) -> impl Iterator<Item = QuotaState> {
        let cost = (used.cost_usd * 1e6).round() as u64;
        let quotas = [
            (QuotaKind::Tokens, self.tokens, used.tokens),
            (QuotaKind::Cost, self.cost, cost),
        ];
        let scope = self.scope;
        quotas.into_iter().filter_map(move |(kind, limit, used)| {
            limit.map(|limit| QuotaState {
                kind,
                scope,
                limit,
                left: limit.saturating_sub(used),
                full_in,
            })
        })
    }

    fn rates(&self, kind: QuotaKind) -> Option<&Rates<K>> {
        match kind {
            QuotaKind::Turns => self.turns.as_ref(),
            QuotaKind::Subscribes => self.subscribes.as_ref(),
            QuotaKind::ReplayBytes => self.replay_bytes.as_ref(),
            QuotaKind::Tokens | QuotaKind::Cost => None,
        }
    }

    fn exceeded(&self, kind: QuotaKind, limit: u64, refused: RateExceeded) -> QuotaExceeded {
        QuotaExceeded {
            kind,
            scope: self.scope,
            limit,
            retry_in: refused.retry_in,
        }
    }
}
