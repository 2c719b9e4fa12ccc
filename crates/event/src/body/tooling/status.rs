//! `status.*`: progress in the person's words. Agents name what they do; the words come from the
//! locale map, never from an agent (I-21).

use serde::{Deserialize, Serialize};

/// What stands in the log in place of an id that is not registered: no agent's prose gets there.
pub const UNREGISTERED: &str = "unregistered";

/// Something is being done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Emitted {
    /// The registered identifier.
    pub event_id: String,
    /// The sentence for the person; written by the interceptor.
    pub message: String,
}
