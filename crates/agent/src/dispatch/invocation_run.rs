//! Runs one invocation of a sub-agent, here or elsewhere, and keeps the person informed while it is
//! silent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;
use turnwire_event::body::status::StatusEmitted;
use turnwire_event::port::{Emission, EventEmitter};
use turnwire_event::{Actor, Body};
use turnwire_tool::{LiveTask, deliver};

use super::invocation::{Invocation, InvocationError, SubAgentAnswer};
use super::{native_answer, remote_answer};
use crate::emitter::ambient;

/// The silence after which the default status is shown again: often enough that the user does not
/// take the stream for dead, rarely enough not to flood (C-18). Three fit into the minute after
/// which a client takes a silent stream for dead.
const STATUS_REPEAT: Duration = Duration::from_secs(20);

/// Runs an [`Invocation`] with its sub-agent emitter as the ambient emitter.
pub(crate) fn run_invocation(
    invocation: Invocation,
) -> impl Future<Output = Result<SubAgentAnswer, InvocationError>> + Send + 'static {
    // Created here and not on the task of the invocation, so that the caller's span is its parent.
    let span = tracing::info_span!(
        "subagent.run",
        sub_agent_id = invocation.sub_agent.id,
        span_id = invocation.emitter.span().span_id
    );
    let emitter = Arc::clone(&invocation.emitter) as Arc<dyn EventEmitter>;
    let live = LiveTask::begin();
    let work = async move {
        let _live = live;
        let _child_task = invocation.tool_context.child_tasks.enter()?;
        answer_with_watchdog(invocation).await
    };
    // The caller's span too: a filter may keep the lines and not the span of the sub-agent.
    let work = ambient::scope(emitter, work).instrument(span);
    work.in_current_span()
}

/// Runs the invocation, and emits the default status whenever the sub-agent is silent for too long
/// (D-12b).
async fn answer_with_watchdog(invocation: Invocation) -> Result<SubAgentAnswer, InvocationError> {
    let mut answer = Box::pin(answer(&invocation));
    let Some(status) = &invocation.sub_agent.default_status else {
        return answer.await;
    };
    let mut last_seen = None;
    let mut due = Instant::now() + invocation.watchdog;
    loop {
        tokio::select! {
            biased;
            ended = &mut answer => return ended,
            () = invocation.emitter.status_shown() => {}
            () = sleep_until(due) => {}
        }
        let last_shown = invocation.emitter.last_shown();
        // The default status, emitted below, is recorded too; it must not restart the watchdog.
        if let Some(status) = last_shown.filter(|_| last_shown != last_seen) {
            last_seen = last_shown;
            due = status.at + invocation.watchdog;
        }
        if Instant::now() < due {
            continue;
        }
        let emitted = Body::StatusEmitted(StatusEmitted {
            event_id: status.clone(),
            message: String::new(),
            invocation_id: None,
        });
        let emission = Emission::new(Actor::subagent(&invocation.sub_agent.id), emitted);
        deliver(&*invocation.emitter, emission).await?;
        last_seen = invocation.emitter.last_shown();
        due = Instant::now() + STATUS_REPEAT;
    }
}

async fn answer(invocation: &Invocation) -> Result<SubAgentAnswer, InvocationError> {
    match &invocation.sub_agent.remote {
        Some(remote) => remote_answer::ask(invocation, remote).await,
        None => native_answer::answer(invocation).await,
    }
}
