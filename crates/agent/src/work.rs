//! The tools of one message, all at once, each on its own.
//!
//! ```text
//! tool.called a, tool.called b │ durable │ a runs, b runs │ tool.completed b, tool.failed a
//! ```
//! Nothing acts before its `tool.called` is durable, so that after a crash the log names
//! everything that may have acted. A tool that fails, breaks or takes too long fails alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, timeout};
use turnwire_event::body::tool::{Called, Completed, Failed};
use turnwire_event::code::{ToolErrorClass, ToolType};
use turnwire_event::content::sha256_hex;
use turnwire_event::port::{Emission, Emitter, Refusal};
use turnwire_event::row::NewMessage;
use turnwire_event::{Actor, Body, ContentBlock, MessageId, Role, ToolUseId};
use turnwire_model::Said;
use turnwire_tool::{Call, Tool, ToolFailure, deliver};

use crate::call::Means;
use crate::summary::summary;
use crate::writer;

/// A tool the model asked for.
struct Use {
    id: ToolUseId,
    name: String,
    input: Value,
    /// None if there is no such tool.
    tool: Option<Arc<dyn Tool>>,
}

impl Use {
    fn tool_type(&self) -> ToolType {
        self.tool
            .as_ref()
            .map_or(ToolType::Function, |tool| tool.tool_type())
    }
}

/// What a tool gave and how long it took.
type Given = (Result<Value, ToolFailure>, Duration);

/// Runs the tools that `content` asks for; gives what they said, in the order they ended.
pub(crate) async fn work(
    means: &Means,
    emitter: &Arc<dyn Emitter>,
    content: &[ContentBlock],
    broken: &[ToolUseId],
) -> Result<Vec<Arc<Said>>, Refusal> {
    let uses: Vec<Use> = content.iter().filter_map(|b| asked(means, b)).collect();
    let mut last = None;
    for asked in &uses {
        let called = Body::ToolCalled(Called {
            tool_use_id: asked.id,
            tool_name: asked.name.clone(),
            tool_type: asked.tool_type(),
            input_summary: summary(&asked.input, means.options.summary_chars_max),
        });
        let emission = Emission::new(Actor::tool(&asked.name), called);
        last = Some(deliver(&**emitter, emission).await?);
    }
    // What stands at the last place is durable when all before it is.
    if let Some(last) = last {
        emitter.committed(last).await?;
    }
    let mut said = Vec::with_capacity(uses.len());
    let mut tasks: JoinSet<Given> = JoinSet::new();
    let mut running: HashMap<Id, Use> = HashMap::new();
    for asked in uses {
        match asked.tool.clone() {
            Some(_) if broken.contains(&asked.id) => {
                let told = "The input was cut or is not a JSON object; ask again with a whole one.";
                let given = (Err(ToolFailure::invalid_input(told)), Duration::ZERO);
                said.push(tell(means, &**emitter, asked, given).await?);
            }
            Some(tool) => {
                let task = run(means, emitter, tool, &asked);
                running.insert(writer::spawn(&mut tasks, task).id(), asked);
            }
            None => {
                let given = (Err(unknown(means)), Duration::ZERO);
                said.push(tell(means, &**emitter, asked, given).await?);
            }
        }
    }
    while let Some(joined) = tasks.join_next_with_id().await {
        let (id, given) = match joined {
            Ok((id, given)) => (id, given),
            Err(broken) => {
                let failure = ToolFailure::internal("The tool broke and gave no result.");
                (broken.id(), (Err(failure), Duration::ZERO))
            }
        };
        if let Some(asked) = running.remove(&id) {
            said.push(tell(means, &**emitter, asked, given).await?);
        }
    }
    Ok(said)
}

fn asked(means: &Means, block: &ContentBlock) -> Option<Use> {
    match block {
        ContentBlock::ToolUse { id, name, input } => Some(Use {
            id: *id,
            name: name.clone(),
            input: input.clone(),
            tool: means.toolbox.get(name).cloned(),
        }),
        _ => None,
    }
}

fn unknown(means: &Means) -> ToolFailure {
    let names: Vec<&str> = means.toolbox.iter().map(|tool| tool.name()).collect();
    ToolFailure::invalid_input(if names.is_empty() {
        "There is no such tool; there are none.".to_owned()
    } else {
        format!("There is no such tool. There are: {}.", names.join(", "))
    })
}

fn run(
    means: &Means,
    emitter: &Arc<dyn Emitter>,
    tool: Arc<dyn Tool>,
    asked: &Use,
) -> impl Future<Output = Given> + Send + 'static {
    let limit = tool.timeout().unwrap_or(means.options.tool_timeout);
    let call = Call {
        tool_use_id: asked.id,
        input: asked.input.clone(),
        emitter: Arc::clone(emitter),
    };
    async move {
        let begun = Instant::now();
        // Called inside the task, so that a tool that breaks right away breaks only itself.
        let given = timeout(limit, async { tool.run(call).await }).await;
        let given = given.unwrap_or_else(|_| {
            Err(ToolFailure {
                class: ToolErrorClass::Timeout,
                told: format!("The tool gave no result within {} ms.", limit.as_millis()),
            })
        });
        (given, begun.elapsed())
    }
}

/// Tells how a tool ended, with the message to the model that says the same.
async fn tell(
    means: &Means,
    emitter: &dyn Emitter,
    asked: Use,
    (given, took): Given,
) -> Result<Arc<Said>, Refusal> {
    let tool_type = asked.tool_type();
    let actor = Actor::tool(&asked.name);
    let given = given.and_then(|result| {
        let json = result.to_string();
        let most = means.options.result_bytes_max;
        if json.len() > most {
            let told = format!("The result was larger than {most} bytes.");
            return Err(ToolFailure::internal(told));
        }
        Ok((result, json))
    });
    let (body, content, is_error) = match given {
        Ok((result, json)) => {
            let completed = Completed {
                tool_use_id: asked.id,
                tool_name: asked.name,
                tool_type,
                duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                result_summary: summary(&result, means.options.summary_chars_max),
                result_sha256: sha256_hex(json.as_bytes()),
            };
            (Body::ToolCompleted(completed), result, false)
        }
        Err(failure) => {
            let failed = Failed {
                tool_use_id: asked.id,
                tool_name: asked.name,
                tool_type,
                error_class: failure.class,
                // Known to the writer, who sees the whole turn.
                called: false,
            };
            (Body::ToolFailed(failed), Value::String(failure.told), true)
        }
    };
    let said = Said {
        role: Role::Tool,
        content: vec![ContentBlock::ToolResult {
            tool_use_id: asked.id,
            content,
            is_error,
        }],
    };
    let emission = Emission {
        actor,
        body,
        message: Some(NewMessage {
            id: MessageId(means.mint.ulid()),
            role: said.role,
            content: said.content.clone(),
            metadata: Map::new(),
        }),
    };
    deliver(emitter, emission).await?;
    Ok(Arc::new(said))
}
