//! What tests of tool servers share: a server of ours whose orchestrator has the tools of an MCP
//! server, what it calls by which word, and a look at the machine's processes.

use serde_json::{Value, json};
use turnwire_event::SessionId;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};

use crate::engine::{ChatReply, EngineFixture, ORCHESTRATOR};

/// What the model does when it hears a word: it calls a tool, then quotes all that it was shown.
pub type McpScript<'a> = (&'a str, &'a str, Value);

/// A script for these words.
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

/// The pack of the test kit whose orchestrator has all tools of the MCP server `name`.
pub fn pack(pack: TestPack, name: &str, server: &Value) -> TestPack {
    let servers = format!("mcp_servers:\n  {name}: {server}\ntools:\n");
    pack.change("tools.yaml", "tools:\n", &servers).change(
        "orchestrator.yaml",
        "tools: [",
        &format!("tools: ['mcp:{name}', "),
    )
}

/// A server of ours with an MCP server behind it.
pub async fn engine(name: &str, server: &Value, says: &[McpScript<'_>]) -> EngineFixture {
    EngineFixture::with(script(says), |engine| pack(engine, name, server)).await
}

/// A program as an MCP server.
pub fn program(command: &[String]) -> Value {
    json!({"command": command, "start_timeout_ms": 40_000, "call_timeout_ms": 60_000})
}

/// A service as an MCP server.
pub fn service(url: &str) -> Value {
    json!({"url": url, "start_timeout_ms": 40_000, "call_timeout_ms": 60_000})
}

/// Says a word in a session of its own, and gives what the model was shown last: the tool's
/// result, as it stands in the request.
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
