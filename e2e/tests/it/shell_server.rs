//! A real server whose model runs shell commands: the message of a turn is the command of its one
//! tool, which is a program, and the answer is the result of the tool.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_event::{SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, ServerPack, TestServer};

/// The tool: a shell that gets its command on standard input, as the field of a JSON object.
const TOOLS: &str = r#"tools:
  - name: shell
    connector: process
    description: Runs a command.
    command: [python3, -c, "import json, os, sys; os.execvp('sh', ['sh', '-c', json.load(sys.stdin)['command']])"]
    limits: {cpu_s: 60, memory_mb: 4096, file_mb: 64, open_files: 256, processes: 200}
    input_schema: {type: object, properties: {command: {type: string}}, required: [command]}
    timeout_ms: 120000
"#;

/// A server with the tool.
#[derive(Debug)]
pub(crate) struct ShellServer {
    pub(crate) server: TestServer,
    /// A client of the default owner.
    pub(crate) api: ApiClient,
}

/// A turn that runs a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShellTurn {
    pub(crate) session: SessionId,
    pub(crate) turn: TurnId,
}

impl ShellServer {
    /// Starts the server with the options that `change` returns.
    pub(crate) async fn start(change: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        let steps = [
            ScriptStep::tool("shell", json!({"command": "{{user}}"})),
            ScriptStep::text("{{last_tool_result}}"),
        ];
        let pack = TestPack::market("http://127.0.0.1:9")
            .change("tools.yaml", "tools:\n", TOOLS)
            .change("orchestrator.yaml", "tools: [", "tools: [shell, ")
            .script(&ModelScript::new().on("", steps));
        let server = TestServer::start(change(ServerOptions {
            pack: ServerPack::Pack(pack),
            ..ServerOptions::default()
        }))
        .await;
        let api = server.api();
        Self { server, api }
    }

    /// Starts a command in a session of its own.
    pub(crate) async fn submit(&self, api: &ApiClient, command: &str) -> ShellTurn {
        let session = api.create().await.expect("a session");
        self.submit_to(api, session, command).await
    }

    /// Starts a command in `session`.
    pub(crate) async fn submit_to(
        &self,
        api: &ApiClient,
        session: SessionId,
        command: &str,
    ) -> ShellTurn {
        let turn = api.submit(session, command).await.expect("taken").turn_id;
        ShellTurn { session, turn }
    }

    /// Waits for the end of a turn, and returns its answer: what the model got from the tool.
    pub(crate) async fn answer(&self, api: &ApiClient, turn: ShellTurn) -> String {
        let row = api.ended(turn.turn).await.expect("an end");
        assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
        let path = format!("/sessions/{}/messages", turn.session);
        let list = api.get(&path).await.expect("an answer").json();
        let messages = list["messages"].as_array().expect("a list").iter();
        let mut answers = messages.filter(|message| message["role"] == "assistant");
        let text = |message: &Value| message["content"][0]["text"].as_str().map(str::to_owned);
        let texts: Vec<String> = answers.by_ref().filter_map(text).collect();
        assert!(!texts.is_empty(), "{list}");
        texts.concat()
    }

    /// Runs a command and returns what the model got from it.
    pub(crate) async fn run(&self, command: &str) -> String {
        let turn = self.submit(&self.api, command).await;
        self.answer(&self.api, turn).await
    }

    /// The value of a metric without labels.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let metrics = self.api.get("/metrics").await.expect("an answer").body;
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
    }

    /// Waits until `line` is in the log of the server.
    pub(crate) async fn until_logged(&self, line: &str) {
        self.until_line(&[line]).await;
    }

    /// Waits until the log of the server has a line with all `parts`.
    pub(crate) async fn until_line(&self, parts: &[&str]) {
        for _ in 0..400 {
            let log = self.server.stderr();
            let mut lines = log.lines();
            if lines.any(|line| parts.iter().all(|part| line.contains(part))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("no line with {parts:?} in {}", self.server.stderr());
    }
}
