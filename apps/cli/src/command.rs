//! The commands of `turnwire`, one module each.

pub(crate) mod tail;
pub(crate) mod chat;
pub(crate) mod verify;
pub(crate) mod export;
pub(crate) mod pack;
pub(crate) mod settings;
pub(crate) mod token;
pub(crate) mod upkeep;
pub(crate) mod usage;
pub(crate) mod approve;
pub(crate) mod record;
pub(crate) mod rerun;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod manual;
