//! A sub-agent that runs elsewhere. It answers the orchestrator as a native one does: its words are for
//! the orchestrator alone (S2-013), its statuses and what it shows are for the person.

use std::sync::Arc;

use serde_json::json;
use turnwire_event::body::llm::CallCompleted;
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::content_json;
use turnwire_event::port::{Emission, EmitRefusal};
use turnwire_event::row::{MessageScope, NewMessage};
use turnwire_event::{
    Actor, Body, CallId, ContentBlock, IdGenerator, ProviderState, Role, StopReason, TokenUsage,
};

use crate::answer::{Answer, AnswerRequest, trace_headers};
use crate::request::{AgentQuestion, RelayRequest, history};
use crate::translation::Translation;
use crate::upstream::Upstream;

/// A sub-agent of a pack that runs elsewhere.
pub struct RelayedAgent {
    upstream: Arc<Upstream>,
    ids: Arc<dyn IdGenerator>,
}

/// What a [`RelayedAgent`] answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentAnswer {
    pub text: String,
    pub usage: TokenUsage,
    /// True if it reported a failure and answered all the same.
    pub is_incomplete: bool,
}

/// A question without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The session accepts no more events of the turn.
    Refused,
    /// The upstream did not answer, with the class of the failed call.
    Failed(LlmErrorClass),
}

impl From<EmitRefusal> for AskError {
    fn from(_: EmitRefusal) -> Self {
        Self::Refused
    }
}

impl RelayedAgent {
    /// The sub-agent behind `upstream`.
    pub fn new(upstream: Arc<Upstream>, ids: Arc<dyn IdGenerator>) -> Self {
        Self { upstream, ids }
    }

    /// The most messages of earlier exchanges that a question takes along.
    pub fn history_max(&self) -> usize {
        self.upstream.history_max
    }

    /// Asks once. Dropping the future closes the connection.
    pub async fn ask(&self, question: AgentQuestion<'_>) -> Result<AgentAnswer, AskError> {
        let id = self.upstream.agent.as_str();
        let ids = Arc::clone(&self.ids);
        let mut answer = Answer {
            upstream: &self.upstream,
            emitter: question.emitter,
            actor: Actor::subagent(id),
            call_id: CallId(self.ids.ulid()),
            translation: Translation::collecting(ids, id, &question.context.principal),
            held: None,
            awaits_id: None,
            text_bytes: 0,
            unknown_count: 0,
        };
        let request = self.request(&question, answer.call_id)?;
        let end = answer.run(request).await?;
        answer.close_tools().await?;
        if let Some(class) = end.error_class() {
            answer.fail_call(class).await?;
            return Err(AskError::Failed(class));
        }
        let text = answer.translation.take_text();
        let content = vec![ContentBlock::text(text.as_str())];
        let message_id = answer.translation.message_id();
        let usage = answer.translation.usage;
        let completed = Body::LlmCallCompleted(CallCompleted {
            call_id: answer.call_id,
            message_id,
            content_sha256: content_json(&content).1,
            stop_reason: StopReason::EndTurn,
            usage,
        });
        let message = NewMessage {
            id: message_id,
            role: Role::Assistant,
            content,
            metadata: question.metadata.clone(),
            scope: MessageScope::Agent(id.to_owned()),
            provider_state: ProviderState::default(),
        };
        let emission = Emission {
            message: Some(message),
            ..Emission::new(answer.actor.clone(), completed)
        };
        answer.emit(vec![emission]).await?;
        Ok(AgentAnswer {
            text,
            usage,
            is_incomplete: answer.translation.reported.is_some(),
        })
    }

    fn request(
        &self,
        question: &AgentQuestion<'_>,
        call: CallId,
    ) -> Result<AnswerRequest, AskError> {
        let content = [ContentBlock::text(question.question)];
        let messages = question.messages.clone();
        let messages = history(messages, question.turn_id, self.upstream.history_max);
        let agent = &self.upstream.agent;
        let request = RelayRequest::of_question(agent, question, &content, messages);
        let body = self.upstream.dialect.body(&request);
        let stop = json!({
            "session_id": question.session_id,
            "turn_id": question.turn_id,
            "invocation_id": question.invocation_id,
        });
        Ok(AnswerRequest {
            body: body.ok_or(AskError::Failed(LlmErrorClass::Internal))?,
            stop: stop.to_string().into(),
            trace: trace_headers(question.trace, question.propagation, question.turn_id, call),
        })
    }
}
