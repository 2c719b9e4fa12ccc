//! Idempotent submits: the same key with the same body is the same turn, whatever happened to the
//! first response.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, events, say, until, whole, words};
use turnwire_e2e::load;
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{SessionId, TurnId};
use turnwire_testkit::api::{ApiClient, ApiResponse};
use turnwire_testkit::chat::{ChatStream, ChatSubmit};
use turnwire_testkit::history::FaultKind;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::slow("some words of an answer", 3, 2)])
}

fn keyed(message: &str, key: &str) -> ChatSubmit {
    ChatSubmit::new(message).header("idempotency-key", key)
}

/// Submits by the other route.
async fn turns(api: &ApiClient, session: SessionId, key: &str, body: Value) -> ApiResponse {
    let api = api.clone().with("idempotency-key", key);
    let answer = api.post(&format!("/sessions/{session}/turns"), body).await;
    answer.expect("an answer")
}

fn turn_id(answer: &ApiResponse) -> TurnId {
    assert_eq!(answer.status, 202, "{}", answer.body);
    let id = answer.json()["turn_id"].as_str().map(str::parse);
    id.and_then(Result::ok).expect("a turn id")
}

/// The ids of all turns of a session.
async fn all(api: &ApiClient, session: SessionId) -> Vec<String> {
    let pages = api
        .pages(&format!("/sessions/{session}/turns"), "turns")
        .await;
    let rows = pages.expect("an answer").into_iter().flatten();
    rows.filter_map(|row| Some(row["turn_id"].as_str()?.to_owned()))
        .collect()
}

/// The ids of all sessions.
async fn sessions(api: &ApiClient) -> Vec<SessionId> {
    let list = api.get("/sessions").await.expect("an answer").json();
    let list = list["sessions"].as_array().cloned().unwrap_or_default();
    let id = |row: &Value| row["session_id"].as_str()?.parse().ok();
    list.iter().filter_map(id).collect()
}

#[tokio::test]
async fn same_key_and_body_is_same_turn_across_restart() {
    let mut server = TestServer::start(ServerOptions::script(script())).await;
    let api = server.api();
    let question = keyed("go", "one");
    let mut first = say(&api, "first", &question).await;
    let (turn, session) = (first.turn(), first.session());
    let mut again = say(&api, "again", &question).await;
    assert_eq!((again.turn(), again.session()), (turn, session));
    let live = first.read_to_end().await.expect("a whole stream");
    let beside = again.read_to_end().await.expect("a whole stream");
    assert_eq!(events(&beside)[..3], ["response_id", "episode", "thinking"]);
    assert_eq!(words(&beside), words(&live));
    let mut late = say(&api, "late", &question).await;
    assert_eq!(late.turn(), turn);
    assert_eq!(
        words(&late.read_to_end().await.expect("a replay")),
        words(&live)
    );
    let body = json!({"message": "go", "locale": "de"});
    let other = turns(&api, session, "one", body.clone()).await;
    let other = turn_id(&other);
    api.ended(other).await.expect("an end");

    server.restart().await;
    let mut after = say(&api, "after", &question).await;
    assert_eq!((after.turn(), after.session()), (turn, session));
    assert_eq!(
        words(&after.read_to_end().await.expect("a replay")),
        words(&live)
    );
    // Neither white space nor the order of fields is what a body says.
    let keyed = api.clone().with("idempotency-key", "one");
    let path = format!("/sessions/{session}/turns");
    let text = "{ \"locale\" : \"de\",\n\"message\":\"go\"}";
    let answer = keyed.send(hyper::Method::POST, &path, Some(text)).await;
    assert_eq!(turn_id(&answer.expect("an answer")), other);
    assert_eq!(all(&api, session).await.len(), 2);
    let repeated = MetricsSnapshot::read(&api)
        .await
        .sum("turnwire_turn_repeated_total");
    assert_eq!(repeated, 2.0, "since the restart");
    load::check_history(&api, &[session]).await;
}

#[tokio::test]
async fn same_key_with_other_body_is_refused() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let (turn, _) = whole(
        &fixture.api,
        "first",
        &keyed("go", "k").session(fixture.session),
    )
    .await;
    let base = || keyed("go", "k").session(fixture.session);
    for (name, question) in [
        ("message", keyed("go on", "k").session(fixture.session)),
        ("field", base().field("locale", "de")),
        ("leaving", base().continue_on_disconnect()),
    ] {
        let refused = ChatStream::submit(&fixture.api, name, &question)
            .await
            .expect_err("refused");
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (422, "idempotency_mismatch")
        );
    }
    // The version is no part of the body, and the turn's own.
    let refused = ChatStream::submit(&fixture.api, "version", &base().version("0.4")).await;
    let refused = refused.expect_err("refused");
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (409, "wire_version_mismatch")
    );
    turn_id(&turns(&fixture.api, fixture.session, "k", json!({"message": "go"})).await);
    let other = turns(
        &fixture.api,
        fixture.session,
        "k",
        json!({"message": "went"}),
    )
    .await;
    assert_eq!(
        (other.status, other.code().as_str()),
        (422, "idempotency_mismatch")
    );
    let ids = all(&fixture.api, fixture.session).await;
    assert!(ids.len() == 2 && ids.contains(&turn.to_string()), "{ids:?}");
    fixture.check_history().await;
}

