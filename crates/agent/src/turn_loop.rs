//! The loop of one turn: which model, then call and work in turns until the model asks for
//! nothing more. With sub-agents to ask, part of the work is a dispatch, and what follows it is
//! composing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::Actor;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CallPurpose, ErrorCode, LlmErrorClass, TurnStatus};
use turnwire_event::port::{Outcome, Refusal, TurnContext};
use turnwire_model::{Provider, Request, Said};

use crate::dispatch::dispatch_step::{Dispatch, Note, Sorted, sort};
use crate::dispatch::invocation_result::refuse;
use crate::dispatch::turn_binding::Cast;
use crate::dispatch::turn_failures::Failures;
use crate::dispatch::turn_spans::Spans;
use crate::emitter::output_recorder::Witness;
use crate::history::conversation;
use crate::history::prior_context::Before;
use crate::model_call::call::{CallError, Heard, call};
use crate::model_call::fallback::{Halt, ask};
use crate::resources::agent_resources::{self, Desk, Meter};
use crate::resources::model_choice::Standing;
use crate::resources::turn_budget::{Limit, Purse};
use crate::tool_call::approval::{self, sift};
use crate::tool_call::execute::{
    BROKEN, Ended, Use, decline, excess, leave_out, too_many, uses, work,
};
use crate::tool_call::resumed_turn::leg;

/// What is left to the orchestrator of a turn's time, to say in its own words what came of it.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// The least time a sub-agent is given: enough to find that there is none, and to say so.
const LEFT_MIN: Duration = Duration::from_millis(100);

/// How long sub-agents may take in a turn that may take `limit` and has taken `spent` (D-82).
fn left(limit: Duration, spent: Duration) -> Duration {
    let left = limit.saturating_sub(spent).saturating_sub(ANSWER_TIME);
    left.max(LEFT_MIN)
}

/// Answers one turn.
pub(crate) async fn run(cast: &Cast, turn: TurnContext, witness: &Witness) -> Outcome {
    let trace = turn.input.trace.clone();
    let scene = agent_resources::scene(&turn, None, trace, &cast.definition);
    let meter = Meter::default();
    let standing = Standing::default();
    let purse = Arc::new(Purse::new(&cast.means.options));
    let begun = Instant::now();
    let desk = Desk {
        means: &cast.means,
        emitter: &turn.emitter,
        scene: &scene,
        meter: &meter,
        standing: &standing,
        purse: &purse,
        until: begun + turn.input.turn_timeout,
        keeper: None,
        invocation: None,
        purpose: CallPurpose::Orchestrate,
        span: None,
    };
    let mut telling = Telling {
        cast,
        turn: &turn,
        witness,
        desk,
        spans: None,
        failures: Failures::default(),
        notes: Vec::new(),
        begun,
        steps: 0,
        asked: Vec::new(),
        before: 0,
    };
    let ended = match telling.answer().await {
        Ok(()) => {
            let Telling { failures, desk, .. } = telling;
            failures.outcome(&desk).await
        }
        Err(Stop::Failed(code)) => telling.fail(code, None).await,
        Err(Stop::Limit(limit)) => telling.exhaust(limit).await,
        Err(Stop::Paused) => telling.pause().await,
        Err(Stop::Refused) => Err(Refusal::Ended),
    };
    // The session has ended the turn or is about to, and does not look at this.
    ended.unwrap_or_else(|_| failed(ErrorCode::InternalError.into(), None))
}

fn failed(error: TurnError, limit: Option<Limit>) -> Outcome {
    Outcome {
        reason: limit.map(|limit| limit.reason().to_owned()),
        status: TurnStatus::Failed,
        error: Some(error),
    }
}

/// Why a turn goes no further.
enum Stop {
    Refused,
    /// A person is asked first.
    Paused,
    Failed(ErrorCode),
    Limit(Limit),
}

impl From<Refusal> for Stop {
    fn from(_: Refusal) -> Self {
        Self::Refused
    }
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Refused => Self::Refused,
            Halt::Model(LlmErrorClass::RateLimited) => Self::Failed(ErrorCode::RateLimitError),
            Halt::Model(_) => Self::Failed(ErrorCode::InternalError),
            Halt::Limit(limit) => Self::Limit(limit),
        }
    }
}

