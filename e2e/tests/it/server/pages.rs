//! Lists, page by page: messages, events with their hashes, turns, tool calls, sessions.

use serde_json::{Value, json};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::script::{ScriptStep, tool};

// S3-008
#[tokio::test]
async fn messages_page_without_gap_or_repetition() {
    let fixture = ServerFixture::saying([ScriptStep::text("You said: {{user}}")]).await;
    for number in 0..65 {
        let turn = fixture
            .api
            .submit(fixture.session, &format!("number {number}"))
            .await
            .expect("an answer");
        fixture.api.ended(turn.turn_id).await.expect("an end");
    }
    let base = format!("/sessions/{}/messages", fixture.session);
    let (mut pages, mut query) = (Vec::new(), String::new());
    loop {
        let page = fixture
            .api
            .get(&format!("{base}{query}"))
            .await
            .expect("an answer")
            .json();
        pages.push(page["messages"].as_array().expect("a list").clone());
        match page["next"].as_str() {
            None => break,
            Some(next) => query = format!("?before={next}"),
        }
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [50, 50, 30]);
    let all: Vec<&Value> = pages.iter().rev().flatten().collect();
    for (number, pair) in all.chunks(2).enumerate() {
        assert_eq!(pair[0]["role"], "user");
        assert_eq!(pair[0]["content"][0]["text"], format!("number {number}"));
        assert_eq!(pair[1]["role"], "assistant");
        assert_eq!(
            pair[1]["content"][0]["text"],
            format!("You said: number {number}")
        );
    }
    // S3-029: a snapshot holds the newest 50.
    let mut client = fixture
        .watch(
            "looking",
            turnwire_testkit::watch::SubscribeOptions::snapshot(),
        )
        .await;
    let turnwire_testkit::watch::WatchFrame::Frame(snapshot) =
        client.next().await.expect("a frame")
    else {
        panic!("an event")
    };
    let messages = snapshot["messages"].as_array().expect("a list");
    assert_eq!(messages.iter().collect::<Vec<_>>(), all[80..]);
    fixture.check_history().await;
}

// S3-049, R-25
#[tokio::test]
async fn events_page_with_chained_hashes() {
    let fixture = ServerFixture::saying([
        ScriptStep::tool(tool::BURST, json!({"count": 40})),
        ScriptStep::text("done"),
    ])
    .await;
    fixture.turn("go").await;
    let base = format!("/sessions/{}/events", fixture.session);
    let all_events = fixture
        .api
        .events(fixture.session)
        .await
        .expect("an answer");
    assert!(all_events.len() > 80);
    let (mut texts, mut hashes, mut query) = (Vec::new(), Vec::<Value>::new(), String::new());
    loop {
        let path = format!("{base}?limit=7&hashes=true{query}");
        let page = fixture.api.get(&path).await.expect("an answer").json();
        let events = page["events"].as_array().expect("a list");
        assert!(events.len() <= 7);
        if let Some(last) = hashes.last() {
            assert_eq!(&page["previous_hash"], last);
        }
        texts.extend(events.iter().map(|e| e["id"].clone()));
        hashes.extend(page["hashes"].as_array().expect("a list").iter().cloned());
        match page["next"].as_str() {
            None => break,
            Some(next) => query = format!("&since={next}"),
        }
    }
    assert_eq!(hashes.len(), texts.len());
    let hashes_read: Vec<&str> = hashes
        .iter()
        .take(all_events.len())
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        hashes_read,
        all_events
            .iter()
            .map(|e| e.hash.as_str())
            .collect::<Vec<_>>()
    );
    let plain = fixture.api.get(&base).await.expect("an answer").json();
    assert!(plain.get("hashes").is_none());
    let some = fixture
        .api
        .get(&format!("{base}?types=turn.started,turn.completed"))
        .await
        .expect("an answer")
        .json();
    let kinds: Vec<&Value> = some["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| &e["type"])
        .collect();
    assert_eq!(kinds, ["turn.started", "turn.completed"]);
    fixture.check_history().await;
}

// S3-009
#[tokio::test]
async fn session_turn_and_call_lists_page_backwards() {
    let fixture = ServerFixture::saying([
        ScriptStep::tool(tool::ECHO, json!({"text": "x"})),
        ScriptStep::text("done"),
    ])
    .await;
    let mut turns = Vec::new();
    for _ in 0..5 {
        let turn = fixture.submit("go").await;
        fixture.api.ended(turn).await.expect("an end");
        turns.push(turn.to_string());
    }
    turns.reverse();
    let mut sessions = vec![fixture.session.to_string()];
    for _ in 0..4 {
        sessions.push(fixture.api.create().await.expect("a session").to_string());
    }
    sessions.reverse();
    let base = format!("/sessions/{}", fixture.session);
    let lists = [
        (
            "/sessions".to_owned(),
            "sessions",
            "session_id",
            Some(sessions),
        ),
        (format!("{base}/turns"), "turns", "turn_id", Some(turns)),
        (
            format!("{base}/tool-calls"),
            "tool_calls",
            "tool_use_id",
            None,
        ),
        (format!("{base}/llm-calls"), "llm_calls", "call_id", None),
    ];
    for (path, plural, id, expected) in lists {
        let (mut found, mut query) = (Vec::new(), String::new());
        loop {
            let page = fixture
                .api
                .get(&format!("{path}?limit=2{query}"))
                .await
                .expect("an answer")
                .json();
            let rows = page[plural].as_array().expect("a list");
            assert!(!rows.is_empty() && rows.len() <= 2, "{path}: {page}");
            found.extend(
                rows.iter()
                    .filter_map(|row| row[id].as_str())
                    .map(str::to_owned),
            );
            match page["next"].as_str() {
                None => break,
                Some(next) => query = format!("&before={next}"),
            }
        }
        // The model speaks before a tool and after it.
        let calls = if plural == "llm_calls" { 2 } else { 1 };
        assert_eq!(found.len(), 5 * calls, "{path}");
        if let Some(expected) = expected {
            assert_eq!(found, expected, "{path}");
        }
    }
    fixture.check_history().await;
}

#[tokio::test]
async fn invalid_page_cursor_is_refused() {
    let fixture = ServerFixture::saying([ScriptStep::text("hi")]).await;
    fixture.turn("x").await;
    let base = format!("/sessions/{}", fixture.session);
    for (path, status, code) in [
        (
            format!("{base}/events?since=garbage"),
            400,
            "invalid_cursor",
        ),
        (
            format!("{base}/events?since=evt_00010000999999"),
            410,
            "cursor_expired",
        ),
        (
            format!("{base}/events?types=made.up"),
            422,
            "invalid_filter",
        ),
        (
            format!("{base}/messages?before=garbage"),
            400,
            "invalid_cursor",
        ),
        (
            format!("{base}/turns?before=garbage"),
            400,
            "invalid_cursor",
        ),
        (format!("{base}/messages?limit=0"), 422, "invalid_request"),
        (
            format!("{base}/messages?limit=many"),
            422,
            "invalid_request",
        ),
    ] {
        let answer = fixture.api.get(&path).await.expect("an answer");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{path}: {}",
            answer.body
        );
    }
    let answer = fixture
        .api
        .get(&format!(
            "{base}/messages?before=00000000000000000000000000"
        ))
        .await;
    let answer = answer.expect("an answer");
    assert!([400, 404].contains(&answer.status), "{}", answer.body);
}
