//! A turn whose agent runs elsewhere: one request, one answer, one end.
//!
//! Whatever the upstream does, the turn ends once: the first terminal counts, the rest is discarded
//! and counted. Dropping the work closes the connection.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CancelCode, TurnStatus};
use turnwire_event::port::{EmitRefusal, HistoryBudget, MessageEnd, TurnContext, TurnOutcome};
use turnwire_event::{Actor, CallId, IdGenerator, ProviderState, StopReason};

use crate::answer::{Answer, AnswerEnd, AnswerRequest, model_of, trace_headers};
use crate::fault::UpstreamFault;
use crate::held_response::HeldResponse;
use crate::request::{RelayRequest, history};
use crate::translation::Translation;
use crate::upstream::Upstream;

/// Bytes of history that a request may have: as much as the largest message.
const HISTORY_BYTES_MAX: usize = 1_048_576;

/// The stored messages that are read for each one of a request: a turn also stores what it has shown.
const READ_PER_MESSAGE: usize = 4;

/// The turns of one upstream.
pub struct RelayedTurns {
    upstream: Arc<Upstream>,
    ids: Arc<dyn IdGenerator>,
}

impl RelayedTurns {
    /// Turns that `upstream` answers.
    pub fn new(upstream: Arc<Upstream>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { upstream, ids }
    }

    /// The agent that answers, as events name it.
    pub fn model(&self) -> String {
        model_of(&self.upstream)
    }

    /// How much of the session's history a turn reads: also its own message and what was shown, which
    /// the request does not have.
    pub fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: self.upstream.history_max.saturating_mul(READ_PER_MESSAGE) + 1,
            bytes_max: match self.upstream.history_max {
                0 => 0,
                _ => HISTORY_BYTES_MAX,
            },
        }
    }

    /// The work of a turn: one call of the upstream, whose end is the end of the turn.
    pub async fn answer(&self, turn: TurnContext) -> TurnOutcome {
        // After a refusal the session ends the turn itself and ignores this outcome.
        let outcome = self.run(&turn).await;
        outcome.unwrap_or_else(|_| failed(UpstreamFault::Incomplete))
    }

    async fn run(&self, turn: &TurnContext) -> Result<TurnOutcome, EmitRefusal> {
        let input = &turn.input;
        let principal = input.owner.principal.as_str();
        let model = self.model();
        let ids = Arc::clone(&self.ids);
        let mut answer = Answer {
            upstream: &self.upstream,
            emitter: &*turn.emitter,
            actor: Actor::ORCHESTRATOR,
            call_id: CallId(self.ids.ulid()),
            translation: Translation::streaming(ids, &model, principal),
            held: Some(HeldResponse::new(input.turn_id, input.episode_id, model)),
            awaits_id: Some(input.turn_id),
            text_bytes: 0,
            unknown_count: 0,
        };
        let Some(request) = self.request(turn, answer.call_id).await else {
            return Ok(failed(UpstreamFault::Incomplete));
        };
        let end = answer.run(request).await?;
        self.end_call(&mut answer, &end).await?;
        Ok(outcome(end, answer.translation.reported))
    }

    /// The request; `None` if the history cannot be read.
    async fn request(&self, turn: &TurnContext, call: CallId) -> Option<AnswerRequest> {
        let input = &turn.input;
        let budget = self.history();
        let messages = match self.upstream.history_max {
            0 => Vec::new(),
            _ => turn.history.recent(budget).await.ok()?,
        };
        let messages = history(messages, input.turn_id, self.upstream.history_max);
        let request = RelayRequest::of_turn(&self.upstream.agent, input, messages);
        let stop = json!({"session_id": input.session_id, "turn_id": input.turn_id});
        Some(AnswerRequest {
            body: self.upstream.dialect.body(&request)?,
            stop: stop.to_string().into(),
            trace: trace_headers(
                input.trace.as_deref(),
                &input.propagation,
                input.turn_id,
                call,
            ),
        })
    }

    /// Ends what is open: the tools, the message and the call.
    async fn end_call(&self, answer: &mut Answer<'_>, end: &AnswerEnd) -> Result<(), EmitRefusal> {
        // The session ends what a cancelled turn has open, with the class of a cancel.
        if let AnswerEnd::Cancelled(_) | AnswerEnd::Fault(UpstreamFault::Idle) = end {
            return Ok(());
        }
        answer.close_tools().await?;
        let failure = end.error_class();
        if let (Some(class), false) = (failure, answer.translation.has_message()) {
            return answer.fail_call(class).await;
        }
        let start = answer.translation.start_message();
        answer.emit(start.into_iter().collect()).await?;
        answer.emitter.complete(MessageEnd {
            call_id: answer.call_id,
            message_id: answer.translation.message_id(),
            stop_reason: StopReason::EndTurn,
            usage: answer.translation.usage,
            failure,
            tools: Vec::new(),
            provider_state: ProviderState::default(),
            provider_response_id: None,
        })?;
        Ok(())
    }
}

fn failed(fault: UpstreamFault) -> TurnOutcome {
    TurnOutcome {
        status: TurnStatus::Failed,
        error: Some(fault.code().into()),
        reason: Some(fault.reason().to_owned()),
        cancelled: None,
    }
}

fn outcome(end: AnswerEnd, reported: Option<TurnError>) -> TurnOutcome {
    let ended = |status| TurnOutcome {
        status,
        error: None,
        reason: None,
        cancelled: None,
    };
    match end {
        AnswerEnd::Completed => match reported {
            Some(error) => TurnOutcome {
                error: Some(error),
                ..ended(TurnStatus::Degraded)
            },
            None => ended(TurnStatus::Ok),
        },
        AnswerEnd::Failed(error) => TurnOutcome {
            error: Some(error),
            ..ended(TurnStatus::Failed)
        },
        AnswerEnd::Cancelled(code) => TurnOutcome {
            cancelled: Some(code),
            ..ended(TurnStatus::Failed)
        },
        AnswerEnd::Fault(fault @ UpstreamFault::Idle) => TurnOutcome {
            cancelled: Some(CancelCode::IdleTimeout),
            ..failed(fault)
        },
        AnswerEnd::Fault(fault) => failed(fault),
    }
}
