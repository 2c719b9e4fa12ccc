//! The parts of a request, each read strictly and refused with what is wrong: headers, trace, language,
//! identity, path, query, body, and what a request says about a turn.

pub(crate) mod header;
pub mod trace;
pub(crate) mod locale;
pub mod identity;
pub mod path;
pub mod query;
pub mod body;
pub(crate) mod submit;
