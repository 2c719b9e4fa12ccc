//! The handle that changes sessions: creates and deletes them, and records feedback.

use std::sync::Arc;

use turnwire_event::body::feedback;
use turnwire_event::row::SessionRow;
use turnwire_event::{Actor, Body, Owner, Position, SessionId};

use crate::error::Error;
use crate::lifecycle::session_core::SessionCore;
use crate::store_read::read_store;
use crate::submit::request::NewSession;

/// Creates, deletes and annotates sessions.
#[derive(Clone)]
pub struct SessionWriter {
    core: Arc<SessionCore>,
}

impl SessionWriter {
    pub(crate) fn new(core: Arc<SessionCore>) -> Self {
        Self { core }
    }

    /// Creates a session. Durable on return.
    pub async fn create(&self, owner: &Owner, new: NewSession) -> Result<SessionRow, Error> {
        self.core.create(owner, new).await
    }

    /// Deletes a session and its workers. Continues to the end even if the caller goes away.
    pub async fn delete(&self, owner: &Owner, id: SessionId) -> Result<(), Error> {
        self.core.delete(owner, id).await
    }

    /// Records a person's feedback on a message or a turn of the session. Durable on return.
    pub async fn record_feedback(
        &self,
        owner: &Owner,
        id: SessionId,
        feedback: feedback::FeedbackRecorded,
    ) -> Result<Position, Error> {
        if self.core.is_storage_full() {
            return Err(Error::StorageFull);
        }
        let live = self.core.open(owner, id).await?;
        let (turn, message) = (feedback.turn_id, feedback.message_id);
        let in_flight = live.ring.with_state(|transcript, _, _| {
            let message = transcript.message_in_flight();
            message.map(|message| message.id)
        });
        read_store(self.core.services.store(), move |store| {
            if let Some(turn) = turn {
                store
                    .turn(turn)?
                    .filter(|(_, row)| row.session_id == id)
                    .ok_or(Error::TurnNotFound)?;
            }
            if let Some(message) = message.filter(|message| in_flight != Some(*message)) {
                let stored = store.message(id, message)?;
                stored.ok_or(Error::MessageNotFound)?;
            }
            Ok::<_, Error>(())
        })
        .await?;
        let at = live.emit(Actor::USER, Body::FeedbackRecorded(feedback))?;
        live.sequencer.committed(at.seq).await?;
        Ok(at)
    }
}
