//! The file of `turnwire export`: one session as lines of JSON, with a digest over all of them. The
//! format is described in docs/operations.md, "Export a session".

pub(crate) mod record;
pub(crate) mod writer;
pub(crate) mod reader;
