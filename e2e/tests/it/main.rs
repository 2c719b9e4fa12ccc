//! Tests of the whole system: the real server process, real sockets, real crashes. One binary.

mod shell_server;
mod workshop;

mod access;
mod api;
mod approval;
mod cancel;
mod chat;
mod engine;
mod mcp;
mod models;
mod ops;
mod parsers;
mod process;
mod relay;
mod server;
mod session;
mod store;
mod traces;
mod workers;
