//! The loop of one turn: which model, then call and work in turns until the model asks for
//! nothing more.

use std::sync::Arc;

use turnwire_event::body::route::Decided;
use turnwire_event::code::{ErrorCode, TurnStatus};
use turnwire_event::port::{Emission, Outcome, TurnContext};
use turnwire_event::{Actor, Body, ContentBlock, Role};
use turnwire_model::{Request, Said, ToolSpec};
use turnwire_tool::deliver;

use crate::call::{Halt, Heard, Means, call};
use crate::past;
use crate::work::work;

/// The policy that has one model to choose from.
pub(crate) const ROUTING_POLICY: &str = "builtin-1";
/// The agent that speaks, as scripts and events name it.
const AGENT: &str = "orchestrator";

/// Answers one turn.
pub(crate) async fn run(means: &Means, tools: Arc<[ToolSpec]>, turn: TurnContext) -> Outcome {
    let code = match answer(means, tools, &turn).await {
        Ok(()) => {
            return Outcome {
                status: TurnStatus::Ok,
                error: None,
            };
        }
        Err(Halt::Failed(code)) => code,
        // The session has ended the turn or is about to, and does not look at this.
        Err(Halt::Refused) => ErrorCode::InternalError,
    };
    Outcome {
        status: TurnStatus::Failed,
        error: Some(code.into()),
    }
}

async fn answer(means: &Means, tools: Arc<[ToolSpec]>, turn: &TurnContext) -> Result<(), Halt> {
    let options = &means.options;
    let decided = Body::RouteDecided(Decided {
        model: options.model.clone(),
        routing_policy_version: ROUTING_POLICY.to_owned(),
        reason: "only model".to_owned(),
        candidates: Vec::new(),
    });
    deliver(&*turn.emitter, Emission::new(Actor::SYSTEM, decided)).await?;
    let history = turn.history.recent(options.history).await;
    let history = history.map_err(|_| Halt::Failed(ErrorCode::InternalError))?;
    let mut said = past::said(history, &turn.input);
    for n in 1..=options.calls_max {
        let request = Request {
            model: options.model.clone(),
            agent: AGENT.to_owned(),
            call: n,
            system: options.system.clone(),
            messages: past::paired(&said),
            tools: Arc::clone(&tools),
        };
        let Heard { content, broken } = call(means, &*turn.emitter, request).await?;
        let asks = |block: &ContentBlock| matches!(block, ContentBlock::ToolUse { .. });
        if !content.iter().any(asks) {
            return Ok(());
        }
        let results = work(means, &turn.emitter, &content, &broken).await?;
        said.push(Arc::new(Said {
            role: Role::Assistant,
            content,
        }));
        said.extend(results);
    }
    Err(Halt::Failed(ErrorCode::InternalError))
}
