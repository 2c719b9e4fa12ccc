//! Delivers one event, waiting while the outbox is full. An event is accepted or refused, never
//! lost and never accepted twice.

use turnwire_event::Position;
use turnwire_event::port::{Emission, EmitError, EmitRefusal, EventEmitter};

/// Emits `emission` as soon as the outbox has room.
pub async fn deliver(
    emitter: &dyn EventEmitter,
    mut emission: Emission,
) -> Result<Position, EmitRefusal> {
    loop {
        match emitter.emit(emission) {
            Ok(position) => return Ok(position),
            Err(EmitError::Refused(refusal)) => return Err(refusal),
            Err(EmitError::Full(returned)) => {
                emission = *returned;
                emitter.ready().await;
            }
        }
    }
}
