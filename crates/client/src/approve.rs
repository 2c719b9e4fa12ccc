//! Questions of paused turns, and the answers that let them go on.

use turnwire_event::TurnId;
use turnwire_wire::rest::approval::{Answer, Answered, Answers, List};

use crate::api::Client;
use crate::error::Error;

impl Client {
    /// What a turn has asked, and what was answered.
    pub async fn approvals(&self, id: TurnId) -> Result<List, Error> {
        self.get(&format!("/turns/{id}/approvals")).await
    }

    /// Answers what a paused turn has asked: all of `answers` are taken, or none. The last that is
    /// missing opens the turn that goes on.
    pub async fn answer(&self, id: TurnId, answers: Vec<Answer>) -> Result<Answered, Error> {
        let path = format!("/turns/{id}/approvals");
        self.post(&path, &Answers::all(answers)).await
    }
}
