//! One answer of an upstream: the request is sent once, and what comes is translated and emitted until
//! the first terminal or fault. What the end means is for the caller: a turn or a sub-agent.
//!
//! ```text
//! llm.call_started (durable) ─▶ request ─▶ inner events ─▶ translation ─▶ emitter
//!                                 │ completed, error, cancelled, or a fault
//!                                 ▼
//!                            AnswerEnd; what still comes is discarded and counted
//! ```

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout_at;
use turnwire_dial::RequestHeaders;
use turnwire_event::body::llm::{CallFailed, CallStarted};
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CallPurpose, CancelCode, LlmErrorClass};
use turnwire_event::metric;
use turnwire_event::port::{Emission, EmitRefusal, EventEmitter, deliver};
use turnwire_event::trace::trace_id_of;
use turnwire_event::{
    Actor, Body, CallId, SpanId, TraceContext, TracePropagation, TurnId, UpstreamId,
};

use crate::fault::UpstreamFault;
use crate::held_response::{HeldResponse, count_replaced};
use crate::inner_event::InnerEvent;
use crate::translation::Translation;
use crate::upstream::{CancelNotice, Upstream, UpstreamCall};

/// The prefix of the model of a relayed call: the agent answers, with whatever model it has.
pub const RELAY_MODEL_PREFIX: &str = "relay:";

/// The most warnings about unknown types in one answer: an agent may have one for each token.
const UNKNOWN_WARNINGS_MAX: u32 = 8;

/// How an upstream ended its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerEnd {
    Completed,
    Failed(TurnError),
    Cancelled(CancelCode),
    Fault(UpstreamFault),
}

impl AnswerEnd {
    /// The class of the failed call; `None` if the call succeeded.
    pub(crate) fn error_class(&self) -> Option<LlmErrorClass> {
        Some(match self {
            Self::Completed => return None,
            Self::Fault(UpstreamFault::RateLimited) => LlmErrorClass::RateLimited,
            Self::Fault(UpstreamFault::ConnectTimeout | UpstreamFault::Idle) => {
                LlmErrorClass::Timeout
            }
            Self::Fault(UpstreamFault::Unreachable | UpstreamFault::Incomplete) => {
                LlmErrorClass::Transport
            }
            Self::Failed(_) | Self::Cancelled(_) | Self::Fault(_) => LlmErrorClass::Provider,
        })
    }
}

/// The bodies of the requests of one answer, and the trace that they belong to.
pub(crate) struct AnswerRequest {
    pub(crate) body: Bytes,
    /// Posted to `cancel_url` if the answer is stopped.
    pub(crate) stop: Bytes,
    /// The headers of the trace.
    pub(crate) trace: RequestHeaders,
}

/// An answer that is read.
pub(crate) struct Answer<'a> {
    pub(crate) upstream: &'a Arc<Upstream>,
    pub(crate) emitter: &'a dyn EventEmitter,
    /// Who answers: the orchestrator, or a sub-agent.
    pub(crate) actor: Actor,
    pub(crate) call_id: CallId,
    pub(crate) translation: Translation,
    /// The start of a turn's response, until its id is known; a sub-agent has none.
    pub(crate) held: Option<HeldResponse>,
    /// The turn, until the upstream sends an id of its response; a sub-agent's is on no wire.
    pub(crate) awaits_id: Option<TurnId>,
    /// The bytes of text and reasoning so far.
    pub(crate) text_bytes: usize,
    /// The events of unknown types so far.
    pub(crate) unknown_count: u32,
}

