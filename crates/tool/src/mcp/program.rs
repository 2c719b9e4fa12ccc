//! A server's program, started in the workshop: under a guard, so that it never outlives this
//! process, in a folder of its own, with an environment that has nothing of ours.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use turnwire_event::port::BoxFuture;

use crate::guard::frame::How;
use crate::guard::order::Limits;
use crate::mcp::connection::{Pipes, Running, Start};
use crate::workshop::{Guarded, Spec, Workshop};

/// For a program whose output has ended to be gone.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);
/// Files that each of its processes has open: a server may serve many calls, and must not take
/// all of the machine's.
const FILES_MAX: u64 = 4_096;

/// How a server is started.
pub(crate) struct Program {
    pub(crate) workshop: Arc<Workshop>,
    /// The server's name, of which its folder has its own.
    pub(crate) server: String,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Start for Program {
    fn start(&self) -> BoxFuture<'_, io::Result<Pipes>> {
        Box::pin(async {
            let missing = || io::Error::from(io::ErrorKind::NotFound);
            let (program, args) = self.command.split_first().ok_or_else(missing)?;
            self.workshop.find(program).ok_or_else(missing)?;
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let folder: String = self.server.chars().map(plain).collect();
            let piped = self.workshop.pipe(Spec {
                program: program.clone(),
                args: args.to_vec(),
                env: self.env.clone(),
                dir: self.workshop.shared(&format!("mcp-{folder}"))?,
                limits: Limits {
                    files: Some(FILES_MAX),
                    ..Limits::default()
                },
                input: None,
                output_bytes_max: 0,
            });
            let piped = piped.await.map_err(io::Error::other)?;
            Ok(Pipes {
                stdin: Box::new(piped.input),
                stdout: Box::new(piped.output),
                held: Box::new(piped.program),
            })
        })
    }
}

impl Running for Guarded {
    fn last_words(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let done = timeout(LAST_WORDS_MAX, self.done()).await;
            match done.map(|done| done.end.how) {
                Ok(How::Code(code)) => format!(" with code {code}"),
                Ok(How::Signal(signal)) => format!(" by signal {signal}"),
                Ok(How::MissingProgram | How::MissingFolder | How::Refused) => {
                    " because the system does not run it".to_owned()
                }
                Err(_) => String::new(),
            }
        })
    }

    fn gone(&mut self) -> BoxFuture<'_, ()> {
        let ended = self.ended();
        Box::pin(async {
            ended.await;
        })
    }
}
