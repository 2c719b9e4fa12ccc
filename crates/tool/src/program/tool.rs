//! A tool that runs a program: its arguments and its input come from the input of the model, its
//! output is the result. It runs under a guard in the folder of the session, and the turn does not end
//! before all of its processes have (S3-074, R-17).

mod argument;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use turnwire_event::code::{ReceiptKind, StopOutcome, ToolErrorClass, ToolType};
use turnwire_event::port::{BoxFuture, ChildTask, ChildTaskId, EmitRefusal};
use turnwire_pack::{ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, ToolDef};

use crate::input::object;
use crate::pack_tool::PackTool;
use crate::program::guard::frame::ProgramExit;
use crate::program::guard::order::ProgramLimits;
use crate::program::runner::{FinishedProgram, ProgramRunner, ProgramSpec};
use crate::secrets::Secrets;
use crate::tool::{ToolFailure, ToolInvocation};

use argument::{fill_argument, fill_text, has_field};

/// The default of `timeout_ms`, as the pack has it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The upper bound of `timeout_ms`.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The upper bound of `output_bytes_max`: the whole output goes to a model.
const OUTPUT_BYTES_MAX: u64 = 8 * 1_048_576;
/// Added to the timeout and the grace period, so that the program ends first and says why.
const MARGIN: Duration = Duration::from_secs(5);
/// The limit of the output of a failed program that the model gets.
const FAILED_OUTPUT_BYTES_MAX: usize = 2 * 1_024;

/// Runs one program of the pack.
pub(crate) struct ProcessTool {
    program: String,
    /// Each may have fields of the input.
    args: Vec<String>,
    process: ProcessDef,
    timeout: Duration,
    /// The keys in its environment and those of the server, which no result may contain.
    secrets: Secrets,
    runner: Arc<ProgramRunner>,
}

impl ProcessTool {
    /// The tool of `def` and `process`. The error says what is wrong and what to do.
    pub(crate) fn build(
        def: &ToolDef,
        process: &ProcessDef,
        runner: &Arc<ProgramRunner>,
        keys: &Secrets,
    ) -> Result<PackTool, String> {
        let timeout = def.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
        let action = Arc::new(Self::new(process, timeout.min(TIMEOUT_MAX), runner, keys)?);
        let timeout = Some(action.timeout + runner.grace + MARGIN);
        let run = move |call| Arc::clone(&action).run(call);
        Ok(PackTool::new(def.clone(), ToolType::Process, timeout, run))
    }

    fn new(
        process: &ProcessDef,
        timeout: Duration,
        runner: &Arc<ProgramRunner>,
        keys: &Secrets,
    ) -> Result<Self, String> {
        let command = process.command.split_first();
        let (program, args) =
            command.ok_or("its command is empty; write the program and its arguments")?;
        if has_field(program) {
            let error = "may not have a field; only arguments may";
            return Err(format!("its program `{program}` {error}"));
        }
        // The file of now, so that a file that appears earlier in `PATH` is not run instead.
        let file = runner.find(program);
        let file = file.and_then(|file| file.to_str().map(str::to_owned));
        let missing = "install it, or write the absolute path of a file that can be run";
        Ok(Self {
            program: file.ok_or_else(|| format!("there is no program `{program}`; {missing}"))?,
            args: args.to_vec(),
            timeout,
            secrets: Secrets::of_env(&process.env).and(keys),
            process: ProcessDef {
                output_bytes_max: process.output_bytes_max.min(OUTPUT_BYTES_MAX),
                ..process.clone()
            },
            runner: Arc::clone(runner),
        })
    }

    fn spec(&self, call: &ToolInvocation) -> Result<ProgramSpec, ToolFailure> {
        let input = object(&call.input)?;
        let args = self.args.iter().map(|arg| fill_argument(arg, input));
        let args = args.filter_map(Result::transpose);
        let dir = self.runner.folders.session(call.context.session_id);
        let dir = dir.map_err(|error| {
            tracing::error!(?error, "folder of a session could not be created");
            ToolFailure::internal(NO_FOLDER)
        })?;
        Ok(ProgramSpec {
            program: self.program.clone(),
            args: args.collect::<Result<_, _>>()?,
            env: self.process.env.clone(),
            dir,
            limits: limits(self.process.limits),
            input: match &self.process.stdin {
                ProcessStdin::Input => Some(call.input.to_string()),
                ProcessStdin::None => None,
                ProcessStdin::Template(template) => Some(fill_text(template, input)),
            },
            output_bytes_max: usize::try_from(self.process.output_bytes_max).unwrap_or(usize::MAX),
        })
    }

