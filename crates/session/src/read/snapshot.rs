//! The snapshot of a session: its newest messages and its turn in flight at the ring's tail.

use std::sync::Arc;

use turnwire_log::{MessageView, Store};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::transcript::SessionSnapshot;

impl LiveSession {
    /// The [`SessionSnapshot`] of this moment, with the newest `messages_max` messages.
    pub async fn snapshot(self: &Arc<Self>, messages_max: usize) -> Result<SessionSnapshot, Error> {
        let mut snapshot = self
            .ring
            .with_state(|transcript, at, cursor| SessionSnapshot {
                row: transcript.row.clone(),
                current_turn: transcript.current_turn(),
                messages: transcript.message_in_flight().into_iter().collect(),
                at,
                cursor,
            });
        let (id, at) = (self.id, snapshot.at);
        let limit = messages_max.saturating_sub(snapshot.messages.len());
        let read =
            move |store: &dyn Store| store.messages(id, MessageView::Clients, at, None, limit);
        let stored = self.services.read_rows(read).await?;
        let stored = stored.into_iter().map(|stored| stored.message);
        snapshot.messages.splice(0..0, stored);
        Ok(snapshot)
    }
}
