//! Bytes of answers: every list of the API stays within `http.answer_max_bytes` whatever is stored,
//! and its pages together have every item once. The rows are written into the database, larger and
//! stranger than a server would accept.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{SessionId, TurnId};
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::{SubscribeOptions, WatchFrame};

/// The smallest that can be set.
const ANSWER_BYTES: usize = 1 << 20;

fn status_mib(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let value = status.lines().find_map(|text| text.strip_prefix(line));
    let kib = value.and_then(|text| text.split_whitespace().next());
    kib.and_then(|n| n.parse::<u64>().ok()).expect("a number") / 1024
}

fn database(server: &TestServer) -> Connection {
    let path = server.home().join("turnwire.sqlite3");
    Connection::open(path).expect("the database")
}

/// The digits of the ULID of a row that the test writes.
const ULID: &str = "printf('01%024d', n)";

/// A table of the numbers from 1 to `count`, for `INSERT ... SELECT`.
fn numbers(count: usize) -> String {
    format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"
    )
}

/// Rows of every list, as large as the server has ever accepted, with characters that take six bytes
/// each in JSON. Returns the number of rows of each list besides those that were there.
fn write_hostile_rows(
    db: &Connection,
    session: SessionId,
    turn: TurnId,
) -> BTreeMap<&'static str, usize> {
    let control = |chars: usize| "\u{1}".repeat(chars);
    let run = |count: usize, sql: String, values: &[&dyn rusqlite::ToSql]| {
        let sql = sql.replace("ULID", ULID);
        let sql = format!("{} {sql}", numbers(count));
        let written = db
            .execute(&sql, values)
            .unwrap_or_else(|why| panic!("{why}: {sql}"));
        assert_eq!(written, count, "{sql}");
    };
    let (session, turn) = (session.to_string(), turn.to_string());
    let sid: i64 = db
        .query_row("SELECT sid FROM session WHERE id = ?1", [&session], |row| {
            row.get(0)
        })
        .expect("the session");
    let columns = "tenant, principal, metadata, episode_id, active_model, routing_policy_version, \
        cost_usd, turn_count, created_at, updated_at, epoch, term, low_seq, low_hash";
    let of_metadata = columns.replace("metadata", "?3");
    // Metadata and paths of releases that did not bound them.
    let metadata = json!({ "m": "x".repeat(200_000) }).to_string();
    for (count, prefix, parent, path) in [
        (200, "sess_", None, control(16_384)),
        (20, "sess_1", None, control(100_000)),
        (100, "sess_2", Some(&session), control(16_384)),
    ] {
        let ulid = if prefix == "sess_" {
            "'sess_' || ULID".to_owned()
        } else {
            format!("'{prefix}' || substr(ULID, 2)")
        };
        run(
            count,
            format!(
                "INSERT INTO session (id, parent, workspace_path, {columns}) \
                 SELECT {ulid}, ?4, ?2, {of_metadata} FROM numbers, session WHERE sid = ?1"
            ),
            params![sid, path, metadata, parent],
        );
    }
    let receipt: Vec<Value> = (0..1_000)
        .map(
            |n| json!({"kind": "tool", "id": format!("tu_{n:026}"), "outcome": "stopped", "ms": 5}),
        )
        .collect();
    let terminal = json!({"reason": control(1_024), "code": "REQUEST_CANCELLED", "phase": "tool",
        "partial": {"message_id": null, "bytes": 0}, "receipt": receipt});
    run(
        30,
        "INSERT INTO turn (id, sid, kind, state, on_disconnect, disconnect_grace_ms, started, started_at, ended, \
         ended_at, terminal_type, terminal) \
         SELECT ULID, sid, kind, 'cancelled', on_disconnect, 0, started, started_at, ended, ended_at, \
         'turn.cancelled', ?2 FROM numbers, turn WHERE id = ?1"
            .into(),
        params![turn, terminal.to_string()],
    );
    // Messages: many small ones, some that share a page, some that exceed one.
    let content = |bytes: usize| json!([{"type": "text", "text": control(bytes / 6)}]).to_string();
    for (count, first, bytes) in [(300, 1, 60), (20, 2, 400_000), (4, 3, 3_000_000)] {
        run(
            count,
            format!(
                "INSERT INTO message (id, sid, turn, role, status, content, metadata, created_at, completed_at, \
                 started, completed, cuts, inputs) SELECT '0{first}' || substr(ULID, 3), ?1, ?2, 'user', \
                 'complete', ?3, '{{}}', 0, 0, 'evt_00010000000001', 'evt_00010000000001', x'', '[]' FROM numbers"
            ),
            params![sid, turn, content(bytes)],
        );
    }
    run(
        3_000,
        "INSERT INTO tool_call (id, sid, turn, name, type, status) \
         SELECT 'tu_' || ULID, ?1, ?2, ?3, 'function', 'completed' FROM numbers"
            .into(),
        params![sid, turn, control(256)],
    );
    run(
        3_000,
        "INSERT INTO llm_call (id, sid, turn, actor, model, purpose, attempt, status, provider_response_id, \
         started_at) SELECT 'call_' || ULID, ?1, ?2, 'orchestrator', ?3, 'orchestrate', 1, 'completed', ?3, 0 \
         FROM numbers"
            .into(),
        params![sid, turn, control(256)],
    );
    run(
        400,
        "INSERT INTO approval (id, sid, turn, tool_use, name, input_summary, state, requested_at, comment) \
         SELECT 'appr_' || ULID, ?1, ?2, 'tu_' || ULID, ?3, ?3, 'approved', 0, ?4 FROM numbers"
            .into(),
        params![sid, turn, control(256), control(500)],
    );
    run(
        9_000,
        "INSERT INTO usage_day SELECT date('now', '-' || (n % 300) || ' days'), \
         (SELECT tenant FROM session WHERE sid = ?1), 'hostile:' || n, 1, 0, n, n, n, n, n, 0.5, 0, 0 FROM numbers"
            .into(),
        params![sid],
    );
    BTreeMap::from([
        ("sessions", 220),
        ("workers", 100),
        ("turns", 30),
        ("messages", 324),
        ("tool_calls", 3_000),
        ("llm_calls", 3_000),
        ("approvals", 400),
        ("rows", 9_000),
    ])
}

