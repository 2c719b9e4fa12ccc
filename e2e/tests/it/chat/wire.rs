//! The chat wire on a real stream: envelope and frame order of every kind of turn, headers, and
//! endings (S1).

use serde_json::{Value, json};
use turnwire_e2e::chat::{
    assert_no_errors_logged, back, code, events, raw, say, shape, whole, words,
};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::ResponseId;
use turnwire_testkit::chat::{Block, ChatSubmit, Said};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;

/// What must not be on the wire.
const MARKER: &str = "MARKER at /srv/secret.rs:7 on host.internal";

fn script() -> ModelScript {
    ModelScript::new()
        .on(
            "^plain",
            [ScriptStep::slow("plain words of an answer", 3, 1)],
        )
        .on(
            "^think",
            [
                ScriptStep::thinking("first a thought", "c2VhbA=="),
                ScriptStep::text("then words "),
                ScriptStep::thinking("another thought", "c2VhbA=="),
                ScriptStep::text("and more words"),
            ],
        )
        .on(
            "^tools",
            [
                ScriptStep::text("I look. "),
                ScriptStep::tool(tool::CLOCK, json!({})),
                ScriptStep::tool(tool::ECHO, json!({"text": "hi"})),
                ScriptStep::text("Here it is."),
            ],
        )
        .on(
            "^failing",
            [
                ScriptStep::tool(tool::FAIL, json!({"message": MARKER})),
                ScriptStep::text("That did not work."),
            ],
        )
        .on(
            "^limited",
            [
                ScriptStep::text("so far"),
                ScriptStep::error("rate_limited"),
            ],
        )
        .on(
            "^broken",
            [ScriptStep::text("so far"), ScriptStep::error("internal")],
        )
        .on("^refused", [ScriptStep::error("provider")])
        .on(
            "^late",
            [
                ScriptStep::tool(tool::FAIL, json!({"message": MARKER})),
                ScriptStep::text("so far"),
                ScriptStep::error("transport"),
            ],
        )
        .on(
            "^busy",
            [
                ScriptStep::text("wait"),
                ScriptStep::tool(tool::SLEEP, json!({"ms": 60_000})),
            ],
        )
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::text("yes")])
}

async fn fixture() -> ServerFixture {
    ServerFixture::new(ServerOptions::script(script())).await
}

/// Every frame has the four fields first, those of its turn alike, times in order.
fn envelope(frames: &[Block], response: &str, version: &str) {
    let mut before = String::new();
    for frame in frames {
        let time = frame
            .field("timestamp")
            .as_str()
            .expect("a time")
            .to_owned();
        let begin = format!(
            "data: {{\"event_type\":\"{}\",\"version\":\"{version}\",\"timestamp\":\"{time}\",\
             \"response_id\":\"{response}\"",
            frame.event()
        );
        assert!(frame.frame_text().contains(&begin), "{}", frame.text);
        // 2026-01-01T00:00:00.000Z, and as text in the order of time.
        let form: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(form, "0000-00-00T00:00:00.000Z");
        assert!(time >= before, "{before} then {time}");
        before = time;
    }
}

/// The names of a frame's own fields.
fn fields(frame: &Block) -> Vec<&str> {
    let Said::Frame(_, _, data) = &frame.said else {
        panic!("no frame: {}", frame.text)
    };
    let own = |name: &&str| !["event_type", "version", "timestamp", "response_id"].contains(name);
    data.keys().map(String::as_str).filter(own).collect()
}

fn last(frames: &[Block]) -> &Block {
    frames.last().expect("a frame")
}

// S1-002, S1-003, S1-004, S1-005, S1-009, S1-010
#[tokio::test]
async fn every_turn_is_complete_and_in_order() {
    let fixture = fixture().await;
    let messages = [
        "plain", "think", "tools", "failing", "limited", "broken", "late",
    ];
    for message in messages {
        let question = ChatSubmit::new(message).session(fixture.session);
        let (turn, live) = whole(&fixture.api, message, &question).await;
        envelope(&live, &ResponseId::from(turn).to_string(), "0.5");
        let ids: Vec<String> = live
            .iter()
            .filter_map(|f| Some(f.id()?.to_string()))
            .collect();
        assert_eq!(ids.len(), live.len());
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        assert_eq!(events(&live)[..3], ["response_id", "episode", "thinking"]);
        let count = |name: &str| events(&live).iter().filter(|e| **e == name).count();
        assert_eq!(
            (count("response_id"), count("episode"), count("usage")),
            (1, 1, 1)
        );
        assert_eq!(events(&live)[live.len() - 2], "usage");
        assert_eq!(live.iter().filter(|f| f.is_terminal()).count(), 1);
        let again = back(&fixture.api, &format!("{message} again"), turn, None)
            .await
            .read_to_end()
            .await;
        let again = again.expect("a replay");
        assert_eq!((shape(&again), words(&again)), (shape(&live), words(&live)));
    }
    assert_no_errors_logged(&fixture.server);
    fixture.check_history().await;
}

