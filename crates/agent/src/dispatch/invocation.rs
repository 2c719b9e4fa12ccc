//! A sub-agent at work: its own instruction, its own memory, its own model, its own tools.
//!
//! It runs the same loop as the agent that speaks. Nobody hears it but the orchestrator, and
//! that only at the end: what it says, what it has shown, and whether something was missing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;
use turnwire_event::body::status::Emitted;
use turnwire_event::body::subagent::Context;
use turnwire_event::code::{AgentErrorClass, CallPurpose, ToolType};
use turnwire_event::port::{Emission, Emitter, History, Refusal};
use turnwire_event::{Actor, Body, ContentBlock, InvocationId, Role};
use turnwire_model::{Request, Said};
use turnwire_tool::{LiveTask, ToolContext, deliver};

use crate::dispatch::sub_agent::Member;
use crate::emitter::ambient;
use crate::emitter::sub_agent_emitter::Voice;
use crate::history::conversation;
use crate::history::prior_context::cut;
use crate::model_call::fallback::{Halt, ask};
use crate::prompt::instructions;
use crate::resources::agent_resources::{Desk, Faults, Means, Meter};
use crate::resources::model_choice::Standing;
use crate::resources::turn_budget::Purse;
use crate::tool_call::execute::{Ended, excess, leave_out, uses, work};
use crate::tool_call::summary::summary;

/// Characters of one result that is kept for later turns: a few dozen lines.
const NOTE_CHARS_MAX: usize = 2_000;
/// Results of one invocation that are kept: more than any answer needs, few enough that they do
/// not push out everything else a sub-agent remembers.
const NOTES_MAX: usize = 4;
/// Bytes of an answer that the orchestrator is shown: dozens of pages, far more than one can say.
const TEXT_BYTES_MAX: usize = 65_536;

/// Silence after which a status that was shown in silence is shown again: a person should not
/// wonder whether anything still happens, nor be flooded with the same words (C-18). Three fit
/// into the minute after which a client takes a silent stream for dead.
const AGAIN: Duration = Duration::from_secs(20);

/// One invocation, ready to run.
pub(crate) struct Job {
    pub(crate) member: Arc<Member>,
    pub(crate) invocation_id: InvocationId,
    pub(crate) context: Context,
    pub(crate) question: String,
    pub(crate) scene: Arc<ToolContext>,
    pub(crate) history: Arc<dyn History>,
    pub(crate) voice: Arc<Voice>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) purse: Arc<Purse>,
    /// How long it may take.
    pub(crate) limit: Duration,
    pub(crate) faults: Faults,
    /// How long it may be silent.
    pub(crate) watchdog: Duration,
}

/// What a sub-agent gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// What it says.
    pub(crate) text: String,
    /// Whether some of its data was incomplete.
    pub(crate) caveat: bool,
    /// What is kept for later turns.
    pub(crate) notes: Vec<String>,
}

/// A slot that was not filled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Miss {
    /// It answered, without data that it wanted.
    Short(Answer),
    /// It gave nothing (axis 1).
    Failed(AgentErrorClass),
    /// The session takes no more of the turn.
    Refused,
}

impl From<Refusal> for Miss {
    fn from(_: Refusal) -> Self {
        Self::Refused
    }
}

impl From<Halt> for Miss {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Refused => Self::Refused,
            Halt::Model(_) | Halt::Limit(_) => Self::Failed(AgentErrorClass::Model),
        }
    }
}

/// Runs it, with its voice as the ambient writer of everything it starts.
pub(crate) fn run(job: Job) -> impl Future<Output = Result<Answer, Miss>> + Send + 'static {
    // Made here and not on its own task, so that it stands below whatever asked for it.
    let span = tracing::info_span!(
        "subagent.run",
        sub_agent_id = job.member.id,
        span_id = job.voice.span().span_id
    );
    let writer = Arc::clone(&job.voice) as Arc<dyn Emitter>;
    let live = LiveTask::begin();
    let work = async move {
        let _live = live;
        let _part = job.scene.wards.enter()?;
        watched(job).await
    };
    ambient::scope(writer, work).instrument(span)
}

/// Says something for a sub-agent that has said nothing for too long, and says it again if that
/// goes on (D-12b).
async fn watched(job: Job) -> Result<Answer, Miss> {
    let mut answer = Box::pin(answer(&job));
    let Some(status) = &job.member.default_status else {
        return answer.await;
    };
    let mut known = None;
    let mut due = Instant::now() + job.watchdog;
    loop {
        tokio::select! {
            biased;
            ended = &mut answer => return ended,
            () = job.voice.speaks() => {}
            () = sleep_until(due) => {}
        }
        let heard = job.voice.heard();
        // What is said here is heard too, and known.
        if let Some(last) = heard.filter(|_| heard != known) {
            known = heard;
            due = last.at + job.watchdog;
        }
        if Instant::now() < due {
            continue;
        }
        let emitted = Body::StatusEmitted(Emitted {
            event_id: status.clone(),
            message: String::new(),
        });
        let emission = Emission::new(Actor::subagent(&job.member.id), emitted);
        deliver(&*job.voice, emission).await?;
        known = job.voice.heard();
        due = Instant::now() + AGAIN;
    }
}