/// A list of the OpenAPI document.
struct DocumentedList {
    path: String,
    limit_max: Option<u64>,
    /// The parameter that takes `next`.
    cursor: Option<String>,
    has_next: bool,
}

/// Every operation whose name says that it lists something, or whose response has a `next`.
fn documented_lists(document: &Value) -> Vec<DocumentedList> {
    let mut lists = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let operation = &operations["get"];
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let name = schema["$ref"]
            .as_str()
            .and_then(|name| name.rsplit('/').next());
        let schema = name.map_or(schema, |name| &document["components"]["schemas"][name]);
        let has_next = !schema["properties"]["next"].is_null();
        let id = operation["operationId"].as_str().unwrap_or_default();
        if !has_next && !id.starts_with("list") {
            continue;
        }
        let parameters = operation["parameters"].as_array();
        let parameter = |name: &str| {
            let mut all = parameters.into_iter().flatten();
            all.find(|parameter| parameter["name"] == name)
        };
        let cursor = ["before", "after", "since"].into_iter();
        lists.push(DocumentedList {
            path: path.clone(),
            limit_max: parameter("limit").and_then(|limit| limit["schema"]["maximum"].as_u64()),
            cursor: cursor
                .map(str::to_owned)
                .find(|name| parameter(name).is_some()),
            has_next,
        });
    }
    lists
}

/// Follows `next` through every page; returns the name of the list and its items.
async fn all_pages(api: &ApiClient, list: &DocumentedList, path: &str) -> (String, Vec<String>) {
    let mut items = Vec::new();
    let mut cursor = String::new();
    let limit = list.limit_max.map(|max| format!("limit={max}"));
    let path = if path.contains('?') {
        path.to_owned()
    } else {
        format!("{path}?")
    };
    loop {
        let parts = [
            path.as_str(),
            limit.as_deref().unwrap_or_default(),
            cursor.as_str(),
        ];
        let answer = api.get(&parts.join("&").replace("?&", "?")).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let bytes = answer.body.len();
        assert!(bytes <= ANSWER_BYTES, "{path} answered {bytes} bytes");
        let page = answer.json();
        let fields = page.as_object().expect("an object");
        let mut arrays = fields.iter().filter(|(_, value)| value.is_array());
        let (name, page_items) = arrays.next().expect("a list");
        let page_items = page_items.as_array().expect("a list");
        items.extend(page_items.iter().map(Value::to_string));
        match page["next"].as_str() {
            None => return (name.clone(), items),
            Some(next) => {
                assert!(
                    !page_items.is_empty(),
                    "{path} has an empty page and a next"
                );
                let name = list.cursor.as_deref().expect("a parameter for next");
                let next: String = next.bytes().map(|b| format!("%{b:02x}")).collect();
                cursor = format!("{name}={next}");
            }
        }
    }
}

