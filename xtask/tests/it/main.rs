//! Tests of the repository itself, in one binary.

mod alerts;
mod security;
mod tidy;
