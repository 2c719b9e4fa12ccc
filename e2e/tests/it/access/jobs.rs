//! Jobs of schedulers and the audit: who fires, who may pause, and what is recorded, over restarts and
//! kills.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::SessionId;
use turnwire_identity::Scope;
use turnwire_testkit::api::{ApiClient, ApiResponse};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer, binary};

use super::fixture::*;

fn with_scope(fixture: &JwtServer, tenant: &str, principal: &str, scope: &str) -> ApiClient {
    let claims = with_claim(claims(tenant, principal), "scope", scope);
    with_token(&fixture.server, &fixture.key.sign(&claims))
}

async fn fire(api: &ApiClient, session: SessionId, key: &str, fields: Value) -> ApiResponse {
    let mut body = json!({"message": "go", "on_busy": "enqueue"});
    let object = body.as_object_mut().expect("an object");
    object.extend(fields.as_object().expect("fields").clone());
    let api = api.clone().with("idempotency-key", key);
    let answer = api.post(&format!("/sessions/{session}/turns"), body).await;
    answer.expect("an answer")
}

async fn switch(api: &ApiClient, path: &str) -> ApiResponse {
    api.send(Method::POST, path, None).await.expect("an answer")
}

async fn records(api: &ApiClient, query: &str) -> Vec<Value> {
    let answer = api.get(&format!("/audit{query}")).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let list = answer.json();
    assert_eq!(list["next"], Value::Null, "{list}");
    list["records"].as_array().expect("a list").clone()
}

/// What was done by whom, newest first.
fn acts(records: &[Value]) -> Vec<[&str; 4]> {
    fn act(record: &Value) -> [&str; 4] {
        ["action", "outcome", "actor", "acted_for"]
            .map(|name| record[name].as_str().unwrap_or_default())
    }
    records.iter().map(act).collect()
}

