//! A tool that runs a program: its arguments and its input come from what the model wrote, what
//! it writes is the result. It runs under a guard in the folder of the session, and the turn does
//! not end before all of it is gone (S3-074, R-17).

mod argument;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use turnwire_event::code::{ReceiptKind, StopOutcome, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, Refusal, Ward, WardId};
use turnwire_pack::{ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, ToolDef};

use crate::guard::frame::How;
use crate::guard::order::Limits;
use crate::secrets::Secrets;
use crate::tool::{Call, Tool, ToolFailure};
use crate::workshop::{Done, Spec, Workshop};

use argument::Argument;

/// What a program has if the pack does not say; the same as a pack that is read has.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest, whatever the pack says.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The most a program may write, whatever the pack says: all of it goes to a model.
const OUTPUT_BYTES_MAX: u64 = 8 * 1_048_576;
/// Beyond its own limit and the grace, so that the tool's own words about it come first.
const MARGIN: Duration = Duration::from_secs(5);
/// What the model reads of a program that failed.
const SHOWN_BYTES_MAX: usize = 2 * 1_024;

/// A process tool cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadProcess {
    /// There is nothing to run.
    #[error("its command is empty; write the program and its arguments")]
    Empty,
    /// The program is not the pack's choice alone.
    #[error("its program `{0}` may not have a place for a field; only arguments may")]
    Place(String),
    /// The program is not there.
    #[error(
        "there is no program `{0}`; install it, or write the absolute path of a file that can be run"
    )]
    Missing(String),
}

/// A tool that runs a program.
pub(crate) struct Process {
    def: ToolDef,
    plan: Arc<Plan>,
}

/// What is the same for every call.
struct Plan {
    program: String,
    args: Vec<Argument>,
    process: ProcessDef,
    limit: Duration,
    /// What is in its environment and for nobody else.
    secrets: Secrets,
    workshop: Arc<Workshop>,
}

impl Process {
    pub(crate) fn new(
        def: &ToolDef,
        process: &ProcessDef,
        workshop: &Arc<Workshop>,
    ) -> Result<Self, BadProcess> {
        let (program, args) = process.command.split_first().ok_or(BadProcess::Empty)?;
        if Argument::new(program).has_place() {
            return Err(BadProcess::Place(program.clone()));
        }
        let missing = || BadProcess::Missing(program.clone());
        let found = workshop.find(program).ok_or_else(missing)?;
        let limit = def.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
        let plan = Plan {
            // The file that was found, so that nothing put in the way later is run instead.
            program: found.to_str().ok_or_else(missing)?.to_owned(),
            args: args.iter().map(|arg| Argument::new(arg)).collect(),
            limit: limit.min(TIMEOUT_MAX),
            secrets: Secrets::of_env(&process.env),
            process: ProcessDef {
                output_bytes_max: process.output_bytes_max.min(OUTPUT_BYTES_MAX),
                ..process.clone()
            },
            workshop: Arc::clone(workshop),
        };
        Ok(Self {
            def: def.clone(),
            plan: Arc::new(plan),
        })
    }
}

impl Tool for Process {
    fn name(&self) -> &str {
        &self.def.name
    }

    fn description(&self) -> &str {
        &self.def.description
    }

    fn input_schema(&self) -> Value {
        self.def.input_schema.clone()
    }

    fn tool_type(&self) -> ToolType {
        ToolType::Process
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.plan.limit + self.plan.workshop.grace() + MARGIN)
    }

    fn status(&self) -> Option<&str> {
        self.def.status.as_deref()
    }

    fn remember(&self) -> bool {
        self.def.remember
    }

    fn approval(&self) -> bool {
        self.def.approval
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let plan = Arc::clone(&self.plan);
        Box::pin(async move { plan.run(call).await })
    }
}

