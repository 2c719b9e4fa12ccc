//! Approvals: the tools of a paused turn that need a decision, and the decisions.

use turnwire_event::{ApprovalId, TurnId};
use turnwire_wire::rest::approval::{
    ApprovalAnswer, ApprovalAnswers, ApprovalItem, ApprovalList, ApprovalsAnswered,
};

use crate::client::Client;
use crate::error::Result;
use crate::rest::with_query;

impl Client {
    /// The approvals that a turn has requested, with the decisions so far, of all pages.
    pub async fn approvals(&self, id: TurnId) -> Result<ApprovalList> {
        let path = format!("/turns/{id}/approvals");
        let mut list: ApprovalList = self.http.get(&path).await?;
        while let Some(after) = list.next.take() {
            let after = [("after", Some(after.to_string()))];
            let page: ApprovalList = self.http.get(&with_query(&path, after)).await?;
            list.approvals.extend(page.approvals);
            list.next = page.next;
        }
        Ok(list)
    }

    /// One approval of a turn, with the whole input of its tool.
    pub async fn approval(&self, turn: TurnId, id: ApprovalId) -> Result<ApprovalItem> {
        self.http
            .get(&format!("/turns/{turn}/approvals/{id}"))
            .await
    }

    /// Decides [`approvals`](Self::approvals) of a paused turn, all of `answers` or, on an error,
    /// none of them. The last missing decision starts the turn that continues the paused one.
    pub async fn decide_approvals(
        &self,
        id: TurnId,
        answers: Vec<ApprovalAnswer>,
    ) -> Result<ApprovalsAnswered> {
        let path = format!("/turns/{id}/approvals");
        let body = ApprovalAnswers::all(answers);
        self.http.post(&path, &body, None).await?.json()
    }
}