// R-32, S2-046
#[tokio::test]
async fn paused_job_of_a_service_starts_no_turn_for_its_user() {
    let script = ModelScript::new().on("", [ScriptStep::text("done")]);
    let mut fixture = JwtServer::start(ServerOptions::script(script)).await;
    let ann = fixture.caller(ACME, "ann");
    let cron = with_scope(&fixture, ACME, "cron", "own act_as").with("x-turnwire-principal", "ann");
    let (ops, other) = (
        with_scope(&fixture, ACME, "ops", "admin"),
        with_scope(&fixture, OTHER, "ops", "admin"),
    );
    let session = ann.create().await.expect("a session");
    let daily = json!({"job": "daily-digest"});

    // A turn of the user, started by the service: one record, also if it is sent again.
    let first = fire(&cron, session, "monday", daily.clone()).await;
    assert_eq!(first.status, 202, "{}", first.body);
    assert_eq!(first.json()["outcome"], "dispatched");
    let turn = first.json()["turn_id"].as_str().expect("an id").to_owned();
    let again = fire(&cron, session, "monday", daily.clone()).await;
    assert_eq!(
        (again.status, &again.json()["turn_id"]),
        (202, &json!(turn))
    );
    let ended = ann
        .ended(turn.parse().expect("an id"))
        .await
        .expect("ended");
    assert_eq!(ended["kind"], "scheduled");
    let found = records(&ops, "").await;
    assert_eq!(acts(&found), [["job_fired", "dispatched", "cron", "ann"]]);
    assert_eq!(found[0]["turn_id"], turn.as_str());
    assert_eq!(found[0]["session_id"], session.to_string());
    assert_eq!(found[0]["job"], "daily-digest");

    // Nobody else sees it, and a foreign job is a missing one.
    for stranger in [&ann, &cron] {
        for path in ["/audit", "/jobs"] {
            let refused = stranger.get(path).await.expect("an answer");
            assert_eq!(
                (refused.status, refused.json()["scope"].as_str()),
                (403, Some("admin"))
            );
        }
        assert_eq!(
            switch(stranger, "/jobs/daily-digest/pause").await.status,
            403
        );
    }
    assert_eq!(records(&other, "").await, [json!(null); 0]);
    assert_eq!(
        other.get("/jobs").await.expect("an answer").json()["jobs"],
        json!([])
    );
    let foreign = switch(&other, "/jobs/daily-digest/pause").await;
    let missing = switch(&ops, "/jobs/nightly/pause").await;
    assert_eq!(
        (foreign.status, foreign.code().as_str()),
        (404, "job_not_found")
    );
    assert_eq!(foreign.essence(), missing.essence());
    assert_eq!(
        switch(&ops, "/jobs/not%20a%20name/pause").await.essence(),
        missing.essence()
    );

    // Paused: no turn, one record for each request, also after a kill.
    for _ in 0..2 {
        let paused = switch(&ops, "/jobs/daily-digest/pause").await;
        assert_eq!(paused.status, 200, "{}", paused.body);
        let job = paused.json();
        assert_eq!(
            (&job["paused"], &job["paused_by"]),
            (&json!(true), &json!("ops"))
        );
    }
    let skipped = |answer: &ApiResponse| {
        let problem = answer.json();
        let told = ["code", "outcome", "job"].map(|name| problem[name].as_str());
        let expected = [
            Some("job_paused"),
            Some("skipped_paused"),
            Some("daily-digest"),
        ];
        assert_eq!((answer.status, told), (409, expected), "{problem}");
    };
    for key in ["tuesday", "tuesday"] {
        let answer = fire(&cron, session, key, daily.clone()).await;
        skipped(&answer);
    }
    fixture.server.restart().await;
    let answer = fire(&cron, session, "wednesday", daily.clone()).await;
    skipped(&answer);
    let bob = fixture.caller(ACME, "bob");
    let foreign = fire(&bob, session, "x", daily.clone()).await;
    assert_eq!(
        (foreign.status, foreign.code().as_str()),
        (404, "session_not_found")
    );
    let turns = ann.get(&format!("/sessions/{session}/turns")).await;
    let turns = turns.expect("an answer").json();
    assert_eq!(turns["turns"].as_array().expect("a list").len(), 1);

    // Resumed: the next request is a turn, and what was skipped stays so.
    let resumed = switch(&ops, "/jobs/daily-digest/resume").await;
    assert_eq!(
        (resumed.status, &resumed.json()["paused"]),
        (200, &json!(false))
    );
    let late = fire(&cron, session, "tuesday", daily.clone()).await;
    skipped(&late);
    let next = fire(&cron, session, "thursday", daily).await;
    assert_eq!(next.status, 202, "{}", next.body);
    let turn = next.json()["turn_id"].as_str().expect("an id").to_owned();
    ann.ended(turn.parse().expect("an id"))
        .await
        .expect("ended");

    // A deletion is recorded, and the records of the session stay.
    let deleted = ann
        .send(Method::DELETE, &format!("/sessions/{session}"), None)
        .await;
    assert_eq!(deleted.expect("an answer").status, 204);
    let found = records(&ops, "").await;
    let expected = [
        ["session_deleted", "", "ann", ""],
        ["job_fired", "dispatched", "cron", "ann"],
        ["job_resumed", "", "ops", ""],
        ["job_fired", "skipped_paused", "cron", "ann"],
        ["job_fired", "skipped_paused", "cron", "ann"],
        ["job_paused", "", "ops", ""],
        ["job_fired", "dispatched", "cron", "ann"],
    ];
    assert_eq!(acts(&found), expected);

    // Filters, pages, and the tenant that an administrator names.
    for (query, count) in [
        ("?action=job_fired", 4),
        ("?action=session_deleted", 1),
        ("?job=daily-digest", 6),
        ("?job=other", 0),
        ("?principal=ops", 2),
        ("?principal=ann", 5),
        ("?to=2020-01-01", 0),
        ("?from=2020-01-01", 7),
    ] {
        assert_eq!(records(&ops, query).await.len(), count, "{query}");
    }
    let of_session = format!("?session={session}");
    assert_eq!(records(&ops, &of_session).await.len(), 5);
    assert_eq!(records(&other, &format!("?tenant={ACME}")).await, found);
    let mut paged = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/audit?limit=3{before}");
        let page = ops.get(&path).await.expect("an answer").json();
        paged.extend(page["records"].as_array().expect("a list").clone());
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(paged, found);
    let jobs = ops.get("/jobs").await.expect("an answer").json();
    let job = &jobs["jobs"][0];
    let state = ["job", "created_by", "last_outcome"].map(|name| job[name].as_str());
    assert_eq!(
        state,
        [Some("daily-digest"), Some("cron"), Some("dispatched")]
    );
}