#[tokio::test]
async fn key_is_scoped_to_principal_session_and_route() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let api = &fixture.api;
    let other = api.clone().with("x-turnwire-principal", "other");
    let second = api.create().await.expect("a session");
    let mut made = Vec::new();
    for (name, api, question) in [
        ("new", api, keyed("go", "k")),
        ("one", api, keyed("go", "k").session(fixture.session)),
        ("two", api, keyed("go", "k").session(second)),
        ("theirs", &other, keyed("go", "k")),
    ] {
        made.push(whole(api, name, &question).await.0);
        let mut again = say(api, &format!("{name} again"), &question).await;
        assert_eq!(Some(&again.turn()), made.last(), "{name}");
        again.read_to_end().await.expect("a replay");
    }
    let body = json!({"message": "go"});
    made.push(turn_id(&turns(api, fixture.session, "k", body).await));
    let different: std::collections::HashSet<&TurnId> = made.iter().collect();
    assert_eq!(different.len(), made.len(), "{made:?}");
    fixture.check_history().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_concurrent_submits_with_one_key_are_one_turn() {
    for count in [2, 20] {
        let server = TestServer::start(ServerOptions::script(script())).await;
        let api = server.api();
        let ask = |number: usize| {
            let (api, name) = (api.clone(), format!("at once {number}"));
            tokio::spawn(async move { whole(&api, &name, &keyed("go", "k")).await })
        };
        let tasks: Vec<_> = (0..count).map(ask).collect();
        let mut seen = Vec::new();
        for task in tasks {
            let (turn, frames) = task.await.expect("a task");
            assert_eq!(events(&frames).last(), Some(&"completed"));
            seen.push(turn);
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{seen:?}");
        let [session] = sessions(&api).await[..] else {
            panic!("more than one session was made")
        };
        assert_eq!(all(&api, session).await, [seen[0].to_string()]);

        let ask = |_| {
            let api = api.clone();
            let body = json!({"message": "go"});
            tokio::spawn(async move { turn_id(&turns(&api, session, "k", body).await) })
        };
        let tasks: Vec<_> = (0..count).map(ask).collect();
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.expect("a task"));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{seen:?}");
        api.ended(seen[0]).await.expect("an end");
        assert_eq!(all(&api, session).await.len(), 2);
        load::check_history(&api, &[session]).await;
    }
}

/// A tracer that kills the server with its next call of certain ones, before the call is done.
struct ServerKiller {
    strace: Child,
    /// Kept open: the tracer may say more.
    _said: BufReader<ChildStderr>,
}

impl ServerKiller {
    fn at(calls: &str, server: &TestServer) -> Self {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-e", &format!("trace={calls}"), "-e", "signal=none"]);
        strace.args(["-e", &format!("inject={calls}:signal=SIGKILL:when=1")]);
        strace.args(["-o", "/dev/null", "-p", &server.pid().to_string()]);
        let started = strace.stderr(Stdio::piped()).spawn();
        let mut strace = started.expect("strace is needed");
        let mut strace_output = BufReader::new(strace.stderr.take().expect("a pipe"));
        let mut line = String::new();
        let read = strace_output.read_line(&mut line);
        assert!(read.is_ok() && line.contains("attached"), "{line:?}");
        server.journal().fault(FaultKind::Kill);
        Self {
            strace,
            _said: strace_output,
        }
    }

    /// The server is dead by this, and comes up again.
    async fn done(mut self, server: &mut TestServer) {
        let status = server.wait(Duration::from_secs(30)).await;
        assert_eq!(status.signal(), Some(9), "{status}");
        self.strace.wait().expect("it ends with what it traced");
        server.run().await.expect("it comes up again");
    }
}

/// The first bytes to any socket: what is answered, after it is stored.
const ANSWER: &str = "sendto,sendmsg,writev";
/// The commit; a process that dies in it may leave it done or not.
const COMMIT: &str = "fdatasync,fsync";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_between_commit_and_answer_keeps_one_turn() {
    for calls in [ANSWER, COMMIT] {
        let mut fixture = ServerFixture::new(ServerOptions::script(script())).await;
        let question = keyed("stall", "k").session(fixture.session);
        let killer = ServerKiller::at(calls, &fixture.server);
        let lost = ChatStream::submit(&fixture.api, "lost", &question).await;
        assert_eq!(lost.expect_err("no answer").status(), 0);
        killer.done(&mut fixture.server).await;
        let before = all(&fixture.api, fixture.session).await;
        if calls == ANSWER {
            assert_eq!(before.len(), 1, "stored before it is answered");
        }
        let mut again = say(&fixture.api, "again", &question).await;
        let after = all(&fixture.api, fixture.session).await;
        assert_eq!(after, [again.turn().to_string()]);
        if !before.is_empty() {
            assert_eq!(before, after, "the first submit's own");
            let frames = again.read_to_end().await.expect("a replay");
            assert_eq!(
                events(&frames).last(),
                Some(&"error"),
                "it was cut by the restart"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submit_without_stream_survives_the_same_kill() {
    let mut fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let body = json!({"message": "go"});
    let killer = ServerKiller::at(ANSWER, &fixture.server);
    let path = format!("/sessions/{}/turns", fixture.session);
    let api = fixture.api.clone().with("idempotency-key", "k");
    api.post(&path, body.clone()).await.expect_err("no answer");
    killer.done(&mut fixture.server).await;
    let before = all(&fixture.api, fixture.session).await;
    assert_eq!(before.len(), 1);
    let again = turns(&fixture.api, fixture.session, "k", body).await;
    assert_eq!(turn_id(&again).to_string(), before[0]);
    assert_eq!(all(&fixture.api, fixture.session).await, before);
    let turn = turn_id(&again);
    let ended = || async {
        fixture
            .api
            .turn(turn)
            .await
            .is_ok_and(|row| row["state"] == "completed")
    };
    until("the restart ended it", ended).await;
    fixture.check_history().await;
}
