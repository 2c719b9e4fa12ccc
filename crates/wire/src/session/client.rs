//! Frames from the client, parsed strictly: text that is not JSON closes the connection, JSON that
//! is not a known frame is ignored with a warning, and an invalid subscribe is answered with an
//! error.

use std::fmt;

use serde_json::{Map, Value};

use super::subscribe::{SubscribeError, SubscribeFrame};

/// A frame that a client has sent.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientFrame {
    /// Selects the events that the connection receives.
    Subscribe(SubscribeFrame),
    /// Requests the cancellation of a turn.
    Cancel {
        /// The text of the client: a turn id, a response id, or neither.
        turn_id: String,
        /// The client's reason, for the log.
        reason: Option<String>,
    },
    /// Gives the connection a new token.
    Renew {
        /// As in an `Authorization` header.
        token: BearerToken,
    },
    /// A heartbeat of the client, answered with a pong.
    Ping {
        /// Sent back in the pong.
        nonce: String,
    },
    /// The answer to a ping of the server.
    Pong {
        /// The nonce of the ping.
        nonce: String,
    },
    /// JSON that is not a known frame; ignored with a warning.
    Unknown {
        /// The `type` field, cut to 64 characters; empty if it is missing or not a string.
        kind: String,
    },
}

/// A bearer token; not shown in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(pub String);

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
}

/// The reason why a text of the client is not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientFrameError {
    /// Not JSON: the connection is closed with [`SessionCloseReason::NotJson`](super::SessionCloseReason::NotJson).
    #[error("the frame is not JSON")]
    NotJson,
    /// An invalid subscribe: answered with an error, the connection stays open.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// A known frame without a required field: a cancel and a renew are answered with an error, any
    /// other is ignored with a warning.
    #[error("the {kind} frame needs a text in {field}")]
    Malformed {
        /// The `type` of the frame.
        kind: &'static str,
        /// The field that is missing or not a string.
        field: &'static str,
    },
}

impl ClientFrame {
    /// Parses a text frame.
    pub fn parse(text: &str) -> Result<Self, ClientFrameError> {
        let value: Value = serde_json::from_str(text).map_err(|_| ClientFrameError::NotJson)?;
        let Value::Object(mut fields) = value else {
            return Ok(Self::Unknown {
                kind: String::new(),
            });
        };
        let kind = match fields.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(_) | None => "",
        };
        match kind {
            "subscribe" => Ok(Self::Subscribe(SubscribeFrame::read(fields)?)),
            "cancel" => Ok(Self::Cancel {
                turn_id: text_field(&mut fields, "cancel", "turn_id")?,
                reason: match fields.remove("reason") {
                    None | Some(Value::Null) => None,
                    Some(Value::String(reason)) => Some(reason),
                    Some(_) => {
                        return Err(ClientFrameError::Malformed {
                            kind: "cancel",
                            field: "reason",
                        });
                    }
                },
            }),
            "renew" => Ok(Self::Renew {
                token: BearerToken(text_field(&mut fields, "renew", "token")?),
            }),
            "ping" => Ok(Self::Ping {
                nonce: text_field(&mut fields, "ping", "nonce")?,
            }),
            "pong" => Ok(Self::Pong {
                nonce: text_field(&mut fields, "pong", "nonce")?,
            }),
            unknown => Ok(Self::Unknown {
                kind: unknown.chars().take(64).collect(),
            }),
        }
    }
}

fn text_field(
    fields: &mut Map<String, Value>,
    kind: &'static str,
    field: &'static str,
) -> Result<String, ClientFrameError> {
    match fields.remove(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) | None => Err(ClientFrameError::Malformed { kind, field }),
    }
}

#[cfg(test)]
mod tests;
