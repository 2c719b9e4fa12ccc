//! The envelope that a data service answers with (R-22), and the one way to what is in it.
//!
//! ```text
//! bytes ── read ──▶ Envelope ── verify(principal, hook) ──▶ Verified ── payload ──▶ Value
//!                      │                     │
//!                      ╰ knows only whom     ╰ Refused: the envelope is gone
//!                        it is for
//! ```
//! An answer for somebody else cannot be looked into: all but its principal stays unread text
//! until that is compared, and only `Verified` gives the payload out (law 9, S2-053).

mod addressee;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwire_event::Principal;

use addressee::Addressee;

/// How the service says it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All is there.
    Ok,
    /// Some of it is there.
    Partial,
    /// Nothing of use is there, whatever the payload says.
    Error,
}

/// The bytes are no envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an envelope")]
pub struct Garbled;

/// The envelope is not for whom it was asked. Says nothing of whom it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// It names another principal, or none.
    #[error("the envelope is for another principal")]
    Principal,
    /// The hook does not believe it.
    #[error("the envelope could not be verified")]
    Unverified,
}

/// Why an envelope is not opened. Whom it is for comes first: no other fault hides that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is for somebody else.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The rest of it is no envelope.
    #[error(transparent)]
    Garbled(#[from] Garbled),
}

/// The fields as they come. Fields that are not listed are tolerated.
#[derive(Deserialize)]
struct Fields<'a> {
    enricher_id: String,
    domain_type: String,
    /// Already compared; named here so that a second one is refused.
    #[serde(rename = "principal")]
    _principal: IgnoredAny,
    version: String,
    status: Status,
    /// Never looked into (S2-041): whether a part was critical is the producer's business.
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

/// What a hook may look at: the claims, and the body as it came, to check a seal on it.
#[derive(Clone, Copy)]
pub struct Claim<'a> {
    /// The enricher it says it is from.
    pub enricher_id: &'a str,
    /// The type of data it says it has.
    pub domain_type: &'a str,
    /// Whom it says it is for; already compared.
    pub principal: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Every byte of it.
    pub body: &'a [u8],
}

/// The hook for proofs beyond the producer's word, such as a seal over the body (S2-054).
pub trait Verify: Send + Sync {
    /// Whether the claim is believed.
    fn verify(&self, claim: Claim<'_>) -> Result<(), Mismatch>;
}

/// Takes the producer's word for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoVerify;

impl Verify for NoVerify {
    fn verify(&self, _: Claim<'_>) -> Result<(), Mismatch> {
        Ok(())
    }
}

/// An envelope that nobody has verified: it can only be verified or dropped.
pub struct Envelope<'a> {
    addressee: Addressee,
    body: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads whom an envelope is for, and nothing else of it.
    pub fn read(body: &'a [u8]) -> Result<Self, Garbled> {
        let addressee = addressee::read(body).ok_or(Garbled)?;
        Ok(Self { addressee, body })
    }

    /// Compares the principal, then reads the rest, then asks the hook.
    pub fn verify(self, principal: &Principal, hook: &dyn Verify) -> Result<Verified<'a>, Refused> {
        let Self { addressee, body } = self;
        if !addressee.is(principal.as_str()) {
            return Err(Mismatch::Principal.into());
        }
        let fields: Fields<'a> = serde_json::from_slice(body).map_err(|_| Garbled)?;
        hook.verify(Claim {
            enricher_id: &fields.enricher_id,
            domain_type: &fields.domain_type,
            principal: principal.as_str(),
            version: &fields.version,
            body,
        })?;
        Ok(Verified { fields })
    }
}

/// An envelope for whom it was asked.
pub struct Verified<'a> {
    fields: Fields<'a>,
}

impl Verified<'_> {
    /// The pair it says it answers: domain type and enricher.
    pub fn pair(&self) -> (&str, &str) {
        (&self.fields.domain_type, &self.fields.enricher_id)
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.fields.version
    }

    /// How it went.
    pub fn status(&self) -> Status {
        self.fields.status
    }

    /// The producer's word for what went wrong, if it gives one.
    pub fn reason(&self) -> Option<&str> {
        self.fields.reason.as_str()
    }

    /// The payload, read now; `None` if there is none.
    pub fn payload(&self) -> Option<Value> {
        // It was read as JSON once already; only its depth can still be too much.
        let raw = self.fields.payload?;
        serde_json::from_str(raw.get()).ok()
    }

    /// What traces are told and nothing else is: how it was cached, how long it took (S2-043).
    pub(crate) fn record(&self, span: &tracing::Span) {
        if span.is_disabled() {
            return;
        }
        let read = |raw: Option<&RawValue>| -> Value {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default()
        };
        let (cache, timing) = (read(self.fields.cache_meta), read(self.fields.timing));
        let say = |name: &'static str, value: &Value| {
            if !value.is_null() {
                let text: String = value.to_string().chars().take(TRACED_CHARS_MAX).collect();
                span.record(name, text.as_str());
            }
        };
        say("cached", &cache["cached"]);
        say("cacheable", &cache["cacheable"]);
        say("ttl", &cache["ttl"]);
        say("cache_key", &cache["key"]);
        say("total_ms", &timing["total_ms"]);
    }
}

/// Of one field of a trace; a key longer than this is not read by anyone.
const TRACED_CHARS_MAX: usize = 128;

#[cfg(test)]
mod tests;
