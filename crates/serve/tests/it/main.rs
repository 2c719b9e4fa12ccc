//! Tests of the HTTP surface inside one process, in one binary.

mod house;

mod cors;
mod openapi;
mod provider;
mod rest;
mod usage;
