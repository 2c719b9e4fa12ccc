//! `agent.*`: failures, for operators to count. Names no enricher and no person (D-27).

use serde::{Deserialize, Serialize};

/// A failure was reported to a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorEmit {
    /// The sub-agent that failed; `None` where several did.
    pub sub_agent_id: Option<String>,
    /// 1: a sub-agent failed. 2: a data service failed it. 3: some of several failed.
    pub axis: u8,
    /// True if the turn ends with this failure.
    pub is_final: bool,
}
