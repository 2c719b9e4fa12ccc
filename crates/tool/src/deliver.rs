//! Handing one event over, waiting while the outbox is full. An event is delivered or refused,
//! never lost and never twice.

use turnwire_event::Position;
use turnwire_event::port::{Emission, EmitError, Emitter, Refusal};

/// Hands `emission` over as soon as there is room.
pub async fn deliver(emitter: &dyn Emitter, mut emission: Emission) -> Result<Position, Refusal> {
    loop {
        match emitter.emit(emission) {
            Ok(at) => return Ok(at),
            Err(EmitError::Refused(refusal)) => return Err(refusal),
            Err(EmitError::Full(back)) => {
                emission = *back;
                emitter.ready().await;
            }
        }
    }
}