//
#[tokio::test]
async fn scheduled_turn_without_a_job_is_recorded_and_a_bad_job_refused() {
    let fixture = ServerFixture::saying([ScriptStep::text("done")]).await;
    let (api, session) = (&fixture.api, fixture.session);
    for (key, fields) in [
        ("a", json!({"origin": "dm", "dm_type": "daily"})),
        ("b", json!({"origin": "scheduled"})),
    ] {
        let answer = fire(api, session, key, fields).await;
        assert_eq!(
            (answer.status, &answer.json()["outcome"]),
            (202, &json!("dispatched"))
        );
    }
    let chat = fire(api, session, "c", json!({})).await;
    assert_eq!((chat.status, chat.json().get("outcome")), (202, None));
    for fields in [
        json!({"job": "daily", "origin": "chat"}),
        json!({"job": "a b"}),
        json!({"job": ""}),
        json!({"job": "j".repeat(65)}),
    ] {
        let refused = fire(api, session, "d", fields).await;
        assert_eq!(
            (refused.status, &refused.json()["field"]),
            (422, &json!("job"))
        );
    }
    // Without authentication the caller is the administrator of the tenant that it names.
    let found = records(api, "").await;
    assert_eq!(acts(&found), [["job_fired", "dispatched", "local", ""]; 2]);
    assert!(found.iter().all(|record| record["job"].is_null()));
    let elsewhere = api.clone().with("x-tenant-id", OTHER);
    assert_eq!(records(&elsewhere, "").await, [json!(null); 0]);
}

/// Sends requests of a scheduler that nobody answers in time.
async fn fire_all(api: &ApiClient, session: SessionId, round: usize) -> usize {
    let fires = (0..6).map(|n| {
        let api = api.clone();
        tokio::spawn(async move {
            let api = api.with("idempotency-key", &format!("{round}-{n}"));
            let body = json!({"message": "go", "job": "daily", "on_busy": "enqueue"});
            let path = format!("/sessions/{session}/turns");
            let answer = api.post(&path, body).await;
            usize::from(answer.is_ok_and(|answer| answer.status == 202))
        })
    });
    let fires: Vec<_> = fires.collect();
    let mut accepted = 0;
    for fire in fires {
        accepted += fire.await.expect("a task");
    }
    accepted
}

async fn turn_ids(api: &ApiClient, session: SessionId) -> BTreeSet<String> {
    let pages = api
        .pages(&format!("/sessions/{session}/turns"), "turns")
        .await;
    let turns = pages.expect("turns").concat();
    let ids = turns
        .iter()
        .map(|turn| turn["turn_id"].as_str().expect("an id").to_owned());
    ids.collect()
}

//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_has_one_record_for_each_turn() {
    let script = ModelScript::new().on("", [ScriptStep::text("done")]);
    let options = ServerOptions::script(script).set("turn", "queue_max", 100);
    let mut server = TestServer::start(options).await;
    let api = server.api();
    let session = api.create().await.expect("a session");
    let rounds = 8;
    for round in 0..rounds {
        let fires = tokio::spawn({
            let api = api.clone();
            async move { fire_all(&api, session, round).await }
        });
        tokio::time::sleep(Duration::from_millis(3 * round as u64)).await;
        server.kill().await;
        fires.await.expect("a task");
        server.run().await.expect("a start");
        // After the kill: every turn has its record, before anything is sent again.
        let recorded = api
            .pages("/audit", "records")
            .await
            .expect("records")
            .concat();
        let of_turns = recorded
            .iter()
            .map(|record| record["turn_id"].as_str().expect("an id"));
        let of_turns: BTreeSet<String> = of_turns.map(str::to_owned).collect();
        assert_eq!(
            of_turns.len(),
            recorded.len(),
            "round {round}: {recorded:?}"
        );
        assert_eq!(of_turns, turn_ids(&api, session).await, "round {round}");
        // The scheduler sends what was not answered once more.
        assert_eq!(fire_all(&api, session, round).await, 6);
    }
    let recorded = api
        .pages("/audit", "records")
        .await
        .expect("records")
        .concat();
    assert_eq!(recorded.len(), rounds * 6);
    assert_eq!(turn_ids(&api, session).await.len(), rounds * 6);
}

