//! Approvals: the tools of a paused turn that need a decision, and the decisions.

use turnwire_event::TurnId;
use turnwire_wire::rest::approval::{
    ApprovalAnswer, ApprovalAnswers, ApprovalList, ApprovalsAnswered,
};

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// The approvals that a turn has requested, with the decisions so far.
    pub async fn approvals(&self, id: TurnId) -> Result<ApprovalList, Error> {
        self.http.get(&format!("/turns/{id}/approvals")).await
    }

    /// Decides approvals of a paused turn, all of `answers` or, on an error, none of them. The last
    /// missing decision starts the turn that continues the paused one.
    pub async fn decide_approvals(
        &self,
        id: TurnId,
        answers: Vec<ApprovalAnswer>,
    ) -> Result<ApprovalsAnswered, Error> {
        let path = format!("/turns/{id}/approvals");
        self.http
            .post(&path, &ApprovalAnswers::all(answers), None)
            .await
    }
}
