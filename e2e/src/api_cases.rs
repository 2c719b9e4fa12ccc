//! The API against its own document: schemathesis makes requests from `/openapi.json`, right ones and
//! wrong ones, and holds every answer to what the document says: no 5xx, no status, header or body that
//! is not described, every refusal a problem.
//!
//! One kind of run speaks for strangers, whose sessions are never there; the other has a session and a
//! turn and reaches behind the checks. Each runs against a server that believes every caller, or against
//! one that asks for tokens.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use turnwire_event::{Owner, Timestamp};
use turnwire_identity::{Scope, TokenFile, TokenGrant};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_wire::openapi::operations;

use crate::python::{programs, text};

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
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 410, 429]

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
checks.positive_data_acceptance.expected-statuses = ["2xx", 403, 404, 409, 422, 429]
"#;

/// The check of ours.
const PROBLEMS: &str = include_str!("../python/problems.py");

/// The tenant of all requests to a server with tokens: another one than the token's is always refused.
const WITH_TENANT: &str = r#"
[parameters]
"header.X-Tenant-Id" = "00000000-0000-0000-0000-000000000000"
"#;

/// On whose behalf the requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Principals that own nothing, with idempotency keys.
    Strangers,
    /// The owner of a session and a turn, with links followed.
    Owner,
}

/// How the server learns who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From headers that it believes.
    Believed,
    /// From an API token with every scope. Requests without one, and with others, are made too.
    Token,
}

/// How a run makes its requests.
#[derive(Clone, Copy, Debug)]
pub struct CasePlan {
    /// Who owns nothing, or the session and the turn that requests name.
    pub caller: Caller,
    /// How the server learns who that is.
    pub access: Access,
    /// Requests for each operation and kind of generation.
    pub examples: u32,
    /// The same seed makes the same requests.
    pub seed: u64,
}

/// The server of a run, with what it takes to send it more requests.
pub struct CheckedServer {
    server: TestServer,
    /// The token of all requests.
    token: Option<String>,
    _home: TempDir,
}

/// Runs a plan against a server of its own: every operation is tested and no check fails. Gives the
/// server and the number of requests.
pub async fn run(plan: CasePlan) -> (CheckedServer, u64) {
    let checked = CheckedServer::start(plan.access).await;
    let (config, phases) = match plan.caller {
        Caller::Strangers => (
            match plan.access {
                Access::Believed => format!("{CONFIG}{WITH_KEYS}"),
                Access::Token => format!("{CONFIG}{WITH_TENANT}{WITH_KEYS}"),
            },
            "examples,coverage,fuzzing",
        ),
        Caller::Owner => (
            owner_config(&checked.api()).await,
            "examples,coverage,fuzzing,stateful",
        ),
    };
    let cases = conforms(&checked, plan, (&config, phases)).await;
    checked.has_no_server_error().await;
    (checked, cases)
}

impl CheckedServer {
    async fn start(access: Access) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let script = ModelScript::new().on("", [ScriptStep::text("Yes.")]);
        let mut options = ServerOptions {
            home: Some(home.path().to_owned()),
            ..ServerOptions::script(script)
        };
        let mut token = None;
        if access == Access::Token {
            options = options.set("auth", "mode", "tokens");
            token = Some(token_of_local(home.path()));
        }
        Self {
            server: TestServer::start(options).await,
            token,
            _home: home,
        }
    }

    fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    fn api(&self) -> ApiClient {
        match self.authorization() {
            Some(value) => self.server.api().with("authorization", &value),
            None => self.server.api(),
        }
    }

    async fn metrics(&self) -> String {
        let answer = self.api().get("/metrics").await.expect("metrics");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// How many requests were answered so.
    pub async fn answered(&self, method: &str, route: &str, status: &str) -> u64 {
        let series = format!(
            "turnwire_http_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}} "
        );
        let metrics = self.metrics().await;
        let lines = metrics.lines();
        let counts = lines.filter_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok());
        counts.sum()
    }

    async fn has_no_server_error(&self) {
        let metrics = self.metrics().await;
        let failed: Vec<&str> = metrics
            .lines()
            .filter(|line| {
                line.starts_with("turnwire_http_requests_total{") && line.contains("status=\"5")
            })
            .collect();
        assert_eq!(failed, [""; 0], "{}", self.server.stderr());
    }
}

