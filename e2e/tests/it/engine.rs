//! Packs: orchestrator, sub-agents, statuses and data services.

mod batch;
mod cancel;
mod compose;
mod context;
mod credentials;
mod demo;
mod envelope;
mod failure;
mod fanout;
mod leaks;
mod limits;
mod old;
mod origin;
mod pack;
mod principal;
mod reference;
mod registry;
mod reload;
mod shown;
mod status;
