//! A turn whose end a snapshot skipped: its ending is read from its row.

use std::collections::VecDeque;

use tokio::time::Instant;
use turnwire_client::{Client, Error};
use turnwire_event::message::Role;
use turnwire_event::{Message, SessionId, TurnId};
use turnwire_wire::rest::turn::TurnTerminal;

use super::retry_delay::RetryDelay;

/// The number of the session's last messages that are searched for those of the turn: the largest
/// page.
const MESSAGES_MAX: usize = 200;

/// A turn that is looked up until the server reports its ending.
#[derive(Debug)]
pub(crate) struct MissedTurn {
    pub(crate) turn: TurnId,
    due: Instant,
    retry: RetryDelay,
}

/// The ending of a turn, and its answers.
pub(crate) struct MissedEnding {
    pub(crate) terminal: TurnTerminal,
    /// The answers of the turn, oldest first.
    pub(crate) answers: Vec<Message>,
}

impl MissedTurn {
    pub(crate) fn new(turn: TurnId) -> Self {
        Self {
            turn,
            due: Instant::now(),
            retry: RetryDelay::default(),
        }
    }

    /// Looks up the [`MissedEnding`] when it is due. Returns `None` if the turn has not ended.
    pub(crate) async fn look_up(
        &self,
        client: &Client,
        session: SessionId,
    ) -> Result<Option<MissedEnding>, Error> {
        tokio::time::sleep_until(self.due).await;
        let Some(terminal) = client.turn(self.turn).await?.terminal else {
            return Ok(None);
        };
        let records = client.records(session);
        let mut answers: VecDeque<Message> = VecDeque::new();
        let (mut before, mut searched) = (None, 0);
        loop {
            let page = records.messages(before, Some(MESSAGES_MAX)).await?;
            searched += page.messages.len();
            let is_answer = |m: &Message| m.turn_id == self.turn && m.role == Role::Assistant;
            for message in page.messages.into_iter().rev().filter(is_answer) {
                let message = match message.omitted_bytes {
                    None => message,
                    Some(_) => records.message(message.id).await?,
                };
                answers.push_front(message);
            }
            before = page.next;
            if before.is_none() || searched >= MESSAGES_MAX {
                break;
            }
        }
        let answers = answers.into();
        Ok(Some(MissedEnding { terminal, answers }))
    }

    /// Schedules the next attempt. Returns true after the first failure.
    pub(crate) fn retry_later(&mut self) -> bool {
        let is_first = self.retry.is_first();
        self.due = Instant::now() + self.retry.next();
        is_first
    }
}
