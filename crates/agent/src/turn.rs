//! The loop of one turn: which model, then call and work in turns until the model asks for
//! nothing more. With sub-agents to ask, part of the work is a dispatch, and what follows it is
//! composing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join;
use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::body::route::Decided;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CallPurpose, ErrorCode, LlmErrorClass, TurnStatus};
use turnwire_event::port::{Outcome, Refusal, TurnContext};
use turnwire_event::{Actor, Body, Role};
use turnwire_model::{Provider, Request, Said};

use crate::call::{Halt, Heard, call, call_with};
use crate::cast::Cast;
use crate::dispatch::{Dispatch, Note, Sorted, sort};
use crate::failures::Failures;
use crate::means::{self, Desk, Meter};
use crate::outcome::refuse;
use crate::past;
use crate::prior::Before;
use crate::span::Spans;
use crate::work::{BROKEN, Ended, Use, uses, work};

/// The policy that has one model to choose from.
pub(crate) const ROUTING_POLICY: &str = "builtin-1";

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
pub(crate) async fn run(cast: &Cast, turn: TurnContext) -> Outcome {
    let scene = means::scene(
        &turn.input,
        None,
        turn.input.trace.clone(),
        &cast.definition,
    );
    let meter = Meter::default();
    let desk = Desk {
        means: &cast.means,
        emitter: &turn.emitter,
        scene: &scene,
        meter: &meter,
        keeper: None,
        invocation: None,
        purpose: CallPurpose::Orchestrate,
        span: None,
    };
    let mut telling = Telling {
        cast,
        turn: &turn,
        desk,
        spans: None,
        failures: Failures::default(),
        notes: Vec::new(),
        begun: Instant::now(),
        steps: 0,
    };
    let ended = match telling.answer().await {
        Ok(()) => {
            let Telling { failures, desk, .. } = telling;
            failures.outcome(&desk).await
        }
        Err(Stop::Failed(code)) => telling.fail(code).await,
        Err(Stop::Refused) => Err(Refusal::Ended),
    };
    // The session has ended the turn or is about to, and does not look at this.
    ended.unwrap_or_else(|_| failed(ErrorCode::InternalError.into()))
}

fn failed(error: TurnError) -> Outcome {
    Outcome {
        reason: None,
        status: TurnStatus::Failed,
        error: Some(error),
    }
}

/// Why a turn goes no further.
enum Stop {
    Refused,
    Failed(ErrorCode),
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
        }
    }
}

/// A turn on its way.
struct Telling<'a> {
    cast: &'a Cast,
    turn: &'a TurnContext,
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
}

impl Telling<'_> {
    async fn answer(&mut self) -> Result<(), Stop> {
        let options = &self.cast.means.options;
        let decided = Body::RouteDecided(Decided {
            model: options.model.clone(),
            routing_policy_version: ROUTING_POLICY.to_owned(),
            reason: "only model".to_owned(),
            candidates: Vec::new(),
        });
        self.desk.tell(Actor::SYSTEM, decided).await?;
        let history = self.turn.history.recent(options.history).await;
        let history = history.map_err(|_| Stop::Failed(ErrorCode::InternalError))?;
        let members = &self.cast.members;
        let before = Before::find(&history, &self.turn.input, |tool| {
            let member = members.iter().find(|member| member.answers_to(tool));
            member.map(|member| member.id.clone())
        });
        let mut said = past::said(history, &self.turn.input);
        for n in 1..=options.calls_max {
            let Heard { content, broken } = self.call(n, &said).await?;
            let uses = uses(content.clone(), &broken);
            if uses.is_empty() {
                return Ok(());
            }
            said.push(Arc::new(Said::new(Role::Assistant, content)));
            said.extend(self.work(uses, before.as_ref()).await?);
        }
        Err(Stop::Failed(ErrorCode::InternalError))
    }

    /// The n-th call of the model that speaks: to decide, or to compose what sub-agents gave.
    async fn call(&self, n: u32, said: &[Arc<Said>]) -> Result<Heard, Halt> {
        let request = self.request(n, &self.cast.means.options.model, said);
        let Some(spans) = &self.spans else {
            return call(&self.desk, request).await;
        };
        let (desk, span) = Dispatch::compose(&self.desk, spans);
        call(&desk, request).instrument(span).await
    }

    fn request(&self, n: u32, model: &str, said: &[Arc<Said>]) -> Request {
        let means = &self.cast.means;
        Request {
            model: model.to_owned(),
            agent: means.who.name().to_owned(),
            call: n,
            attempt: 1,
            locale: self.turn.input.locale.clone(),
            system: means.options.system.clone(),
            messages: past::paired(said),
            tools: Arc::clone(&means.tools),
        }
    }

    /// Does what one message asks for: sub-agents are asked while other tools run.
    async fn work(
        &mut self,
        uses: Vec<Use>,
        before: Option<&Before>,
    ) -> Result<Vec<Arc<Said>>, Refusal> {
        let Sorted {
            asks,
            broken,
            others,
        } = sort(uses, &self.cast.members);
        let mut said = Vec::new();
        for (call, member) in broken {
            let why = BROKEN.to_owned();
            said.push(refuse(&self.desk, &call, &member.id, why).await?);
        }
        let others = work(&self.desk, others);
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

    /// What the speaker's own tools gave.
    fn took(&mut self, ended: Vec<Ended>) -> Vec<Arc<Said>> {
        let fault = |end: &Ended| matches!(&end.given, Err(failure) if failure.fault.is_some());
        if ended.iter().any(fault) {
            self.failures.degrade();
        }
        ended.into_iter().map(|end| end.said).collect()
    }

    /// Ends a turn whose own model failed: the person is told in the words of a template.
    async fn fail(self, code: ErrorCode) -> Result<Outcome, Refusal> {
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
            match call_with(&desk, &line, request).await {
                Ok(_) | Err(Halt::Model(_)) => {}
                Err(Halt::Refused) => return Err(Refusal::Ended),
            }
        }
        let ended = self.failures.outcome(&self.desk).await?;
        Ok(match ended.error {
            Some(error) => failed(error),
            None => failed(code.into()),
        })
    }
}
