//! Where a server listens, under which names it is called, and what proxies may say.

use turnwire_testkit::journal::Journal;
use turnwire_testkit::server::{ServerOptions, TestServer};

use super::fixture::*;

// G4
#[tokio::test]
async fn server_without_authentication_is_not_reachable_from_outside() {
    for (section, key, value) in [
        ("listen", "address", "0.0.0.0:0"),
        ("listen", "address", "[::]:0"),
        ("server", "public_url", "https://chat.example.com"),
    ] {
        let variable = format!("TURNWIRE_{section}_{key}").to_uppercase();
        let options = ServerOptions {
            env: vec![(variable, value.to_owned())],
            ..ServerOptions::default()
        };
        let started = TestServer::try_start(options, Journal::new()).await;
        let error = started.expect_err("refused").to_string();
        assert!(error.contains("while auth.mode is none"), "{error}");
    }
}

#[tokio::test]
async fn server_behind_a_proxy_is_called_by_its_public_name() {
    let options = ServerOptions::default()
        .set("server", "public_url", "https://chat.example.com")
        .set("server", "hosts", "turnwire.internal")
        .set("server", "trusted_proxies", "127.0.0.0/8");
    let fixture = TokenServer::start(options).await;
    let ann = fixture.caller("ann").await;
    let session = ann.create().await.expect("a session");
    let path = format!("/sessions/{session}");
    for host in [
        "chat.example.com",
        "turnwire.internal:8421",
        "10.1.2.3:8421",
    ] {
        let answer = ann
            .clone()
            .with("host", host)
            .get(&path)
            .await
            .expect("an answer");
        let url = answer.json()["ws_url"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            url.starts_with("wss://chat.example.com/sessions/"),
            "{host}: {url}"
        );
    }
    let page = ann.clone().with("origin", "https://chat.example.com");
    assert_eq!(page.get(&path).await.expect("an answer").status, 200);
    for (name, value) in [
        ("host", "evil.example.com"),
        ("forwarded", "for=1.2.3.4;host=evil.example.com;proto=https"),
        ("x-forwarded-host", "evil.example.com"),
        ("origin", "http://chat.example.com"),
    ] {
        let answer = ann
            .clone()
            .with(name, value)
            .get(&path)
            .await
            .expect("an answer");
        assert_eq!(answer.status, 403, "{name}: {value}");
    }
}

// G4
#[tokio::test]
async fn headers_of_others_than_listed_proxies_are_ignored() {
    let fixture = TokenServer::start(ServerOptions::default()).await;
    let ann = fixture.caller("ann").await;
    let session = ann.create().await.expect("a session");
    let forged = ann
        .with("forwarded", "for=1.2.3.4;host=evil.example.com;proto=https")
        .with("x-forwarded-host", "evil.example.com");
    let attached = forged.attach(session).await.expect("a token");
    let url = attached["ws_url"].as_str().expect("an address");
    let own = format!("ws://{}/", fixture.server.addr());
    assert!(url.starts_with(&own), "{url}");
}
