//! The parts of a turn: the [`bind`]ing to its producer, its [`opening`] event, its [`progress`],
//! its one [`ending`], and the [`emitter`] that its events pass.

pub(crate) mod bind;
pub(crate) mod opening;
pub(crate) mod progress;
pub(crate) mod ending;
pub(crate) mod emitter;
