//! Tests of the HTTP surface inside one process, in one binary.

mod test_app;

mod cors;
mod openapi;
mod provider;
mod rest;
mod usage;
