//! What an upstream speaks: the request it gets, and how its stream is read.
//!
//! `turnwire` is the request of `schema/relay/request.json`, answered in the inner vocabulary.
//! `openai_chat` is the Chat Completions API that most agents can serve; its stream is decoded as that
//! of a model, and its pieces become events of the inner vocabulary.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turnwire_dial::SseEvent;
use turnwire_event::code::{ErrorCode, LlmErrorClass};
use turnwire_event::{ContentBlock, Role, StopReason};
use turnwire_model::dialect::DeltaQueue;
use turnwire_model::dialect::openai_chat::OpenAiChatDialect;
use turnwire_model::{
    Delta, EncodeInput, ModelError, ModelMessage, ModelParams, ModelRequest, StreamDecoder,
    VendorDialect as _,
};

use crate::fault::UpstreamFault;
use crate::inner_event::{InnerEvent, SENTINEL, TypeMap, parse};
use crate::request::RelayRequest;

/// What an upstream speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamDialect {
    /// The request of this server, answered in the inner vocabulary, or in names that the map explains.
    Turnwire(Arc<TypeMap>),
    /// The Chat Completions API, with the name of the model or agent to ask for.
    OpenAiChat { model: String },
}

impl UpstreamDialect {
    /// The body of a request; `None` if it cannot be written as JSON.
    pub(crate) fn body(&self, request: &RelayRequest<'_>) -> Option<Bytes> {
        let body = match self {
            Self::Turnwire(_) => serde_json::to_vec(request),
            Self::OpenAiChat { model } => {
                let request = model_request(request);
                let params = ModelParams::default();
                let encoded = OpenAiChatDialect.encode(&EncodeInput {
                    provider: "relay",
                    model,
                    request: &request,
                    params: &params,
                });
                serde_json::to_vec(&encoded.body)
            }
        };
        body.ok().map(Bytes::from)
    }

    /// True if an answer may bring the id of its response.
    pub(crate) fn has_response_id(&self) -> bool {
        match self {
            Self::Turnwire(_) => true,
            Self::OpenAiChat { .. } => false,
        }
    }

    /// A decoder for the stream of one answer.
    pub(crate) fn decoder(&self) -> UpstreamDecoder {
        match self {
            Self::Turnwire(types) => UpstreamDecoder::Inner(Arc::clone(types)),
            Self::OpenAiChat { .. } => UpstreamDecoder::Chat {
                decoder: OpenAiChatDialect.decoder(),
                deltas: DeltaQueue::new(),
                has_text: false,
            },
        }
    }
}

/// The conversation of a request as a model gets it: earlier messages, then what to answer.
fn model_request(request: &RelayRequest<'_>) -> ModelRequest {
    let earlier = request.history.iter();
    let earlier = earlier.map(|message| ModelMessage::new(message.role, message.content.clone()));
    let context = request.prior_context.map(ContentBlock::text);
    let content = context.into_iter().chain(request.content.iter().cloned());
    let question = ModelMessage::new(Role::User, content.collect());
    let notes = request.notes.join("\n\n");
    ModelRequest {
        model: String::new(),
        agent: request.agent.to_owned(),
        call: 1,
        attempt: 1,
        locale: request.locale.to_owned(),
        system: (!notes.is_empty()).then_some(notes),
        messages: earlier.chain([question]).map(Arc::new).collect(),
        tools: Arc::new([]),
    }
}

/// Decodes the stream of one answer into events.
pub(crate) enum UpstreamDecoder {
    Inner(Arc<TypeMap>),
    Chat {
        decoder: Box<dyn StreamDecoder>,
        deltas: DeltaQueue,
        /// True once the answer has text: reasoning before it is `thinking`.
        has_text: bool,
    },
}

impl UpstreamDecoder {
    /// Decodes one block, and appends its events to `out`.
    pub(crate) fn step(
        &mut self,
        block: SseEvent<'_>,
        out: &mut VecDeque<InnerEvent>,
    ) -> Result<(), UpstreamFault> {
        match self {
            Self::Inner(types) => {
                let event = parse(block.data, types).map_err(|_| UpstreamFault::Malformed)?;
                out.push_back(event);
                Ok(())
            }
            Self::Chat {
                decoder,
                deltas,
                has_text,
            } => {
                let stepped = decoder.step(block, deltas);
                drain(deltas, has_text, out);
                if out.is_empty() && stepped.is_ok() {
                    out.push_back(match block.data.trim() {
                        SENTINEL => InnerEvent::Sentinel,
                        _ => InnerEvent::Silent,
                    });
                }
                stepped.or_else(|error| failed(&error, out))
            }
        }
    }

    /// The body has ended: some servers end an answer with it.
    pub(crate) fn end(&mut self, out: &mut VecDeque<InnerEvent>) -> Result<(), UpstreamFault> {
        let Self::Chat {
            decoder,
            deltas,
            has_text,
        } = self
        else {
            return Err(UpstreamFault::Incomplete);
        };
        let ended = decoder.end(deltas);
        drain(deltas, has_text, out);
        match (ended, out.is_empty()) {
            (Ok(()), false) => Ok(()),
            (Ok(()), true) | (Err(_), _) => Err(UpstreamFault::Incomplete),
        }
    }
}

fn drain(deltas: &mut DeltaQueue, has_text: &mut bool, out: &mut VecDeque<InnerEvent>) {
    for delta in deltas.drain(..) {
        match delta {
            Delta::Text { text, .. } => {
                *has_text |= !text.is_empty();
                out.push_back(InnerEvent::Text(text));
            }
            Delta::Thinking { text, .. } => out.push_back(match *has_text {
                false => InnerEvent::Thinking(text),
                true => InnerEvent::Reasoning(text),
            }),
            Delta::PartialUsage { usage } => out.push_back(InnerEvent::Usage(usage)),
            Delta::Stop { reason, usage } => {
                out.push_back(InnerEvent::Usage(usage));
                out.push_back(end_of(reason));
            }
            // Tools that the agent asks its client to run: there is nobody who could.
            Delta::ToolStart { .. } => out.push_back(InnerEvent::Unknown),
            Delta::ToolInput { .. }
            | Delta::ToolEnd { .. }
            | Delta::Started { .. }
            | Delta::ProviderData { .. } => {}
        }
    }
}

/// An answer that ends by asking for tools has not ended.
fn end_of(reason: StopReason) -> InnerEvent {
    match reason {
        StopReason::EndTurn | StopReason::MaxTokens | StopReason::StopSequence => {
            InnerEvent::Completed
        }
        StopReason::ToolUse | StopReason::Cancelled | StopReason::Error => InnerEvent::Error {
            error: ErrorCode::InternalError.into(),
            is_final: true,
        },
    }
}

/// A failure that the upstream reports in its stream, or a stream that is none.
fn failed(error: &ModelError, out: &mut VecDeque<InnerEvent>) -> Result<(), UpstreamFault> {
    if error.location == "malformed" {
        return Err(UpstreamFault::Malformed);
    }
    let code = match error.class {
        LlmErrorClass::RateLimited => ErrorCode::RateLimitError,
        LlmErrorClass::Provider => ErrorCode::ModelUnavailable,
        LlmErrorClass::Cancelled
        | LlmErrorClass::Timeout
        | LlmErrorClass::Transport
        | LlmErrorClass::Internal => return Err(UpstreamFault::Malformed),
    };
    out.push_back(InnerEvent::Error {
        error: code.into(),
        is_final: true,
    });
    Ok(())
}
