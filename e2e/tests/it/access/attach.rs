//! Attach tokens: for one session, one caller, one site, once.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turnwire_event::SessionId;
use turnwire_identity::Scope;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::server::{ServerOptions, TestServer};

use super::fixture::*;

const APP: &str = "https://app.example.com";
const OTHER_APP: &str = "https://other.example.com";

async fn attach(api: &ApiClient, session: SessionId) -> String {
    let attached = api.attach(session).await.expect("a token");
    attached["attach_token"].as_str().expect("text").to_owned()
}

/// The status of the answer to a request with these headers, read to its head.
async fn status(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> u16 {
    status_of("GET", server, path, headers).await
}

async fn status_of(method: &str, server: &TestServer, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut io = TcpStream::connect(server.addr()).await.expect("connected");
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", server.addr());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    io.write_all(format!("{request}\r\n").as_bytes())
        .await
        .expect("written");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.expect("an answer"));
    }
    let head = String::from_utf8(head).expect("text");
    let status = head.split(' ').nth(1).expect("a status");
    status.parse().expect("a number")
}

const UPGRADE: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

async fn upgrade(
    server: &TestServer,
    (session, token): (SessionId, &str),
    more: &[(&str, &str)],
) -> u16 {
    let path = format!("/sessions/{session}/stream?attach={token}");
    let headers: Vec<_> = UPGRADE.iter().chain(more).copied().collect();
    status(server, &path, &headers).await
}

// G3, G4
#[tokio::test]
async fn token_opens_a_stream_on_the_site_that_asked_for_it() {
    let origins = format!("{APP},{OTHER_APP}");
    let options = ServerOptions::default().set("http", "cors_origins", origins);
    let fixture = TokenServer::start(options).await;
    let server = &fixture.server;
    let ann = fixture.caller("ann").await;
    let session = ann.create().await.expect("a session");
    let from_app = ann.clone().with("origin", APP);

    let token = attach(&from_app, session).await;
    for (origin, expected) in [
        (&[][..], 401),
        (&[("origin", OTHER_APP)], 401),
        (&[("origin", "https://evil.example.com")], 403),
        (&[("origin", "null")], 403),
        (&[("origin", APP)], 101),
        // Used up.
        (&[("origin", APP)], 401),
    ] {
        let seen = upgrade(server, (session, &token), origin).await;
        assert_eq!(seen, expected, "{origin:?}");
    }
    let token = attach(&ann, session).await;
    assert_eq!(
        upgrade(server, (session, &token), &[("origin", APP)]).await,
        401
    );
    assert_eq!(upgrade(server, (session, &token), &[]).await, 101);
}

// G3
#[tokio::test]
async fn token_and_bearer_must_be_of_the_same_principal() {
    let fixture = TokenServer::start(ServerOptions::default()).await;
    let server = &fixture.server;
    let (anns, _) = fixture.token("ann", &[Scope::Own]).await;
    let (bobs, _) = fixture.token("bob", &[Scope::Own]).await;
    let ann = with_token(server, &anns);
    let (session, other) = (
        ann.create().await.expect("a session"),
        ann.create().await.expect("a session"),
    );
    let token = attach(&ann, session).await;
    let bearer = |token: &str| format!("Bearer {token}");
    let (anns, bobs, unknown) = (bearer(&anns), bearer(&bobs), bearer("twt_x"));
    // Nor may other headers name somebody else: nobody would notice that they are ignored.
    for (name, value, expected) in [
        ("x-turnwire-principal", "bob", 403),
        ("x-tenant-id", OTHER, 403),
        ("x-tenant-id", "acme", 400),
    ] {
        let seen = upgrade(server, (session, &token), &[(name, value)]).await;
        assert_eq!(seen, expected, "{name}: {value}");
        let both = [("authorization", anns.as_str()), (name, value)];
        let seen = upgrade(server, (session, &token), &both).await;
        assert_eq!(seen, expected, "{name}: {value}");
    }
    for (which, header, expected) in [
        (session, Some(bobs.as_str()), 403),
        (session, Some(unknown.as_str()), 401),
        // For its own session alone.
        (other, None, 401),
        (session, Some(anns.as_str()), 101),
    ] {
        let headers: Vec<_> = header
            .map(|value| ("authorization", value))
            .into_iter()
            .collect();
        let seen = upgrade(server, (which, &token), &headers).await;
        assert_eq!(seen, expected, "{header:?}");
    }
    // A service that acts for ann sends its own token, and says for whom.
    let (services, _) = fixture.token("cron", &[Scope::Own, Scope::ActAs]).await;
    let cron = with_token(server, &services).with("x-turnwire-principal", "ann");
    let (token, services) = (attach(&cron, session).await, bearer(&services));
    for (header, named, expected) in [
        (&services, None, 403),
        (&services, Some("bob"), 403),
        (&bobs, Some("ann"), 403),
        (&services, Some("ann"), 101),
    ] {
        let mut headers = vec![("authorization", header.as_str())];
        headers.extend(named.map(|name| ("x-turnwire-principal", name)));
        let seen = upgrade(server, (session, &token), &headers).await;
        assert_eq!(seen, expected, "{named:?}");
    }
}

// G3
#[tokio::test]
async fn token_opens_the_stream_of_a_turn_once() {
    let fixture = TokenServer::start(ServerOptions::script(slow_script())).await;
    let server = &fixture.server;
    let ann = fixture.caller("ann").await;
    let (session, other) = (
        ann.create().await.expect("a session"),
        ann.create().await.expect("a session"),
    );
    let turn = ann.submit(session, "slow").await.expect("accepted").turn_id;
    let info: Value = ann.turn(turn).await.expect("a turn");
    let response = info["response_id"].as_str().expect("an id");
    let open = async |token: &str| {
        let path = format!("/chat/{response}/stream?attach={token}");
        status(server, &path, &[]).await
    };
    assert_eq!(open("atk_x").await, 401);
    let foreign = attach(&ann, other).await;
    assert_eq!(open(&foreign).await, 401, "of another session");
    let path = format!("/chat/{response}/stream?attach={foreign}");
    let head = status_of("HEAD", server, &path, &[]).await;
    assert_eq!(head, 401, "nor does it tell of the turn");
    let token = attach(&ann, session).await;
    let (one, two, three) = tokio::join!(open(&token), open(&token), open(&token));
    let mut seen = [one, two, three];
    seen.sort_unstable();
    assert_eq!(seen, [200, 401, 401], "one winner");
    // A token opens streams and nothing else.
    let token = attach(&ann, session).await;
    let path = format!("/sessions/{session}?attach={token}");
    assert_eq!(status(server, &path, &[]).await, 401);
    let log = server.stderr();
    assert!(!log.contains(&token), "{log}");
}

// G3, D-71
#[tokio::test]
async fn token_of_an_ended_identity_opens_no_stream_of_a_turn() {
    let fixture = TokenServer::start(ServerOptions::script(slow_script())).await;
    let server = &fixture.server;
    let (token, id) = fixture.token("ann", &[Scope::Own]).await;
    let ann = with_token(server, &token);
    let session = ann.create().await.expect("a session");
    let turn = ann.submit(session, "slow").await.expect("accepted").turn_id;
    let attached = attach(&ann, session).await;
    fixture.file.revoke(&id).expect("revoked");
    fixture.until_status(&token, |status| status == 401).await;
    let path = format!("/chat/resp_{turn}/stream?attach={attached}");
    for method in ["HEAD", "GET"] {
        assert_eq!(status_of(method, server, &path, &[]).await, 401, "{method}");
    }
}
