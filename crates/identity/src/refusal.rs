//! Why a credential is not accepted.

/// A refused credential. Its text goes to the client and says nothing about other credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request has no credential.
    #[error("This server needs a bearer token in the Authorization header.")]
    Missing,
    /// The credential has the wrong shape, is unknown or revoked, or its signature does not match.
    #[error("The token is not valid here.")]
    Invalid,
    /// The credential was valid once.
    #[error("The token has expired; get a new one.")]
    Expired,
    /// The credential will be valid later.
    #[error("The token is not valid yet.")]
    NotYetValid,
    /// Another issuer issued it, or it is for another service.
    #[error("The token is for another service.")]
    WrongAudience,
    /// The token is genuine, and does not say who the caller is.
    #[error("The token names no principal or tenant that this server can use.")]
    Unusable,
    /// No key can be had to check the signature with.
    #[error("Tokens cannot be checked now; try again in a moment.")]
    Unavailable,
}

impl Refusal {
    /// The label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::WrongAudience => "wrong_audience",
            Self::Unusable => "unusable",
            Self::Unavailable => "unavailable",
        }
    }
}
