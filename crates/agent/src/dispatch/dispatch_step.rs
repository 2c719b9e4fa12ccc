//! Asking sub-agents, in the six steps of S2 5.3:
//!
//! ```text
//! 1 emitted       the tool calls of one response; those beyond the cap are not executed
//! 2 resolve       which sub-agent a call means                 tool.called
//! 3 instantiate   the sub-agent, with what it inherits         subagent.started │ durable
//! 4 run           its own loop, all of them at once
//! 5 result        what came back, as each comes                subagent.*, tool.*
//! 6 compose       the orchestrator's next call
//! ```
//! One call and several take the same way; several are one plan step with more slots (S2-032).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;
use turnwire_event::body::plan::StepStarted;
use turnwire_event::body::subagent::{Context, Started};
use turnwire_event::body::support::Noted;
use turnwire_event::body::tool::Called;
use turnwire_event::body::turn::TurnError;
use turnwire_event::code::{CallPurpose, StepStatus, ToolType};
use turnwire_event::port::{Emission, Refusal, TurnContext};
use turnwire_event::row::{NewMessage, Scope};
use turnwire_event::{Actor, Body, ContentBlock, InvocationId, MessageId, Position, Role};
use turnwire_model::Said;
use turnwire_plan::{Expected, Key, Run, Work};

use crate::dispatch::invocation::{self, Job};
use crate::dispatch::invocation_result::{self, Asked};
use crate::dispatch::sub_agent::{Member, question};
use crate::dispatch::turn_binding::{Axis2, Cast, Intent};
use crate::dispatch::turn_failures::{Failure, Failures};
use crate::dispatch::turn_spans::Spans;
use crate::emitter::sub_agent_emitter::Voice;
use crate::history::prior_context::Before;
use crate::resources::agent_resources::{self, Desk, Faults, Meter};
use crate::tool_call::execute::{Use, millis};

/// What a dispatch needs of its turn.
pub(crate) struct Dispatch<'a> {
    pub(crate) cast: &'a Cast,
    pub(crate) turn: &'a TurnContext,
    pub(crate) desk: &'a Desk<'a>,
    pub(crate) spans: &'a Spans,
    pub(crate) before: Option<&'a Before>,
    /// Which dispatch of the turn it is, from 1.
    pub(crate) number: u32,
    /// What is left of the turn's time for those it asks.
    pub(crate) left: Duration,
}

/// A result that later turns may need.
pub(crate) struct Note {
    sub_agent_id: String,
    text: String,
}

/// The calls of one response.
struct Emitted {
    taken: Vec<(Use, Arc<Member>)>,
    dropped: Vec<(Use, Arc<Member>)>,
}