impl Answer<'_> {
    /// Calls the upstream and reads to the end of its answer. Tools that it has left open are closed.
    pub(crate) async fn run(&mut self, request: AnswerRequest) -> Result<AnswerEnd, EmitRefusal> {
        if !self.upstream.dialect.has_response_id() {
            self.open_response(None).await?;
        }
        self.start_call().await?;
        let AnswerRequest { body, stop, trace } = request;
        let cancel = CancelNotice::new(Arc::clone(self.upstream), stop);
        let end = match self.upstream.call(body, trace, cancel).await {
            Ok(mut call) => {
                let end = self.read(&mut call).await?;
                if !matches!(end, AnswerEnd::Fault(_)) {
                    call.finish();
                }
                end
            }
            Err(fault) => AnswerEnd::Fault(fault),
        };
        if let AnswerEnd::Fault(fault) = &end {
            self.log_fault(*fault);
        }
        self.open_response(None).await?;
        Ok(end)
    }

    /// Ends the tools that the upstream has left open.
    pub(crate) async fn close_tools(&mut self) -> Result<(), EmitRefusal> {
        let open_tools = self.translation.close_tools();
        self.emit(open_tools).await
    }

    /// Ends a call that has no message.
    pub(crate) async fn fail_call(
        &mut self,
        error_class: LlmErrorClass,
    ) -> Result<(), EmitRefusal> {
        let failed = Body::LlmCallFailed(CallFailed {
            call_id: self.call_id,
            message_id: None,
            content_sha256: None,
            error_class,
            usage: self.translation.usage,
        });
        self.emit(vec![Emission::new(self.actor.clone(), failed)])
            .await
    }

    /// Emits in order, or holds back while the id of the response is not known.
    pub(crate) async fn emit(&mut self, emissions: Vec<Emission>) -> Result<(), EmitRefusal> {
        if let Some(held) = &mut self.held {
            held.hold(emissions);
            return Ok(());
        }
        for emission in emissions {
            deliver(self.emitter, emission).await?;
        }
        Ok(())
    }

    /// Emits the start of the response, unless that has happened, and all that was held back.
    async fn open_response(&mut self, id: Option<UpstreamId>) -> Result<(), EmitRefusal> {
        match self.held.take() {
            Some(held) => self.emit(held.open(id)).await,
            None => Ok(()),
        }
    }

    /// Begins the response under the first id that the upstream sends, if the turn may have it. One that
    /// comes too late is left out.
    async fn accept_id(&mut self, sent: &str) -> Result<(), EmitRefusal> {
        let Some(turn_id) = self.awaits_id.take() else {
            return Ok(());
        };
        let Some(held) = &self.held else {
            // The turn's own id is what the response has.
            if TurnId::named(sent) != Ok(turn_id) {
                count_replaced(&model_of(self.upstream), "it came too late");
            }
            return Ok(());
        };
        let id = held.accept(sent, self.emitter).await;
        self.open_response(id).await
    }

    /// The start of the call is on disk before the request is sent: the upstream may act, and after a
    /// crash the log says so.
    async fn start_call(&self) -> Result<(), EmitRefusal> {
        let started = Body::LlmCallStarted(CallStarted {
            call_id: self.call_id,
            model: model_of(self.upstream),
            purpose: CallPurpose::Relay,
            attempt: 1,
            // Set by the session.
            first: false,
        });
        let at = deliver(self.emitter, Emission::new(self.actor.clone(), started)).await?;
        self.emitter.committed(at).await
    }

    /// Reads until the upstream ends its answer, or fails.
    async fn read(&mut self, call: &mut UpstreamCall) -> Result<AnswerEnd, EmitRefusal> {
        loop {
            let event = match self.next_event(call).await? {
                Ok(event) => event,
                Err(fault) => return Ok(AnswerEnd::Fault(fault)),
            };
            if !self.has_room(&event) {
                return Ok(AnswerEnd::Fault(UpstreamFault::TooLarge));
            }
            let usage = self.translation.usage;
            match event {
                InnerEvent::Completed => return Ok(AnswerEnd::Completed),
                InnerEvent::Cancelled(code) => return Ok(AnswerEnd::Cancelled(code)),
                InnerEvent::Error {
                    error,
                    is_final: true,
                } => return Ok(AnswerEnd::Failed(error)),
                InnerEvent::Sentinel => {
                    call.ended();
                    return Ok(AnswerEnd::Fault(UpstreamFault::Incomplete));
                }
                InnerEvent::Unknown => self.count_unknown(),
                InnerEvent::ResponseId(sent) => self.accept_id(&sent).await?,
                event => match self.translation.apply(event) {
                    Ok(emissions) => self.emit(emissions).await?,
                    Err(fault) => return Ok(AnswerEnd::Fault(fault)),
                },
            }
            if self.translation.usage != usage {
                let usage = self.translation.usage;
                self.emitter.report_usage(self.call_id, usage);
            }
        }
    }

    /// Waits for an event. The response begins under the turn's own id if the upstream's does not come.
    async fn next_event(
        &mut self,
        call: &mut UpstreamCall,
    ) -> Result<Result<InnerEvent, UpstreamFault>, EmitRefusal> {
        let deadline = self.held.as_ref().and_then(HeldResponse::deadline);
        let in_time = match deadline {
            Some(deadline) => timeout_at(deadline, call.next()).await.ok(),
            None => Some(call.next().await),
        };
        let event = match in_time {
            Some(event) => event,
            None => {
                self.open_response(None).await?;
                call.next().await
            }
        };
        let is_id = matches!(event, Ok(InnerEvent::ResponseId(_)));
        if let Some(held) = &mut self.held {
            held.note_event();
            if held.is_full(call) && !is_id {
                self.open_response(None).await?;
            }
        }
        Ok(event)
    }

    /// Counts the text of an event. False if the answer has too much.
    fn has_room(&mut self, event: &InnerEvent) -> bool {
        if let InnerEvent::Text(text) | InnerEvent::Reasoning(text) | InnerEvent::Thinking(text) =
            event
        {
            self.text_bytes += text.len();
        }
        self.text_bytes <= self.upstream.limits.text_bytes_max
    }

    /// Logs why an upstream gave no whole answer: clients get a code alone.
    fn log_fault(&self, fault: UpstreamFault) {
        let status = match fault {
            UpstreamFault::Status(status) => Some(status),
            _ => None,
        };
        let (agent, cause) = (self.upstream.agent.as_str(), fault.name());
        metrics::counter!(metric::RELAY_FAULTS_TOTAL, "cause" => cause).increment(1);
        tracing::warn!(
            agent,
            cause,
            status,
            "an upstream did not answer as it should"
        );
    }

    fn count_unknown(&mut self) {
        metrics::counter!(metric::RELAY_UNKNOWN_EVENTS_TOTAL).increment(1);
        self.unknown_count += 1;
        if self.unknown_count > UNKNOWN_WARNINGS_MAX {
            return;
        }
        let agent = self.upstream.agent.as_str();
        tracing::warn!(
            agent,
            "an upstream sent an event of an unknown type: it is left out"
        );
    }
}

/// The model of a call, as events name it.
pub(crate) fn model_of(upstream: &Upstream) -> String {
    format!("{RELAY_MODEL_PREFIX}{}", upstream.agent)
}

/// The headers of a call in the trace of its turn. The span is that of the call if its spans are
/// recorded here; else the one that the events name, of the sub-agent or of the turn.
pub(crate) fn trace_headers(
    trace: Option<&TraceContext>,
    propagation: &TracePropagation,
    turn: TurnId,
    call: CallId,
) -> RequestHeaders {
    let is_recorded = propagation.is_exporting && propagation.sampled;
    let span = match trace.filter(|_| !is_recorded) {
        Some(trace) => SpanId::parse(&trace.span_id).unwrap_or_else(|| SpanId::of_call(call)),
        None => SpanId::of_call(call),
    };
    let headers = propagation.headers(&trace_id_of(trace, turn), span);
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    RequestHeaders::new(headers).unwrap_or_default()
}
