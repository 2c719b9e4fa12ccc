//! What tools of every kind become.

use super::*;
use crate::pack::Pack;
use crate::pack::agent::AgentKind;
use crate::pack::tool::{
    HttpDef, McpServer, McpTransport, ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin,
    ToolKind, ToolMethod,
};

fn pack() -> Pack {
    examined(Vec::new()).pack.expect("the pack has no findings")
}

fn kind(pack: &Pack, name: &str) -> ToolKind {
    pack.tool(name).expect("a tool of this name").kind.clone()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn tool_fields_are_read_with_defaults() {
    let pack = pack();
    let weather = HttpDef {
        method: ToolMethod::Post,
        url: "https://api.example.com/v1/{city}?lang={lang}&key=hush-hush".to_owned(),
        query: vec![pair("units", "metric"), pair("day", "{day}")],
        headers: vec![
            pair("x-key", "hush-hush"),
            pair("accept", "application/json"),
            pair("content-type", "application/json"),
        ],
        max_bytes: 1_048_576,
        redirects_max: 0,
    };
    assert_eq!(kind(&pack, "weather"), ToolKind::Http(weather));
    let plain = HttpDef {
        method: ToolMethod::Get,
        url: "http://127.0.0.1:9000".to_owned(),
        query: Vec::new(),
        headers: Vec::new(),
        max_bytes: 262_144,
        redirects_max: 3,
    };
    assert_eq!(kind(&pack, "plain_http"), ToolKind::Http(plain));
    let count = ProcessDef {
        command: words(&["wc", "-w", "--files={file}", "{print $1}", "hush-hush"]),
        env: vec![pair("LANG", "C"), pair("TOKEN", "hush-hush")],
        stdin: ProcessStdin::None,
        output: ProcessOutput::Json,
        output_bytes_max: 1_048_576,
        limits: ProcessLimits {
            cpu_s: 600,
            memory_bytes: 16_384 << 20,
            file_bytes: 0,
            open_files: 1_024,
            processes: 4_096,
        },
    };
    assert_eq!(kind(&pack, "count_words"), ToolKind::Process(count));
    let cat = ProcessDef {
        command: words(&["cat"]),
        env: Vec::new(),
        stdin: ProcessStdin::Input,
        output: ProcessOutput::Text,
        output_bytes_max: 65_536,
        limits: ProcessLimits {
            cpu_s: 30,
            memory_bytes: 512 << 20,
            file_bytes: 64 << 20,
            open_files: 64,
            processes: 64,
        },
    };
    assert_eq!(kind(&pack, "plain_process"), ToolKind::Process(cat));
    let mcp = |tool: &str| ToolKind::Mcp {
        server: "files".to_owned(),
        tool: tool.to_owned(),
    };
    assert_eq!(kind(&pack, "read_notes"), mcp("read.file"));
    assert_eq!(kind(&pack, "list_notes"), mcp("list_notes"));
    let to = |agent: &str| ToolKind::Delegate {
        agent: agent.to_owned(),
    };
    assert_eq!(kind(&pack, "research"), to("researcher"));
    assert_eq!(kind(&pack, "think_again"), to("orchestrator"));
    assert!(matches!(kind(&pack, "lookup"), ToolKind::Ccs { .. }));
    let timeouts = [
        "weather",
        "plain_http",
        "count_words",
        "plain_process",
        "read_notes",
        "list_notes",
        "research",
        "think_again",
        "lookup",
    ];
    let timeouts = timeouts.map(|name| pack.tool(name).and_then(|tool| tool.timeout_ms));
    assert_eq!(
        timeouts,
        [
            Some(60_000),
            Some(10_000),
            Some(600_000),
            Some(30_000),
            None,
            Some(1_000),
            Some(120_000),
            Some(600_000),
            None,
        ]
    );
    let approved: Vec<&str> = pack
        .tools
        .iter()
        .filter(|tool| tool.approval)
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(approved, ["weather"]);
    let progress = pack
        .tool("read_notes")
        .and_then(|tool| tool.progress_status.as_deref());
    assert_eq!(progress, Some("searching_offers"));
}

#[test]
fn servers_services_and_workers_are_read() {
    let pack = pack();
    let files = McpServer {
        transport: McpTransport::Stdio {
            command: words(&["mcp-server-filesystem", "./data", "hush-hush"]),
            env: vec![pair("TOKEN", "hush-hush")],
        },
        start_timeout_ms: 5_000,
        call_timeout_ms: 60_000,
    };
    assert_eq!(pack.mcp_servers["files"], files);
    let search = McpServer {
        transport: McpTransport::Http {
            url: "https://search.example.com/mcp?tenant=corner".to_owned(),
            headers: vec![pair("authorization", "Bearer hush-hush")],
        },
        start_timeout_ms: 10_000,
        call_timeout_ms: 30_000,
    };
    assert_eq!(pack.mcp_servers["search"], search);
    assert!(pack.tool_positions.contains_key("mcp:search"));
    assert!(pack.tool_positions["read_notes"] > (1, 1));
    assert_eq!(pack.services["facts"].mcp.as_deref(), Some("facts"));
    assert_eq!(pack.services["facts"].url, "");
    let [worker] = pack.workers.as_slice() else {
        panic!("one worker");
    };
    assert_eq!(
        (worker.id.as_str(), worker.kind),
        ("researcher", AgentKind::Worker)
    );
    assert_eq!(
        (worker.model.as_str(), worker.timeout_ms),
        ("scripted:big", 600_000)
    );
    assert_eq!(
        worker.tools,
        ["clock", "research", "count_words", "mcp:search"]
    );
    assert_eq!(pack.agents.len(), 2, "no worker among the sub-agents");
    assert_eq!(pack.limits.workers_max, 64);
    let id = |name: &str| pack.worker(name).map(|agent| agent.id.as_str());
    assert_eq!(
        ["researcher", "shop", "orchestrator", "nobody"].map(id),
        [Some("researcher"), Some("shop"), Some("orchestrator"), None]
    );
    let used = pack.uses.iter().filter(|used| used.model == "scripted:big");
    assert_eq!(used.count(), 4, "the shop's, the worker's and two of rules");
}

#[test]
fn schema_accepts_what_check_accepts() {
    for (name, text) in [("tools", TOOLS), ("worker", WORKER)] {
        let validator = crate::schema::named(name).validator();
        let value: serde_json::Value = crate::yaml::from_str(text).expect("YAML");
        let mismatches: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(mismatches, [""; 0], "{name}");
    }
}

#[test]
fn debug_output_has_no_secrets() {
    let pack = pack();
    let debug_text = format!("{pack:?}");
    assert!(debug_text.contains("count_words"), "{debug_text}");
    assert!(!debug_text.contains("hush"), "{debug_text}");
}

#[test]
fn versions_ignore_values_of_variables() {
    let version = |changes: Vec<Change<'_>>, secret: &'static str| {
        let mut all = base();
        all.extend(changes);
        let report = check(&files(&all), &|name| match name {
            "SECRET" => Some(secret.to_owned()),
            other => vars(other),
        });
        let pack = report
            .pack
            .unwrap_or_else(|| panic!("{:?}", report.findings));
        pack.versions(&pack.cohort("user-42"))
    };
    let before = version(Vec::new(), "hush-hush");
    assert_eq!(before, version(Vec::new(), "another"));
    let worker = "workers/researcher/agent.yaml";
    let changes = [
        Swap("tools.yaml", "api.example.com/v1", "api.example.com/v2"),
        Swap("tools.yaml", "units: metric", "units: imperial"),
        Swap(
            "tools.yaml",
            "X-Key: \"${SECRET}\"",
            "X-Key: \"k${SECRET}\"",
        ),
        Swap("tools.yaml", "redirects_max: 0", "redirects_max: 1"),
        Swap("tools.yaml", "approval: required", "approval: none"),
        Swap("tools.yaml", "[wc, \"-w\"", "[wc, \"-c\""),
        Swap("tools.yaml", "LANG: C", "LANG: de"),
        Swap("tools.yaml", "cpu_s: 600", "cpu_s: 599"),
        Swap("tools.yaml", "\"./data\"", "\"./more\""),
        Swap("tools.yaml", "call_timeout_ms: 60000", "call_timeout_ms: 1"),
        Swap("tools.yaml", "mcp?tenant=corner", "mcp"),
        Swap("tools.yaml", "tool: read.file", "tool: read"),
        Swap("tools.yaml", "agent: shop", "agent: points"),
        Swap(worker, "description: Finds out.", "description: Finds."),
        Swap(worker, "version: \"1\"", "version: \"2\""),
    ];
    for change in changes {
        let (Swap(_, _, to) | Write(_, to)) = change else {
            continue;
        };
        let to = to.to_owned();
        assert_ne!(before, version(vec![change], "hush-hush"), "{to}");
    }
}
