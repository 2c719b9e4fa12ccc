//! One call of the model: its stream in, its message out, told as it comes.
//!
//! Every call that is started ends once: with its message, or as failed. Whoever drops the future
//! leaves the ending to the session, which knows what is open.

use std::sync::Arc;

use futures_util::StreamExt as _;
use turnwire_event::body::llm::{CallFailed, CallStarted};
use turnwire_event::code::{CallPurpose, ErrorCode, LlmErrorClass, ToolType};
use turnwire_event::port::{Emission, Emitter, MessageEnd, Refusal};
use turnwire_event::{Actor, Body, CallId, ContentBlock, Mint, StopReason, ToolUseId, Usage};
use turnwire_model::{Delta, Provider, Request};
use turnwire_tool::{Toolbox, deliver};

use crate::draft::Draft;
use crate::options::Options;

/// Why a turn goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The session takes no more of it, and ends it itself.
    Refused,
    /// It failed.
    Failed(ErrorCode),
}

impl From<Refusal> for Halt {
    fn from(_: Refusal) -> Self {
        Self::Refused
    }
}

/// What an agent works with.
pub(crate) struct Means {
    pub(crate) options: Options,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) toolbox: Toolbox,
    pub(crate) mint: Arc<dyn Mint>,
}

/// A call in flight.
struct Call<'a> {
    means: &'a Means,
    emitter: &'a dyn Emitter,
    id: CallId,
    draft: Draft<'a>,
    begun: bool,
}

/// What the model said, and which of its tool uses cannot be run.
pub(crate) struct Heard {
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) broken: Vec<ToolUseId>,
}

/// Calls the model; gives what it said.
pub(crate) async fn call(
    means: &Means,
    emitter: &dyn Emitter,
    request: Request,
) -> Result<Heard, Halt> {
    let id = CallId(means.mint.ulid());
    let mut call = Call {
        means,
        emitter,
        id,
        draft: Draft::new(&*means.mint, means.options.message_bytes_max),
        begun: false,
    };
    call.tell(Body::LlmCallStarted(CallStarted {
        call_id: id,
        model: request.model.clone(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        // Known to the writer, who sees the whole turn.
        first: false,
    }))
    .await?;
    match call.listen(request).await? {
        Ok((reason, usage)) => {
            call.begin().await?;
            let content = call.end(reason, usage, None).await?;
            let broken = call.draft.broken().to_vec();
            Ok(Heard { content, broken })
        }
        Err(class) => {
            call.fail(class).await?;
            let code = match class {
                LlmErrorClass::RateLimited => ErrorCode::RateLimitError,
                _ => ErrorCode::InternalError,
            };
            Err(Halt::Failed(code))
        }
    }
}

impl Call<'_> {
    /// Tells the deltas until the stream stops or breaks; the stream is gone afterwards.
    async fn listen(
        &mut self,
        request: Request,
    ) -> Result<Result<(StopReason, Usage), LlmErrorClass>, Halt> {
        let mut stream = self.means.provider.stream(request);
        loop {
            let delta = match stream.next().await {
                Some(Ok(Delta::Stop { reason, usage })) => {
                    return Ok(match reason {
                        StopReason::EndTurn
                        | StopReason::MaxTokens
                        | StopReason::StopSequence
                        | StopReason::ToolUse => Ok((reason, usage)),
                        // These are the house's own words; a provider has no business with them.
                        StopReason::Cancelled | StopReason::Error => Err(LlmErrorClass::Provider),
                    });
                }
                Some(Ok(delta)) => delta,
                // Only a turn is cancelled, so a provider that says so has merely failed.
                Some(Err(error)) if error.class == LlmErrorClass::Cancelled => {
                    return Ok(Err(LlmErrorClass::Provider));
                }
                Some(Err(error)) => return Ok(Err(error.class)),
                None => return Ok(Err(LlmErrorClass::Transport)),
            };
            match self.draft.take(delta) {
                Ok(Some(body)) => {
                    self.begin().await?;
                    self.tell(body).await?;
                }
                Ok(None) => {}
                Err(_) => return Ok(Err(LlmErrorClass::Provider)),
            }
        }
    }

    /// Begins the message, if it has not begun.
    async fn begin(&mut self) -> Result<(), Refusal> {
        if self.begun {
            return Ok(());
        }
        let start = self.draft.start(&self.means.options.model);
        self.tell(start).await?;
        self.begun = true;
        Ok(())
    }

    async fn fail(&mut self, class: LlmErrorClass) -> Result<(), Halt> {
        if self.begun {
            self.end(StopReason::Error, Usage::default(), Some(class))
                .await?;
            return Ok(());
        }
        let failed = CallFailed {
            call_id: self.id,
            message_id: None,
            content_sha256: None,
            error_class: class,
        };
        self.tell(Body::LlmCallFailed(failed)).await?;
        Ok(())
    }

    async fn end(
        &mut self,
        stop_reason: StopReason,
        usage: Usage,
        failure: Option<LlmErrorClass>,
    ) -> Result<Vec<ContentBlock>, Halt> {
        for body in self.draft.close() {
            self.tell(body).await?;
        }
        let kind = |name: &str| {
            let tool = self.means.toolbox.get(name);
            tool.map_or(ToolType::Function, |tool| tool.tool_type())
        };
        let tools = self.draft.tools().iter();
        let content = self.emitter.complete(MessageEnd {
            call_id: self.id,
            message_id: self.draft.message_id,
            stop_reason,
            usage,
            failure,
            tools: tools.map(|(id, name)| (*id, kind(name))).collect(),
        })?;
        Ok(content)
    }

    async fn tell(&self, body: Body) -> Result<(), Refusal> {
        let emission = Emission::new(Actor::ORCHESTRATOR, body);
        deliver(self.emitter, emission).await.map(|_| ())
    }
}
