//! Building blocks of system tests: seeded random numbers, model scripts, a journal of everything
//! clients see, a history checker that reads it, and clients, servers, data services and model
//! providers that fail on demand.
//!
//! Only `e2e`, `bench` and the tests of `apps/cli` depend on this crate.

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
pub mod tls_proxy;
pub mod issuer;
pub mod upstream;
pub mod collector;
pub mod provider;
pub mod environment;
pub mod stubborn;
pub mod mcp;
pub mod real;
