//! One call of the model: its stream in, its message out.
//!
//! The words of the agent that speaks are told as they come; those of a sub-agent are kept until
//! they are whole and leave with the end of their call, for that sub-agent alone (D-46). Every
//! call that is started ends once: with its message, or as failed. Whoever drops the future
//! leaves the ending to whoever knows what is open.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::time::Instant;
use turnwire_event::body::llm::{CallCompleted, CallFailed, CallStarted};
use turnwire_event::code::LlmErrorClass;
use turnwire_event::content::content_json;
use turnwire_event::fold::MessageFold;
use turnwire_event::port::{Emission, MessageEnd, Refusal};
use turnwire_event::row::NewMessage;
use turnwire_event::{
    Body, CallId, ContentBlock, Epoch, Kept, Position, Role, Seq, StopReason, Sub, Timestamp,
    ToolUseId, Usage,
};
use turnwire_model::{Delta, ModelError, Provider, Request, Said};

use crate::model_call::message_builder::{Draft, Malformed};
use crate::resources::agent_resources::{Desk, Who};
use crate::resources::model_choice::{provider_of, word};

/// A call that gave nothing to go on with. Its end was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The session takes no more of the turn, and ends it itself.
    Refused,
    /// The model failed before it had said anything.
    Silent(CallId, ModelError),
    /// The model failed after its first words.
    Spoken(ModelError),
}

impl From<Refusal> for CallError {
    fn from(_: Refusal) -> Self {
        Self::Refused
    }
}

/// What the model said, and which of its tool uses cannot be run.
pub(crate) struct Heard {
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) broken: Vec<ToolUseId>,
    /// What its provider wants back with it.
    kept: Kept,
}

impl Heard {
    /// The message as the next call of the turn is shown it.
    pub(crate) fn said(self) -> Arc<Said> {
        Arc::new(Said {
            role: Role::Assistant,
            content: self.content,
            kept: self.kept,
        })
    }
}

/// Where the words go.
enum Page {
    /// Out, as they come; whether the message has begun.
    Told(bool),
    /// Together.
    Kept(Box<MessageFold>),
}

/// A call in flight.
struct Call<'a> {
    desk: &'a Desk<'a>,
    id: CallId,
    model: String,
    draft: Draft<'a>,
    page: Page,
    /// Whether the model has said anything.
    spoken: bool,
    /// What a call that fails has used up.
    spent: Usage,
}

/// Calls `provider`, once; gives what it said.
pub(crate) async fn call(
    desk: &Desk<'_>,
    provider: &Arc<dyn Provider>,
    request: Request,
) -> Result<Heard, CallError> {
    let means = desk.means;
    let id = CallId(means.mint.ulid());
    let model = request.model.clone();
    let draft = Draft::new(&*means.mint, means.options.message_bytes_max);
    let page = match means.who {
        Who::Speaker | Who::Worker(_) => Page::Told(false),
        Who::Sub(_) => Page::Kept(Box::new(MessageFold::new(
            draft.message_id,
            desk.scene.turn_id,
            model.clone(),
            NOWHERE,
            Timestamp::default(),
        ))),
    };
    let mut call = Call {
        desk,
        id,
        model,
        draft,
        page,
        spoken: false,
        spent: Usage::default(),
    };
    call.tell(Body::LlmCallStarted(CallStarted {
        call_id: id,
        model: request.model.clone(),
        purpose: desk.purpose,
        attempt: request.attempt,
        // Known to the writer, who sees the whole turn.
        first: false,
    }))
    .await?;
    match call.listen(provider, request).await? {
        Ok((reason, usage)) => {
            desk.purse.spend(usage);
            call.begin().await?;
            Ok(call.end(reason, usage).await?)
        }
        Err(error) => {
            // It is paid all the same: a turn that fails again and again must come to its end.
            desk.purse.spend(call.spent);
            call.fail(error.class).await?;
            Err(if call.spoken {
                CallError::Spoken(error)
            } else {
                CallError::Silent(id, error)
            })
        }
    }
}

/// Words that are kept have no places of their own.
const NOWHERE: Position = Position {
    epoch: Epoch::FIRST,
    seq: Seq(0),
    sub: Sub(0),
};

