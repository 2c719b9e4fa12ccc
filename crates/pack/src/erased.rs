//! YAML into types through trait objects.
//!
//! A serde deserializer is generic over the visitor of every type that is read, so the YAML parser
//! would be compiled once more for each of about a hundred shapes. Here it is compiled once, for
//! `SinkRef`, and a type is compiled once, for [`Handle`]:
//!
//! ```text
//! YAML deserializer ── SinkRef ──▶ dyn Sink ──▶ the type's visitor
//!        ▲                                            │ asks for an element, a key, a value
//!     Slot<D> ◀── dyn Source ◀── Handle ◀─────────────┘
//! ```
//! Errors lose nothing on the way. One that the YAML parser makes stays in the adapter that met it,
//! in its own type, while [`Refusal::Kept`] travels in its place. One that a visitor makes travels as
//! a [`Refusal`] and is made again, by the same constructor, where it leaves.

mod refusal;
mod port;
mod parser;
mod handle;

use serde::de::DeserializeOwned;
use serde_saphyr::Error;

use handle::Handle;
use parser::Slot;
use refusal::Refusal;

/// Reads one YAML document, as `serde_saphyr::from_str` does.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let mut read = None;
    // Not generic: the closure hands the type over as a trait object.
    parse(text, &mut |handle| {
        read = Some(T::deserialize(handle)?);
        Ok(())
    })?;
    Ok(read.expect("a document that was parsed was read"))
}

fn parse(
    text: &str,
    read: &mut dyn for<'de> FnMut(Handle<'_, 'de>) -> Result<(), Refusal>,
) -> Result<(), Error> {
    serde_saphyr::with_deserializer_from_str(text, |yaml| {
        let mut slot = Slot::new(yaml);
        let done = read(Handle::new(&mut slot));
        slot.settle(done)
    })
}

#[cfg(test)]
mod tests;
