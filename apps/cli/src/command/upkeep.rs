//! Commands for the operator of a data folder or of a server.

pub(crate) mod maintenance;
pub(crate) mod backup;
pub(crate) mod doctor;
pub(crate) mod jobs;
pub(crate) mod audit;
