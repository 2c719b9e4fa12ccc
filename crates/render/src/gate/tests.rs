//! Tests of a gate, by topic.

mod cost;
mod batching;
mod properties;
mod policies;
mod filtering;
