//! Inputs that models write: [`InputFields`] reads one by hand, [`InputSchema`] checks one against
//! the JSON Schema of its tool.

mod fields;
mod schema;
mod check;

pub use check::check_input;

pub(crate) use fields::{InputFields, object, object_schema};
pub(crate) use schema::InputSchema;
#[cfg(test)]
pub(crate) use schema::MESSAGE_CHARS_MAX;
