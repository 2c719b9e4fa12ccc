//! JSON Web Tokens: which are accepted, and how keys change.

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_testkit::issuer::{SigningKey, TestIssuer};
use turnwire_testkit::journal::Journal;
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::site::SitePage;

use super::fixture::*;

/// The status and the reason of a list of sessions with this token.
async fn asked(server: &TestServer, token: &str) -> (u16, String) {
    let answer = with_token(server, token)
        .get("/sessions")
        .await
        .expect("an answer");
    let reason = answer.json()["reason"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status, reason)
}

fn refused(reason: &str) -> (u16, String) {
    (401, reason.to_owned())
}

const ACCEPTED: (u16, String) = (200, String::new());

// D-71
#[tokio::test]
async fn tokens_of_every_kind_of_key_are_accepted() {
    let keys = [
        SigningKey::es256("p256"),
        SigningKey::eddsa("ed"),
        SigningKey::rs256("rsa"),
    ];
    let issuer = TestIssuer::start(&keys.each_ref()).await;
    let options = jwt_options(ServerOptions::default(), &issuer.url());
    let server = TestServer::start(options).await;
    for key in &keys {
        let token = key.sign(&claims(ACME, "ann"));
        assert_eq!(asked(&server, &token).await, ACCEPTED);
        // From the tokens that were checked before.
        assert_eq!(asked(&server, &token).await, ACCEPTED);
    }
    let listed = json!(["other", AUDIENCE]);
    let token = keys[0].sign(&with_claim(claims(ACME, "ann"), "aud", listed));
    assert_eq!(asked(&server, &token).await, ACCEPTED);
    assert_eq!(issuer.requests(), 1);
}

// G1
#[tokio::test]
async fn invalid_tokens_are_refused_with_the_reason() {
    let JwtServer {
        server,
        issuer: _issuer,
        key,
    } = JwtServer::start(ServerOptions::default()).await;
    let good = || claims(ACME, "ann");
    for (name, value, reason) in [
        ("exp", json!(seconds_from_now(-5)), "expired"),
        ("exp", json!("soon"), "invalid"),
        ("exp", Value::Null, "invalid"),
        ("nbf", json!(seconds_from_now(60)), "not_yet_valid"),
        ("aud", json!("other"), "wrong_audience"),
        ("aud", Value::Null, "wrong_audience"),
        ("iss", json!("https://id.example.com"), "wrong_audience"),
        ("tenant_id", json!("acme"), "unusable"),
        ("tenant_id", Value::Null, "unusable"),
        ("sub", json!("a b"), "unusable"),
        ("sub", json!(7), "unusable"),
    ] {
        let mut claims = good();
        match value {
            Value::Null => claims.as_object_mut().expect("claims").remove(name),
            value => claims
                .as_object_mut()
                .expect("claims")
                .insert(name.to_owned(), value),
        };
        let token = key.sign(&claims);
        assert_eq!(
            asked(&server, &token).await,
            refused(reason),
            "{name} {claims}"
        );
    }
    let token = key.sign(&good());
    let (message, signature) = token.rsplit_once('.').expect("a signature");
    let (head, payload) = message.split_once('.').expect("a head");
    let other = SigningKey::es256("first").sign(&good());
    let (_, foreign) = other.rsplit_once('.').expect("a signature");
    let (changed, _) = key
        .sign(&claims(ACME, "bob"))
        .rsplit_once('.')
        .map_or_else(Default::default, |(message, rest)| {
            (message.to_owned(), rest.to_owned())
        });
    let heads = |field: &str, value: Value| {
        let mut head = key.head();
        head[field] = value;
        key.sign_with_head(&head, &good())
    };
    for bad in [
        format!("{message}.{foreign}"),
        format!("{changed}.{signature}"),
        format!("{message}."),
        message.to_owned(),
        format!("{token}.{signature}"),
        format!("{head}..{signature}"),
        format!(".{payload}.{signature}"),
        "x".repeat(20_000),
        heads("alg", json!("none")),
        heads("alg", json!("HS256")),
        heads("alg", json!("RS256")),
        heads("alg", json!("ES384")),
        heads("crit", json!(["b64"])),
        heads("typ", json!("logout+jwt")),
        other,
    ] {
        assert_eq!(asked(&server, &bad).await, refused("invalid"), "{bad:.80}");
    }
    // A key in the token's own head is no key of the issuer.
    let mallory = SigningKey::es256("mallory");
    let mut head = mallory.head();
    head["jwk"] = mallory.public();
    let token = mallory.sign_with_head(&head, &good());
    assert_eq!(asked(&server, &token).await, refused("invalid"));
    assert_eq!(asked(&server, &key.sign(&good())).await, ACCEPTED);
}

