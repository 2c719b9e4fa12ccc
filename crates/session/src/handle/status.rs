//! The handle for health checks: whether turns are accepted, and which versions are in force.

use crate::error::Error;

handle!(
    /// Reads the status of the service.
    ServiceStatus
);

impl ServiceStatus {
    /// Whether no new turn is accepted because the server shuts down.
    pub fn is_draining(&self) -> bool {
        self.core.services.runner.is_draining()
    }

    /// Whether no new turn is accepted because the disk is full.
    pub fn is_storage_full(&self) -> bool {
        self.core.services.is_storage_full()
    }

    /// Fails if the disk is full, the database is damaged or the data folder is lost.
    pub fn check_storage(&self) -> Result<(), Error> {
        self.core.services.check_storage()
    }

    /// Why no new turn is accepted, the gravest first; empty while turns are accepted. A submit gets
    /// the first.
    pub fn refusals(&self) -> Vec<Error> {
        let draining = self.is_draining().then_some(Error::Draining);
        let full = self.is_storage_full().then_some(Error::StorageFull);
        let fault = self.core.services.store.fault().map(Error::from);
        [draining, full, fault].into_iter().flatten().collect()
    }

    /// The version of the agent definition that the newest turn was bound to; empty before the
    /// first turn.
    pub fn agent_definition(&self) -> String {
        self.core.services.runner.agent_definition.lock().clone()
    }

    /// The version of the routing policy in force.
    pub fn routing_policy_version(&self) -> String {
        self.core.services.routing_policy.lock().version.clone()
    }
}
