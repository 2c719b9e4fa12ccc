//! The program of a server, started by the [`ProgramRunner`]: under a guard, so that it never outlives
//! this process, in a folder of its own, and without the environment of this process.

use std::io;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::timeout;
use turnwire_event::port::BoxFuture;

use crate::mcp::connection::{LaunchedProgram, ProgramLauncher, RunningProgram};
use crate::program::guard::frame::ProgramExit;
use crate::program::guard::order::ProgramLimits;
use crate::program::runner::{GuardedProgram, ProgramRunner, ProgramSpec};

/// The time for a program to exit after the end of its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Open files of each process: enough for many calls, and not all that the machine has.
const FILES_MAX: u64 = 4_096;

impl ProgramLauncher for ProgramRunner {
    fn launch<'a>(
        &'a self,
        server: &'a str,
        command: &'a [String],
        env: &'a [(String, String)],
    ) -> BoxFuture<'a, io::Result<LaunchedProgram>> {
        Box::pin(async move {
            let missing = || io::Error::from(io::ErrorKind::NotFound);
            let (program, args) = command.split_first().ok_or_else(missing)?;
            self.find(program).ok_or_else(missing)?;
            // The folder is named after the server.
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let folder: String = server.chars().map(plain).collect();
            let piped = self.pipe(ProgramSpec {
                program: program.clone(),
                args: args.to_vec(),
                env: env.to_vec(),
                dir: self.folders.shared(&format!("mcp-{folder}"))?,
                limits: ProgramLimits {
                    files: Some(FILES_MAX),
                    ..ProgramLimits::default()
                },
                input: None,
                output_bytes_max: 0,
            });
            let piped = piped.await;
            // Otherwise a missing guard would look like a missing program.
            let piped = piped.map_err(|_| io::Error::other("no process can be started"))?;
            Ok(LaunchedProgram {
                stdin: Box::new(piped.input),
                stdout: Box::new(piped.output),
                program: Box::new(piped.program),
            })
        })
    }
}

impl RunningProgram for GuardedProgram {
    fn exit_suffix(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let finished = timeout(EXIT_TIMEOUT, self.finished()).await;
            match finished.map(|finished| finished.end.exit) {
                Ok(ProgramExit::Code(code)) => format!(" with code {code}"),
                Ok(ProgramExit::Signal(signal)) => format!(" by signal {signal}"),
                Ok(
                    ProgramExit::MissingProgram | ProgramExit::MissingFolder | ProgramExit::Refused,
                ) => " because the system does not run it".to_owned(),
                Ok(ProgramExit::GuardDied) => " because its guard died".to_owned(),
                Err(_) => String::new(),
            }
        })
    }

    fn exited(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.ended().map(drop))
    }
}