#[tokio::test]
async fn new_key_is_found_when_a_token_names_it() {
    let JwtServer {
        server,
        issuer,
        key,
    } = JwtServer::start(ServerOptions::default()).await;
    let second = SigningKey::es256("second");
    let token = second.sign(&claims(ACME, "ann"));
    issuer.serve(&[&key, &second]);
    // The start has asked a moment ago: a flood of unknown keys asks no more often.
    let mut statuses = Vec::new();
    for _ in 0..130 {
        statuses.push(asked(&server, &token).await.0);
        if statuses.last() == Some(&200) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(statuses.last(), Some(&200), "{statuses:?}");
    assert!(statuses.len() > 5, "asked again at once");
    assert_eq!(issuer.requests(), 2);
}

#[tokio::test]
async fn callers_that_hang_up_do_not_keep_a_new_key_from_being_found() {
    let JwtServer {
        server,
        issuer,
        key,
    } = JwtServer::start(ServerOptions::default()).await;
    let second = SigningKey::es256("second");
    // The issuer takes half a second for its answer.
    let body = json!({"keys": [key.public(), second.public()]}).to_string();
    let length = body.len();
    issuer.serve_page(SitePage::Endless {
        begin: format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes(),
        piece: body.into_bytes(),
        pause: Duration::from_millis(500),
    });
    let token = second.sign(&claims(ACME, "ann"));
    // A look at the start, and one in ten seconds.
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    let left = tokio::time::timeout(Duration::from_millis(200), asked(&server, &token)).await;
    assert!(left.is_err(), "it waits for the issuer");
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(asked(&server, &token).await, ACCEPTED);
    assert_eq!(issuer.requests(), 2);
}

// G5
#[tokio::test]
async fn keys_are_not_taken_from_where_their_url_redirects_to() {
    let (key, mallory) = (SigningKey::es256("first"), SigningKey::es256("second"));
    let issuer = TestIssuer::start(&[&key]).await;
    let other = TestIssuer::start(&[&mallory]).await;
    let options = jwt_options(ServerOptions::default(), &issuer.url());
    let server = TestServer::start(options.set("auth", "jwt_refresh_ms", 1000)).await;
    issuer.serve_at("/elsewhere", &[&mallory]);
    for location in ["/elsewhere".to_owned(), other.url()] {
        issuer.serve_page(SitePage::redirect(302, &location));
        let before = issuer.requests();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(issuer.requests() > before, "asked again");
        let claims = claims(ACME, "ann");
        assert_eq!(
            asked(&server, &mallory.sign(&claims)).await,
            refused("invalid")
        );
        assert_eq!(asked(&server, &key.sign(&claims)).await, ACCEPTED);
    }
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn withdrawn_key_revokes_its_tokens() {
    let key = SigningKey::es256("first");
    let issuer = TestIssuer::start(&[&key]).await;
    let options = jwt_options(ServerOptions::default(), &issuer.url());
    let server = TestServer::start(options.set("auth", "jwt_refresh_ms", 1000)).await;
    let token = key.sign(&claims(ACME, "ann"));
    assert_eq!(asked(&server, &token).await, ACCEPTED);
    // What is no key set changes nothing.
    issuer.serve_page(SitePage::new(200, "application/json", "{\"keys\": []}"));
    tokio::time::sleep(Duration::from_millis(2500)).await;
    issuer.serve_page(SitePage::new(500, "text/plain", "no"));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(asked(&server, &token).await, ACCEPTED);
    issuer.serve(&[&SigningKey::es256("second")]);
    for _ in 0..100 {
        if asked(&server, &token).await == refused("invalid") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the key is still accepted");
}

#[tokio::test]
async fn server_waits_for_keys_of_an_issuer_that_is_down() {
    let key = SigningKey::es256("first");
    let issuer = TestIssuer::start(&[&key]).await;
    let options = jwt_options(ServerOptions::default(), &issuer.url());
    let mut server = TestServer::start(options.set("auth", "jwt_refresh_ms", 1000)).await;
    let token = key.sign(&claims(ACME, "ann"));
    let (api, caller) = (server.api(), with_token(&server, &token));
    server.kill().await;
    issuer.serve_page(SitePage::new(503, "text/plain", "down"));
    let restarted = tokio::spawn(async move {
        server.run().await.expect("ready once there are keys");
        server
    });
    let mut probe = api.get("/readyz").await;
    for _ in 0..200 {
        if probe.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        probe = api.get("/readyz").await;
    }
    let probe = probe.expect("an answer");
    assert_eq!(
        (probe.status, probe.code().as_str()),
        (503, "auth_unavailable")
    );
    assert_eq!(probe.json()["reasons"], json!(["auth_unavailable"]));
    let answer = caller.get("/sessions").await.expect("an answer");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (503, "auth_unavailable")
    );
    assert_eq!(answer.header("retry-after"), "5");
    assert!(!answer.body.contains("127.0.0.1"), "{}", answer.body);
    issuer.serve(&[&key]);
    let server = restarted.await.expect("ready");
    assert_eq!(asked(&server, &token).await, ACCEPTED);
}

#[tokio::test]
async fn keys_in_a_file_must_be_usable_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.json");
    let location = path.display().to_string();
    let options = || jwt_options(ServerOptions::default(), &location);
    for text in [None, Some("{"), Some("{\"keys\": []}")] {
        if let Some(text) = text {
            std::fs::write(&path, text).expect("written");
        }
        let started = TestServer::try_start(options(), Journal::new()).await;
        let error = started.expect_err("no keys").to_string();
        assert!(error.contains("keys.json"), "{error}");
    }
    let key = SigningKey::eddsa("ed");
    let set = json!({ "keys": [key.public()] });
    std::fs::write(&path, set.to_string()).expect("written");
    let server = TestServer::start(options()).await;
    assert_eq!(
        asked(&server, &key.sign(&claims(ACME, "ann"))).await,
        ACCEPTED
    );
}
