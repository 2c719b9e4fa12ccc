//! Frames a client sends, read strictly: what is not JSON ends the connection, what is JSON but
//! no frame is passed over with a warning, and a subscribe that is wrong is answered.

use serde_json::{Map, Value};

use super::subscribe::{Subscribe, SubscribeError};

/// A frame of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientFrame {
    /// What it wants to see.
    Subscribe(Subscribe),
    /// Stop a turn.
    Cancel {
        /// Which turn, as the client wrote it: a turn id or a response id, or neither.
        turn_id: String,
        /// What it said.
        reason: Option<String>,
    },
    /// Is the server there?
    Ping {
        /// To be sent back.
        nonce: String,
    },
    /// The client is there.
    Pong {
        /// What the server had sent.
        nonce: String,
    },
    /// JSON, but no frame that is known here; passed over with a warning.
    Unknown {
        /// Its type, cut to 64 characters; empty if it has none.
        kind: String,
    },
}

/// Why a client's text is no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientFrameError {
    /// Not JSON: the connection ends with `Close::NotJson`.
    #[error("the frame is not JSON")]
    NotJson,
    /// A subscribe that cannot be accepted: answered, the connection stays.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// A known frame without a field it needs: passed over with a warning.
    #[error("the {kind} frame needs a text in {field}")]
    Malformed {
        /// Which frame.
        kind: &'static str,
        /// Which field.
        field: &'static str,
    },
}

impl ClientFrame {
    /// Reads a text frame.
    pub fn read(text: &str) -> Result<Self, ClientFrameError> {
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
            "subscribe" => Ok(Self::Subscribe(Subscribe::read(fields)?)),
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
