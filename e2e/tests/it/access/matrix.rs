//! Every operation of the API with every kind of identity: generated from the document that the
//! server itself serves.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use turnwire_testkit::api::{ApiClient, ApiResponse};
use turnwire_testkit::issuer::SigningKey;
use turnwire_testkit::server::ServerOptions;

use super::fixture::*;

/// An operation of the document.
struct Operation {
    method: Method,
    path: String,
    /// The alternatives of which a request needs one; none for a public operation.
    security: Vec<Value>,
    body: Option<Value>,
}

impl Operation {
    fn is_public(&self) -> bool {
        self.security.is_empty()
    }

    /// True if a token with one of `scopes` is enough.
    fn takes(&self, scopes: &[&str]) -> bool {
        let mut alternatives = self.security.iter();
        alternatives.any(|one| {
            one["bearer"][0]
                .as_str()
                .is_some_and(|s| scopes.contains(&s))
        })
    }
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let content = &operation["requestBody"]["content"]["application/json"];
            let examples = content["examples"].as_object();
            let body = examples.and_then(|examples| examples.values().next());
            all.push(Operation {
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                security: operation["security"].as_array().expect("security").clone(),
                body: body.map(|example| example["value"].clone()),
            });
        }
    }
    // What deletes the session comes last.
    all.sort_by_key(|operation| operation.method == Method::DELETE);
    all
}

/// What an operation is asked about.
struct Ids {
    session: String,
    turn: String,
    message: String,
}

impl Ids {
    fn path(&self, path: &str) -> String {
        let id = match path.starts_with("/turns") {
            true => &self.turn,
            false => &self.session,
        };
        path.replace("{id}", id)
            .replace("{response_id}", &format!("resp_{}", self.turn))
            .replace("{message_id}", &self.message)
            .replace("{approval_id}", "appr_00000000000000000000000001")
            .replace("{code}", "unauthorized")
            .replace("{job}", "daily")
    }

    /// The body of an example, about these ids where it names any.
    fn body(&self, operation: &Operation) -> Option<String> {
        let mut body = operation.body.clone()?;
        let fields = body.as_object_mut()?;
        if operation.path == "/chat/stream" {
            fields.insert("session_id".into(), self.session.clone().into());
        }
        if fields.contains_key("turn_id") {
            fields.insert("turn_id".into(), self.turn.clone().into());
        }
        Some(body.to_string())
    }
}

async fn ask(api: &ApiClient, operation: &Operation, ids: &Ids) -> ApiResponse {
    let (path, body) = (ids.path(&operation.path), ids.body(operation));
    let answer = api
        .send(operation.method.clone(), &path, body.as_deref())
        .await;
    answer.expect("an answer")
}

