//! `support.*`: internal. It becomes a row of session memory, which sub-agents of later turns are
//! shown, and is never published (S1-030, S1-144).

use serde::{Deserialize, Serialize};

/// Something worth remembering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Noted {
    /// Who noted it.
    pub sub_agent_id: String,
    /// What.
    pub text: String,
}
