//! Judges the response of a service: its payload, a part of it, or a [`ServiceFailure`]. A pure
//! function; the order of its checks is the order of the code.

use serde::Deserialize;
use serde_json::Value;
use turnwire_dial::{DialError, JsonResponse};
use turnwire_event::Principal;
use turnwire_event::code::{Reason, ReasonToken, ToolErrorClass};

use crate::data_service::envelope::{
    Envelope, EnvelopeRejection, EnvelopeStatus, EnvelopeVerifier, PrincipalMismatch,
    VerifiedEnvelope,
};
use crate::data_service::envelope_fields::EnvelopeFields;
use crate::data_service::registry::EnricherType;
use crate::secrets::Secrets;
use crate::tool::json_bytes;

/// The limit of a payload: an agent accepts a result of 1 MiB, including the text around it. A
/// larger payload is a failure of the service.
const PAYLOAD_BYTES_MAX: usize = (1 << 20) - 1_024;

/// The payload of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServiceData {
    Complete(Value),
    /// Usable with a caveat (S2-039).
    Partial(Value),
}

impl ServiceData {
    /// The payload without `keys`.
    pub(crate) fn without(self, keys: &Secrets) -> Self {
        match self {
            Self::Complete(payload) => Self::Complete(keys.hide_in(payload)),
            Self::Partial(payload) => Self::Partial(keys.hide_in(payload)),
        }
    }
}

/// Why a service returned no usable payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceFailure {
    /// No complete response in time.
    Timeout,
    /// No connection, or an address that is not allowed.
    Unreachable(DialError),
    /// An HTTP status other than success.
    Http(u16),
    /// The service says that the request has no principal (400).
    MissingPrincipal,
    /// The service rejects the principal (403).
    PrincipalRefused,
    /// The body is not an envelope.
    NotAnEnvelope,
    /// The envelope is for another principal.
    Mismatch(PrincipalMismatch),
    /// The envelope is of another domain type or enricher.
    OtherEnricher,
    /// The envelope has another major version.
    Version,
    /// The service reports an error, with this reason if it gave one.
    Error(Option<Reason>),
    /// The service reports a reason that is not in the contract; `None` if it has not even the
    /// shape of a code.
    UnknownReason(Option<ReasonToken>),
    /// A successful envelope without a payload.
    Empty,
    /// The payload exceeds [`PAYLOAD_BYTES_MAX`].
    TooLarge,
    /// The payload does not match its schema.
    Schema,
    /// The task of the call failed.
    Internal,
}

impl ServiceFailure {
    /// The reason in events and frames.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Timeout => Reason::UpstreamTimeout,
            Self::MissingPrincipal => Reason::InvalidRequest,
            Self::PrincipalRefused | Self::Mismatch(_) => Reason::Unauthorized,
            Self::Error(reason) => reason.unwrap_or(Reason::UpstreamUnavailable),
            Self::UnknownReason(Some(token)) => Reason::Other(token),
            _ => Reason::UpstreamUnavailable,
        }
    }

    /// The class in `tool.failed`.
    pub(crate) fn class(self) -> ToolErrorClass {
        match self {
            Self::Mismatch(_) | Self::PrincipalRefused => ToolErrorClass::PrincipalMismatch,
            _ => ToolErrorClass::EnvelopeError,
        }
    }
}

impl From<DialError> for ServiceFailure {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Timeout => Self::Timeout,
            other => Self::Unreachable(other),
        }
    }
}

impl From<EnvelopeRejection> for ServiceFailure {
    fn from(rejection: EnvelopeRejection) -> Self {
        match rejection {
            EnvelopeRejection::Mismatch(mismatch) => Self::Mismatch(mismatch),
            EnvelopeRejection::NotAnEnvelope => Self::NotAnEnvelope,
        }
    }
}

/// Judges the response of `enricher` to a request on behalf of `principal`. The principal is
/// compared first, so that no other fault can hide a [`ServiceFailure::Mismatch`].
pub(crate) fn judge(
    response: &JsonResponse,
    enricher: &EnricherType,
    principal: &Principal,
    verifier: &dyn EnvelopeVerifier,
    span: (&tracing::Span, &EnvelopeFields),
) -> Result<ServiceData, ServiceFailure> {
    if !(200..300).contains(&response.status) {
        return Err(status_failure(response));
    }
    let verified = Envelope::read(&response.body)?.verify(principal, verifier)?;
    verified.record(span);
    payload(&verified, enricher)
}

/// What an HTTP status other than success means.
fn status_failure(response: &JsonResponse) -> ServiceFailure {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: String,
    }
    let code = serde_json::from_slice::<ErrorBody>(&response.body).map(|body| body.error);
    match (response.status, code.as_deref()) {
        (400, Ok("missing_principal")) => ServiceFailure::MissingPrincipal,
        (403, Ok("principal_mismatch")) => ServiceFailure::PrincipalRefused,
        (status, _) => ServiceFailure::Http(status),
    }
}

fn payload(
    envelope: &VerifiedEnvelope<'_>,
    enricher: &EnricherType,
) -> Result<ServiceData, ServiceFailure> {
    if envelope.pair() != (&enricher.def.domain_type, &enricher.def.enricher_id) {
        return Err(ServiceFailure::OtherEnricher);
    }
    if !enricher.supports(&envelope.fields.version) {
        return Err(ServiceFailure::Version);
    }
    let completeness: fn(Value) -> ServiceData = match envelope.fields.status {
        EnvelopeStatus::Ok => ServiceData::Complete,
        EnvelopeStatus::Partial => ServiceData::Partial,
        EnvelopeStatus::Error => return Err(reported_failure(envelope.reason())),
    };
    let payload = envelope.payload().filter(|payload| !payload.is_null());
    let payload = payload.ok_or(ServiceFailure::Empty)?;
    if json_bytes(&payload) > PAYLOAD_BYTES_MAX {
        return Err(ServiceFailure::TooLarge);
    }
    if !enricher.is_valid(&payload) {
        return Err(ServiceFailure::Schema);
    }
    Ok(completeness(payload))
}

/// The failure that a service reports with `reason` (D-29).
fn reported_failure(reason: Option<&str>) -> ServiceFailure {
    match reason.map(Reason::parse) {
        None => ServiceFailure::Error(None),
        Some(None) => ServiceFailure::UnknownReason(None),
        Some(Some(Reason::Other(token))) => ServiceFailure::UnknownReason(Some(token)),
        Some(known) => ServiceFailure::Error(known),
    }
}

#[cfg(test)]
mod tests;