// G1, I-20, D-70
#[tokio::test]
async fn every_operation_answers_each_identity_as_the_document_says() {
    let fixture = JwtServer::start(ServerOptions::script(slow_script())).await;
    let (server, key) = (&fixture.server, &fixture.key);
    let ann = fixture.caller(ACME, "ann");
    let session = ann.create().await.expect("a session");
    let turn = ann
        .submit(session, "hello")
        .await
        .expect("accepted")
        .turn_id;
    ann.ended(turn).await.expect("ended");
    let messages = ann.messages(session).await.expect("messages");
    let ids = Ids {
        session: session.to_string(),
        turn: turn.to_string(),
        message: messages[0]["id"].as_str().expect("an id").to_owned(),
    };
    let missing = Ids {
        session: "sess_00000000000000000000000001".into(),
        turn: "00000000000000000000000001".into(),
        message: "00000000000000000000000001".into(),
    };
    let document = server
        .api()
        .get("/openapi.json")
        .await
        .expect("a document")
        .json();
    let all = operations(&document);
    assert!(all.len() >= 27, "{} operations", all.len());
    let protected = all
        .iter()
        .filter(|operation| !operation.is_public())
        .count();
    assert!(protected >= 20, "{protected} protected operations");

    let good = claims(ACME, "ann");
    let no_scope = || {
        let token = key.sign(&good);
        with_token(server, &token)
    };
    let unauthenticated = [
        ("missing", server.api()),
        (
            "missing",
            server
                .api()
                .with("x-turnwire-principal", "ann")
                .with("x-tenant-id", ACME),
        ),
        (
            "missing",
            server.api().with("authorization", "Basic YW5uOmFubg=="),
        ),
        (
            "expired",
            with_token(
                server,
                &key.sign(&with_claim(good.clone(), "exp", seconds_from_now(-60))),
            ),
        ),
        (
            "wrong_audience",
            with_token(server, &key.sign(&with_claim(good.clone(), "aud", "other"))),
        ),
        (
            "invalid",
            with_token(server, &SigningKey::es256("first").sign(&good)),
        ),
    ];
    let strangers = [
        fixture.caller(ACME, "bob"),
        fixture.caller(OTHER, "ann"),
        fixture.caller(OTHER, "bob"),
    ];
    let metrics = with_token(
        server,
        &key.sign(&with_claim(good.clone(), "scope", "metrics")),
    );
    for operation in &all {
        let name = format!("{} {}", operation.method, operation.path);
        for (reason, anybody) in &unauthenticated {
            let answer = ask(anybody, operation, &ids).await;
            if operation.is_public() {
                assert!(
                    ![401, 403, 404].contains(&answer.status),
                    "{name}: {}",
                    answer.status
                );
                continue;
            }
            assert_eq!(answer.status, 401, "{name} {reason}: {}", answer.body);
            assert_eq!(answer.code(), "unauthorized", "{name}");
            assert_eq!(answer.json()["reason"], *reason, "{name}");
            assert!(
                answer.header("www-authenticate").starts_with("Bearer"),
                "{name}"
            );
            // Nothing of what is there shines through.
            let other = ask(anybody, operation, &missing).await;
            assert_eq!(answer.essence(), other.essence(), "{name}");
        }
        for stranger in &strangers {
            let answer = ask(stranger, operation, &ids).await;
            let (session, turn) = (ids.session.as_str(), ids.turn.as_str());
            let shows = |text: &str| answer.body.contains(text);
            assert!(!shows(session) && !shows(turn), "{name}: {}", answer.body);
            if operation.is_public() || !operation.takes(&["own"]) {
                continue;
            }
            let names_something = operation.path.contains('{') || operation.path == "/chat/stream";
            if names_something && operation.path != "/problems/{code}" {
                assert_eq!(answer.status, 404, "{name}: {}", answer.body);
                let other = ask(stranger, operation, &missing).await;
                assert_eq!(answer.essence(), other.essence(), "{name}");
            }
        }
        let own = ask(&no_scope(), operation, &ids).await;
        let opens_by_token_alone = operation
            .security
            .iter()
            .all(|one| one.get("bearer").is_none());
        if !operation.is_public() && opens_by_token_alone {
            // It has no attach token, and is no handshake of a WebSocket.
            assert_eq!(own.status, 422, "{name}");
        } else if !operation.is_public() && !operation.takes(&["own"]) {
            assert_eq!(
                (own.status, own.code().as_str()),
                (403, "forbidden"),
                "{name}"
            );
            let scoped = ask(&metrics, operation, &ids).await;
            assert!(
                ![401, 403].contains(&scoped.status) || !operation.takes(&["metrics"]),
                "{name}"
            );
        } else {
            let is_answered = ![401, 403].contains(&own.status);
            assert!(is_answered, "{name}: {}", own.body);
        }
    }
    // All of it is still there for others than the owner: nothing.
    let gone = ann
        .get(&format!("/sessions/{session}"))
        .await
        .expect("an answer");
    assert_eq!(gone.status, 404, "the owner's delete came last");
}