// R-32, D-71
#[tokio::test]
async fn command_pauses_a_job_with_the_token_of_an_administrator() {
    let script = ModelScript::new().on("", [ScriptStep::text("done")]);
    let fixture = TokenServer::start(ServerOptions::script(script)).await;
    let ann = fixture.caller("ann").await;
    let session = ann.create().await.expect("a session");
    let daily = json!({"job": "daily"});
    let first = fire(&ann, session, "1", daily.clone()).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let (token, _) = fixture.token("ops", &[Scope::Admin]).await;
    let turnwire = |arguments: &[&str], token: &str| -> Output {
        let mut command = Command::new(binary());
        let url = format!("http://{}", fixture.server.addr());
        command.args(arguments).env("TURNWIRE_SERVER", url);
        command.env("TURNWIRE_TOKEN", token);
        command.output().expect("the command runs")
    };
    let text = |output: &Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout.clone()).expect("text")
    };
    let (own, _) = fixture.token("ann", &[Scope::Own]).await;
    let refused = turnwire(&["jobs", "pause", "daily"], &own);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let unknown = turnwire(&["jobs", "pause", "nightly"], &token);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    let paused = text(&turnwire(&["jobs", "pause", "daily"], &token));
    assert!(
        paused.starts_with("daily  paused by ops since "),
        "{paused}"
    );
    let skipped = fire(&ann, session, "2", daily.clone()).await;
    assert_eq!(skipped.json()["outcome"], "skipped_paused");
    let listed = text(&turnwire(&["jobs", "list", "--json"], &token));
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["jobs"][0]["last_outcome"], "skipped_paused");
    let resumed = text(&turnwire(&["jobs", "resume", "daily"], &token));
    assert!(resumed.starts_with("daily  active  "), "{resumed}");
    assert_eq!(fire(&ann, session, "3", daily).await.status, 202);
    let audit = text(&turnwire(&["audit", "--job", "daily"], &token));
    let outcomes = audit
        .lines()
        .map(|line| line.split("  ").nth(1).unwrap_or_default());
    let expected = [
        "job_fired",
        "job_resumed",
        "job_fired",
        "job_paused",
        "job_fired",
    ];
    assert_eq!(outcomes.collect::<Vec<_>>(), expected, "{audit}");
    let newest = text(&turnwire(&["audit", "--limit", "1", "--json"], &token));
    let newest: Value = serde_json::from_str(&newest).expect("JSON");
    assert_eq!(newest["records"].as_array().map(Vec::len), Some(1));
    assert_eq!(newest["records"][0]["outcome"], "dispatched");
}

/// The audit leaves with its retention, and a paused job stays.
#[tokio::test]
async fn old_records_leave_and_a_paused_job_stays() {
    let script = ModelScript::new().on("", [ScriptStep::text("done")]);
    let options = ServerOptions::script(script)
        .set("store", "audit_retention_s", 1)
        .set("store", "retention_sweep_ms", 200);
    let fixture = ServerFixture::new(options).await;
    let (api, session) = (&fixture.api, fixture.session);
    for job in ["daily", "weekly"] {
        let fired = fire(api, session, job, json!({"job": job})).await;
        assert_eq!(fired.status, 202, "{}", fired.body);
    }
    assert_eq!(switch(api, "/jobs/daily/pause").await.status, 200);
    let names = async || {
        let jobs = api.get("/jobs").await.expect("an answer").json();
        let jobs = jobs["jobs"].as_array().expect("a list").clone();
        let names = jobs
            .iter()
            .map(|job| job["job"].as_str().expect("a name").to_owned());
        names.collect::<Vec<_>>()
    };
    for _ in 0..200 {
        if records(api, "").await.is_empty() && names().await == ["daily"] {
            let skipped = fire(api, session, "later", json!({"job": "daily"})).await;
            assert_eq!(skipped.json()["outcome"], "skipped_paused");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?} {:?}", records(api, "").await, names().await);
}
