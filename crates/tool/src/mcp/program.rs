//! The program of a server, started by the [`ProgramRunner`]: under a guard, so that it never outlives
//! this process, in a folder of its own, and without the environment of this process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use turnwire_event::port::BoxFuture;

use crate::mcp::connection::{ProgramLauncher, ProgramPipes, RunningProgram};
use crate::program::guard::frame::ProgramExit;
use crate::program::guard::order::ProgramLimits;
use crate::program::runner::{GuardedProgram, ProgramRunner, ProgramSpec};

/// For a program whose output has ended to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Open files of each process: enough for many calls, and not all that the machine has.
const FILES_MAX: u64 = 4_096;

/// Starts the program of one server.
pub(crate) struct ServerProgram {
    pub(crate) runner: Arc<ProgramRunner>,
    /// The name of the server; its folder is named after it.
    pub(crate) server: String,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl ProgramLauncher for ServerProgram {
    fn launch(&self) -> BoxFuture<'_, io::Result<ProgramPipes>> {
        Box::pin(async {
            let missing = || io::Error::from(io::ErrorKind::NotFound);
            let (program, args) = self.command.split_first().ok_or_else(missing)?;
            self.runner.find(program).ok_or_else(missing)?;
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let folder: String = self.server.chars().map(plain).collect();
            let piped = self.runner.pipe(ProgramSpec {
                program: program.clone(),
                args: args.to_vec(),
                env: self.env.clone(),
                dir: self.runner.shared(&format!("mcp-{folder}"))?,
                limits: ProgramLimits {
                    files: Some(FILES_MAX),
                    ..ProgramLimits::default()
                },
                input: None,
                output_bytes_max: 0,
            });
            let piped = piped.await.map_err(io::Error::other)?;
            Ok(ProgramPipes {
                stdin: Box::new(piped.input),
                stdout: Box::new(piped.output),
                program: Box::new(piped.program),
            })
        })
    }
}

impl RunningProgram for GuardedProgram {
    fn exit_text(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let finished = timeout(EXIT_TIMEOUT, self.finished()).await;
            match finished.map(|finished| finished.end.exit) {
                Ok(ProgramExit::Code(code)) => format!(" with code {code}"),
                Ok(ProgramExit::Signal(signal)) => format!(" by signal {signal}"),
                Ok(
                    ProgramExit::MissingProgram | ProgramExit::MissingFolder | ProgramExit::Refused,
                ) => " because the system does not run it".to_owned(),
                Err(_) => String::new(),
            }
        })
    }

    fn exited(&mut self) -> BoxFuture<'_, ()> {
        let ended = self.ended();
        Box::pin(async {
            ended.await;
        })
    }
}
