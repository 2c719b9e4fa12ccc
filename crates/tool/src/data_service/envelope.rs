//! The envelope of a data service's response (R-22), and the only way to its payload.
//!
//! ```text
//! bytes ── read ──▶ Envelope ── verify(principal, verifier) ──▶ VerifiedEnvelope ── payload ──▶ Value
//!                      │                     │
//!                      ╰ knows only its      ╰ EnvelopeRejection: the envelope is dropped
//!                        principal
//! ```
//! A response for another principal cannot be read: all other fields stay unparsed until the
//! principal is compared, and only [`VerifiedEnvelope`] has the payload (law 9, S2-053).

mod principal;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::Principal;

use principal::EnvelopePrincipal;

use crate::data_service::envelope_fields::EnvelopeFields;

/// The status that the service reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EnvelopeStatus {
    /// The payload is complete.
    Ok,
    /// The payload is a part.
    Partial,
    /// There is no usable payload, whatever the field contains.
    Error,
}

/// The envelope is not for the principal of the turn. It does not say whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrincipalMismatch {
    /// The envelope names another principal, or no principal.
    #[error("the envelope is for another principal")]
    Principal,
    /// The [`EnvelopeVerifier`] rejected it.
    #[error("the envelope could not be verified")]
    Unverified,
}

/// Why an envelope is rejected. A mismatch comes first: no other fault hides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopeRejection {
    /// The envelope is for another principal.
    Mismatch(PrincipalMismatch),
    /// The bytes, or the other fields, are not those of an envelope.
    NotAnEnvelope,
}

/// The fields of the wire. Unknown fields are ignored.
#[derive(Deserialize)]
pub(super) struct EnvelopeBody<'a> {
    enricher_id: String,
    domain_type: String,
    /// Already compared; listed here so that a duplicate is an error.
    #[serde(rename = "principal")]
    _principal: IgnoredAny,
    pub(super) version: String,
    pub(super) status: EnvelopeStatus,
    /// Not parsed (S2-041): whether a part was critical is for the producer to decide.
    #[serde(default, rename = "partial")]
    _partial: IgnoredAny,
    #[serde(borrow, default)]
    cache_meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    timing: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(default)]
    reason: Value,
}

/// What an [`EnvelopeVerifier`] may check: the claims, and the body for a signature.
#[derive(Clone, Copy)]
pub struct EnvelopeClaim<'a> {
    pub enricher_id: &'a str,
    /// The claimed type of data.
    pub domain_type: &'a str,
    /// The principal, already compared.
    pub principal: &'a str,
    /// The version of the envelope.
    pub version: &'a str,
    /// All bytes of the response.
    pub body: &'a [u8],
}

/// A check beyond the claims, such as a signature of the body (S2-054).
pub trait EnvelopeVerifier: Send + Sync {
    /// Accepts or rejects the claims.
    fn verify(&self, claim: EnvelopeClaim<'_>) -> Result<(), PrincipalMismatch>;
}

/// An [`EnvelopeVerifier`] that accepts every claim.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVerifier;

impl EnvelopeVerifier for NoVerifier {
    fn verify(&self, _: EnvelopeClaim<'_>) -> Result<(), PrincipalMismatch> {
        Ok(())
    }
}

/// An envelope that is not verified: [`Self::verify`] is the only way to its payload.
pub(crate) struct Envelope<'a> {
    principal: EnvelopePrincipal,
    body: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads the principal of an envelope and nothing else.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, EnvelopeRejection> {
        let principal = EnvelopePrincipal::read(body);
        let principal = principal.ok_or(EnvelopeRejection::NotAnEnvelope)?;
        Ok(Self { principal, body })
    }

    /// Compares the principal, then parses the other fields, then asks the verifier.
    pub(crate) fn verify(
        self,
        principal: &Principal,
        verifier: &dyn EnvelopeVerifier,
    ) -> Result<VerifiedEnvelope<'a>, EnvelopeRejection> {
        if !self.principal.is(principal.as_str()) {
            return Err(EnvelopeRejection::Mismatch(PrincipalMismatch::Principal));
        }
        // The parser of bytes does not look at texts that it ignores: JSON is UTF-8 everywhere.
        let text = std::str::from_utf8(self.body).map_err(|_| EnvelopeRejection::NotAnEnvelope)?;
        let fields: EnvelopeBody<'a> =
            serde_json::from_str(text).map_err(|_| EnvelopeRejection::NotAnEnvelope)?;
        let verified = verifier.verify(EnvelopeClaim {
            enricher_id: &fields.enricher_id,
            domain_type: &fields.domain_type,
            principal: principal.as_str(),
            version: &fields.version,
            body: self.body,
        });
        verified.map_err(EnvelopeRejection::Mismatch)?;
        Ok(VerifiedEnvelope { fields })
    }
}

/// An envelope for the principal of the turn, made by [`Envelope::verify`] alone.
pub(crate) struct VerifiedEnvelope<'a> {
    pub(super) fields: EnvelopeBody<'a>,
}

impl VerifiedEnvelope<'_> {
    /// The domain type and the enricher.
    pub(crate) fn pair(&self) -> (&str, &str) {
        (&self.fields.domain_type, &self.fields.enricher_id)
    }

    /// The reason that the service gives for an error.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.fields.reason.as_str()
    }

    /// Parses the payload; `None` without one.
    pub(crate) fn payload(&self) -> Option<Value> {
        // It is valid JSON; only its depth may exceed the parser's limit.
        let raw = self.fields.payload?;
        serde_json::from_str(raw.get()).ok()
    }

    /// Records the cache and timing fields in the span, their only use (S2-043).
    pub(crate) fn record(&self, (span, traced): (&tracing::Span, &EnvelopeFields)) {
        if span.is_disabled() && !traced.is_wanted() {
            return;
        }
        let parse = |raw: Option<&RawValue>| -> Value {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default()
        };
        let (cache, timing) = (parse(self.fields.cache_meta), parse(self.fields.timing));
        let fields = [
            ("cached", "turnwire.cache.cached", &cache["cached"]),
            ("cacheable", "turnwire.cache.cacheable", &cache["cacheable"]),
            ("ttl", "turnwire.cache.ttl", &cache["ttl"]),
            // Not exported: a key may name the person.
            ("cache_key", "", &cache["key"]),
            (
                "total_ms",
                "turnwire.data_service.total_ms",
                &timing["total_ms"],
            ),
        ];
        for (name, attribute, value) in fields.into_iter().filter(|(.., value)| !value.is_null()) {
            if !attribute.is_empty() {
                traced.put(attribute, value);
            }
            let text: String = value.to_string().chars().take(TRACED_CHARS_MAX).collect();
            span.record(name, text.as_str());
        }
    }
}

/// The limit of one field of a span.
const TRACED_CHARS_MAX: usize = 128;

#[cfg(test)]
mod tests;