#[tokio::test]
async fn every_list_stays_within_its_bytes_whatever_is_stored() {
    let workshop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/workshop");
    let mut options = ServerOptions::pack(TestPack::read(&workshop).expect("the workshop"))
        .set("http", "answer_max_bytes", ANSWER_BYTES)
        .set("session", "list_page_max", 10_000)
        .set("session", "messages_page_max", 10_000);
    options.script = Some(ModelScript::new().on("", [ScriptStep::text("hello")]));
    let mut fixture = ServerFixture::new(options).await;
    let turn = fixture.submit("hi").await;
    fixture.api.ended(turn).await.expect("an end");
    let owned = |id: &str| match id.starts_with("/turns/") {
        true => id.replace("{id}", &turn.to_string()),
        false => id.replace("{id}", &fixture.session.to_string()),
    };
    let document = fixture
        .api
        .get("/openapi.json")
        .await
        .expect("a document")
        .json();
    let lists = documented_lists(&document);
    assert!(lists.len() >= 10, "{}", lists.len());
    let mut before = BTreeMap::new();
    for list in &lists {
        // The types of problems are part of the program.
        assert!(
            list.has_next || list.path == "/problems",
            "{} has no next",
            list.path
        );
        if list.has_next {
            let (name, items) = all_pages(&fixture.api, list, &owned(&list.path)).await;
            before.insert(name, items.len());
        }
    }
    let session = fixture.session;
    fixture.server.kill().await;
    let db = database(&fixture.server);
    let written = write_hostile_rows(&db, session, turn);
    let first_day = "SELECT date('now', '-299 days')";
    let first_day: String = db
        .query_row(first_day, [], |row| row.get(0))
        .expect("a day");
    drop(db);
    fixture.server.run().await.expect("a start");
    let mut checked = HashSet::new();
    for list in &lists {
        if list.path == "/problems" {
            continue;
        }
        let path = match list.path.as_str() {
            "/usage" => format!("/usage?from={first_day}"),
            path => owned(path),
        };
        let (name, items) = all_pages(&fixture.api, list, &path).await;
        let added = written.get(name.as_str()).copied().unwrap_or(0);
        let unique: HashSet<&String> = items.iter().collect();
        assert_eq!(unique.len(), items.len(), "{name} repeats items");
        assert_eq!(items.len(), before[&name] + added, "{name}");
        checked.insert(name);
    }
    for name in written.keys() {
        assert!(checked.contains(*name), "no list of {name}");
    }
}

/// Creates a session with this body; returns the status and the code of a problem.
async fn created(api: &ApiClient, body: Value) -> (u16, String) {
    let answer = api.post("/sessions", body).await.expect("an answer");
    (answer.status, answer.code())
}

