//! The shapes of the files of a pack, with the position of everything that can be wrong. The JSON
//! Schemas are generated from them. Fields are optional, so that a file can be read beside its
//! mistakes; the schema reports what is missing.

pub(crate) mod form;
pub(crate) mod manifest;
pub(crate) mod agent;
pub(crate) mod status;
pub(crate) mod connector;
pub(crate) mod tool;
pub(crate) mod provider;
pub(crate) mod route;
pub(crate) mod text;
