//! The snapshot of a session: its newest messages, its turn in flight with the open work, and
//! the end of the turn before, all at the ring's tail.

use std::sync::Arc;

use turnwire_log::{MessageView, PageBounds, Store};

use crate::error::Error;
use crate::live::session::LiveSession;
use crate::live::transcript::SessionSnapshot;

impl LiveSession {
    /// The [`SessionSnapshot`] of this moment, with the newest messages: those stored are within
    /// `bounds`.
    pub async fn snapshot(
        self: &Arc<Self>,
        bounds: impl Into<PageBounds>,
    ) -> Result<SessionSnapshot, Error> {
        let bounds = bounds.into();
        let mut snapshot = self
            .ring
            .with_state(|transcript, at, cursor| SessionSnapshot {
                row: transcript.row.clone(),
                current_turn: transcript.current_turn(),
                messages: transcript
                    .message_in_flight(bounds.bytes)
                    .into_iter()
                    .collect(),
                work: transcript.work.clone(),
                inputs: transcript.inputs_in_flight(bounds.bytes),
                last_turn: None,
                has_older: false,
                at,
                cursor,
            });
        let (id, at) = (self.id, snapshot.at);
        // The bytes of the message in flight do not count: a stored message that fits into a page
        // must not be left out because of them. The projection cuts what does not fit.
        let left = PageBounds {
            rows: bounds.rows.saturating_sub(snapshot.messages.len()),
            ..bounds
        };
        let read = move |store: &dyn Store| {
            let messages = store.messages(id, MessageView::Clients, at, None, left)?;
            Ok::<_, Error>((messages, store.last_ended_turn(id, at)?))
        };
        let stored = self.read(read).await;
        let (stored, last_turn) = stored.inspect_err(|error| {
            if *error == Error::Quarantined {
                self.quarantine();
            }
        })?;
        snapshot.last_turn = last_turn;
        snapshot.has_older = stored.has_more;
        snapshot.messages.splice(0..0, stored.rows);
        Ok(snapshot)
    }
}
