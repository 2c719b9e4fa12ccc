//! `agent.*`: what operators count of failures. No enricher, no person (D-27).

use serde::{Deserialize, Serialize};

/// A failure was told to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorEmit {
    /// The sub-agent at fault; none where several are.
    pub sub_agent_id: Option<String>,
    /// 1: a sub-agent failed. 2: a data service failed it. 3: some of several failed.
    pub axis: u8,
    /// Whether the turn ends with it.
    pub is_final: bool,
}
