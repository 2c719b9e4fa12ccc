//! The files of a pack as they are written: the shapes of their YAML, with the position of
//! everything that can be wrong. Unknown keys and wrong shapes are refused here; what is missing
//! and what the values mean is looked at in `check`, so that one file can have many mistakes.
//! The JSON Schemas come from these shapes too.

pub(crate) mod form;
pub(crate) mod manifest;
pub(crate) mod agent;
pub(crate) mod status;
pub(crate) mod connector;
pub(crate) mod tool;
pub(crate) mod provider;
pub(crate) mod route;
pub(crate) mod text;