/// A turn on its way.
struct Telling<'a> {
    cast: &'a Cast,
    turn: &'a TurnContext,
    /// Whether the person has been given anything.
    witness: &'a Witness,
    desk: Desk<'a>,
    /// Made when the first sub-agent is asked.
    spans: Option<Spans>,
    failures: Failures,
    /// What later turns should know, should this one turn out to ask more than one.
    notes: Vec<Note>,
    /// When its work began.
    begun: Instant,
    /// How often sub-agents were asked.
    steps: u32,
    /// The tools that a person must be asked about.
    asked: Vec<Use>,
    /// How many calls the turn had that this one goes on with.
    before: u32,
}

impl Telling<'_> {
    async fn answer(&mut self) -> Result<(), Stop> {
        let options = &self.cast.means.options;
        let decided = self.cast.means.choice.decided();
        self.desk.tell(Actor::SYSTEM, decided).await?;
        for body in self.cast.means.servers() {
            self.desk.tell(Actor::SYSTEM, body).await?;
        }
        let history = self.turn.history.recent(options.history).await;
        let history = history.map_err(|_| Stop::Failed(ErrorCode::InternalError))?;
        let members = &self.cast.members;
        let before = Before::find(&history, &self.turn.input, |tool| {
            let member = members.iter().find(|member| member.answers_to(tool));
            member.map(|member| member.id.clone())
        });
        let mut said = conversation::said(history, &self.turn.input);
        let more = self.resume(&said).await?;
        said.extend(more);
        for n in 1..=options.calls_max {
            let heard = self.call(n, &said).await?;
            let uses = uses(&heard.content, &heard.broken);
            if uses.is_empty() {
                return self.answered();
            }
            said.push(heard.said());
            said.extend(self.work(uses, before.as_ref()).await?);
            if !self.asked.is_empty() {
                return Err(Stop::Paused);
            }
        }
        Err(Stop::Limit(Limit::Calls))
    }

    /// Goes on with a turn that had asked a person: what they allowed is done first.
    async fn resume(&mut self, said: &[Arc<Said>]) -> Result<Vec<Arc<Said>>, Refusal> {
        let Some(resumed) = &self.turn.input.resumed else {
            return Ok(Vec::new());
        };
        let leg = leg(&self.cast.means, resumed, said);
        self.before = leg.calls;
        let ended = work(&self.desk, leg.allowed).await?;
        let mut more = self.took(ended);
        for (asked, why) in leg.declined {
            more.push(decline(&self.desk, &asked, why).await?);
        }
        Ok(more)
    }

    /// Asks the person, and leaves the tools open for whoever goes on.
    async fn pause(mut self) -> Result<Outcome, Refusal> {
        // What failed is not what the turn ends with: it has not ended for the person.
        self.failures.release(&self.desk).await?;
        approval::ask(&self.desk, &self.asked).await?;
        Ok(approval::paused())
    }

    /// A turn that gave the person nothing has not answered, however well its model stopped.
    fn answered(&self) -> Result<(), Stop> {
        if self.witness.has_shown() {
            return Ok(());
        }
        let model = &self.cast.means.choice.at(self.desk.standing).model;
        tracing::warn!(model, "a turn's model has stopped and said nothing");
        Err(Stop::Failed(ErrorCode::InternalError))
    }

    /// The n-th call of the model that speaks: to decide, or to compose what sub-agents gave.
    async fn call(&self, n: u32, said: &[Arc<Said>]) -> Result<Heard, Halt> {
        let request = self.request(n, &self.cast.means.options.model, said);
        let Some(spans) = &self.spans else {
            return ask(&self.desk, request).await;
        };
        let (desk, span) = Dispatch::compose(&self.desk, spans);
        ask(&desk, request).instrument(span).await
    }

    fn request(&self, n: u32, model: &str, said: &[Arc<Said>]) -> Request {
        let means = &self.cast.means;
        Request {
            model: model.to_owned(),
            agent: means.who.name().to_owned(),
            call: self.before.saturating_add(n),
            attempt: 1,
            locale: self.turn.input.locale.clone(),
            system: means.options.system.clone(),
            messages: conversation::paired(said),
            tools: Arc::clone(&means.tools),
        }
    }

    /// Does what one message asks for: sub-agents are asked while other tools run.
    async fn work(
        &mut self,
        mut uses: Vec<Use>,
        before: Option<&Before>,
    ) -> Result<Vec<Arc<Said>>, Refusal> {
        let mut said = self.leave_out(excess(&mut uses, &self.cast.means)).await?;
        let Sorted {
            asks,
            broken,
            others,
        } = sort(uses, &self.cast.members);
        for (call, member) in broken {
            let why = BROKEN.to_owned();
            said.push(refuse(&self.desk, &call, &member.id, why).await?);
        }
        let mut sifted = sift(&self.cast.means, self.turn.input.kind, others);
        said.extend(sifted.refuse(&self.desk).await?);
        self.asked = sifted.later;
        let others = work(&self.desk, sifted.now);
        if asks.is_empty() {
            let ended = others.await?;
            said.extend(self.took(ended));
            return Ok(said);
        }
        self.steps += 1;
        let mint = &self.cast.means.mint;
        let spans = self
            .spans
            .get_or_insert_with(|| Spans::new(&self.turn.input, Arc::clone(mint)));
        let dispatch = Dispatch {
            cast: self.cast,
            turn: self.turn,
            desk: &self.desk,
            spans,
            before,
            number: self.steps,
            left: left(self.turn.input.turn_timeout, self.begun.elapsed()),
        };
        let asked = dispatch.run(asks, &mut self.failures, &mut self.notes);
        let (ended, answered) = try_join(others, asked).await?;
        said.extend(answered);
        said.extend(self.took(ended));
        Ok(said)
    }

    /// Refuses the tools that are more than a message may ask for, sub-agents among them.
    async fn leave_out(&self, uses: Vec<Use>) -> Result<Vec<Arc<Said>>, Refusal> {
        let Sorted {
            asks,
            broken,
            others,
        } = sort(uses, &self.cast.members);
        let mut said = leave_out(&self.desk, others).await?;
        for (call, member) in asks.into_iter().chain(broken) {
            let why = too_many(&self.cast.means);
            said.push(refuse(&self.desk, &call, &member.id, why).await?);
        }
        Ok(said)
    }

    /// What the speaker's own tools gave.
    fn took(&mut self, ended: Vec<Ended>) -> Vec<Arc<Said>> {
        let fault = |end: &Ended| matches!(&end.given, Err(failure) if failure.fault.is_some());
        if ended.iter().any(fault) {
            self.failures.degrade();
        }
        ended.into_iter().map(|end| end.said).collect()
    }

    /// Ends a turn whose own model failed: the person is told in the words of a template.
    async fn fail(self, code: ErrorCode, limit: Option<Limit>) -> Result<Outcome, Refusal> {
        // A sub-agent that failed before is what the turn is about; that nobody could say so in
        // better words changes nothing about it.
        let code = self.failures.held().map_or(code, |error| error.code);
        if let Some(templates) = &self.cast.templates {
            let line: Arc<dyn Provider> = Arc::new(templates.line(code));
            let request = self.request(1, &templates.model, &[]);
            let desk = Desk {
                purpose: CallPurpose::Compose,
                ..self.desk.clone()
            };
            match call(&desk, &line, request).await {
                Ok(_) | Err(CallError::Silent(..) | CallError::Spoken(_)) => {}
                Err(CallError::Refused) => return Err(Refusal::Ended),
            }
        }
        let ended = self.failures.outcome(&self.desk).await?;
        Ok(match ended.error {
            Some(error) => failed(error, limit),
            None => failed(code.into(), limit),
        })
    }

    /// Ends a turn that may use no more. What the whole turn may use is the turn's own end,
    /// whoever used it up: a sub-agent that had to stop for it is not what failed.
    async fn exhaust(mut self, limit: Limit) -> Result<Outcome, Refusal> {
        match limit {
            Limit::Tokens | Limit::Cost => self.failures.release(&self.desk).await?,
            Limit::Calls => {}
        }
        self.fail(ErrorCode::InternalError, Some(limit)).await
    }
}
