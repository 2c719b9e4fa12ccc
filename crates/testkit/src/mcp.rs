//! A small MCP server for tests: a program whose mode selects correct or faulty behaviour, and that
//! records every received message. The program is `mcp/server.py`, which documents its modes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::environment::root;

/// The path of the program.
pub fn program() -> PathBuf {
    root().join("crates/testkit/src/mcp/server.py")
}

/// The command of a server on standard streams in `mode` that records to the file `journal`.
pub fn command(mode: &str, journal: &Path) -> Vec<String> {
    let journal = journal.display().to_string();
    let program = program().display().to_string();
    ["python3", &program, mode, "--journal", &journal]
        .map(str::to_owned)
        .into()
}

/// Every message that a server received, in order.
pub fn journal(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be half written.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.collect()
}

/// True if a server received a cancel notification.
pub fn is_cancelled(path: &Path) -> bool {
    let messages = journal(path);
    messages
        .iter()
        .any(|message| message["method"] == "notifications/cancelled")
}

/// An MCP server over HTTP; dropping it kills the process.
#[derive(Debug)]
pub struct McpHttpServer {
    child: Child,
    pub url: String,
}

impl McpHttpServer {
    /// Starts a server in `mode` that records to the file `journal` and writes its port beside it.
    pub fn start(mode: &str, journal: &Path) -> Self {
        let port_file = journal.with_extension("port");
        let command = command(mode, journal);
        let child = Command::new(&command[0])
            .args(&command[1..])
            .arg("--http")
            .arg(&port_file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("python3 is there");
        let mut started = Self {
            child,
            url: String::new(),
        };
        let until = Instant::now() + Duration::from_secs(20);
        let port = loop {
            match std::fs::read_to_string(&port_file) {
                Ok(port) => break port,
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                Err(why) => panic!("the MCP server did not say its port: {why}"),
            }
        };
        started.url = format!("http://127.0.0.1:{port}/mcp");
        started
    }
}

impl Drop for McpHttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
