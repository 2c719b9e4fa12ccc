//! `bus.*`: what the hub has to say about those who listen; at most one a session, type and
//! second, with a count.

use serde::{Deserialize, Serialize};

/// Clients subscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriberRegistered {
    /// How many since the last such event.
    pub count: u64,
}

/// Clients left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriberUnregistered {
    /// How many since the last such event.
    pub count: u64,
}

/// Something about a listener deserves a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandlerWarning {
    /// Which listener.
    pub subscription_name: String,
    /// What, in one word: `client_too_slow`, `redundant_cancel`, `unknown_turn`, `unknown_frame`.
    pub reason: String,
    /// How many since the last such event.
    pub count: u64,
}
