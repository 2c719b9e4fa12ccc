//! A whole server on a folder of its own, asked without sockets.

pub(crate) mod upstream;

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use turnwire_serve::app::{App, agent};
use turnwire_serve::config::{ServerConfig, SettingSources};

const SCRIPT: &str = r#"
- when: {user: "stall"}
  steps: [{text: "Well"}, {stall: true}]
- when: {user: "tool", call: 1}
  steps: [{tool: {name: echo, input: {text: "hi"}}}, {stop: tool_use}]
- when: {user: ".*"}
  steps: [{text: "Hello there.", chunk: 3}, {stop: end_turn}]
"#;

/// The server and its folder, which goes when it does.
pub(crate) struct TestApp {
    router: Router,
    _app: Option<App>,
    _home: Option<tempfile::TempDir>,
}

/// An answer, read whole.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) raw: String,
    pub(crate) body: Value,
    headers: HeaderMap,
}

/// The text of a member.
pub(crate) fn text(value: &Value, name: &str) -> String {
    let found = value[name].as_str();
    found
        .unwrap_or_else(|| panic!("{name} in {value}"))
        .to_owned()
}

impl Answer {
    pub(crate) fn text(&self, name: &str) -> String {
        text(&self.body, name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("a header is text")
    }

    /// Everything the client is told, but for the trace, which is never the same.
    pub(crate) fn told(&self) -> (StatusCode, Value) {
        let mut body = self.body.clone();
        body["trace_id"] = Value::Null;
        (self.status, body)
    }
}

impl TestApp {
    pub(crate) async fn open() -> Self {
        Self::open_with(&[]).await
    }

    /// A app whose settings are said in the environment.
    pub(crate) async fn open_with(env: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let script = home.path().join("script.yaml");
        std::fs::write(&script, SCRIPT).expect("a script");
        let sources = SettingSources {
            home: Some(home.path().join("data")),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..SettingSources::default()
        };
        let config = ServerConfig::load(&sources).expect("defaults");
        let producer = agent(Some(&script)).expect("a script that plays");
        let app = App::start(config, producer).await.expect("a server");
        Self {
            router: app.router(),
            _app: Some(app),
            _home: Some(home),
        }
    }

    /// A app around a server that is there.
    pub(crate) fn around(app: App) -> Self {
        Self {
            router: app.router(),
            _app: Some(app),
            _home: None,
        }
    }

    /// A app around one that somebody else keeps.
    pub(crate) fn of(router: Router) -> Self {
        Self {
            router,
            _app: None,
            _home: None,
        }
    }

    /// Everything that can be asked.
    pub(crate) fn router(&self) -> &Router {
        &self.router
    }

    /// Asks; a body that is not empty is JSON unless the headers say otherwise.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost:8421");
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Body::from(body.to_owned()))
            .expect("a request");
        let answer = self.router.clone().oneshot(request).await;
        let (parts, body) = answer.expect("infallible").into_parts();
        let bytes = to_bytes(body, 1 << 24).await.expect("a body");
        let raw = String::from_utf8(bytes.to_vec()).expect("text");
        Answer {
            status: parts.status,
            body: serde_json::from_str(&raw).unwrap_or_default(),
            raw,
            headers: parts.headers,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string()).await
    }

    /// A new session.
    pub(crate) async fn session(&self) -> String {
        self.post("/sessions", json!({})).await.text("session_id")
    }

    /// A new turn that says `message`.
    pub(crate) async fn turn(&self, session: &str, message: &str) -> String {
        let path = format!("/sessions/{session}/turns");
        let accepted = self.post(&path, json!({ "message": message })).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.raw);
        accepted.text("turn_id")
    }

    /// The turn once it has ended.
    pub(crate) async fn ended(&self, turn: &str) -> Value {
        for _ in 0..500 {
            let answer = self.get(&format!("/turns/{turn}")).await;
            if !answer.body["terminal"].is_null() {
                return answer.body;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("turn {turn} did not end in 5 s");
    }
}
