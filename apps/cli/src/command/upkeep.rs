//! Commands for the operator of a data folder.

pub(crate) mod maintenance;
pub(crate) mod backup;
pub(crate) mod doctor;
