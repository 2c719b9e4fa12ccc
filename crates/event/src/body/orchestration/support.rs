//! `support.*`: internal. A note becomes a row of session memory, which sub-agents of later turns
//! see, and is never published (S1-030, S1-144).

use serde::{Deserialize, Serialize};

/// A sub-agent stored a note in session memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupportNoted {
    /// The sub-agent that wrote the note.
    pub sub_agent_id: String,
    pub text: String,
}