impl Call<'_> {
    /// Takes the deltas until the stream stops or breaks; the stream is gone afterwards.
    async fn listen(
        &mut self,
        provider: &Arc<dyn Provider>,
        request: Request,
    ) -> Result<Result<(StopReason, Usage), ModelError>, Refusal> {
        let mut stream = provider.stream(request);
        loop {
            let asked = Instant::now();
            let next = stream.next().await;
            self.desk.meter.add(asked.elapsed());
            let delta = match next {
                Some(Ok(Delta::Stop { reason, usage })) => {
                    return Ok(match reason {
                        StopReason::EndTurn
                        | StopReason::MaxTokens
                        | StopReason::StopSequence
                        | StopReason::ToolUse => Ok((reason, usage)),
                        // These are the house's own words; a provider has no business with them.
                        StopReason::Cancelled | StopReason::Error => {
                            Err(self.wrong(LlmErrorClass::Provider, "stop_reason"))
                        }
                    });
                }
                Some(Ok(Delta::Spent { usage })) => {
                    self.spent = usage;
                    continue;
                }
                Some(Ok(delta)) => delta,
                // Only a turn is cancelled, so a provider that says so has merely failed.
                Some(Err(error)) if error.class == LlmErrorClass::Cancelled => {
                    return Ok(Err(self.wrong(LlmErrorClass::Provider, "cancelled")));
                }
                Some(Err(error)) => return Ok(Err(error)),
                None => return Ok(Err(self.wrong(LlmErrorClass::Transport, "no_end"))),
            };
            match self.draft.take(delta) {
                Ok(Some(body)) => {
                    self.spoken = true;
                    self.begin().await?;
                    self.write(body).await?;
                }
                Ok(None) => {}
                Err(Malformed(place)) => {
                    return Ok(Err(self.wrong(LlmErrorClass::Provider, place)));
                }
            }
        }
    }

    /// A failure that is found here and not by the provider, which tells its own: whoever runs
    /// the server is told, without a word of what was said.
    fn wrong(&self, class: LlmErrorClass, place: &'static str) -> ModelError {
        let (model, why) = (self.model.as_str(), word(class));
        tracing::warn!(model, class = why, place, "a model call failed");
        ModelError::from(class).at(place)
    }

    /// Begins the message, if it has not begun.
    async fn begin(&mut self) -> Result<(), Refusal> {
        if let Page::Told(false) = self.page {
            let start = self.draft.start(&self.model);
            self.tell(start).await?;
            self.page = Page::Told(true);
        }
        Ok(())
    }

    /// Puts one more piece of the message where it goes.
    async fn write(&mut self, body: Body) -> Result<(), Refusal> {
        match &mut self.page {
            Page::Told(_) => self.tell(body).await,
            Page::Kept(message) => {
                message.apply(NOWHERE, Timestamp::default(), &body);
                Ok(())
            }
        }
    }

    async fn fail(&mut self, class: LlmErrorClass) -> Result<(), Refusal> {
        if let Page::Told(true) = self.page {
            self.close().await?;
            self.complete(StopReason::Error, Usage::default(), Some(class))?;
            return Ok(());
        }
        let failed = CallFailed {
            call_id: self.id,
            message_id: None,
            content_sha256: None,
            error_class: class,
        };
        let emission = Emission {
            provider_response_id: self.draft.response_id().map(str::to_owned),
            ..Emission::new(self.desk.means.who.actor(), Body::LlmCallFailed(failed))
        };
        self.desk.deliver(emission).await?;
        Ok(())
    }

    async fn end(&mut self, stop_reason: StopReason, usage: Usage) -> Result<Heard, Refusal> {
        self.close().await?;
        if stop_reason == StopReason::MaxTokens {
            self.draft.cut();
        }
        let Page::Kept(message) = &self.page else {
            return self.complete(stop_reason, usage, None);
        };
        let content = message.content();
        let kept = self.draft.take_kept(provider_of(&self.model));
        let completed = Body::LlmCallCompleted(CallCompleted {
            call_id: self.id,
            message_id: self.draft.message_id,
            content_sha256: content_json(&content).1,
            stop_reason,
            usage,
        });
        let who = &self.desk.means.who;
        let emission = Emission {
            message: Some(NewMessage {
                id: self.draft.message_id,
                role: Role::Assistant,
                content: content.clone(),
                metadata: self.desk.metadata(),
                scope: who.scope(),
                kept: kept.clone(),
            }),
            provider_response_id: self.draft.response_id().map(str::to_owned),
            ..Emission::new(who.actor(), completed)
        };
        self.desk.deliver(emission).await?;
        Ok(self.heard(content, kept))
    }

    /// Ends the tool uses that the provider left open.
    async fn close(&mut self) -> Result<(), Refusal> {
        for body in self.draft.close() {
            self.write(body).await?;
        }
        Ok(())
    }

    fn complete(
        &mut self,
        stop_reason: StopReason,
        usage: Usage,
        failure: Option<LlmErrorClass>,
    ) -> Result<Heard, Refusal> {
        let means = self.desk.means;
        let kept = self.draft.take_kept(provider_of(&self.model));
        let tools = self.draft.tools().iter();
        let content = self.desk.emitter.complete(MessageEnd {
            kept: kept.clone(),
            provider_response_id: self.draft.response_id().map(str::to_owned),
            call_id: self.id,
            message_id: self.draft.message_id,
            stop_reason,
            usage,
            failure,
            tools: tools.map(|(id, name)| (*id, means.kind(name))).collect(),
        })?;
        Ok(self.heard(content, kept))
    }

    fn heard(&self, content: Vec<ContentBlock>, kept: Kept) -> Heard {
        Heard {
            content,
            broken: self.draft.broken().to_vec(),
            kept,
        }
    }

    async fn tell(&self, body: Body) -> Result<(), Refusal> {
        let actor = self.desk.means.who.actor();
        self.desk.tell(actor, body).await.map(|_| ())
    }
}
