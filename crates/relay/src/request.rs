//! The body of a request to an upstream. Its JSON Schema is `schema/relay/request.json`.

use serde::Serialize;
use turnwire_event::body::subagent::SubagentContext;
use turnwire_event::code::TurnKind;
use turnwire_event::port::{EventEmitter, TurnInput};
use turnwire_event::{
    ContentBlock, EpisodeId, InvocationId, JsonObject, Message, Owner, Role, SessionId, TenantId,
    TraceContext, TracePropagation, TurnId,
};

/// The version of [`RelayRequest`].
const VERSION: &str = "1";

/// What the orchestrator asks a sub-agent that runs elsewhere.
pub struct AgentQuestion<'a> {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tenant: TenantId,
    pub invocation_id: InvocationId,
    pub context: &'a SubagentContext,
    pub question: &'a str,
    /// What sub-agents of earlier turns have left for all of them.
    pub notes: Vec<String>,
    /// The earlier exchanges of the sub-agent.
    pub messages: Vec<Message>,
    /// The metadata of the stored answer.
    pub metadata: JsonObject,
    pub trace: Option<&'a TraceContext>,
    /// What the trace has beside its ids.
    pub propagation: &'a TracePropagation,
    pub emitter: &'a dyn EventEmitter,
}

/// The request of one turn, or of one question to a sub-agent, as an upstream gets it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelayRequest<'a> {
    /// The version of this form.
    pub version: &'static str,
    /// The agent of the pack that is asked.
    pub agent: &'a str,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// The invocation of a sub-agent; absent if the upstream answers the person itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
    /// The tenant of the person.
    pub tenant: String,
    /// The person or service that asks. The platform vouches for it; the person's own token is never
    /// sent.
    pub principal: String,
    /// The episode of the session, the same in all of its turns.
    pub episode_id: EpisodeId,
    pub kind: TurnKind,
    /// The person's language, as a language tag.
    pub locale: &'a str,
    /// The person's location, if the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<&'a str>,
    /// What the person wrote, or what a sub-agent is asked.
    pub content: &'a [ContentBlock],
    /// Free-form data from the client; absent for a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a JsonObject>,
    /// For a sub-agent: what it must know of the conversation so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_context: Option<&'a str>,
    /// For a sub-agent: what sub-agents have noted in earlier turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The newest messages of earlier turns, oldest first, as many as the pack says; none by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryMessage>,
}

/// A message of an earlier turn.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryMessage {
    pub role: Role,
    pub content: Vec<ContentBlock>,
}

impl<'a> RelayRequest<'a> {
    /// The request that asks `agent` to answer the turn.
    pub fn of_turn(agent: &'a str, input: &'a TurnInput, history: Vec<HistoryMessage>) -> Self {
        let Owner { tenant, principal } = &input.owner;
        Self {
            version: VERSION,
            agent,
            session_id: input.session_id,
            turn_id: input.turn_id,
            invocation_id: None,
            tenant: tenant.to_string(),
            principal: principal.to_string(),
            episode_id: input.episode_id,
            kind: input.kind,
            locale: &input.locale,
            location: input.location.as_deref(),
            content: &input.content,
            metadata: Some(&input.metadata).filter(|metadata| !metadata.is_empty()),
            prior_context: None,
            notes: Vec::new(),
            history,
        }
    }

    /// The request that asks the sub-agent `agent`.
    pub(crate) fn of_question(
        agent: &'a str,
        question: &'a AgentQuestion<'_>,
        content: &'a [ContentBlock],
        history: Vec<HistoryMessage>,
    ) -> Self {
        let context = question.context;
        Self {
            version: VERSION,
            agent,
            session_id: question.session_id,
            turn_id: question.turn_id,
            invocation_id: Some(question.invocation_id),
            tenant: question.tenant.to_string(),
            principal: context.principal.clone(),
            episode_id: context.episode_id,
            kind: TurnKind::Chat,
            locale: &context.locale,
            location: context.location.as_deref(),
            content,
            metadata: None,
            prior_context: context.prior_context.as_deref(),
            notes: question.notes.clone(),
            history,
        }
    }
}

/// The newest messages of earlier turns that an upstream gets, at most `last`: what the person wrote and
/// was answered.
pub(crate) fn history(messages: Vec<Message>, turn: TurnId, last: usize) -> Vec<HistoryMessage> {
    let earlier = messages.into_iter().filter(|message| {
        message.turn_id != turn
            && matches!(message.role, Role::User | Role::Assistant)
            && !message.content.is_empty()
    });
    let mut read: Vec<HistoryMessage> = earlier
        .map(|message| HistoryMessage {
            role: message.role,
            content: message.content,
        })
        .collect();
    read.drain(..read.len().saturating_sub(last));
    read
}

/// The JSON Schema of [`RelayRequest`].
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    turnwire_event::schema::of::<RelayRequest<'static>>()
}
