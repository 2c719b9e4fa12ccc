//! The tables of the records, one file per table: how a row is written and read.

pub(super) mod session;
pub(super) mod age;
pub(super) mod erasure;
pub(super) mod turn;
pub(super) mod queue;
pub(super) mod key;
pub(super) mod approval;
pub(super) mod message;
pub(super) mod tool_call;
pub(super) mod llm_call;
pub(super) mod job;
pub(super) mod audit;
pub(super) mod status;
