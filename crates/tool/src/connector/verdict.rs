//! What an answer is worth: the payload, part of it, or nothing, and then why. Pure: bytes in,
//! verdict out; the order of its checks is the order in which they stand here.

use serde::Deserialize;
use serde_json::Value;
use turnwire_dial::{Answer, DialError};
use turnwire_event::Principal;
use turnwire_event::code::{Reason, ToolErrorClass};

use crate::connector::envelope::{Envelope, Mismatch, Refused, Status, Verified, Verify};
use crate::connector::typing::Typed;
use crate::shelf::size;

/// Of a payload: an agent takes a result of 1 MiB, and what stands around a part of one needs
/// room too. A larger one is the service's fault and told as such, not as a fault inside.
const PAYLOAD_BYTES_MAX: usize = (1 << 20) - 1_024;

/// What a service gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    /// All.
    Whole(Value),
    /// Some: it may be used, with a caveat (S2-039).
    Part(Value),
}

/// Why a service gave nothing that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lapse {
    /// No whole answer in time.
    Timeout,
    /// Nobody there, or the guard did not let the request out.
    Unreachable(DialError),
    /// Another HTTP status than a good one.
    Http(u16),
    /// It says that we named nobody (400).
    MissingPrincipal,
    /// It says that we are not who we say (403).
    PrincipalRefused,
    /// Not an envelope.
    Garbled,
    /// For somebody else.
    Mismatch(Mismatch),
    /// An answer to another question.
    OtherPair,
    /// Of another major version.
    Version,
    /// Its own word: it failed, for this reason if it gave one.
    Error(Option<Reason>),
    /// Its own word, which the contract does not have.
    UnknownReason,
    /// No payload, though it says it went well.
    Empty,
    /// More than a model is given at once.
    TooLarge,
    /// The payload is not what the enricher promised.
    Schema,
    /// The call broke inside.
    Broken,
}

impl Lapse {
    /// As clients are told it.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Timeout => Reason::UpstreamTimeout,
            Self::MissingPrincipal => Reason::InvalidRequest,
            Self::PrincipalRefused | Self::Mismatch(_) => Reason::Unauthorized,
            Self::Error(reason) => reason.unwrap_or(Reason::UpstreamUnavailable),
            Self::Unreachable(_)
            | Self::Http(_)
            | Self::Garbled
            | Self::OtherPair
            | Self::Version
            | Self::UnknownReason
            | Self::Empty
            | Self::TooLarge
            | Self::Schema
            | Self::Broken => Reason::UpstreamUnavailable,
        }
    }

    /// As events tell it.
    pub(crate) fn class(self) -> ToolErrorClass {
        match self {
            Self::Mismatch(_) => ToolErrorClass::PrincipalMismatch,
            _ => ToolErrorClass::EnvelopeError,
        }
    }
}

impl From<DialError> for Lapse {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Timeout => Self::Timeout,
            other => Self::Unreachable(other),
        }
    }
}

/// Judges an answer to a request for `typed` on behalf of `principal`. Whom it is for is settled
/// before anything else is, so that no other fault can hide that one.
pub(crate) fn judge(
    answer: &Answer,
    typed: &Typed,
    principal: &Principal,
    hook: &dyn Verify,
    span: &tracing::Span,
) -> Result<Given, Lapse> {
    if !(200..300).contains(&answer.status) {
        return Err(refusal(answer));
    }
    let envelope = Envelope::read(&answer.body).map_err(|_| Lapse::Garbled)?;
    let verified = envelope
        .verify(principal, hook)
        .map_err(|refused| match refused {
            Refused::Mismatch(kind) => Lapse::Mismatch(kind),
            Refused::Garbled(_) => Lapse::Garbled,
        })?;
    verified.record(span);
    open(&verified, typed)
}

/// What an HTTP status other than a good one means.
fn refusal(answer: &Answer) -> Lapse {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let word = serde_json::from_slice::<Refusal>(&answer.body).map(|refusal| refusal.error);
    match (answer.status, word.as_deref()) {
        (400, Ok("missing_principal")) => Lapse::MissingPrincipal,
        (403, Ok("principal_mismatch")) => Lapse::PrincipalRefused,
        (status, _) => Lapse::Http(status),
    }
}

fn open(envelope: &Verified<'_>, typed: &Typed) -> Result<Given, Lapse> {
    if envelope.pair() != (&typed.domain_type, &typed.enricher_id) {
        return Err(Lapse::OtherPair);
    }
    if !typed.understands(envelope.version()) {
        return Err(Lapse::Version);
    }
    let give: fn(Value) -> Given = match envelope.status() {
        Status::Ok => Given::Whole,
        Status::Partial => Given::Part,
        Status::Error => return Err(said(envelope.reason())),
    };
    let payload = envelope.payload().filter(|payload| !payload.is_null());
    let payload = payload.ok_or(Lapse::Empty)?;
    if size(&payload) > PAYLOAD_BYTES_MAX {
        return Err(Lapse::TooLarge);
    }
    if !typed.fits(&payload) {
        return Err(Lapse::Schema);
    }
    Ok(give(payload))
}

fn said(reason: Option<&str>) -> Lapse {
    match reason {
        None => Lapse::Error(None),
        Some(word) => match serde_json::from_value(Value::from(word)) {
            Ok(reason) => Lapse::Error(Some(reason)),
            Err(_) => Lapse::UnknownReason,
        },
    }
}

#[cfg(test)]
mod tests;
