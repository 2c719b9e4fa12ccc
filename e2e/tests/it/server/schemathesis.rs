//! The API against its own document: schemathesis makes requests from `/openapi.json`, right ones
//! and wrong ones, and holds every answer to what the document says.
//!
//! One run speaks for strangers, whose sessions are never there; the other has a session and a turn
//! and reaches behind the checks. `TURNWIRE_SEED` plays other requests.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use turnwire_e2e::python::{programs, text};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_wire::openapi::{DocumentLimits, document, operations};

/// Requests for each operation and kind of generation: few, as every run of the tests makes the same.
const EXAMPLES: &str = "4";

/// The arguments of every run. They allow the statuses that a valid request can get because a schema
/// does not know what exists: a cursor of another session is 410. Only links of the document are
/// followed: guessed ones put session ids where tenants belong.
const CONFIG: &str = r#"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 410, 429]

[phases.stateful.inference]
algorithms = []

[[operations]]
include-path = "/chat/{response_id}/stream"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 410, 429]

# Two days that are days can be in the wrong order, or too far apart.
[[operations]]
include-path = "/usage"
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]
"#;

/// A key that was used with another body is 422, and the generator likes to use one again; the
/// owners' run is without keys.
const WITH_KEYS: &str = r#"
[[operations]]
include-method = "POST"
include-path-regex = "^/(chat/stream|sessions/\\{id\\}/turns)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 422, 429]
"#;

/// What a run is about.
struct FuzzRun<'a> {
    config: &'a str,
    phases: &'static str,
    keys: bool,
}

/// One event of a stream, as schemathesis reads it.
fn stream_event() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": "^evt_" },
            "event": { "type": "string" },
            "data": { "type": "string" },
            "retry": { "type": "integer", "minimum": 0 },
        },
        "required": ["data"],
    })
}

/// The document of the server, on a file; without the header for keys if `keys` is false.
///
/// The document describes the text of a stream; schemathesis takes the schema of a stream for that of
/// each event, unless the document has one for the events (`itemSchema`, of OpenAPI 3.2).
async fn document_of(server: &TestServer, folder: &Path, keys: bool) -> String {
    let answer = server.api().get("/openapi.json").await.expect("an answer");
    let mut document = answer.json();
    let paths = document["paths"].as_object_mut().expect("paths");
    let operations = paths.values_mut().filter_map(Value::as_object_mut);
    for operation in operations.flat_map(|path| path.values_mut()) {
        if let Some(list) = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
        {
            list.retain(|parameter| keys || parameter["name"] != "Idempotency-Key");
        }
        let stream = operation.pointer_mut("/responses/200/content/text~1event-stream");
        if let Some(stream) = stream {
            *stream = json!({ "itemSchema": stream_event() });
        }
    }
    let path = folder.join("openapi.json");
    std::fs::write(&path, document.to_string()).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// Runs schemathesis against the server; every operation is tested and no check fails.
async fn conforms(server: &TestServer, run: FuzzRun<'_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let document = document_of(server, folder.path(), run.keys).await;
    let (config, phases) = (run.config, run.phases);
    std::fs::write(folder.path().join("schemathesis.toml"), config).expect("a file");
    let seed = std::env::var("TURNWIRE_SEED").unwrap_or_else(|_| "1".to_owned());
    let url = format!("http://{}", server.addr());
    let ran = tokio::task::spawn_blocking(move || {
        Command::new(programs().join("schemathesis"))
            .args(["run", &document, "--url", &url, "--phases", phases])
            .args(["--checks", "all", "--seed", &seed])
            .args(["--max-examples", EXAMPLES, "--request-timeout", "20"])
            .args(["--continue-on-failure", "--suppress-health-check", "all"])
            .args(["--generation-database", "none", "--no-color"])
            .current_dir(folder.path())
            .env("NO_PROXY", "127.0.0.1")
            .output()
            .expect("schemathesis starts")
    });
    let ran = ran.await.expect("it ran");
    let output = text(&ran);
    assert!(ran.status.success(), "{output}");
    let all = operations().len();
    assert!(
        output.contains(&format!("Selected: {all}/{all}\n  Tested: {all}\n")),
        "{output}"
    );
}

/// How many requests were answered so: `(method, route, status)`.
async fn answered(server: &TestServer, method: &str, route: &str, status: &str) -> u64 {
    let metrics = server.api().get("/metrics").await.expect("metrics").body;
    let series = format!(
        "turnwire_http_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} "
    );
    let lines = metrics.lines();
    let counts = lines.filter_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok());
    counts.sum()
}

