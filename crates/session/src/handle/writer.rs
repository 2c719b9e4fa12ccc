//! The handle that changes sessions: creates and deletes them, and records feedback.

use turnwire_event::body::feedback;
use turnwire_event::row::{Requester, SessionRow};
use turnwire_event::{Actor, Body, Owner, Position, SessionId};

use crate::error::Error;
use crate::submit::request::NewSession;

handle!(
    /// Creates, deletes and annotates sessions.
    SessionWriter
);

impl SessionWriter {
    /// Creates a session. Durable on return.
    pub async fn create(&self, owner: &Owner, new: NewSession) -> Result<SessionRow, Error> {
        self.core.create(owner, new).await
    }

    /// Deletes a session and its workers, which the audit records. Once begun, continues to the end
    /// even if the caller goes away.
    pub async fn delete(&self, by: impl Into<Requester>, id: SessionId) -> Result<(), Error> {
        self.core.delete(&by.into(), id).await
    }

    /// Records a person's feedback on a message or a turn of the session. Durable on return.
    pub async fn record_feedback(
        &self,
        owner: &Owner,
        id: SessionId,
        feedback: feedback::FeedbackRecorded,
    ) -> Result<Position, Error> {
        self.core.services.check_storage()?;
        let live = self.core.open(owner, id).await?;
        let (turn, message) = (feedback.turn_id, feedback.message_id);
        let in_flight = live
            .ring
            .with_state(|transcript, _, _| transcript.id_in_flight());
        let read = live.read(move |store| {
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
        });
        read.await?;
        let slot = self.core.services.write_slot(owner).await?;
        let emitted = live.emit(Actor::USER, Body::FeedbackRecorded(feedback));
        let at = emitted.map_err(|refused| live.refusal(refused))?;
        live.committed_in(slot, at.seq).await?;
        Ok(at)
    }
}
