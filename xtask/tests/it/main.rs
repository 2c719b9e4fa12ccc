//! Tests of the repository itself, in one binary.

mod schema;
mod tidy;
