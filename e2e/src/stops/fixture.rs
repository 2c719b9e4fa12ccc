//! The fixture of the stop tests: the real server, a fake provider, a web site, a data service and
//! an MCP server on the loopback.

use std::time::Duration;

use serde_json::json;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::data_service::{FakeDataService, ServiceReply, envelope};
use turnwire_testkit::mcp;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::provider::{AnswerProgress, Dialect, FakeProvider};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::site::{FakeSite, SitePage};

use crate::chat::until;
use crate::engine::PRINCIPAL;
use crate::models::{ModelEntry, options, pack};

/// The delay of the slow data service: longer than a case.
const CCS_MS: u64 = 8_000;

/// The server and all services it calls.
#[derive(Debug)]
pub struct StopFixture {
    pub fake: FakeProvider,
    /// The web site of the HTTP tools.
    pub site: FakeSite,
    pub ccs: FakeDataService,
    pub server: TestServer,
    /// An HTTP client of the server.
    pub api: ApiClient,
}

impl StopFixture {
    /// Starts a server whose programs have `grace` between TERM and KILL.
    pub async fn open(grace: Duration) -> Self {
        Self::with(grace, |options| options).await
    }

    /// Starts a server with other options.
    pub async fn with(
        grace: Duration,
        change: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let (fake, site, ccs) = (
            FakeProvider::start().await,
            FakeSite::start().await,
            FakeDataService::start().await,
        );
        site.page("/drip", SitePage::drip());
        for enricher in ["offer_search", "points", "answers"] {
            ccs.set(
                enricher,
                ServiceReply::envelope(&envelope(enricher)).after(CCS_MS),
            );
        }
        let entry = ModelEntry::new("vendor", Dialect::Anthropic, &fake.base_url());
        let pack = add_tools(pack(&ccs.url(), &[entry]), &site.url());
        // One principal runs all programs of a load test.
        let options = options(pack)
            .set("tool", "grace_ms", grace.as_millis())
            .set("tool", "programs_per_owner_max", 64);
        let server = TestServer::start(change(options)).await;
        let api = server.api().with("x-turnwire-principal", PRINCIPAL);
        Self {
            fake,
            site,
            ccs,
            server,
            api,
        }
    }

    /// Waits until all connections to the provider and the site are closed.
    pub async fn sockets_closed(&self) {
        until("every socket to the provider is done with", || async {
            let calls = self.fake.calls();
            let done = |progress| matches!(progress, AnswerProgress::Sent | AnswerProgress::Cut);
            calls.iter().all(|call| call.closed || done(call.progress))
        })
        .await;
        until("every socket to the site is closed", || async {
            self.site.open_connections() == 0
        })
        .await;
    }
}

/// The pack with tools of every kind, for every agent.
fn add_tools(pack: TestPack, site: &str) -> TestPack {
    let server: Vec<String> = mcp::command("good", "/dev/null".as_ref())
        .iter()
        .map(|word| format!("{word:?}"))
        .collect();
    let tools = TOOLS.replace("SITE", site);
    let servers = format!(
        "mcp_servers:\n  small:\n    command: [{}]\n    call_timeout_ms: 120000\n",
        server.join(", ")
    );
    let pack = pack
        .change(
            "tools.yaml",
            "tools:\n",
            &format!("{servers}tools:\n{tools}"),
        )
        .change(
            "pack.yaml",
            "models: {",
            "models: {script: 'scripted:stage', ",
        )
        .change(
            "orchestrator.yaml",
            "tools: [",
            "tools: [drip, program, slow_mcp, dig, ",
        )
        .put("workers/digger/agent.yaml", DIGGER)
        .script(&script());
    let limits = "limits: {sub_agent_timeout_ms: 120000, watchdog_ms: 600000}\n";
    let text = format!("{}{limits}", pack.text("pack.yaml"));
    let pack = pack.put("pack.yaml", &text);
    ["shop", "rewards", "support"]
        .into_iter()
        .fold(pack, |pack, id| {
            let file = format!("verticals/{id}/agent.yaml");
            pack.change(&file, "model: default", "model: script")
                .change(
                    &file,
                    "tools: [",
                    "tools: [nap, drip, program, slow_mcp, dig, ",
                )
        })
}

/// The script of sub-agents and workers: the query selects the tool.
fn script() -> ModelScript {
    let agents = [
        ("shop", "search_offers"),
        ("rewards", "points_balance"),
        ("support", "support_answer"),
    ];
    let script = ModelScript::new().on_call(
        "digger",
        "^/",
        1,
        [ScriptStep::tool("program", json!({"path": "{{user}}"}))],
    );
    agents.into_iter().fold(script, |script, (id, data)| {
        let cases = [
            ("^sleep", ScriptStep::tool("nap", json!({"ms": 30_000}))),
            ("^http", ScriptStep::tool("drip", json!({}))),
            ("^mcp", ScriptStep::tool("slow_mcp", json!({"seconds": 60}))),
            ("^ccs", ScriptStep::tool(data, json!({}))),
            ("/dug", ScriptStep::tool("dig", json!({"task": "{{user}}"}))),
            (
                "^/",
                ScriptStep::tool("program", json!({"path": "{{user}}"})),
            ),
        ];
        cases.into_iter().fold(script, |script, (user, step)| {
            script.on_call(id, user, 1, [step])
        })
    })
}

const TOOLS: &str = r#"
  - name: drip
    connector: http
    description: Reads a page without end.
    url: "SITE/drip"
    input_schema: {type: object}
    timeout_ms: 60000
  - name: program
    connector: process
    description: Runs a script.
    command: [sh, "{path}"]
    stdin: none
    input_schema: {type: object, properties: {path: {type: string}}, required: [path]}
    timeout_ms: 120000
  - {name: slow_mcp, connector: mcp, server: small, tool: slow}
  - {name: dig, connector: delegate, agent: digger, description: Digs., timeout_ms: 120000}
"#;

const DIGGER: &str = "\
id: digger
version: '1'
kind: worker
description: Digs.
model: script
prompt_blocks: [worker]
tools: [program]
";
