//! `bus.*`: subscriptions to a session; at most one event per session, type and second,
//! with a count.

use serde::{Deserialize, Serialize};

/// Clients subscribed to the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriberRegistered {
    /// The number of occurrences since the last such event.
    pub count: u64,
}

/// Clients unsubscribed or disconnected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriberUnregistered {
    /// The number of occurrences since the last such event.
    pub count: u64,
}

/// A subscription or a request caused a warning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandlerWarning {
    /// The subscription that caused it.
    pub subscription_name: String,
    /// The cause: `client_too_slow`, `redundant_cancel`, `unknown_turn`, `unknown_frame`.
    pub reason: String,
    /// The number of occurrences since the last such event.
    pub count: u64,
}
