//! The documents of the API, read by generators, linters and validators of others.

mod documents;
mod generated;
