//! A pack that uses a provider over the network: what the provider is sent, what a turn makes of
//! its answer, what it costs, and which rule chose it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::test_app::TestApp;
use crate::test_app::upstream::Upstream;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwire_pack::PackFiles;
use turnwire_serve::app::{App, host};
use turnwire_serve::config::{ServerConfig, SettingSources};
use turnwire_serve::host::{PackHost, ServerVariables};

const KEY: &str = "sk-marker-4711";

/// The skeleton, whose speaker is asked at `port`.
fn pack(dir: &Path, port: u16) {
    let skeleton = PackFiles::skeleton("small");
    let mut files: Vec<(String, String)> = skeleton
        .iter()
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect();
    let providers = format!(
        "providers:
  local:
    dialect: openai_chat
    base_url: http://localhost:{port}/v1
    key: ${{LOCAL_KEY}}
    headers: {{x-team: market}}
    params: {{max_tokens: 64}}
    models: {{m: {{temperature: 0.5}}}}
"
    );
    let prices = "prices: {\"local:*\": {input: 2.0, output: 100.0}}\n";
    for (path, text) in [
        ("providers.yaml", providers.as_str()),
        ("prices.yaml", prices),
        ("routing.yaml", &rules("v1")),
    ] {
        files.push((path.to_owned(), text.to_owned()));
    }
    for (path, text) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

fn rules(version: &str) -> String {
    format!(
        "version: \"{version}\"
rules:
  - {{name: speaker, when: {{agent: orchestrator, kind: chat}}, use: \"local:m\"}}
"
    )
}

fn config(home: &Path, dir: &Path, env: &[(&str, &str)]) -> ServerConfig {
    let dir = dir.display().to_string();
    let said = [("TURNWIRE_PACK_DIR", dir.as_str())];
    let env = said.iter().chain(env);
    let sources = SettingSources {
        home: Some(home.to_owned()),
        env: env
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..SettingSources::default()
    };
    ServerConfig::load(&sources).expect("settings")
}

async fn app(folder: &Path, port: u16, env: &[(&str, &str)]) -> (App, Arc<PackHost>) {
    let dir = folder.join("pack");
    pack(&dir, port);
    let config = config(&folder.join("data"), &dir, env);
    let variables = ServerVariables::default().or("LOCAL_KEY", KEY);
    let host = host(&config, variables)
        .await
        .unwrap_or_else(|why| panic!("{why}"));
    let app = App::hosting(config, host.clone()).await;
    (app.unwrap_or_else(|why| panic!("{why}")), host)
}

/// The events of a session, oldest first.
async fn events(app: &TestApp, session: &str) -> Vec<Value> {
    let answer = app.get(&format!("/sessions/{session}/events")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.raw);
    answer.body["events"].as_array().cloned().expect("events")
}

#[tokio::test]
async fn turn_is_answered_by_the_routed_provider() {
    let upstream = Upstream::open(true).await;
    let folder = tempfile::tempdir().expect("a folder");
    let tape = folder.path().join("tape.jsonl");
    let record = [("TURNWIRE_MODEL_RECORD", tape.to_str().expect("a path"))];
    let (app, _host) = app(folder.path(), upstream.port, &record).await;
    let app = TestApp::around(app);
    let session = app.session().await;
    let ended = app.ended(&app.turn(&session, "Hallo!").await).await;
    assert_eq!(ended["terminal"]["type"], "turn.completed", "{ended}");

    let came = upstream.came();
    assert_eq!(came.len(), 1, "{came:?}");
    let head = &came[0].head;
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("\r\nauthorization: bearer {KEY}")),
        "{head}"
    );
    assert!(head.contains("\r\nx-team: market"), "{head}");
    let body = &came[0].body;
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&json!("m"), &json!(true))
    );
    assert_eq!(body["temperature"], json!(0.5));

    let said = app.get(&format!("/sessions/{session}/messages")).await;
    assert!(said.raw.contains("Guten Tag."), "{}", said.raw);
    let row = app.get(&format!("/sessions/{session}")).await.body;
    assert_eq!(row["active_model"], "local:m");
    assert_eq!(row["routing_policy_version"], "v1");
    // 1000 tokens read and 10 written.
    let cost = row["cost_so_far_usd"].as_f64().expect("a cost");
    assert!((cost - 0.003).abs() < 1e-9, "{cost}");
    let all = events(&app, &session).await;
    let route = all.iter().find(|event| event["type"] == "route.decided");
    let route = route.expect("a route");
    assert!(route.to_string().contains("rule speaker"), "{route}");

    // No key anywhere: not in what clients see, not on the tape.
    let text = serde_json::to_string(&all).expect("JSON");
    assert!(!text.contains(KEY));
    drop(app);
    let tape = std::fs::read_to_string(&tape).expect("a tape");
    assert!(
        tape.contains("Guten ") && !tape.contains(KEY) && !tape.contains("Hallo!"),
        "{tape}"
    );
}

// S3-104
#[tokio::test]
async fn sessions_are_notified_of_a_new_policy() {
    let upstream = Upstream::open(false).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (app, host) = app(folder.path(), upstream.port, &[]).await;
    let router = app.router();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await;
    let drain = CancellationToken::new();
    let serving = tokio::spawn(app.serve(listener.expect("a port"), drain.clone()));
    let app = TestApp::of(router);
    let session = app.session().await;
    let turn = app.turn(&session, "Hallo!").await;
    until(|| !upstream.came().is_empty()).await;

    let file = folder.path().join("pack/routing.yaml");
    std::fs::write(&file, "version: [").expect("a file");
    assert!(host.reload().await.is_err(), "a broken file is not applied");
    std::fs::write(&file, rules("v2")).expect("a file");
    assert!(host.reload().await.expect("a good pack"));
    let told = |all: &[Value]| {
        let told = all
            .iter()
            .filter(|event| event["type"] == "routing.policy_reloaded");
        told.cloned().collect::<Vec<_>>()
    };
    let mut all = events(&app, &session).await;
    for _ in 0..500 {
        if !told(&all).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        all = events(&app, &session).await;
    }
    let told = told(&all);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["payload"]["routing_policy_version"], "v2");
    let row = app.get(&format!("/sessions/{session}")).await.body;
    assert_eq!(row["routing_policy_version"], "v2");
    // The turn that runs keeps what it was bound to.
    let route = all.iter().find(|event| event["type"] == "route.decided");
    assert_eq!(
        route.expect("a route")["payload"]["routing_policy_version"],
        "v1"
    );

    let cancelled = app.post(&format!("/turns/{turn}/cancel"), json!({})).await;
    assert!(cancelled.status.is_success(), "{}", cancelled.raw);
    app.ended(&turn).await;
    drain.cancel();
    serving.await.expect("no panic");
}

async fn until(so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not happen in 10 s");
}