// S1-013
#[tokio::test]
async fn stream_is_uncached_unbuffered_and_names_its_turn() {
    let fixture = fixture().await;
    let question = ChatSubmit::new("plain").session(fixture.session);
    let mut stream = say(&fixture.api, "headers", &question).await;
    let turn = stream.turn();
    stream.read_to_end().await.expect("a whole stream");
    let late = back(&fixture.api, "later", turn, None).await;
    for head in [stream.head(), late.head()] {
        assert_eq!(head.header("content-type"), "text/event-stream");
        assert_eq!(head.header("cache-control"), "no-cache, no-transform");
        assert_eq!(head.header("x-accel-buffering"), "no");
        assert_eq!(head.header("content-length"), "");
        assert_eq!(head.session(), Some(fixture.session));
        let response = ResponseId::from(turn).to_string();
        assert_eq!(head.header("x-response-id"), response);
    }
}

// S1-014, S1-015, S1-016, S1-022, S1-023, S1-024, S1-027, C-09
#[tokio::test]
async fn text_and_thinking_equal_the_stored_message() {
    let fixture = fixture().await;
    let question = ChatSubmit::new("think").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "thinking", &question).await;
    let expected = [
        "response_id",
        "episode",
        "thinking",
        "text",
        "reasoning",
        "text",
        "usage",
        "completed",
    ];
    assert_eq!(shape(&frames), expected);
    assert!(fields(&frames[0]).is_empty());
    assert_eq!(fields(&frames[1]), ["episode_id"]);
    assert_eq!(
        fields(&frames[2]),
        ["role"],
        "the first says only that it thinks"
    );
    assert!(fields(last(&frames)).is_empty());
    let all = |event: &str, field: &str| -> String {
        let own = frames.iter().filter(|frame| frame.event() == event);
        own.filter_map(|frame| frame.field(field).as_str())
            .collect()
    };
    assert_eq!(all("thinking", "content"), "first a thought");
    assert_eq!(all("reasoning", "chunk"), "another thought");
    assert_eq!(words(&frames), "then words and more words");
    let path = format!("/sessions/{}/messages", fixture.session);
    let messages = fixture.api.get(&path).await.expect("an answer").json();
    let stored: String = messages["messages"][1]["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect();
    assert_eq!(words(&frames), stored);
    let usage = &frames[frames.len() - 2];
    let mut sum = 0;
    for field in ["input_tokens", "output_tokens"] {
        sum += usage.field(field).as_u64().expect("a number");
    }
    assert_eq!(usage.field("total_tokens"), &json!(sum));
    assert_eq!(fields(usage).len(), 5, "{}", usage.text);
    fixture.check_history().await;
}

// S1-017, S1-018, S1-031
#[tokio::test]
async fn tool_frames_are_paired_including_failures() {
    let fixture = fixture().await;
    for (message, tools) in [("tools", 2), ("failing", 1), ("late", 1)] {
        let question = ChatSubmit::new(message).session(fixture.session);
        let (_, frames) = whole(&fixture.api, message, &question).await;
        let of = |event: &str| -> Vec<&Value> {
            let own = frames.iter().filter(|frame| frame.event() == event);
            own.map(|frame| frame.field("tool_call")).collect()
        };
        let (mut called, mut ended) = (of("tool_call"), of("tool_completed"));
        assert_eq!(called.len(), tools, "{message}");
        for call in &called {
            let keys: Vec<&String> = call.as_object().expect("an object").keys().collect();
            assert_eq!(keys, ["id", "name", "type"]);
        }
        called.sort_by_key(|call| call["id"].to_string());
        ended.sort_by_key(|call| call["id"].to_string());
        assert_eq!(called, ended);
        let order = [
            "response_id",
            "thinking",
            "tool_call",
            "tool_completed",
            "usage",
        ];
        let mut remaining = events(&frames).into_iter();
        assert!(
            order.iter().all(|name| remaining.any(|seen| seen == *name)),
            "{message}"
        );
    }
    fixture.check_history().await;
}

