//! Tools of the platform itself, in process: telling what is being done, keeping what a person
//! thought of it.

mod emit_status;
mod feedback;
mod named;

pub use emit_status::EmitStatus;
pub use feedback::Feedback;

pub(crate) use named::Named;

#[cfg(test)]
mod tests;