async fn answer(job: &Job) -> Result<Answer, Miss> {
    let Some(means) = job.member.means.as_deref() else {
        return Err(Miss::Failed(AgentErrorClass::Instantiation));
    };
    let emitter = Arc::clone(&job.voice) as Arc<dyn Emitter>;
    let standing = Standing::default();
    let desk = Desk {
        means,
        emitter: &emitter,
        scene: &job.scene,
        meter: &job.meter,
        standing: &standing,
        purse: &job.purse,
        until: Instant::now() + job.limit,
        keeper: (job.faults == Faults::Kept).then_some(&*job.voice),
        invocation: Some(job.invocation_id),
        purpose: CallPurpose::Subagent,
        span: None,
    };
    let (kept, mut said) = memory(job, means).await?;
    said.push(Arc::new(Said::new(
        Role::User,
        vec![ContentBlock::text(&*job.question)],
    )));
    let options = &means.options;
    let system = instructions::sub_agent(options.system.as_deref(), &job.context, &kept);
    let mut gathered = Gathered::default();
    for n in 1..=options.calls_max {
        let request = Request {
            model: options.model.clone(),
            agent: means.who.name().to_owned(),
            call: n,
            attempt: 1,
            locale: job.context.locale.clone(),
            system: Some(system.clone()),
            messages: conversation::paired(&said),
            tools: Arc::clone(&means.tools),
        };
        let heard = ask(&desk, request).await?;
        gathered.hear(&heard.content);
        let mut uses = uses(&heard.content, &heard.broken);
        if uses.is_empty() {
            return gathered.answer(job);
        }
        said.push(heard.said());
        let excess = excess(&mut uses, means);
        said.extend(leave_out(&desk, excess).await?);
        let ended = work(&desk, uses).await?;
        gathered.take(&ended)?;
        said.extend(ended.into_iter().map(|end| end.said));
    }
    Err(Miss::Failed(AgentErrorClass::Model))
}

/// What it remembers: what was kept for every sub-agent, and its own earlier exchanges.
async fn memory(job: &Job, means: &Means) -> Result<(Vec<String>, Vec<Arc<Said>>), Miss> {
    let past = job.history.of_agent(&job.member.id, means.options.history);
    let failed = |_| Miss::Failed(AgentErrorClass::Internal);
    let (kept, own): (Vec<_>, Vec<_>) = past
        .await
        .map_err(failed)?
        .into_iter()
        .partition(|message| message.role == Role::System);
    let kept = kept.iter().map(|message| message.text());
    Ok((kept.collect(), conversation::exchanges(own)))
}

/// What a sub-agent has so far.
#[derive(Default)]
struct Gathered {
    answer: Answer,
    /// Whether some of its newest data did not come. One that failed and then found another way
    /// has what it wanted; one whose last try failed has not, whatever it had before. Tools that
    /// ran at once are one try, whichever of them ended last.
    missing: bool,
}

impl Gathered {
    /// The last words count: those before a tool only say what it is about to do.
    fn hear(&mut self, content: &[ContentBlock]) {
        let mut text: String = content.iter().filter_map(ContentBlock::as_text).collect();
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        if !text.trim().is_empty() {
            self.answer.text = text;
        }
    }

    /// Takes in what the tools of one message gave.
    fn take(&mut self, batch: &[Ended]) -> Result<(), Miss> {
        let came = |end: &Ended| end.tool_type == ToolType::Ccs && end.given.is_ok();
        let failed = |end: &Ended| matches!(&end.given, Err(failure) if failure.fault.is_some());
        let missing = batch.iter().any(failed);
        if missing || batch.iter().any(came) {
            self.missing = missing;
        }
        for ended in batch {
            match &ended.given {
                Ok(result) => self.have(ended, result),
                Err(failure) if failure.fatal => {
                    return Err(Miss::Failed(AgentErrorClass::Tool));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn have(&mut self, ended: &Ended, result: &Value) {
        if ended.tool_type == ToolType::Ccs {
            self.answer.caveat |= result.get("caveat") == Some(&json!(true));
        }
        if ended.remember && self.answer.notes.len() < NOTES_MAX {
            self.answer.notes.push(note(result));
        }
    }

    fn answer(self, job: &Job) -> Result<Answer, Miss> {
        if self.answer.text.is_empty() && !job.voice.has_shown() {
            return Err(Miss::Failed(AgentErrorClass::Model));
        }
        if self.missing {
            return Err(Miss::Short(self.answer));
        }
        Ok(self.answer)
    }
}

fn note(result: &Value) -> String {
    cut(&summary(result, usize::MAX), NOTE_CHARS_MAX)
}