// G1
#[tokio::test]
async fn verbs_without_an_operation_tell_nothing_without_a_token() {
    let fixture = JwtServer::start(ServerOptions::default()).await;
    let ann = fixture.caller(ACME, "ann");
    let session = ann.create().await.expect("a session").to_string();
    let anybody = fixture.server.api();
    for path in [
        format!("/sessions/{session}"),
        "/sessions".into(),
        "/nowhere".into(),
    ] {
        for method in ["PUT", "PATCH", "OPTIONS", "HEAD", "DELETE", "TRACE"] {
            let method: Method = method.parse().expect("a method");
            let answer = anybody
                .send(method.clone(), &path, None)
                .await
                .expect("an answer");
            assert_eq!(answer.status, 401, "{method} {path}");
        }
    }
    let bob = fixture.caller(ACME, "bob");
    for (own, other) in [(&ann, 405), (&bob, 405)] {
        let path = format!("/sessions/{session}");
        let answer = own
            .send(Method::PUT, &path, Some("{}"))
            .await
            .expect("an answer");
        assert_eq!(answer.status, other);
    }
}

// D-70
#[tokio::test]
async fn tenant_header_must_be_that_of_the_token() {
    let fixture = JwtServer::start(ServerOptions::default()).await;
    let ann = fixture.caller(ACME, "ann");
    let session = ann.create().await.expect("a session");
    let path = format!("/sessions/{session}");
    for (tenant, status) in [(ACME, 200), (OTHER, 403), ("acme", 400)] {
        let named = ann.clone().with("x-tenant-id", tenant);
        let answer = named.get(&path).await.expect("an answer");
        assert_eq!(answer.status, status, "{tenant}: {}", answer.body);
    }
    let attached = ann.attach(session).await.expect("a token");
    assert_eq!(attached["tenant_id"], json!(ACME));
    assert_eq!(attached["principal"], json!("ann"));
}

// G1, G9
#[tokio::test]
async fn limits_of_the_owner_do_not_show_that_a_session_exists() {
    let options = ServerOptions::script(slow_script())
        .set("session", "open_max_per_owner", 1)
        .set("session", "idle_unload_ms", 100);
    let fixture = JwtServer::start(options).await;
    let (ann, bob) = (fixture.caller(ACME, "ann"), fixture.caller(OTHER, "bob"));
    let idle = ann.create().await.expect("a session");
    let path = format!("/sessions/{idle}/cancel");
    let missing = "/sessions/sess_00000000000000000000000001/cancel";
    // Its owner could not load it now: another session is busy.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let busy = ann.create().await.expect("a session");
    ann.submit(busy, "slow").await.expect("accepted");
    let own = ann.post(&path, json!({})).await.expect("an answer");
    assert_eq!(own.status, 429, "{}", own.body);
    let foreign = bob.post(&path, json!({})).await.expect("an answer");
    let other = bob.post(missing, json!({})).await.expect("an answer");
    assert_eq!(foreign.status, 404, "{}", foreign.body);
    assert_eq!(foreign.essence(), other.essence());
}

// G1
#[tokio::test]
async fn malformed_identity_headers_are_refused_where_no_token_is_needed_too() {
    let fixture = JwtServer::start(ServerOptions::default()).await;
    for path in ["/", "/openapi.json", "/asyncapi.json", "/problems"] {
        for (header, value, status) in [
            ("x-turnwire-principal", "a b", 422),
            ("x-tenant-id", "acme", 400),
            ("x-tenant-id", ACME, 200),
        ] {
            let api = fixture.server.api().with(header, value);
            let answer = api.get(path).await.expect("an answer");
            assert_eq!(answer.status, status, "{path} {header}: {value}");
        }
    }
    let probe = fixture.server.api().with("x-tenant-id", "acme");
    let answer = probe.get("/healthz").await.expect("an answer");
    assert_eq!(answer.status, 200, "a probe is answered in any case");
}
