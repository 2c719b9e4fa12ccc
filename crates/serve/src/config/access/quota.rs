//! Quotas: what one principal, and what one tenant, may use in a minute or on a day.

use turnwire_session::QuotaLimits;

use crate::config::setting::{optional_micro_usd, optional_number, section};

section! {
    /// What each principal and each tenant may use. Without a number there is no quota: the limits of
    /// the other sections bound what is used at once, and only the operator knows what a use is worth.
    Quota, "quota" {
        /// Turns of one principal that are accepted in a minute. What was used comes back evenly.
        principal_turns_per_minute: Option<u64> = "", optional_number(1..=1_000_000);
        /// The same for all principals of a tenant together.
        tenant_turns_per_minute: Option<u64> = "", optional_number(1..=1_000_000);
        /// Tokens that the model calls of one principal may use on a day (UTC), as providers total
        /// them. The turn that exceeds it runs to its end; the next one is refused.
        principal_tokens_per_day: Option<u64> = "", optional_number(1..=1_000_000_000_000);
        /// The same for all principals of a tenant together.
        tenant_tokens_per_day: Option<u64> = "", optional_number(1..=1_000_000_000_000);
        /// US dollars that the model calls of one principal may cost on a day (UTC), such as `2.50`:
        /// by the prices in the pack.
        principal_cost_usd_per_day: Option<u64> = "", optional_micro_usd;
        /// The same for all principals of a tenant together.
        tenant_cost_usd_per_day: Option<u64> = "", optional_micro_usd;
        /// Streams that one principal may ask for in a minute: resumed chat streams, and subscribe
        /// frames of the session wire.
        principal_subscribes_per_minute: Option<u64> = "", optional_number(1..=1_000_000);
        /// The same for all principals of a tenant together.
        tenant_subscribes_per_minute: Option<u64> = "", optional_number(1..=1_000_000);
        /// Bytes of stored events that are read for one principal in a minute: replays, snapshots and
        /// pages of events. A replay that has begun ends; the next one is refused.
        principal_replay_bytes_per_minute: Option<u64> = "", optional_number(1..=1_000_000_000_000);
        /// The same for all principals of a tenant together.
        tenant_replay_bytes_per_minute: Option<u64> = "", optional_number(1..=1_000_000_000_000);
    }
}

impl Quota {
    /// The quotas of each principal.
    pub(crate) fn of_principal(&self) -> QuotaLimits {
        QuotaLimits {
            turns_per_minute: self.principal_turns_per_minute,
            subscribes_per_minute: self.principal_subscribes_per_minute,
            replay_bytes_per_minute: self.principal_replay_bytes_per_minute,
            tokens_per_day: self.principal_tokens_per_day,
            cost_micro_usd_per_day: self.principal_cost_usd_per_day,
        }
    }

    /// The quotas of each tenant.
    pub(crate) fn of_tenant(&self) -> QuotaLimits {
        QuotaLimits {
            turns_per_minute: self.tenant_turns_per_minute,
            subscribes_per_minute: self.tenant_subscribes_per_minute,
            replay_bytes_per_minute: self.tenant_replay_bytes_per_minute,
            tokens_per_day: self.tenant_tokens_per_day,
            cost_micro_usd_per_day: self.tenant_cost_usd_per_day,
        }
    }
}