    /// The result for the model. It has no path, and nothing of standard error, which may contain
    /// paths.
    fn result(&self, finished: FinishedProgram) -> Result<Value, ToolFailure> {
        if finished.output_too_large {
            let limit = self.process.output_bytes_max;
            let message = format!("The program wrote more than {limit} bytes and was ended.");
            return Err(ToolFailure::internal(message));
        }
        if finished.end.too_many_processes {
            let limit = self.process.limits.processes;
            let message = format!("The program had more than {limit} processes and was ended.");
            return Err(ToolFailure::internal(message));
        }
        let message = match finished.end.exit {
            ProgramExit::Code(0) if finished.end.truncated => {
                "The output of the program could not be read to its end.".to_owned()
            }
            ProgramExit::Code(0) => return self.read(&finished.output),
            ProgramExit::Code(code) => format!("The program exited with code {code}."),
            ProgramExit::Signal(signal) => format!("The program was ended by signal {signal}."),
            ProgramExit::MissingProgram => "The program of this tool is missing.".to_owned(),
            ProgramExit::MissingFolder => NO_FOLDER.to_owned(),
            ProgramExit::Refused => "The program of this tool could not be started.".to_owned(),
            ProgramExit::GuardDied => "The guard of the program died, and it was ended.".to_owned(),
        };
        // Keys are removed before the cut, so that no part of one is left.
        let output = String::from_utf8_lossy(&finished.output).into_owned();
        let output = self.secrets.hide(output);
        let output = output[..output.floor_char_boundary(FAILED_OUTPUT_BYTES_MAX)].trim();
        if output.is_empty() {
            return Err(ToolFailure::internal(message));
        }
        Err(ToolFailure::internal(format!(
            "{message} It wrote:\n{output}"
        )))
    }

    fn read(&self, output: &[u8]) -> Result<Value, ToolFailure> {
        match self.process.output {
            ProcessOutput::Json => serde_json::from_slice(output)
                .map(|value| self.secrets.hide_in(value))
                .map_err(|_| ToolFailure::internal("The output of the program is not JSON.")),
            ProcessOutput::Text => {
                let text = String::from_utf8_lossy(output);
                let text = text.strip_suffix('\n').unwrap_or(&text);
                Ok(Value::String(self.secrets.hide(text.to_owned())))
            }
        }
    }

    async fn run(self: Arc<Self>, call: ToolInvocation) -> Result<Value, ToolFailure> {
        let deadline = Instant::now() + self.timeout;
        let spec = self.spec(&call)?;
        // Registered before the program starts, and while it waits for a slot: a turn that is
        // cancelled starts nothing, and one that has registered the program waits for its end.
        let (started, program) = oneshot::channel::<BoxFuture<'static, StopOutcome>>();
        let id = ChildTaskId::default();
        let registered = call.context.child_tasks.track(ChildTask {
            kind: ReceiptKind::Process,
            id: id.clone(),
            tool_use_id: call.tool_use_id,
            ended: Box::pin(async move {
                match program.await {
                    Ok(ended) => ended.await,
                    // The program was not started.
                    Err(_) => StopOutcome::Stopped,
                }
            }),
        });
        match registered {
            Ok(()) => {}
            Err(EmitRefusal::Cancelled | EmitRefusal::Ended) => return pending().await,
            Err(EmitRefusal::Unavailable) => {
                let message = "Too much runs in this turn; no program can be started.";
                return Err(ToolFailure::internal(message));
            }
        }
        let slot = timeout_at(deadline, self.runner.slot(&call.context.owner)).await;
        let slot = slot.map_err(|_| ToolFailure::new(ToolErrorClass::Timeout, TOO_MANY))?;
        let slot = slot.map_err(|_| ToolFailure::internal(TOO_MANY))?;
        let quota = self.runner.quota(spec.dir.clone()).await;
        let quota = quota.map_err(|_| ToolFailure::internal(FOLDER_OVERFULL))?;
        // The turn may have been cancelled during the wait; then nothing starts. The session drops
        // the turn and reports its tools.
        let Ok(_part) = call.context.child_tasks.enter() else {
            return pending().await;
        };
        let program = self.runner.start(spec, slot);
        let mut program = program.map_err(|error| {
            tracing::error!(?error, "program could not be started");
            ToolFailure::internal("The program of this tool could not be started.")
        })?;
        // Without an await since the start, so that no cancel can come between.
        id.name(program.id().to_string());
        let _ = started.send(program.ended());
        let finished = tokio::select! {
            finished = timeout_at(deadline, program.finished()) => Some(finished),
            () = quota.exceeded() => None,
        };
        let failure = match finished {
            Some(Ok(_)) if quota.is_exceeded().await => {
                return Err(ToolFailure::internal(FOLDER_FULL));
            }
            Some(Ok(finished)) => return self.result(finished),
            None => ToolFailure::internal(FOLDER_FULL),
            Some(Err(_)) => {
                let ms = self.timeout.as_millis();
                let message = format!("The program did not finish within {ms} ms and was ended.");
                ToolFailure::new(ToolErrorClass::Timeout, message)
            }
        };
        program.stop();
        program.finished().await;
        Err(failure)
    }
}

const TOO_MANY: &str = "Too many programs are running; try again later.";
const FOLDER_FULL: &str =
    "The folder of this session has too much in it, and the program was ended; delete files there.";
const FOLDER_OVERFULL: &str = "The folder of this session exceeds its limits by more than a quarter, or \
     cannot be read, and no program can run in it; the operator can clear it, or delete the session.";
const NO_FOLDER: &str = "The program has no working directory.";

fn limits(limits: ProcessLimits) -> ProgramLimits {
    ProgramLimits {
        cpu_s: Some(limits.cpu_s),
        memory_bytes: Some(limits.memory_bytes),
        file_bytes: Some(limits.file_bytes),
        files: Some(limits.open_files),
        processes: Some(limits.processes),
    }
}

#[cfg(test)]
mod tests;
