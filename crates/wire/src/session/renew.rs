//! The answers to a renew frame: a client that got a new token continues without a new connection.

use serde::{Deserialize, Serialize};
use turnwire_event::Timestamp;

/// The answer to an accepted renew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenewAck {
    /// When the identity of the connection ends now; null if it has no end.
    pub expires_at: Option<Timestamp>,
}

/// The stable code of a renew that has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RenewErrorCode {
    /// The frame has no `token`.
    InvalidFrame,
    /// The token is unknown, revoked, expired or for another service.
    Unauthorized,
    /// The token is of another principal or tenant than the connection.
    OtherPrincipal,
    /// Tokens cannot be checked now; the renew can be sent again.
    Unavailable,
}

/// The answer to a renew that has no effect: the connection keeps the identity that it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenewError {
    pub code: RenewErrorCode,
    pub message: String,
}

impl RenewError {
    /// The error with this code.
    pub fn of(code: RenewErrorCode) -> Self {
        let message = match code {
            RenewErrorCode::InvalidFrame => "the renew frame needs a text in token",
            RenewErrorCode::Unauthorized => "the token is not valid here",
            RenewErrorCode::OtherPrincipal => "the token is of another principal",
            RenewErrorCode::Unavailable => "tokens cannot be checked now; send it again",
        };
        Self {
            code,
            message: message.to_owned(),
        }
    }
}