#[tokio::test]
async fn metadata_and_paths_are_bounded_in_bytes() {
    let fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    let api = &fixture.api;
    let ok = (201, String::new());
    let refused = (422, "invalid_request".to_owned());
    let labelled = |bytes: usize| json!({ "m": "x".repeat(bytes - r#"{"m":""}"#.len()) });
    let path = |bytes: usize| json!({ "workspace_path": "x".repeat(bytes) });
    assert_eq!(
        created(api, json!({ "metadata": labelled(16_384) })).await,
        ok
    );
    assert_eq!(
        created(api, json!({ "metadata": labelled(16_385) })).await,
        refused
    );
    // Six bytes each in JSON.
    let control = json!({ "m": "\u{1}".repeat(3_000) });
    assert_eq!(created(api, json!({ "metadata": control })).await, refused);
    assert_eq!(created(api, path(16_384)).await, ok);
    assert_eq!(created(api, path(16_385)).await, refused);
    assert_eq!(
        created(api, json!({ "workspace_path": "é".repeat(8_193) })).await,
        refused
    );
    let submit = json!({ "message": "hi", "metadata": labelled(16_385) });
    let turns = format!("/sessions/{}/turns", fixture.session);
    for route in [turns.as_str(), "/chat/stream"] {
        let answer = api.post(route, submit.clone()).await.expect("an answer");
        assert_eq!((answer.status, answer.code()), refused, "{route}");
        assert_eq!(answer.json()["field"], "metadata");
        assert_eq!(answer.json()["limit_bytes"], 16_384);
    }
}

/// Sessions of a release that did not bound metadata: 200 of 1 MB.
// serial: compares the server's memory before and after
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_sessions_do_not_read_their_metadata() {
    const SESSIONS: usize = 200;
    const READERS: usize = 12;
    let mut fixture = ServerFixture::saying([ScriptStep::text("hello")]).await;
    for _ in 1..SESSIONS {
        fixture.api.create().await.expect("a session");
    }
    fixture.server.kill().await;
    let metadata = json!({ "m": "x".repeat(1_000_000) }).to_string();
    let db = database(&fixture.server);
    let written = db.execute("UPDATE session SET metadata = ?1", [&metadata]);
    assert_eq!(written.expect("rows"), SESSIONS);
    drop(db);
    fixture.server.run().await.expect("a start");
    let pid = fixture.server.pid();
    let before = status_mib(pid, "VmRSS:");
    let readers = (0..READERS).map(|_| {
        let api = fixture.api.clone();
        tokio::spawn(async move {
            for _ in 0..3 {
                let answer = api.get("/sessions?limit=200").await.expect("an answer");
                assert_eq!(answer.status, 200);
                let page = answer.json();
                let sessions = page["sessions"].as_array().expect("a list");
                assert_eq!(sessions.len(), SESSIONS);
                assert!(sessions.iter().all(|session| session["metadata"].is_null()));
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.expect("a reader");
    }
    // With their metadata, one list is 200 MB.
    let grown = status_mib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < 100, "the server grew by {grown} MiB");
    let whole = fixture
        .api
        .attach(fixture.session)
        .await
        .expect("a session");
    assert_eq!(
        whole["metadata"].to_string(),
        metadata,
        "it is still readable"
    );
}

// S3-029
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_has_the_messages_that_fit_its_bytes() {
    const LARGE: usize = 300_000;
    let fixture = ServerFixture::saying([ScriptStep::text("ok")]).await;
    for _ in 0..6 {
        let turn = fixture.submit(&"x".repeat(LARGE)).await;
        fixture.api.ended(turn).await.expect("an end");
    }
    let mut client = fixture.watch("looking", SubscribeOptions::snapshot()).await;
    let WatchFrame::Frame(snapshot) = client.next().await.expect("a frame") else {
        panic!("an event")
    };
    let bytes = snapshot.to_string().len();
    assert!(bytes <= 1 << 20, "a snapshot of {bytes} bytes");
    let messages = snapshot["messages"].as_array().expect("a list");
    // Three questions and the answers to them, and the answer before: the next one does not fit.
    assert_eq!(messages.len(), 7);
    assert_eq!(snapshot["next"], messages[0]["id"]);
    let next = snapshot["next"].as_str().expect("a cursor");
    let path = format!("/sessions/{}/messages?before={next}", fixture.session);
    let older = fixture.api.get(&path).await.expect("an answer").json();
    assert_eq!(older["messages"].as_array().map(Vec::len), Some(5));
    assert_eq!(older["next"], Value::Null);
}

#[tokio::test]
async fn message_above_a_page_is_read_by_itself() {
    // As JSON, the text is twice as long and more than an answer may have.
    let words = "\"".repeat(1 << 18);
    let script = ModelScript::new().on("", [ScriptStep::text(&words).repeat(6)]);
    let fixture = ServerFixture::new(ServerOptions::script(script)).await;
    let turn = fixture.submit("much").await;
    fixture.api.ended(turn).await.expect("an end");
    let base = format!("/sessions/{}/messages", fixture.session);
    let page = fixture.api.get(&base).await.expect("an answer");
    assert!(page.body.len() <= 2 << 20, "{} bytes", page.body.len());
    let page = page.json();
    let listed = &page["messages"][0];
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["content"], json!([]));
    let text_bytes = 6 * words.len();
    assert!(listed["omitted_bytes"].as_u64() > Some(2 * text_bytes as u64));
    let id = listed["id"].as_str().expect("an id");
    let whole = fixture
        .api
        .get(&format!("{base}/{id}"))
        .await
        .expect("an answer");
    let whole = whole.json();
    let text = whole["content"][0]["text"].as_str().expect("a text");
    assert_eq!(text.len(), text_bytes);
    assert_eq!(whole["omitted_bytes"], Value::Null);
    let other = fixture.api.clone().with("x-turnwire-principal", "eve");
    let refused = other.get(&format!("{base}/{id}")).await.expect("an answer");
    assert_eq!(
        (refused.status, refused.code()),
        (404, "session_not_found".into())
    );
    let unknown = format!("{base}/{}", "0".repeat(26));
    let refused = fixture.api.get(&unknown).await.expect("an answer");
    assert_eq!(
        (refused.status, refused.code()),
        (404, "message_not_found".into())
    );
    let next = page["next"].as_str().expect("a cursor");
    let older = fixture.api.get(&format!("{base}?before={next}")).await;
    let older = older.expect("an answer").json();
    assert_eq!(older["messages"][0]["content"][0]["text"], "much");
}
