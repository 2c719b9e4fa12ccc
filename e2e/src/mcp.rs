//! Fixture of the MCP tests: a server whose orchestrator has the tools of an MCP server, a script
//! that calls them, and a search of the process table.

use serde_json::{Value, json};
use turnwire_event::SessionId;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};

use crate::engine::{ChatReply, EngineFixture, ORCHESTRATOR};

/// A message, and the tool call that the model answers it with; then the model quotes its input.
pub type McpScript<'a> = (&'a str, &'a str, Value);

/// A script with these tool calls.
pub fn script(says: &[McpScript<'_>]) -> ModelScript {
    let script = ModelScript::new();
    says.iter().fold(script, |script, (word, tool, input)| {
        let word = format!("^{word}$");
        script
            .on_call(
                ORCHESTRATOR,
                &word,
                1,
                [ScriptStep::tool(tool, input.clone())],
            )
            .on_call(ORCHESTRATOR, &word, 2, [ScriptStep::text("{{request}}")])
    })
}

/// The pack with all tools of the MCP server `name` for the orchestrator.
pub fn pack(pack: TestPack, name: &str, server: &Value) -> TestPack {
    let servers = format!("mcp_servers:\n  {name}: {server}\ntools:\n");
    pack.change("tools.yaml", "tools:\n", &servers).change(
        "orchestrator.yaml",
        "tools: [",
        &format!("tools: ['mcp:{name}', "),
    )
}

/// Starts a server with one MCP server.
pub async fn engine(name: &str, server: &Value, says: &[McpScript<'_>]) -> EngineFixture {
    EngineFixture::with(script(says), |engine| pack(engine, name, server)).await
}

/// The pack entry of an MCP server on standard streams.
pub fn program(command: &[String]) -> Value {
    json!({"command": command, "start_timeout_ms": 40_000, "call_timeout_ms": 60_000})
}

/// The pack entry of an MCP server over HTTP.
pub fn service(url: &str) -> Value {
    json!({"url": url, "start_timeout_ms": 40_000, "call_timeout_ms": 60_000})
}

/// Submits a message in a new session; returns the tool result that the model saw last,
/// as in the model request.
pub async fn said(engine: &EngineFixture, word: &str) -> (SessionId, ChatReply, String) {
    let session = engine.api.create().await.expect("a session");
    let reply = engine.submit_in(session, ChatSubmit::new(word)).await;
    let reply_text = reply.text();
    (session, reply, reply_text)
}

/// The processes whose command line has `word` in it.
pub fn processes(word: &str) -> Vec<u32> {
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = all.flatten().filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(word).then_some(id)
    });
    ids.collect()
}