impl Dispatch<'_> {
    /// Asks the sub-agents that `asks` name; gives what the orchestrator's model is told.
    pub(crate) async fn run(
        &self,
        asks: Vec<(Use, Arc<Member>)>,
        failures: &mut Failures,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<Arc<Said>>, Refusal> {
        let parsed = Instant::now();
        // Whatever failed before, the turn now asks someone else.
        failures.release(self.desk).await?;
        let calls = self.emitted(asks);
        let intent = self.intent(&calls);
        if intent == Intent::Mixed {
            self.remember(notes).await?;
        }
        let faults = self.faults(intent);
        let step = self.open(&calls).await?;
        let mut said = self.leave_out(calls.dropped).await?;
        let mut asked = HashMap::new();
        let mut works = Vec::new();
        let mut last = None;
        for (call, member) in calls.taken {
            self.resolve(&call).await?;
            let (at, one, job) = self.instantiate(&step, call, member, faults).await?;
            last = Some(at);
            works.push(self.work(&one, job));
            asked.insert(one.tool_use_id.to_string(), one);
        }
        // What stands at the last place is durable when all before it is: from here they act.
        if let Some(last) = last {
            self.desk.emitter.committed(last).await?;
        }
        let mut run = Run::start(&*step, works).expect("every tool use has an id of its own");
        let mut errors = Vec::new();
        while let Some(end) = run.next().await {
            let Some(one) = asked.remove(&end.key.result_key) else {
                continue;
            };
            let back =
                invocation_result::result(self.desk, self.spans, &one, end.ended, parsed).await?;
            said.push(back.said);
            let noted = back.notes.into_iter().map(|text| Note {
                sub_agent_id: one.id().to_owned(),
                text,
            });
            notes.extend(noted);
            let failed = failures.take(self.desk, one.id(), back.failed, intent);
            errors.extend(failed.await?);
        }
        self.close(&mut run, errors, failures).await?;
        if intent == Intent::Mixed {
            self.remember(notes).await?;
        }
        Ok(said)
    }

    /// Step 1: the model's calls in its order; the first as many as the cap allows (D-28). The
    /// cap is for one answer of the model (I-16): the next may ask as many again. How often it
    /// may is bounded by the calls of a turn, `calls_max`.
    fn emitted(&self, mut asks: Vec<(Use, Arc<Member>)>) -> Emitted {
        let dropped = asks.split_off(asks.len().min(self.cast.cap));
        Emitted {
            taken: asks,
            dropped,
        }
    }

    /// Whether one sub-agent is all that the turn has asked.
    fn intent(&self, calls: &Emitted) -> Intent {
        if self.number == 1 && calls.taken.len() == 1 {
            Intent::Single
        } else {
            Intent::Mixed
        }
    }

    /// A data service that fails the only sub-agent of a turn can be made to end it (S1-102).
    fn faults(&self, intent: Intent) -> Faults {
        match (self.cast.axis2, intent) {
            (Axis2::Terminal, Intent::Single) => Faults::Kept,
            (Axis2::Terminal, Intent::Mixed) | (Axis2::Passing, _) => Faults::Told,
        }
    }

    /// How long one may take: what its definition allows, within the turn's own time (D-82).
    fn limit(&self, member: &Member) -> Duration {
        member.timeout.min(self.left)
    }

    async fn open(&self, calls: &Emitted) -> Result<String, Refusal> {
        let plan_step_id = format!("turn-{}-{}", self.turn.input.turn_id, self.number);
        let ids = |calls: &[(Use, Arc<Member>)]| -> Vec<String> {
            calls.iter().map(|(_, member)| member.id.clone()).collect()
        };
        let limits = calls.taken.iter().map(|(_, member)| self.limit(member));
        let started = Body::PlanStepStarted(StepStarted {
            plan_step_id: plan_step_id.clone(),
            expected_subagents: ids(&calls.taken),
            cap: u32::try_from(self.cast.cap).unwrap_or(u32::MAX),
            dropped: ids(&calls.dropped),
            deadline_ms: millis(limits.max().unwrap_or(Duration::ZERO)),
        });
        self.desk.tell(Actor::ORCHESTRATOR, started).await?;
        Ok(plan_step_id)
    }

    /// Refuses the calls beyond the cap (S2-029).
    async fn leave_out(&self, dropped: Vec<(Use, Arc<Member>)>) -> Result<Vec<Arc<Said>>, Refusal> {
        let mut said = Vec::new();
        for (call, member) in dropped {
            let why = format!(
                "not executed: at most {} assistants can be asked at once.",
                self.cast.cap
            );
            said.push(invocation_result::refuse(self.desk, &call, &member.id, why).await?);
        }
        Ok(said)
    }

    /// Step 2: the call means a sub-agent that the turn was bound to, and says so.
    async fn resolve(&self, call: &Use) -> Result<(), Refusal> {
        let trace = self.spans.child();
        let span_id = &trace.span_id;
        let span = tracing::info_span!("dispatch.resolve", tool = call.name, span_id);
        let called = Body::ToolCalled(Called {
            tool_use_id: call.id,
            tool_name: call.name.clone(),
            tool_type: ToolType::SubAgent,
            input_summary: format!("{} bytes", call.input.to_string().len()),
        });
        let emission = Emission {
            trace: Some(trace),
            ..Emission::new(Actor::tool(&call.name), called)
        };
        self.desk.deliver(emission).instrument(span).await?;
        Ok(())
    }

    /// Step 3: the sub-agent with what it inherits: references and short values (S2-016).
    async fn instantiate(
        &self,
        step: &str,
        call: Use,
        member: Arc<Member>,
        faults: Faults,
    ) -> Result<(Position, Asked, Job), Refusal> {
        let trace = self.spans.child();
        let span_id = &trace.span_id;
        let span = tracing::info_span!("dispatch.instantiate", sub_agent_id = member.id, span_id);
        let context = self.context(&member);
        let question = question(&call.input, &self.turn.input.content);
        let invocation_id = InvocationId(self.desk.means.mint.ulid());
        let started = Body::SubagentStarted(Started {
            invocation_id,
            sub_agent_id: member.id.clone(),
            tool_use_id: call.id,
            plan_step_id: step.to_owned(),
            context: context.clone(),
        });
        let emission = Emission {
            message: Some(NewMessage {
                kept: turnwire_event::Kept::default(),
                id: MessageId(self.desk.means.mint.ulid()),
                role: Role::User,
                content: vec![ContentBlock::text(&*question)],
                metadata: agent_resources::invocation(&member.id, invocation_id),
                scope: Scope::Agent(member.id.clone()),
            }),
            trace: Some(trace),
            ..Emission::new(Actor::subagent(&member.id), started)
        };
        let at = self.desk.deliver(emission).instrument(span).await?;
        let run = self.spans.child();
        let writer = Arc::clone(self.desk.emitter);
        let voice = Voice::new(writer, Arc::clone(&run), member.emits.clone());
        let one = Asked {
            member: Arc::clone(&member),
            tool_use_id: call.id,
            tool_name: call.name,
            invocation_id,
            voice: Arc::new(voice),
            meter: Arc::new(Meter::default()),
            begun: Instant::now(),
        };
        let job = Job {
            scene: agent_resources::scene(
                self.turn,
                Some(&member.id),
                Some(run),
                &self.cast.definition,
            ),
            history: Arc::clone(&self.turn.history),
            voice: Arc::clone(&one.voice),
            meter: Arc::clone(&one.meter),
            purse: Arc::clone(self.desk.purse),
            limit: self.limit(&member),
            watchdog: self.cast.watchdog,
            member,
            invocation_id,
            context,
            question,
            faults,
        };
        Ok((at, one, job))
    }

    fn context(&self, member: &Member) -> Context {
        let input = &self.turn.input;
        let principal = input.owner.principal.as_str();
        let prior = self
            .before
            .and_then(|before| before.prose_for(&member.id, self.cast.prior_context_chars));
        Context {
            principal: principal.to_owned(),
            user_id: principal.to_owned(),
            episode_id: input.episode_id,
            locale: input.locale.clone(),
            location: input.location.clone(),
            prior_context: prior,
        }
    }

    /// Step 4: its own loop, on a task of its own.
    fn work(
        &self,
        one: &Asked,
        job: Job,
    ) -> Work<impl Future<Output = Result<invocation::Answer, invocation::Miss>> + Send + 'static>
    {
        Work {
            expected: Expected {
                key: Key {
                    subagent: one.id().to_owned(),
                    result_key: one.tool_use_id.to_string(),
                },
                deadline: self.limit(&one.member),
            },
            future: invocation::run(job),
        }
    }

    /// Ends the step, and names together what failed of several (D-11).
    async fn close(
        &self,
        run: &mut Run<invocation::Answer, invocation::Miss>,
        errors: Vec<TurnError>,
        failures: &mut Failures,
    ) -> Result<(), Refusal> {
        let Some(completed) = run.completion() else {
            return Ok(());
        };
        let several = completed.slots.len() > 1;
        let missed = completed.status != StepStatus::Success;
        let completed = Body::PlanStepCompleted(completed);
        self.desk.tell(Actor::ORCHESTRATOR, completed).await?;
        if several && missed {
            failures.degrade();
            let failure = Failure {
                error: TurnError::fan_out(errors),
                axis: 3,
                sub_agent_id: None,
            };
            failure.report(self.desk).await?;
        }
        Ok(())
    }

    /// Keeps what sub-agents of later turns should know of a turn that asked more than one
    /// (S1-144): where it asked a single one, that one remembers by itself.
    async fn remember(&self, notes: &mut Vec<Note>) -> Result<(), Refusal> {
        for Note { sub_agent_id, text } in notes.drain(..) {
            let emission = Emission {
                message: Some(NewMessage {
                    kept: turnwire_event::Kept::default(),
                    id: MessageId(self.desk.means.mint.ulid()),
                    role: Role::System,
                    content: vec![ContentBlock::text(&*text)],
                    metadata: agent_resources::sub_agent(&sub_agent_id),
                    scope: Scope::Agents,
                }),
                ..Emission::new(
                    Actor::subagent(&sub_agent_id),
                    Body::SupportNoted(Noted { sub_agent_id, text }),
                )
            };
            self.desk.deliver(emission).await?;
        }
        Ok(())
    }

    /// Step 6: where the orchestrator composes, in a span of its own.
    pub(crate) fn compose<'a>(desk: &Desk<'a>, spans: &Spans) -> (Desk<'a>, tracing::Span) {
        let trace = spans.child();
        let span = tracing::info_span!("orchestrator.compose", span_id = trace.span_id);
        let desk = Desk {
            purpose: CallPurpose::Compose,
            span: Some(trace),
            ..desk.clone()
        };
        (desk, span)
    }
}

/// The calls of one message.
#[derive(Default)]
pub(crate) struct Sorted {
    /// Those that ask a sub-agent.
    pub(crate) asks: Vec<(Use, Arc<Member>)>,
    /// Those that would, had their input come whole.
    pub(crate) broken: Vec<(Use, Arc<Member>)>,
    /// Those of other tools.
    pub(crate) others: Vec<Use>,
}

/// Sorts `uses` by whom of `members` they ask.
pub(crate) fn sort(uses: Vec<Use>, members: &[Arc<Member>]) -> Sorted {
    let mut sorted = Sorted::default();
    for call in uses {
        let member = members.iter().find(|member| member.answers_to(&call.name));
        match member.map(Arc::clone) {
            Some(member) if call.broken => sorted.broken.push((call, member)),
            Some(member) => sorted.asks.push((call, member)),
            None => sorted.others.push(call),
        }
    }
    sorted
}
