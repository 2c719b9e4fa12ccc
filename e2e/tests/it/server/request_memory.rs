//! Memory of what requests carry: metadata costs the bytes of its text, a message has a bounded number
//! of blocks, and a request that is refused costs little more than its body.

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::api::ApiClient;
use turnwire_testkit::script::ScriptStep;

/// A line of the status of a process, in MiB.
fn status_mib(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let value = status.lines().find_map(|text| text.strip_prefix(line));
    let kib = value.and_then(|text| text.split_whitespace().next());
    kib.and_then(|n| n.parse::<u64>().ok()).expect("a number") / 1024
}

/// Metadata of `bytes` in the shape that takes the most memory when it is parsed.
fn small_objects(bytes: usize) -> Value {
    json!({ "a": vec![json!({ "": 0 }); bytes / 7 - 2] })
}

/// Creates a session and posts a turn to it; returns the status and the problem.
async fn submit_to_new(api: &ApiClient, body: &Value) -> (u16, Value) {
    let session = api.create().await.expect("a session");
    let path = format!("/sessions/{session}/turns");
    let answer = api.post(&path, body.clone()).await.expect("an answer");
    (answer.status, answer.json())
}

// serial: compares the server's memory before and after
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_takes_the_memory_of_its_text() {
    const SESSIONS: usize = 150;
    const TURNS: usize = 50;
    let fixture = ServerFixture::saying([ScriptStep::stall()]).await;
    let (api, pid) = (&fixture.api, fixture.server.pid());
    let metadata = small_objects(16_000);
    let before = status_mib(pid, "VmRSS:");
    let mut last = String::new();
    for _ in 0..SESSIONS {
        let body = json!({ "metadata": metadata });
        let answer = api.post("/sessions", body).await.expect("an answer");
        assert_eq!(answer.status, 201);
        last = answer.json()["session_id"].as_str().expect("an id").into();
    }
    // Parsed, the metadata of these sessions takes 165 MiB.
    let grown = status_mib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < 60, "{SESSIONS} sessions took {grown} MiB");
    let whole = api.get(&format!("/sessions/{last}")).await.expect("one");
    assert_eq!(whole.json()["metadata"], metadata);

    let before = status_mib(pid, "VmRSS:");
    let body = json!({ "message": "hi", "metadata": metadata });
    for _ in 0..TURNS {
        assert_eq!(submit_to_new(api, &body).await.0, 202);
    }
    // Parsed, the metadata of these turns takes 170 MiB: each has it three times.
    let grown = status_mib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < 80, "{TURNS} turns took {grown} MiB");

    // Refused metadata is counted and not kept: 900 kB in this shape are 60 MB as values.
    let before = status_mib(pid, "VmHWM:");
    let large = small_objects(900_000);
    let bytes = large.to_string().len();
    let detail = format!("metadata has {bytes} bytes and may have 16384.");
    let submit = json!({ "message": "hi", "metadata": large });
    let turns = format!("/sessions/{}/turns", fixture.session);
    let create = json!({ "metadata": large });
    for (route, body) in [
        ("/sessions", &create),
        (turns.as_str(), &submit),
        ("/chat/stream", &submit),
    ] {
        let api = api.clone().with("idempotency-key", "k");
        let answer = api.post(route, body.clone()).await.expect("an answer");
        assert_eq!(answer.status, 422, "{route}: {}", answer.json());
        assert_eq!(answer.json()["detail"], detail, "{route}");
    }
    let grown = status_mib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < 30, "refused metadata took {grown} MiB");
}

// serial: compares the server's memory before and after
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_of_a_message_are_bounded() {
    const TURNS: usize = 30;
    let fixture = ServerFixture::saying([ScriptStep::stall()]).await;
    let (api, pid) = (&fixture.api, fixture.server.pid());
    let message = |blocks: usize| {
        let block = json!({ "type": "text", "text": "a" });
        json!({ "message": vec![block; blocks] })
    };
    // The first requests load code and buffers.
    let (status, _) = submit_to_new(api, &message(1_001)).await;
    assert_eq!(status, 422);
    let before = status_mib(pid, "VmHWM:");
    for blocks in [1_001, 38_001] {
        let body = message(blocks);
        let turns = format!("/sessions/{}/turns", fixture.session);
        for route in [turns.as_str(), "/chat/stream"] {
            let api = api.clone().with("idempotency-key", "k");
            let answer = api.post(route, body.clone()).await.expect("an answer");
            let problem = answer.json();
            assert_eq!(
                (answer.status, answer.code()),
                (422, "invalid_request".into())
            );
            let detail = format!("message has {blocks} blocks and may have 1000.");
            assert_eq!(problem["detail"], detail);
            assert_eq!(problem["field"], "message");
            assert_eq!(problem["limit_blocks"], 1_000);
        }
    }
    // Parsed and copied into a turn, 38,001 blocks take 90 MiB.
    let grown = status_mib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < 40, "refused messages took {grown} MiB");

    let before = status_mib(pid, "VmRSS:");
    let body = message(1_000);
    for _ in 0..TURNS {
        assert_eq!(submit_to_new(api, &body).await.0, 202);
    }
    let grown = status_mib(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < 3 * TURNS as u64, "{TURNS} turns took {grown} MiB");
}

/// Submits 900 kB to new sessions until one is refused; returns the turns and the problem.
async fn submit_until_refused(api: &ApiClient, max: usize) -> (Vec<String>, Value) {
    let body = json!({ "message": "x".repeat(900_000) });
    let mut turns = Vec::new();
    while turns.len() <= max {
        let (status, answer) = submit_to_new(api, &body).await;
        if status != 202 {
            assert_eq!(status, 429, "{answer}");
            return (turns, answer);
        }
        turns.push(answer["turn_id"].as_str().expect("an id").to_owned());
    }
    panic!("more than {max} turns were accepted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_of_turns_in_flight_are_bounded_for_each_owner() {
    let fixture = ServerFixture::saying([ScriptStep::stall()]).await;
    let api = &fixture.api;
    // 16 MiB of an owner, in steps of 64 KiB.
    let (turns, problem) = submit_until_refused(api, 18).await;
    assert_eq!(turns.len(), 18);
    assert_eq!(problem["limit"], 16 << 20, "{problem}");
    let small = json!({ "message": "hi" });
    assert_eq!(submit_to_new(api, &small).await.0, 202, "a small input");
    let other = api.clone().with("x-turnwire-principal", "other");
    let large = json!({ "message": "x".repeat(900_000) });
    assert_eq!(submit_to_new(&other, &large).await.0, 202, "another owner");
    // The end of a turn makes room.
    let ended = turns[0].parse().expect("an id");
    api.cancel(ended).await.expect("an answer");
    api.ended(ended).await.expect("an end");
    let (more, _) = submit_until_refused(api, 1).await;
    assert_eq!(more.len(), 1);
}
