//! The other processes of a run: a server on one core, a load client on another.
//!
//! Every process is started here, has a deadline, and is gone when its handle is dropped.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

use crate::machine::{CoreChoice, CorePin};

/// How long a server may take to say where it is, and to end when asked.
const START_MAX: Duration = Duration::from_secs(30);

/// How long a load client may take.
const LOAD_MAX: Duration = Duration::from_secs(300);

/// Where a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorePlacement {
    /// On the servers' core.
    FirstCore,
    /// On the load clients' core.
    LastCore,
    Anywhere,
}

impl CorePlacement {
    /// Holds this thread there while a process is started.
    fn pin(self) -> io::Result<Option<CorePin>> {
        match self {
            Self::FirstCore => CorePin::on(CoreChoice::First).map(Some),
            Self::LastCore => CorePin::on(CoreChoice::Last).map(Some),
            Self::Anywhere => Ok(None),
        }
    }
}

/// A running server process.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    pub address: SocketAddr,
    /// Where it takes side channels, if it does.
    pub side: Option<SocketAddr>,
}

impl ServerProcess {
    /// Starts `command` on the servers' core and waits for the line with its addresses.
    pub fn start(command: Command) -> io::Result<Self> {
        Self::start_at(CorePlacement::FirstCore, command)
    }

    /// Starts `command` at a place and waits for the line with its addresses.
    pub fn start_at(place: CorePlacement, mut command: Command) -> io::Result<Self> {
        let pin = place.pin()?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        drop(pin);
        let output = child.stdout.take();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            // Reads on after the addresses are known, so that the server never waits on a pipe.
            for line in output
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines())
            {
                let Ok(line) = line else { break };
                let _ = tell.send(addresses(&line));
            }
        });
        let until = Instant::now() + START_MAX;
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            match told.recv_timeout(remaining) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    return Ok(Self {
                        child,
                        address: found[0],
                        side: found.get(1).copied(),
                    });
                }
                Err(_) => {
                    child.kill()?;
                    child.wait()?;
                    return Err(io::Error::other(format!("{command:?} did not start")));
                }
            }
        }
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The arguments by which a load client finds it.
    pub fn target(&self) -> Vec<String> {
        [
            "--server",
            &self.address.to_string(),
            "--pid",
            &self.pid().to_string(),
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Closes its standard input and waits for the exit.
    pub fn stop(mut self) -> io::Result<()> {
        if let Some(pid) = Pid::from_raw(self.pid() as i32) {
            kill_process(pid, Signal::TERM)?;
        }
        wait(&mut self.child, START_MAX).map(drop)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Addresses of this machine in a line of text.
fn addresses(line: &str) -> Vec<SocketAddr> {
    line.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))
        .filter_map(|word| word.trim_matches([':', '.']).parse().ok())
        .collect()
}

fn wait(child: &mut Child, longest: Duration) -> io::Result<bool> {
    let until = Instant::now() + longest;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The path of this program, to start it in another role.
#[derive(Clone, Debug)]
pub struct BenchProgram {
    exe: PathBuf,
}

impl BenchProgram {
    /// The program that runs.
    pub fn own() -> io::Result<Self> {
        Ok(Self {
            exe: std::env::current_exe()?,
        })
    }

    /// The folder it stands in, where cargo puts the other programs of the same profile.
    pub fn sibling(&self, name: &str) -> PathBuf {
        self.exe.with_file_name(name)
    }

    /// A command that plays the role given by `args`.
    pub fn role(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.exe);
        command.arg("role").args(args);
        command
    }

    /// Plays a role to its end and reads what it tells.
    pub fn tell<T: DeserializeOwned>(
        &self,
        place: CorePlacement,
        args: &[&str],
        more: &[String],
    ) -> io::Result<T> {
        let mut command = self.role(args);
        command
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let pin = place.pin()?;
        let mut child = command.spawn()?;
        drop(pin);
        let done = wait(&mut child, LOAD_MAX)?;
        let mut text = String::new();
        if let Some(mut out) = child.stdout.take() {
            out.read_to_string(&mut text)?;
        }
        if !done {
            return Err(io::Error::other(format!("{command:?} failed")));
        }
        Ok(serde_json::from_str(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_parsed_from_a_line() {
        let wanted: SocketAddr = "127.0.0.1:8421".parse().expect("an address");
        let side: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        assert_eq!(
            addresses("listening on http://127.0.0.1:8421, try it."),
            [wanted]
        );
        assert_eq!(
            addresses("http 127.0.0.1:8421 side 127.0.0.1:9"),
            [wanted, side]
        );
        assert_eq!(addresses("version 1.2.3"), Vec::<SocketAddr>::new());
    }
}
