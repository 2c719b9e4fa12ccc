//! Deleting a session: all its data is removed at once, and its connections are closed with a
//! reason.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::json;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Body, Event, EventType, SessionId, Ulid};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_testkit::watch::{SubscribeOptions, WatchEnd};

//
#[tokio::test]
async fn deleted_session_closes_its_connections() {
    let script = ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::text("hi")]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let other = fixture.api.create().await.expect("a session");
    let mut watching = fixture.watch("watching", SubscribeOptions::live()).await;
    let turn = fixture.submit("stall").await;
    watching
        .until(|e| e.body.kind() == EventType::TextDelta)
        .await
        .expect("words");
    let path = format!("/sessions/{}", fixture.session);
    let answer = fixture
        .api
        .send(Method::DELETE, &path, None)
        .await
        .expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    let is_closed = |event: &Event| event.body.kind() == EventType::SessionClosed;
    let last = watching.until(is_closed).await.expect("the last event");
    let Some(Body::SessionClosed(closed)) = last.last().map(|event| &event.body) else {
        panic!("{last:?}");
    };
    assert_eq!(closed.reason, "deleted");
    let end = watching.end().await;
    assert!(matches!(end, WatchEnd::Closed(1008, _)), "{end}");
    assert_eq!(end.code(), "session_deleted");
    let base = path.as_str();
    for (method, path, code) in [
        (Method::GET, base.to_owned(), "session_not_found"),
        (Method::GET, format!("{base}/events"), "session_not_found"),
        (Method::GET, format!("{base}/messages"), "session_not_found"),
        (Method::GET, format!("{base}/turns"), "session_not_found"),
        (
            Method::GET,
            format!("{base}/tool-calls"),
            "session_not_found",
        ),
        (
            Method::GET,
            format!("{base}/llm-calls"),
            "session_not_found",
        ),
        (Method::GET, format!("{base}/workers"), "session_not_found"),
        (Method::DELETE, base.to_owned(), "session_not_found"),
        (Method::GET, format!("/turns/{turn}"), "turn_not_found"),
    ] {
        let response = fixture.api.send(method.clone(), &path, None).await;
        let deleted = response.expect("an answer");
        assert_eq!(
            (deleted.status, deleted.code().as_str()),
            (404, code),
            "{method} {path}"
        );
    }
    let response = fixture
        .api
        .try_submit(fixture.session, "hi")
        .await
        .expect("an answer");
    assert_eq!(
        (response.status, response.code().as_str()),
        (404, "session_not_found")
    );
    // The others are as they were.
    let turn = fixture
        .api
        .submit(other, "hi")
        .await
        .expect("an answer")
        .turn_id;
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["state"], "completed");
    let list = fixture
        .api
        .get("/sessions")
        .await
        .expect("an answer")
        .json();
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn deleted_session_stays_deleted_after_a_kill() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    let path = format!("/sessions/{}", fixture.session);
    fixture
        .api
        .send(Method::DELETE, &path, None)
        .await
        .expect("an answer");
    fixture.server.restart().await;
    let answer = fixture.api.get(&path).await.expect("an answer");
    assert_eq!(
        (answer.status, answer.json()["code"].clone()),
        (404, json!("session_not_found"))
    );
}

/// A folder as programs of a session leave it.
fn used(home: &Path, session: SessionId) -> PathBuf {
    let folder = home.join("work").join(session.to_string());
    std::fs::create_dir_all(folder.join("deep")).expect("a folder");
    std::fs::write(folder.join("deep/note"), "x").expect("a file");
    folder
}

async fn until_gone(folder: &Path) {
    let until = Instant::now() + Duration::from_secs(20);
    while folder.exists() {
        assert!(Instant::now() < until, "{folder:?} is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn session_folder_is_deleted_also_after_a_kill() {
    let mut fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    let other = fixture.api.create().await.expect("a session");
    let home = fixture.server.home();
    let (folder, stays) = (used(&home, fixture.session), used(&home, other));
    let path = format!("/sessions/{}", fixture.session);
    fixture
        .api
        .send(Method::DELETE, &path, None)
        .await
        .expect("an answer");
    until_gone(&folder).await;
    // As if the server had died between the two.
    let (left, shared) = (used(&home, SessionId(Ulid(7))), home.join("work/shared-x"));
    std::fs::create_dir(&shared).expect("a folder");
    assert!(folder.parent().is_some_and(Path::exists));
    fixture.server.restart().await;
    until_gone(&left).await;
    assert!(stays.join("deep/note").exists() && shared.exists());
}