// S1-026, S1-093, S1-098, S1-099, S1-100
#[tokio::test]
async fn failure_exposes_a_code_and_nothing_else() {
    let fixture = fixture().await;
    for (message, expected) in [
        ("limited", "RATE_LIMIT_ERROR"),
        ("broken", "INTERNAL_ERROR"),
        ("refused", "MODEL_UNAVAILABLE"),
        ("late", "MODEL_UNAVAILABLE"),
        ("failing", ""),
    ] {
        let question = ChatSubmit::new(message).session(fixture.session);
        let (turn, frames) = whole(&fixture.api, message, &question).await;
        let again = back(&fixture.api, &format!("{message} again"), turn, None)
            .await
            .read_to_end()
            .await;
        for frame in frames.iter().chain(&again.expect("a replay")) {
            assert!(!frame.text.contains("MARKER"), "{}", frame.text);
            assert!(!frame.text.contains("host.internal"), "{}", frame.text);
            let is_error = frame.event() == "error";
            assert_eq!(
                !frame.field("is_final").is_null(),
                is_error,
                "{}",
                frame.text
            );
        }
        assert_eq!(code(&frames), expected);
        if expected.is_empty() {
            assert_eq!(last(&frames).event(), "completed");
            continue;
        }
        assert_eq!(last(&frames).event(), "error");
        assert_eq!(last(&frames).field("error"), &json!({"code": expected}));
        assert_eq!(last(&frames).field("is_final"), &json!(true));
        assert!(!words(&frames).contains(expected));
    }
    // The process goes on.
    let question = ChatSubmit::new("plain").session(fixture.session);
    let (_, frames) = whole(&fixture.api, "after", &question).await;
    assert_eq!(last(&frames).event(), "completed");
    fixture.check_history().await;
}

// S1-028, S1-105, S1-106, S1-114, D-03
#[tokio::test]
async fn cancel_by_response_id_ends_the_open_stream() {
    let fixture = fixture().await;
    for (version, message) in [
        ("0.5", "stall"),
        ("0.4", "stall"),
        ("0.5", "busy"),
        ("0.4", "busy"),
    ] {
        let name = format!("{message} {version}");
        let question = ChatSubmit::new(message)
            .session(fixture.session)
            .version(version);
        let mut stream = say(&fixture.api, &name, &question).await;
        let until = if message == "busy" {
            "tool_call"
        } else {
            "text"
        };
        let mut frames = stream.until(until).await.expect("a beginning");
        let response = ResponseId::from(stream.turn());
        let path = format!("/turns/{response}/cancel");
        for _ in 0..2 {
            let answer = fixture.api.post(&path, json!({"reason": "enough"})).await;
            assert_eq!(answer.expect("an answer").status, 202);
        }
        let remaining_frames = stream.read_to_end().await.expect("an end");
        let ending = if message == "busy" {
            vec!["tool_completed"]
        } else {
            vec![]
        };
        let terminal = if version == "0.5" {
            "cancelled"
        } else {
            "error"
        };
        assert_eq!(
            events(&remaining_frames),
            [ending, vec![terminal]].concat(),
            "{name}"
        );
        assert_eq!(
            last(&remaining_frames).field("error"),
            &json!({"code": "REQUEST_CANCELLED"})
        );
        let is_final = if version == "0.5" {
            Value::Null
        } else {
            json!(true)
        };
        assert_eq!(last(&remaining_frames).field("is_final"), &is_final);
        frames.extend(remaining_frames);
        envelope(&frames, &response.to_string(), version);
    }
    assert_no_errors_logged(&fixture.server);
    fixture.check_history().await;
}

// S1-013
#[tokio::test]
async fn head_has_no_body_and_missing_turn_is_a_problem() {
    let fixture = fixture().await;
    let (turn, _) = whole(
        &fixture.api,
        "one",
        &ChatSubmit::new("x").session(fixture.session),
    )
    .await;
    let addr = fixture.server.addr();
    let path = format!("/chat/{}/stream", ResponseId::from(turn));
    let head = raw(addr, &format!("HEAD {path}"), &[], b"").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("content-type"), "text/event-stream");
    let missing = raw(
        addr,
        "GET /chat/resp_00000000000000000000000001/stream",
        &[],
        b"",
    )
    .await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "turn_not_found")
    );
    assert_eq!(missing.header("content-type"), "application/problem+json");
}

// S1-028, S1-090, S1-131, D-44, C-03
#[tokio::test]
async fn cancel_by_the_server_has_a_code_of_its_own() {
    let options = ServerOptions::script(script()).set("turn", "timeout_ms", 400);
    let fixture = ServerFixture::new(options).await;
    for (version, terminal) in [("0.5", "cancelled"), ("0.4", "error")] {
        let question = ChatSubmit::new("stall").version(version);
        let (_, frames) = whole(&fixture.api, version, &question).await;
        assert_eq!(last(&frames).event(), terminal);
        assert_eq!(code(&frames), "IDLE_TIMEOUT");
    }
    let metrics = fixture.api.get("/metrics").await.expect("an answer").body;
    let mut lines = metrics.lines();
    let counted = lines.find(|line| {
        line.starts_with("turnwire_stream_cancellation_total{")
            && line.contains("code=\"IDLE_TIMEOUT\"")
    });
    assert!(
        counted.is_some_and(|line| line.ends_with(" 2")),
        "{counted:?}"
    );
    fixture.check_history().await;
}
