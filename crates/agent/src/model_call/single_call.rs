//! One model call: its stream in, its message out.
//!
//! The message of the orchestrator is emitted as it streams. The message of a sub-agent is buffered
//! and stored with the end of its call, for that sub-agent alone (D-46). Every call that is started
//! ends once: with its message, or as failed. If the future is dropped, the session closes what is
//! open.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::time::Instant;
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::content_json;
use turnwire_event::fold::MessageFold;
use turnwire_event::port::{Emission, EmitRefusal, MessageEnd};
use turnwire_event::row::NewMessage;
use turnwire_event::{
    Body, CallId, ContentBlock, Epoch, Position, ProviderState, Role, Seq, StopReason, Sub,
    Timestamp, TokenUsage, ToolUseId,
};
use turnwire_model::{Delta, ModelError, ModelMessage, ModelProvider, ModelRequest};

use super::call_usage::CallUsage;
use super::message_builder::{MalformedStream, MessageBuilder};
use crate::resources::agent_context::{AgentContext, EmitResult};
use crate::resources::agent_role::AgentRole;
use crate::resources::model_choice::{class_name, provider_name};

/// A call without a reply. Its end was emitted, unless the session refused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The session accepts no more events of the turn, and ends it.
    Refused,
    /// The model failed before its first output.
    BeforeOutput(CallId, ModelError),
    /// The model failed after its first output.
    AfterOutput(ModelError),
}

impl From<EmitRefusal> for CallError {
    fn from(_: EmitRefusal) -> Self {
        Self::Refused
    }
}

/// The message that a model replied with, from [`call_model`].
pub(crate) struct ModelReply {
    pub(crate) content: Vec<ContentBlock>,
    /// The tool uses whose input is unusable.
    pub(crate) broken_tool_uses: Vec<ToolUseId>,
    /// Data that the provider wants back with the message.
    provider_data: ProviderState,
}

impl ModelReply {
    /// The [`ModelMessage`] for the next call of the turn.
    pub(crate) fn into_message(self) -> Arc<ModelMessage> {
        Arc::new(ModelMessage {
            role: Role::Assistant,
            content: self.content,
            provider_data: self.provider_data,
        })
    }
}

/// Where the pieces of a [`MessageBuilder`] go.
enum ReplySink {
    /// To the emitter, as they come.
    Streamed {
        is_started: bool,
    },
    Buffered(Box<MessageFold>),
}

/// A call in flight.
struct ModelCall<'a> {
    context: &'a AgentContext<'a>,
    id: CallId,
    model: String,
    builder: MessageBuilder<'a>,
    sink: ReplySink,
    has_output: bool,
    usage: CallUsage<'a>,
}

pub(crate) async fn call_model(
    context: &AgentContext<'_>,
    provider: &Arc<dyn ModelProvider>,
    request: ModelRequest,
) -> Result<ModelReply, CallError> {
    let resources = context.resources;
    let id = CallId(resources.id_generator.ulid());
    let model = request.model.clone();
    let builder = MessageBuilder::new(
        &*resources.id_generator,
        resources.options.message_bytes_max,
    );
    let sink = match resources.role {
        AgentRole::Orchestrator | AgentRole::Worker(_) => ReplySink::Streamed { is_started: false },
        AgentRole::SubAgent(_) => ReplySink::Buffered(Box::new(MessageFold::new(
            builder.message_id,
            context.tool_context.turn_id,
            model.clone(),
            NO_POSITION,
            Timestamp::default(),
        ))),
    };
    let mut call = ModelCall {
        context,
        id,
        model,
        builder,
        sink,
        has_output: false,
        usage: CallUsage::new(provider, &request),
    };
    let started = CallStarted {
        call_id: id,
        model: request.model.clone(),
        purpose: context.purpose,
        attempt: request.attempt,
        // Set by the session, which sees the whole turn.
        first: false,
    };
    context.emit_as_agent(Body::LlmCallStarted(started)).await?;
    call.report_usage();
    match call.read_stream(provider, request).await? {
        Ok((reason, usage)) => {
            context.budget.spend(usage);
            call.start_message().await?;
            Ok(call.end(reason, usage).await?)
        }
        Err(error) => {
            // A failed call is paid for as well: a turn that fails again and again must come to its end.
            let usage = match call.has_output {
                true => call.usage.so_far(),
                false => {
                    // A provider that was not reached has no request to charge for.
                    let is_timeout =
                        error.class == LlmErrorClass::Timeout && error.location != "connect";
                    call.usage.without_output(is_timeout)
                }
            };
            context.budget.spend(usage);
            call.fail(error.class, usage).await?;
            Err(if call.has_output {
                CallError::AfterOutput(error)
            } else {
                CallError::BeforeOutput(id, error)
            })
        }
    }
}

/// Pieces that are buffered have no position in the log.
const NO_POSITION: Position = Position {
    epoch: Epoch::FIRST,
    seq: Seq(0),
    sub: Sub(0),
};

