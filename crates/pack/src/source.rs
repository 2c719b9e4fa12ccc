//! The shapes of the files of a pack: the structs that YAML is deserialized to, with the position
//! of every value that can be wrong. The JSON Schemas are generated from them; a doc comment is the
//! description in the schema, which findings quote. Required fields are `Option` too, so that a
//! file with mistakes can be read; the schema reports a missing field.

pub(crate) mod form;
pub(crate) mod manifest;
pub(crate) mod relay;
pub(crate) mod agent;
pub(crate) mod status;
pub(crate) mod connector;
pub(crate) mod tool;
pub(crate) mod provider;
pub(crate) mod route;
pub(crate) mod text;
