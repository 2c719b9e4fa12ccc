//! What tests of the whole system are made of: seeded chance, scripts for the model, a journal,
//! a checker that reads it, and clients, servers, data services and model providers
//! that misbehave on purpose.
//!
//! Only `e2e`, `bench` and the tests of `apps/cli` depend on it.

pub mod rng;
pub mod script;
pub mod pack;
pub mod cancel_case;
pub mod sse;
pub mod history;
pub mod journal;
pub mod api;
pub mod server;
pub mod watch;
pub mod chat;
pub mod data_service;
pub mod site;
pub mod provider;
pub mod environment;
pub mod stubborn;
pub mod mcp;
pub mod real;