impl ModelCall<'_> {
    /// Reads [`Delta`]s until the stream stops or breaks. The stream is dropped on return.
    async fn read_stream(
        &mut self,
        provider: &Arc<dyn ModelProvider>,
        request: ModelRequest,
    ) -> EmitResult<Result<(StopReason, TokenUsage), ModelError>> {
        let mut stream = provider.stream(request);
        loop {
            let wait_start = Instant::now();
            let next = stream.next().await;
            self.context.wait_meter.add(wait_start.elapsed());
            let delta = match next {
                Some(Ok(Delta::Stop { reason, usage })) => {
                    return Ok(match reason {
                        StopReason::EndTurn
                        | StopReason::MaxTokens
                        | StopReason::StopSequence
                        | StopReason::ToolUse => Ok((reason, usage)),
                        // Only the server itself stops a message for these reasons.
                        StopReason::Cancelled | StopReason::Error => {
                            Err(self.error_at(LlmErrorClass::Provider, "stop_reason"))
                        }
                    });
                }
                Some(Ok(Delta::PartialUsage { usage })) => {
                    self.usage.set_reported(usage);
                    self.report_usage();
                    continue;
                }
                Some(Ok(delta)) => delta,
                // Only a turn is cancelled, so a provider that reports a cancel has merely failed.
                Some(Err(error)) if error.class == LlmErrorClass::Cancelled => {
                    return Ok(Err(self.error_at(LlmErrorClass::Provider, "cancelled")));
                }
                Some(Err(error)) => return Ok(Err(error)),
                None => return Ok(Err(self.error_at(LlmErrorClass::Transport, "no_end"))),
            };
            let bytes = delta.content_bytes();
            match self.builder.push(delta) {
                Ok(Some(body)) => {
                    if self.usage.add_output(bytes) {
                        self.report_usage();
                    }
                    self.has_output = true;
                    self.start_message().await?;
                    self.write(body).await?;
                }
                Ok(None) => {}
                Err(MalformedStream(place)) => {
                    return Ok(Err(self.error_at(LlmErrorClass::Provider, place)));
                }
            }
        }
    }

    /// Reports the usage so far, for the end of a call that is stopped.
    fn report_usage(&self) {
        let usage = self.usage.so_far();
        self.context.emitter.report_usage(self.id, usage);
    }

    /// Logs a failure that is detected here and not by the provider, which logs its own. The log
    /// line has no content of the message.
    fn error_at(&self, class: LlmErrorClass, place: &'static str) -> ModelError {
        let (model, error) = (self.model.as_str(), class_name(class));
        tracing::warn!(model, class = error, place, "a model call failed");
        ModelError::from(class).with_location(place)
    }

    /// Emits `message.start`, unless it was emitted.
    async fn start_message(&mut self) -> EmitResult {
        if let ReplySink::Streamed { is_started: false } = self.sink {
            let start = self.builder.start_event(&self.model);
            self.context.emit_as_agent(start).await?;
            self.sink = ReplySink::Streamed { is_started: true };
        }
        Ok(())
    }

    async fn write(&mut self, body: Body) -> EmitResult {
        match &mut self.sink {
            ReplySink::Streamed { .. } => self.context.emit_as_agent(body).await,
            ReplySink::Buffered(message) => {
                message.apply(NO_POSITION, Timestamp::default(), &body);
                Ok(())
            }
        }
    }

    async fn fail(&mut self, class: LlmErrorClass, usage: TokenUsage) -> EmitResult {
        if let ReplySink::Streamed { is_started: true } = self.sink {
            self.close_tool_uses().await?;
            self.complete(StopReason::Error, usage, Some(class))?;
            return Ok(());
        }
        let failed = CallFailed {
            call_id: self.id,
            message_id: None,
            content_sha256: None,
            error_class: class,
            usage,
        };
        let actor = self.context.resources.role.actor();
        let emission = Emission {
            provider_response_id: self.builder.response_id.clone(),
            ..Emission::new(actor, Body::LlmCallFailed(failed))
        };
        self.context.deliver(emission).await.map(|_| ())
    }

    async fn end(&mut self, stop_reason: StopReason, usage: TokenUsage) -> EmitResult<ModelReply> {
        self.close_tool_uses().await?;
        if stop_reason == StopReason::MaxTokens {
            self.builder.mark_truncated();
        }
        let ReplySink::Buffered(message) = &self.sink else {
            return self.complete(stop_reason, usage, None);
        };
        let content = message.content();
        let provider_data = self.builder.take_provider_data(provider_name(&self.model));
        let completed = Body::LlmCallCompleted(CallCompleted {
            call_id: self.id,
            message_id: self.builder.message_id,
            content_sha256: content_json(&content).1,
            stop_reason,
            usage,
        });
        let role = &self.context.resources.role;
        let emission = Emission {
            message: Some(NewMessage {
                id: self.builder.message_id,
                role: Role::Assistant,
                content: content.clone(),
                metadata: self.context.message_metadata(),
                scope: role.scope(),
                provider_state: provider_data.clone(),
            }),
            provider_response_id: self.builder.response_id.clone(),
            ..Emission::new(role.actor(), completed)
        };
        self.context.deliver(emission).await?;
        Ok(self.reply(content, provider_data))
    }

    /// Ends the tool uses that the provider left open.
    async fn close_tool_uses(&mut self) -> EmitResult {
        for body in self.builder.close_tool_uses() {
            self.write(body).await?;
        }
        Ok(())
    }

    fn complete(
        &mut self,
        stop_reason: StopReason,
        usage: TokenUsage,
        failure: Option<LlmErrorClass>,
    ) -> EmitResult<ModelReply> {
        let resources = self.context.resources;
        let provider_data = self.builder.take_provider_data(provider_name(&self.model));
        let tools = self.builder.tools.iter();
        let tools = tools.map(|(id, name)| (*id, resources.tool_type(name)));
        let content = self.context.emitter.complete(MessageEnd {
            provider_state: provider_data.clone(),
            provider_response_id: self.builder.response_id.clone(),
            call_id: self.id,
            message_id: self.builder.message_id,
            stop_reason,
            usage,
            failure,
            tools: tools.collect(),
        })?;
        Ok(self.reply(content, provider_data))
    }

    fn reply(&self, content: Vec<ContentBlock>, provider_data: ProviderState) -> ModelReply {
        ModelReply {
            content,
            broken_tool_uses: self.builder.broken.clone(),
            provider_data,
        }
    }
}
