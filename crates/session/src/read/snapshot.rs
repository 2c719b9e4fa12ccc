//! The snapshot of a session: its newest messages and its turn in flight at the ring's tail.

use std::sync::Arc;

use turnwire_log::{MessageView, Store};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::transcript::SessionSnapshot;

impl LiveSession {
    /// The session at this moment, with its newest `messages_max` messages.
    pub async fn snapshot(self: &Arc<Self>, messages_max: usize) -> Result<SessionSnapshot, Error> {
        let (row, current_turn, in_flight, at, cursor) =
            self.ring.with_state(|transcript, tail, cursor| {
                (
                    transcript.row.clone(),
                    transcript.current_turn(),
                    transcript.message_in_flight(),
                    tail,
                    cursor,
                )
            });
        let id = self.id;
        let stored_max = messages_max.saturating_sub(usize::from(in_flight.is_some()));
        let read =
            move |store: &dyn Store| store.messages(id, MessageView::Clients, at, None, stored_max);
        let stored = self.services.read_rows(read).await?;
        let stored = stored.into_iter().map(|stored| stored.message);
        let messages = stored.chain(in_flight).collect();
        Ok(SessionSnapshot {
            row,
            current_turn,
            messages,
            at,
            cursor,
        })
    }
}