/// A new token of the principal and tenant of requests that name none, with every scope.
fn token_of_local(home: &Path) -> String {
    let file = TokenFile::new(home.join("tokens.json"));
    let grant = TokenGrant {
        owner: Owner {
            tenant: "00000000-0000-0000-0000-000000000000"
                .parse()
                .expect("a tenant"),
            principal: "local".parse().expect("a principal"),
        },
        scopes: Scope::ALL.into_iter().collect(),
        label: None,
        expires_at: None,
    };
    let created = file.create(grant, Timestamp::from_millis(0));
    created.expect("a token").0.reveal().to_owned()
}

/// The arguments with the ids of a session and a turn.
async fn owner_config(api: &ApiClient) -> String {
    let made = api.post("/sessions", json!({})).await;
    let made = made.expect("a session").json();
    let session = made["session_id"].as_str().expect("an id");
    let path = format!("/sessions/{session}/turns");
    let turn = api.post(&path, json!({"message": "hi"})).await;
    let turn = turn.expect("a turn").json();
    let turn = turn["turn_id"].as_str().expect("an id");
    format!(
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
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 410, 429]
"#
    )
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

/// The document of the server, on a file; without the header for keys if `has_keys` is false.
///
/// The document describes the text of a stream; schemathesis takes the schema of a stream for that of
/// each event, unless the document has one for the events (`itemSchema`, of OpenAPI 3.2).
async fn document_of(server: &TestServer, folder: &Path, has_keys: bool) -> String {
    let answer = server.api().get("/openapi.json").await.expect("an answer");
    let mut document = answer.json();
    let paths = document["paths"].as_object_mut().expect("paths");
    let operations = paths.values_mut().filter_map(Value::as_object_mut);
    for operation in operations.flat_map(|path| path.values_mut()) {
        if let Some(list) = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
        {
            list.retain(|parameter| has_keys || parameter["name"] != "Idempotency-Key");
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

/// Runs schemathesis against the server; gives the number of requests.
async fn conforms(
    checked: &CheckedServer,
    plan: CasePlan,
    (config, phases): (&str, &'static str),
) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let has_keys = plan.caller == Caller::Strangers;
    let document = document_of(&checked.server, folder.path(), has_keys).await;
    std::fs::write(folder.path().join("schemathesis.toml"), config).expect("a file");
    std::fs::write(folder.path().join("problems.py"), PROBLEMS).expect("a file");
    let url = format!("http://{}", checked.server.addr());
    let (examples, seed) = (plan.examples.to_string(), plan.seed.to_string());
    let header = checked.authorization();
    let header = header.map(|value| format!("Authorization: {value}"));
    let ran = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(programs().join("schemathesis"));
        command
            .args(["run", &document, "--url", &url, "--phases", phases])
            .args(["--checks", "all", "--seed", &seed])
            .args(["--max-examples", &examples, "--request-timeout", "20"])
            .args(["--continue-on-failure", "--suppress-health-check", "all"])
            .args(["--generation-database", "none", "--no-color"])
            .current_dir(folder.path())
            .env("SCHEMATHESIS_HOOKS", "problems")
            .env("PYTHONPATH", folder.path())
            .env("NO_PROXY", "127.0.0.1");
        if let Some(header) = &header {
            command.args(["--header", header]);
        }
        command.output().expect("schemathesis starts")
    });
    let ran = ran.await.expect("it ran");
    let output = text(&ran);
    assert!(ran.status.success(), "{output}");
    let all = operations().len();
    assert!(
        output.contains(&format!("Selected: {all}/{all}\n  Tested: {all}\n")),
        "{output}"
    );
    cases(&output).unwrap_or_else(|| panic!("no number of test cases in {output}"))
}

/// The number of requests in the summary: `1234 generated`.
fn cases(output: &str) -> Option<u64> {
    let (before, _) = output.rsplit_once(" generated")?;
    let number = before
        .rsplit(|c: char| !c.is_ascii_digit() && c != ',')
        .next()?;
    number.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_requests_is_read_from_the_summary() {
        let output = "Test cases:\n  1,234 generated, 1,234 passed, 9 skipped\n\nSeed: 1\n";
        assert_eq!(cases(output), Some(1_234));
        assert_eq!(cases("Test cases:\n  77 generated"), Some(77));
        assert_eq!(cases("nothing"), None);
    }
}
