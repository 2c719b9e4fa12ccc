//! `status.*`: progress in the user's language. Agents emit an id; the text comes from the
//! locale map, never from an agent (I-21).

use serde::{Deserialize, Serialize};

use crate::id::InvocationId;

/// Replaces an id that is not registered, so that no agent's prose enters the log.
pub const UNREGISTERED: &str = "unregistered";

/// An agent reported progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusEmitted {
    /// The registered status id.
    pub event_id: String,
    /// The localised sentence; set by the interceptor.
    pub message: String,
    /// The invocation that reported; absent if the orchestrator did, and in events of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
}
