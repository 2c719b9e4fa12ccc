//! A turn: the [`bind`]ing to its producer, its [`opening`] event, its [`progress`], its one
//! [`ending`], and the [`emitter`] that its events pass; then what happens to it: [`approval`] of its
//! tools, [`cancel`], its [`run`] and the [`queue`] before that.

pub(crate) mod bind;
pub(crate) mod opening;
pub(crate) mod progress;
pub(crate) mod ending;
pub(crate) mod emitter;
pub(crate) mod approval;
pub(crate) mod cancel;
pub(crate) mod run;
pub(crate) mod queue;