async fn no_server_error(server: &TestServer) {
    let metrics = server.api().get("/metrics").await.expect("metrics").body;
    let failed: Vec<&str> = metrics
        .lines()
        .filter(|line| {
            line.starts_with("turnwire_http_requests_total{") && line.contains("status=\"5")
        })
        .collect();
    assert_eq!(failed, [""; 0], "{}", server.stderr());
}

/// A server that answers at once: every chat is read to its end.
fn quick() -> ServerOptions {
    ServerOptions::script(ModelScript::new().on("", [ScriptStep::text("Yes.")]))
}

#[tokio::test]
async fn api_matches_its_document_for_strangers() {
    let server = TestServer::start(quick()).await;
    let run = FuzzRun {
        config: &format!("{CONFIG}{WITH_KEYS}"),
        phases: "examples,coverage,fuzzing",
        keys: true,
    };
    conforms(&server, run).await;
    no_server_error(&server).await;
    assert!(answered(&server, "POST", "/sessions", "201").await > 0);
    assert!(answered(&server, "GET", "/sessions/{id}/events", "404").await > 0);
}

#[tokio::test]
async fn api_matches_its_document_for_owners() {
    let server = TestServer::start(quick()).await;
    let api = server.api();
    let made = api
        .post("/sessions", json!({}))
        .await
        .expect("a session")
        .json();
    let session = made["session_id"].as_str().expect("an id").to_owned();
    let path = format!("/sessions/{session}/turns");
    let turn = api
        .post(&path, json!({"message": "hi"}))
        .await
        .expect("a turn")
        .json();
    let turn = turn["turn_id"].as_str().expect("an id");
    let config = format!(
        r#"{CONFIG}
[parameters]
"header.X-Tenant-Id" = "00000000-0000-0000-0000-000000000000"
"header.X-Turnwire-Principal" = "local"

[[operations]]
include-path-regex = "^/sessions/\\{{id\\}}/(turns|messages|events|tool-calls|llm-calls|workers|cancel|feedback)$"
parameters = {{ "path.id" = "{session}" }}

[[operations]]
include-path-regex = "^/turns/"
parameters = {{ "path.id" = "{turn}" }}

[[operations]]
include-path = "/chat/{{response_id}}/stream"
parameters = {{ "path.response_id" = "resp_{turn}" }}
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 410, 429]
"#
    );
    let run = FuzzRun {
        config: &config,
        phases: "examples,coverage,fuzzing,stateful",
        keys: false,
    };
    conforms(&server, run).await;
    no_server_error(&server).await;
    for (method, route, status) in [
        ("POST", "/sessions/{id}/turns", "202"),
        ("POST", "/sessions/{id}/turns", "422"),
        ("POST", "/turns/{id}/cancel", "202"),
        ("POST", "/sessions/{id}/cancel", "200"),
        ("GET", "/turns/{id}/approvals", "200"),
        ("GET", "/turns/{id}", "200"),
        ("GET", "/sessions/{id}/events", "200"),
        ("GET", "/sessions/{id}/messages", "200"),
        ("GET", "/sessions/{id}/tool-calls", "200"),
        ("GET", "/sessions/{id}/llm-calls", "200"),
        ("GET", "/sessions/{id}/workers", "200"),
        ("GET", "/usage", "200"),
        ("DELETE", "/sessions/{id}", "204"),
        ("POST", "/chat/stream", "200"),
        ("GET", "/chat/{response_id}/stream", "200"),
    ] {
        let count = answered(&server, method, route, status).await;
        assert!(count > 0, "{method} {route} never answered {status}");
    }
}

#[test]
fn document_is_valid_openapi_3_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("openapi.json");
    let validate = |document: &Value| {
        std::fs::write(&path, document.to_string()).expect("a file");
        Command::new(programs().join("openapi-spec-validator"))
            .args(["--schema", "3.1"])
            .arg(&path)
            .output()
            .expect("the validator starts")
    };
    let mut document = document(DocumentLimits::default());
    let judged = validate(&document);
    assert!(judged.status.success(), "{}", text(&judged));
    // The validator says no to what is none.
    document["paths"]["/sessions"]["post"]["responses"] = json!([]);
    assert!(!validate(&document).status.success());
}
