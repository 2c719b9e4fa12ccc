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
    /// The subscription that caused it; `http` for a request, empty for `bus_events_limit`.
    pub subscription_name: String,
    /// The cause. `client_too_slow`: a connection was closed. `redundant_cancel` and `unknown_turn`: a
    /// cancel changed nothing. `unknown_frame`: a client's frame was ignored. `too_many_workers` and
    /// `worker_quarantined`: a connection leaves out a worker. `bus_events_limit`: the session stores
    /// no more such events.
    pub reason: String,
    /// The number of occurrences since the last such event.
    pub count: u64,
}

impl HandlerWarning {
    server_texts! {
        /// Every [`reason`](Self::reason) that the server gives.
        REASONS {
            /// A client read too slowly, and its connection was closed.
            CLIENT_TOO_SLOW = "client_too_slow",
            /// The turn was already asked to stop, or has ended.
            REDUNDANT_CANCEL = "redundant_cancel",
            /// A cancel named no turn of the session.
            UNKNOWN_TURN = "unknown_turn",
            /// A frame of a client has an unknown type or is malformed.
            UNKNOWN_FRAME = "unknown_frame",
            /// A connection carries as many workers as it may.
            TOO_MANY_WORKERS = "too_many_workers",
            /// The log of a worker is damaged.
            WORKER_QUARANTINED = "worker_quarantined",
            /// The last event of its kind that the session stores.
            BUS_EVENTS_LIMIT = "bus_events_limit",
        }
    }
}
