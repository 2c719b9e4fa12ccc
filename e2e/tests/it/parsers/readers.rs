//! The real readers, each a program that is given one stream after the other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use turnwire_e2e::python::{programs, text};

use super::reference::{Event, parse};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chromium,
    /// The package `eventsource` on Node.js.
    Package,
    Httpx,
    /// `curl -N`, its bytes judged by the reference.
    Curl,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Chromium, Self::Package, Self::Httpx, Self::Curl];
}

/// A reader that is ready.
pub(crate) struct Reader {
    pub(crate) kind: Kind,
    program: Option<Program>,
    _profile: TempDir,
}

/// A program that answers lines with lines.
struct Program {
    child: Child,
    /// `None` once the reader is asked to end.
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Installs what the drivers import, by the lock file, unless it is there. `cargo xtask test` does
/// that before; a test that is run alone does it itself.
fn modules() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if folder("browser/node_modules/eventsource").is_dir() {
            return;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund"]);
        let done = npm.current_dir(folder("browser")).output();
        let done = done.unwrap_or_else(|why| panic!("npm is needed: {why}"));
        assert!(done.status.success(), "{}", text(&done));
    });
}

impl Reader {
    pub(crate) fn start(kind: Kind) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let path = profile.path().to_str().expect("a path");
        let node = |arguments: &[&str]| {
            modules();
            let mut command = Command::new("node");
            command.arg(folder("browser/streams.mjs")).args(arguments);
            Some(Program::start(command))
        };
        let program = match kind {
            Kind::Chromium => node(&["chromium", path]),
            Kind::Package => node(&["package"]),
            Kind::Httpx => {
                let mut command = Command::new(programs().join("python"));
                command.arg(folder("python/streams.py"));
                Some(Program::start(command))
            }
            Kind::Curl => None,
        };
        Self {
            kind,
            program,
            _profile: profile,
        }
    }

    /// Reads one stream until the server says that there is nothing more.
    pub(crate) fn read(&mut self, base: &str, path: &str) -> Vec<Event> {
        let Some(program) = &mut self.program else {
            return curl(&format!("{base}{path}"));
        };
        let mut answer = program.call(&json!({"base": base, "path": path}));
        assert_eq!(answer["error"], Value::Null, "{answer}");
        serde_json::from_value(answer["events"].take()).expect("a list of events")
    }
}

impl Program {
    fn start(mut command: Command) -> Self {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.unwrap_or_else(|why| {
            panic!("{command:?} is needed (`cargo xtask test` installs it): {why}")
        });
        let (ask, answers) = (child.stdin.take(), child.stdout.take());
        let mut program = Self {
            child,
            ask,
            answers: BufReader::new(answers.expect("a pipe")),
        };
        assert_eq!(program.answer(), json!({"ready": true}), "{command:?}");
        program
    }

    fn call(&mut self, question: &Value) -> Value {
        let ask = self.ask.as_mut().expect("a pipe");
        writeln!(ask, "{question}").expect("the reader listens");
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process and its browser end when their standard input is closed.
        drop(self.ask.take());
        let started = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if started.elapsed() > Duration::from_secs(10) {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Reads with `curl`, and reconnects with the last id.
fn curl(url: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let last = events.last().map(|event| event.0.clone());
        let header = format!("Last-Event-ID: {}", last.unwrap_or_default());
        let done = Command::new("curl")
            .args(["-sSN", "--max-time", "60", "-w", "%{stderr}%{http_code}"])
            .args(["-H", &header, url])
            .output()
            .unwrap_or_else(|why| panic!("curl is needed: {why}"));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "curl: {stderr}");
        match &*stderr {
            "200" => parse(&done.stdout, &mut events),
            "204" => return events,
            other => panic!("curl: {other}"),
        }
    }
}
