//! Approvals: the tools of a paused turn that need a decision, and the decisions.

use turnwire_event::TurnId;
use turnwire_wire::rest::approval::{Answer, Answered, Answers, List};

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// The approvals that a turn has requested, with the decisions so far.
    pub async fn approvals(&self, id: TurnId) -> Result<List, Error> {
        self.http.get(&format!("/turns/{id}/approvals")).await
    }

    /// Decides approvals of a paused turn, all of `answers` or, on an error, none of them. The last
    /// missing decision starts the turn that continues the paused one.
    pub async fn answer(&self, id: TurnId, answers: Vec<Answer>) -> Result<Answered, Error> {
        let path = format!("/turns/{id}/approvals");
        self.http.post(&path, &Answers::all(answers), None).await
    }
}