impl Plan {
    async fn run(&self, call: Call) -> Result<Value, ToolFailure> {
        let until = Instant::now() + self.limit;
        let spec = self.spec(&call)?;
        // Before it begins to be, and while it waits for its place: a turn that is to stop lets
        // nothing begin, and one that has taken it waits for its end.
        let (begun, program) = oneshot::channel::<BoxFuture<'static, StopOutcome>>();
        let id = WardId::default();
        let taken = call.scene.wards.take(Ward {
            kind: ReceiptKind::Process,
            id: id.clone(),
            tool_use_id: call.tool_use_id,
            ended: Box::pin(async move {
                match program.await {
                    Ok(ended) => ended.await,
                    // It never began.
                    Err(_) => StopOutcome::Stopped,
                }
            }),
        });
        match taken {
            Ok(()) => {}
            Err(Refusal::Cancelled | Refusal::Ended) => return pending().await,
            Err(Refusal::Unavailable) => {
                let told = "Too much runs in this turn; no program may begin.";
                return Err(ToolFailure::internal(told));
            }
        }
        let slot = timeout_at(until, self.workshop.slot()).await;
        let slot = slot.map_err(|_| {
            let told = "Too many programs are running; try again later.";
            ToolFailure::new(ToolErrorClass::Timeout, told)
        })?;
        // It may have waited long: a stop since then lets nothing begin either. The session is
        // about to drop the turn, and tells what became of its tools.
        let Ok(_part) = call.scene.wards.enter() else {
            return pending().await;
        };
        let started = slot.and_then(|slot| self.workshop.begin(spec, slot));
        let mut program = started.map_err(|error| {
            tracing::error!(error = ?error, "a program could not be started");
            ToolFailure::internal("The program of this tool could not be started.")
        })?;
        // In the same breath as it begins to be.
        id.name(program.id().to_string());
        let _ = begun.send(program.ended());
        let Ok(done) = timeout_at(until, program.done()).await else {
            program.stop();
            program.done().await;
            let limit = self.limit.as_millis();
            let told = format!("The program was not done within {limit} ms and was ended.");
            return Err(ToolFailure::new(ToolErrorClass::Timeout, told));
        };
        self.result(done)
    }

    fn spec(&self, call: &Call) -> Result<Spec, ToolFailure> {
        let Value::Object(input) = &call.input else {
            return Err(ToolFailure::invalid_input("The input must be an object."));
        };
        let args = self.args(input)?;
        let dir = self.workshop.folder(call.scene.session_id);
        let dir = dir.map_err(|error| {
            tracing::error!(error = ?error, "a session has no folder for programs");
            ToolFailure::internal("The program has no folder to work in.")
        })?;
        Ok(Spec {
            program: self.program.clone(),
            args,
            env: self.process.env.clone(),
            dir,
            limits: limits(self.process.limits),
            input: match self.process.stdin {
                ProcessStdin::Input => Some(call.input.to_string()),
                ProcessStdin::None => None,
            },
            output_bytes_max: usize::try_from(self.process.output_bytes_max).unwrap_or(usize::MAX),
        })
    }

    fn args(&self, input: &Map<String, Value>) -> Result<Vec<String>, ToolFailure> {
        let filled = self.args.iter().map(|arg| arg.fill(input));
        filled.filter_map(Result::transpose).collect()
    }

    /// What the model is given; never a path and nothing of the standard error, which may have
    /// some.
    fn result(&self, done: Done) -> Result<Value, ToolFailure> {
        if done.over {
            let most = self.process.output_bytes_max;
            let told = format!("The program wrote more than {most} bytes and was ended.");
            return Err(ToolFailure::internal(told));
        }
        if done.end.crowd {
            let most = self.process.limits.processes;
            let told = format!("The program had more than {most} processes and was ended.");
            return Err(ToolFailure::internal(told));
        }
        let told = match done.end.how {
            How::Code(0) if done.end.cut => {
                "What the program wrote could not be read to its end.".to_owned()
            }
            How::Code(0) => return self.read(&done.output),
            How::Code(code) => format!("The program ended with code {code}."),
            How::Signal(signal) => format!("The program was ended by signal {signal}."),
            How::MissingProgram => "The program of this tool is not there.".to_owned(),
            How::MissingFolder => "The program has no folder to work in.".to_owned(),
            How::Refused => "The program of this tool could not be started.".to_owned(),
        };
        // Before it is cut, so that no part of a key is left.
        let output = self
            .secrets
            .hide(String::from_utf8_lossy(&done.output).into_owned());
        let shown = output[..output.floor_char_boundary(SHOWN_BYTES_MAX)].trim();
        if shown.is_empty() {
            return Err(ToolFailure::internal(told));
        }
        Err(ToolFailure::internal(format!("{told} It wrote:\n{shown}")))
    }

    fn read(&self, output: &[u8]) -> Result<Value, ToolFailure> {
        match self.process.output {
            ProcessOutput::Json => serde_json::from_slice(output)
                .map(|value| self.secrets.hide_in(value))
                .map_err(|_| ToolFailure::internal("The program wrote something else than JSON.")),
            ProcessOutput::Text => {
                let text = String::from_utf8_lossy(output);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                Ok(Value::String(self.secrets.hide(text.to_owned())))
            }
        }
    }
}

fn limits(limits: ProcessLimits) -> Limits {
    Limits {
        cpu_s: Some(limits.cpu_s),
        memory_bytes: Some(limits.memory_bytes),
        file_bytes: Some(limits.file_bytes),
        files: Some(limits.open_files),
        processes: Some(limits.processes),
    }
}

#[cfg(test)]
mod tests;
