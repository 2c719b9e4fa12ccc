//! API tokens: made and revoked by the command, and what each scope allows.

use std::process::{Command, Output};

use turnwire_identity::Scope;
use turnwire_testkit::server::{ServerOptions, binary};

use super::fixture::*;

fn turnwire(fixture: &TokenServer, arguments: &[&str]) -> Output {
    let home = fixture.server.home();
    let mut command = Command::new(binary());
    command.args(arguments).env("TURNWIRE_HOME", home);
    command.output().expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

// D-71
#[tokio::test]
async fn command_makes_lists_and_revokes_tokens_of_a_running_server() {
    let fixture = TokenServer::start(ServerOptions::default()).await;
    let made = turnwire(
        &fixture,
        &[
            "token",
            "create",
            "--principal",
            "ann",
            "--tenant",
            ACME,
            "--label",
            "laptop",
        ],
    );
    let token = text(&made.stdout).trim();
    assert!(
        made.status.success() && token.starts_with("twt_"),
        "{made:?}"
    );
    fixture.until_status(token, |status| status == 200).await;

    let listed = turnwire(&fixture, &["token", "list"]);
    let listed = text(&listed.stdout);
    let (id, rest) = listed.trim().split_once(' ').expect("an id");
    assert!(
        rest.contains("ann") && rest.contains("laptop") && rest.contains(ACME),
        "{listed}"
    );
    assert!(!listed.contains(token), "{listed}");
    // The commands of clients take the token from the environment.
    let mut usage = Command::new(binary());
    usage.args([
        "usage",
        "--server",
        &format!("http://{}", fixture.server.addr()),
    ]);
    let refused = usage.output().expect("the command runs");
    assert!(!refused.status.success());
    let allowed = usage
        .env("TURNWIRE_TOKEN", token)
        .output()
        .expect("the command runs");
    assert!(allowed.status.success(), "{allowed:?}");

    let unknown = turnwire(&fixture, &["token", "revoke", "tok_000000000000"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        turnwire(&fixture, &["token", "revoke", id])
            .status
            .success()
    );
    fixture.until_status(token, |status| status == 401).await;
    let log = fixture.server.stderr();
    assert!(!log.contains(token), "{log}");
}

// S2-046
#[tokio::test]
async fn scopes_allow_what_they_name() {
    let fixture = TokenServer::start(ServerOptions::default()).await;
    let with = async |scopes: &[Scope]| {
        let (token, _) = fixture.token("service", scopes).await;
        with_token(&fixture.server, &token)
    };
    let own = with(&[Scope::Own]).await;
    let acting = with(&[Scope::Own, Scope::ActAs]).await;
    let (metrics, admin) = (with(&[Scope::Metrics]).await, with(&[Scope::Admin]).await);
    for (api, path, status) in [
        (&own, "/sessions", 200),
        (&own, "/metrics", 403),
        (&metrics, "/metrics", 200),
        (&admin, "/metrics", 200),
        (&metrics, "/sessions", 403),
        (&admin, "/sessions", 403),
    ] {
        let answer = api.get(path).await.expect("an answer");
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    // A scheduler starts a turn for ann, and the turn is hers.
    let named =
        |api: &turnwire_testkit::api::ApiClient| api.clone().with("x-turnwire-principal", "ann");
    let refused = named(&own).get("/sessions").await.expect("an answer");
    assert_eq!(
        (refused.status, refused.json()["scope"].as_str()),
        (403, Some("act_as"))
    );
    let session = named(&acting).create().await.expect("a session");
    let ann = fixture.caller("ann").await;
    let path = format!("/sessions/{session}");
    assert_eq!(ann.get(&path).await.expect("an answer").status, 200);
    assert_eq!(own.get(&path).await.expect("an answer").status, 404);
}

// I-20
#[tokio::test]
async fn tenant_wide_scopes_read_and_review_what_others_own() {
    let fixture = TokenServer::start(ServerOptions::script(slow_script())).await;
    let ann = fixture.caller("ann").await;
    let session = ann.create().await.expect("a session");
    let turn = ann
        .submit(session, "hello")
        .await
        .expect("accepted")
        .turn_id;
    ann.ended(turn).await.expect("ended");
    let with = async |principal: &str, scopes: &[Scope]| {
        let (token, _) = fixture.token(principal, scopes).await;
        with_token(&fixture.server, &token)
    };
    let auditor = with("auditor", &[Scope::TenantRead]).await;
    let reviewer = with("reviewer", &[Scope::Review]).await;
    let admin = with("admin", &[Scope::Admin]).await;
    let events = format!("/sessions/{session}/events");
    let approvals = format!("/turns/{turn}/approvals");
    for (api, path, status) in [
        (&auditor, format!("/sessions/{session}/messages"), 200),
        (&auditor, events.clone(), 200),
        (&auditor, format!("/turns/{turn}"), 200),
        (&auditor, "/sessions?principal=*".into(), 200),
        // Reading is no attaching, no deciding and no stopping.
        (&auditor, format!("/sessions/{session}"), 403),
        (&auditor, approvals.clone(), 403),
        (&reviewer, approvals, 200),
        (&reviewer, events, 403),
        (&ann, "/sessions?principal=bob".into(), 403),
        (&ann, "/sessions?principal=*".into(), 403),
        (&ann, "/sessions?principal=ann".into(), 200),
        (&auditor, "/usage".into(), 403),
        (&ann, "/usage".into(), 200),
        (&ann, format!("/usage?tenant={OTHER}"), 403),
        (&ann, "/usage?tenant=*".into(), 403),
        (&admin, "/usage?tenant=*".into(), 200),
        (&admin, format!("/usage?tenant={OTHER}"), 200),
        (&admin, "/usage?tenant=acme".into(), 422),
    ] {
        let answer = api.get(&path).await.expect("an answer");
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    let cancel = auditor.cancel(turn).await.expect("an answer");
    assert_eq!(cancel.status, 403);
    for (query, count) in [("*", 1), ("ann", 1), ("bob", 0)] {
        let path = format!("/sessions?principal={query}");
        let list = auditor.get(&path).await.expect("an answer").json();
        let listed = list["sessions"].as_array().expect("a list");
        assert_eq!(listed.len(), count, "{query}");
        assert!(listed.iter().all(|one| one["principal"] == "ann"), "{list}");
    }
}
