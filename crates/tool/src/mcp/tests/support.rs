//! A [`ServerFixture`] with servers as unguarded programs and the journal of their messages, and
//! helpers that call their tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use turnwire_dial::{Dialer, DialerOptions};
use turnwire_event::port::BoxFuture;
use turnwire_pack::{McpServer, McpTransport, ToolDef, ToolKind};

use crate::mcp::connection::{LaunchedProgram, ProgramLauncher, RunningProgram};
use crate::mcp::{McpServerError, McpServers, McpToolset};
use crate::tests::support::{EventSink, call};
use crate::tool::{Tool, ToolFailure};

/// Starts programs without a guard.
struct UnguardedLauncher;

impl RunningProgram for Child {
    fn exit_suffix(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let ended = self.wait().await;
            ended.map_or_else(|_| String::new(), |status| format!(" ({status})"))
        })
    }

    fn exited(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _ = self.wait().await;
        })
    }
}

impl ProgramLauncher for UnguardedLauncher {
    fn launch<'a>(
        &'a self,
        _: &'a str,
        command: &'a [String],
        env: &'a [(String, String)],
    ) -> BoxFuture<'a, std::io::Result<LaunchedProgram>> {
        Box::pin(async {
            let mut child = Command::new(&command[0])
                .args(&command[1..])
                .envs(env.iter().cloned())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            Ok(LaunchedProgram {
                stdin: Box::new(child.stdin.take().expect("a pipe")),
                stdout: Box::new(child.stdout.take().expect("a pipe")),
                program: Box::new(child),
            })
        })
    }
}

/// The servers of a test.
pub(super) struct ServerFixture {
    pub(super) servers: McpServers,
    folder: TempDir,
}

impl ServerFixture {
    pub(super) fn new() -> Self {
        let dialer = Dialer::new(DialerOptions::default()).expect("a dialer");
        Self {
            servers: McpServers::with_launcher(Arc::new(dialer), Arc::new(UnguardedLauncher)),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// A file of the test.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.file("journal")
    }

    /// A server in `mode`, with more arguments.
    pub(super) fn def(&self, mode: &str, more: &[&str]) -> McpServer {
        let mut command = vec!["python3".to_owned(), program().display().to_string()];
        command.extend([mode, "--journal"].map(str::to_owned));
        command.push(self.journal().display().to_string());
        command.extend(more.iter().map(|&word| word.to_owned()));
        def(McpTransport::Stdio {
            command,
            env: vec![("SECRET".to_owned(), "told".to_owned())],
        })
    }

    pub(super) async fn open(
        &self,
        def: McpServer,
    ) -> Result<Arc<McpToolset>, Vec<McpServerError>> {
        let defs = BTreeMap::from([("small".to_owned(), def)]);
        self.servers.open(&defs).await
    }

    /// Opens the server in `mode`.
    pub(super) async fn open_mode(&self, mode: &str, more: &[&str]) -> Arc<McpToolset> {
        let opened = self.open(self.def(mode, more)).await;
        opened.unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    /// The error of a server that cannot be used.
    pub(super) async fn open_error(&self, def: McpServer) -> String {
        match self.open(def).await {
            Ok(_) => panic!("it can be used"),
            Err(bad) => bad.iter().map(ToString::to_string).collect(),
        }
    }

    /// Every message that the server received.
    pub(super) fn messages(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.journal()).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines.collect()
    }

    /// How often the server received `method`.
    pub(super) fn count(&self, method: &str) -> usize {
        let messages = self.messages();
        messages
            .iter()
            .filter(|message| message["method"] == method)
            .count()
    }
}

impl McpToolset {
    /// The name and the number of tools of each server.
    pub(super) fn servers(&self) -> impl Iterator<Item = (&str, usize)> {
        let servers = self.servers.iter();
        servers.map(|(name, tools)| (name.as_str(), tools.tools.len()))
    }
}

/// The server program of the test kit, by its path.
pub(super) fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/src/mcp/server.py")
}

pub(super) fn def(transport: McpTransport) -> McpServer {
    McpServer {
        transport,
        start_timeout_ms: 20_000,
        call_timeout_ms: 30_000,
    }
}

pub(super) fn tool_def(remote_name: &str) -> ToolDef {
    ToolDef {
        name: format!("my_{remote_name}"),
        description: String::new(),
        kind: ToolKind::Mcp {
            server: "small".into(),
            tool: remote_name.to_owned(),
        },
        input_schema: Value::Null,
        status: None,
        timeout_ms: None,
        remember: false,
        approval: false,
        progress_status: None,
    }
}

pub(super) fn tool(tools: &McpToolset, remote_name: &str) -> Arc<dyn Tool> {
    let made = tools.tool(&tool_def(remote_name), "small", remote_name);
    made.unwrap_or_else(|reason| panic!("{reason}"))
}

/// Calls a tool with a minimal definition.
pub(super) async fn run(
    tools: &McpToolset,
    remote_name: &str,
    input: Value,
) -> Result<Value, ToolFailure> {
    let sink = EventSink::with_room(10_000);
    tool(tools, remote_name).run(call(input, &sink)).await
}

/// Waits until `done` returns true.
pub(super) async fn until(condition: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("timed out: {condition}");
}
