//! A turn whose end was passed over by a snapshot: how it ended is read from its row.

use std::time::Duration;

use tokio::time::Instant;
use turnwire_client::{Client, Error};
use turnwire_event::message::Role;
use turnwire_event::{Message, SessionId, TurnId};
use turnwire_wire::rest::turn::TurnTerminal;

use super::{AGAIN, AGAIN_MAX};

/// How many of the session's last messages are looked through for those of the turn: the most
/// that one page has.
const MESSAGES_MAX: usize = 200;

/// A turn that is looked up until the server says how it ended.
#[derive(Debug)]
pub(crate) struct MissedTurn {
    pub(crate) turn: TurnId,
    at: Instant,
    /// How long to wait if that fails.
    wait: Duration,
}

/// How a turn ended, and what it had said.
pub(crate) struct MissedEnding {
    pub(crate) terminal: TurnTerminal,
    /// Its answers, oldest first.
    pub(crate) answers: Vec<Message>,
}

impl MissedTurn {
    /// A turn that is looked up at once.
    pub(crate) fn new(turn: TurnId) -> Self {
        Self {
            turn,
            at: Instant::now(),
            wait: AGAIN,
        }
    }

    /// Looks, when it is time to; nothing is found of a turn that has not ended.
    pub(crate) async fn look(
        &self,
        client: &Client,
        session: SessionId,
    ) -> Result<Option<MissedEnding>, Error> {
        tokio::time::sleep_until(self.at).await;
        let Some(terminal) = client.turn(self.turn).await?.terminal else {
            return Ok(None);
        };
        let page = client
            .records(session)
            .messages(None, Some(MESSAGES_MAX))
            .await?;
        let mut answers = page.messages;
        answers.retain(|m| m.turn_id == self.turn && m.role == Role::Assistant);
        Ok(Some(MissedEnding { terminal, answers }))
    }

    /// It failed: looks again later. Says whether it failed for the first time.
    pub(crate) fn later(&mut self) -> bool {
        let first = self.wait == AGAIN;
        self.at = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(AGAIN_MAX);
        first
    }
}
