//! A script whose model quotes its own input, for tests of the model's context.

use serde_json::{Value, json};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::script::{ModelScript, ScriptStep};

use crate::engine::{EngineFixture, ORCHESTRATOR, working};

/// Answers `probe` with the model's whole input; other messages go to the shop.
pub fn script() -> ModelScript {
    let script = ModelScript::new()
        .on_call(ORCHESTRATOR, "^probe", 1, [ScriptStep::text("{{request}}")])
        .on_call(
            ORCHESTRATOR,
            "^garden",
            1,
            [ScriptStep::tool("ask_garden", json!({"query": "roses"}))],
        )
        .on_call(
            ORCHESTRATOR,
            "^support",
            1,
            [ScriptStep::tool("ask_support", json!({"query": "x"}))],
        )
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "x"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("{{request}}")])
        .call("garden", 1, [ScriptStep::tool("now", json!({}))])
        .call("garden", 2, [ScriptStep::text("SUBRAW of garden")]);
    working(script)
}

/// A request as the model quotes it.
pub fn asked(request: &str) -> Value {
    serde_json::from_str(request).unwrap_or_else(|why| panic!("{why}: {request}"))
}

/// The names of the tools in a request.
pub fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().expect("tools").iter();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

/// The model's current input, read in a new session, because quotes grow with the history.
pub async fn probe(engine: &EngineFixture) -> Value {
    let session = engine.api.create().await.expect("a session");
    let reply = engine.submit_in(session, ChatSubmit::new("probe")).await;
    asked(&reply.text())
}
