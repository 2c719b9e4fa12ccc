//! The handle that tells what is left of quotas, and counts what is read.

use turnwire_event::Owner;

use crate::error::Error;
use crate::metering::quota::QuotaState;

handle!(
    /// Counts streams and replays in the quotas of their owners. Turns count where they are submitted.
    SessionQuotas
);

impl SessionQuotas {
    /// The quotas that submits of `owner` count in, and what is left.
    pub async fn of_submits(&self, owner: &Owner) -> Result<Vec<QuotaState>, Error> {
        let services = &self.core.services;
        let used = self.core.used_today(owner).await?;
        let now = services.clock.now();
        Ok(services.quotas.submit_states(owner, used, now))
    }

    /// The quotas that streams and replays of `owner` count in, and what is left.
    pub fn of_reads(&self, owner: &Owner) -> Vec<QuotaState> {
        self.core.services.quotas.read_states(owner)
    }

    /// Counts a stream that `owner` asks for, or refuses it.
    pub fn count_subscribe(&self, owner: &Owner) -> Result<(), Error> {
        Ok(self.core.services.quotas.count_subscribe(owner)?)
    }

    /// Refuses to read stored events for `owner` if no replay bytes are left.
    pub fn check_replay(&self, owner: &Owner) -> Result<(), Error> {
        Ok(self.core.services.quotas.check_replay(owner)?)
    }

    /// Counts stored events that were read for `owner`.
    pub fn charge_replay(&self, owner: &Owner, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.core.services.quotas.charge_replay(owner, bytes);
    }
}
