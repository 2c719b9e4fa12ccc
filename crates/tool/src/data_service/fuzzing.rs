//! The response of a data service, read without a connection, for the fuzz targets.

use serde_json::Value;
use turnwire_event::Principal;

use super::envelope::{Envelope, NoVerifier};

/// The payload of a response for `principal`; `None` if the response is not an envelope for it.
pub fn read_envelope(body: &[u8], principal: &Principal) -> Option<Value> {
    let envelope = Envelope::read(body).ok()?;
    let verified = envelope.verify(principal, &NoVerifier).ok()?;
    verified.payload()
}
