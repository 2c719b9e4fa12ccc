//! Tests of the test kit itself: its fakes read by the official clients, in one binary.

mod fake_provider;
mod official_clients;
mod real_model;
