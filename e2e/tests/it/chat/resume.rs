//! Resuming a stream: which frames a cursor gives, invalid cursors, and turns of other owners.

use std::time::Duration;

use turnwire_e2e::chat::{RawResponse, back, events, raw, say, until, whole, words};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_event::{Position, ResponseId, Seq, TurnId};
use turnwire_testkit::chat::{Block, ChatStream, ChatSubmit, CursorPlacement};
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::ServerOptions;
use turnwire_wire::pc3::FrameCursor;

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on("", [ScriptStep::slow("some words of an answer", 3, 1)])
}

async fn fixture() -> ServerFixture {
    ServerFixture::new(ServerOptions::script(script())).await
}

/// A turn that is over, with its frames.
async fn over(fixture: &ServerFixture, name: &str) -> (TurnId, Vec<Block>) {
    let question = ChatSubmit::new("go").session(fixture.session);
    whole(&fixture.api, name, &question).await
}

/// A turn that runs until it is cancelled.
async fn running(fixture: &ServerFixture, name: &str) -> ChatStream {
    let question = ChatSubmit::new("stall").session(fixture.session);
    let mut stream = say(&fixture.api, name, &question).await;
    stream.until("text").await.expect("words");
    stream
}

fn path(turn: TurnId) -> String {
    format!("GET /chat/{}/stream", ResponseId::from(turn))
}

async fn asked(fixture: &ServerFixture, turn: TurnId, query: &str, lines: &[&str]) -> RawResponse {
    let line = format!("{}{query}", path(turn));
    raw(fixture.server.addr(), &line, lines, b"").await
}

fn problem(answer: &RawResponse, status: u16, code: &str, of: &str) {
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (status, code),
        "{of}: {} {}",
        answer.head,
        answer.body
    );
    assert_eq!(answer.header("content-type"), "application/problem+json");
}

fn id(frame: &Block) -> FrameCursor {
    frame.id().expect("an id")
}

//
#[tokio::test]
async fn unreadable_cursor_is_refused() {
    let fixture = fixture().await;
    let (ended, frames) = over(&fixture, "one").await;
    let open = running(&fixture, "two").await;
    let good = id(&frames[0]).to_string();
    let huge = format!("evt_{}", "0".repeat(8_000));
    let bad = [
        "garbage",
        "evt_",
        "evt_0001",
        "evt_0001000000000l-0",
        "evt_0001000000000u-0",
        "evt_00010000000001-",
        "evt_00010000000001-12",
        "evt_00010000000001-x",
        "evt_00010000000001--1",
        "evt_00010000000001-0-0",
        "evt_00010000000001-0-9k3t",
        "evt_00010000000001.000001-10",
        "EVT_00010000000001-0",
        "0",
        "-1",
        huge.as_str(),
    ];
    for turn in [ended, open.turn()] {
        for text in bad {
            let header = format!("last-event-id: {text}");
            let answer = asked(&fixture, turn, "", &[&header]).await;
            problem(&answer, 400, "invalid_cursor", text);
            let answer = asked(&fixture, turn, &format!("?last_event_id={text}"), &[]).await;
            problem(&answer, 400, "invalid_cursor", text);
            // The header takes precedence; that it is right does not mend the parameter.
            let header = format!("last-event-id: {good}");
            let query = format!("?last_event_id={text}");
            let answer = asked(&fixture, turn, &query, &[&header]).await;
            problem(&answer, 400, "invalid_cursor", text);
        }
        let header = format!("last-event-id: {good}");
        let twice = asked(&fixture, turn, "", &[&header, &header]).await;
        problem(&twice, 400, "invalid_cursor", "said twice");
        let bytes = asked(&fixture, turn, "", &["last-event-id: \u{e9}"]).await;
        problem(&bytes, 400, "invalid_cursor", "no ASCII");
        let unknown = asked(&fixture, turn, "?since=x", &[]).await;
        assert_eq!(unknown.status, 422, "{}", unknown.body);
    }
    fixture.api.cancel(open.turn()).await.expect("an answer");
    fixture.check_history().await;
}

#[tokio::test]
async fn cursor_ahead_or_of_other_epoch_has_expired() {
    let fixture = fixture().await;
    let (ended, frames) = over(&fixture, "one").await;
    let open = running(&fixture, "two").await;
    let mut ahead = id(frames.last().expect("a frame"));
    ahead.position.seq = Seq(ahead.position.seq.0 + 1_000);
    let mut epoch = id(&frames[0]);
    epoch.position.epoch.0 += 1;
    for cursor in [ahead, ahead.position.into(), epoch] {
        for turn in [open.turn(), ended] {
            let header = format!("last-event-id: {cursor}");
            let answer = asked(&fixture, turn, "", &[&header]).await;
            problem(&answer, 410, "cursor_expired", &header);
        }
    }
    // The refused ones did not count among those who stream it: it still runs.
    let row = fixture.api.turn(open.turn()).await.expect("an answer");
    assert_eq!(row["state"], "running", "{row}");
}

/// Positions are unique inside a session only; the id of a frame also names its session.
#[tokio::test]
async fn cursor_of_another_session_has_expired() {
    let fixture = fixture().await;
    let (turn, frames) = over(&fixture, "one").await;
    let other = say(&fixture.api, "other", &ChatSubmit::new("stall")).await;
    let foreign = id(&frames[0]);
    // A position that the other session has too: without the tag it would be a cursor of it.
    for cursor in [foreign, id(frames.last().expect("a frame"))] {
        let header = format!("last-event-id: {cursor}");
        let answer = asked(&fixture, other.turn(), "", &[&header]).await;
        problem(&answer, 410, "cursor_expired", &header);
        assert!(answer.body.contains("another session"), "{}", answer.body);
    }
    // An id of an earlier server has no tag.
    let untagged = FrameCursor {
        tag: None,
        ..foreign
    };
    let mut stream = back(&fixture.api, "untagged", turn, Some(untagged)).await;
    let rest = stream.read_to_end().await.expect("the rest of the turn");
    assert_eq!(events(&rest)[0], events(&frames)[1]);
    fixture.api.cancel(other.turn()).await.expect("an answer");
}

#[tokio::test]
async fn cursor_older_than_retention_has_expired() {
    let options = ServerOptions::script(script())
        .set("store", "retention_s", 1)
        .set("store", "retention_sweep_ms", 100);
    let mut fixture = ServerFixture::new(options).await;
    let (turn, frames) = over(&fixture, "old").await;
    // A sweep may remove the first events of the session and not yet those of the turn.
    let read = id(&frames[1]).position;
    let read = Position::persisted(read.epoch, read.seq);
    let past = format!("/sessions/{}/events?since={read}", fixture.session);
    until("the old events are gone", || async {
        fixture
            .api
            .get(&past)
            .await
            .is_ok_and(|answer| answer.status == 410)
    })
    .await;
    // The same while the session is in memory and after a restart, when there is only the store.
    for is_restarted in [false, true] {
        if is_restarted {
            fixture.server.sigterm();
            assert!(fixture.server.wait(Duration::from_secs(30)).await.success());
            fixture.server.run().await.expect("it comes up again");
        }
        for lines in [vec![], vec![format!("last-event-id: {}", id(&frames[1]))]] {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let answer = asked(&fixture, turn, "", &lines).await;
            problem(&answer, 410, "cursor_expired", &format!("{lines:?}"));
        }
    }
    // A client that has the terminal gets 204, as before.
    let header = format!("last-event-id: {}", id(frames.last().expect("a frame")));
    assert_eq!(asked(&fixture, turn, "", &[&header]).await.status, 204);
}

// S1-005
#[tokio::test]
async fn after_the_terminal_nothing_is_sent() {
    let fixture = fixture().await;
    let (turn, frames) = over(&fixture, "one").await;
    over(&fixture, "another").await;
    let last = id(frames.last().expect("a frame"));
    let behind = Position {
        seq: last.position.seq.next(),
        ..last.position
    };
    for cursor in [last, last.position.into(), behind.into()] {
        let header = format!("last-event-id: {cursor}");
        let query = format!("?last_event_id={cursor}");
        for (query, lines) in [("", vec![header.as_str()]), (query.as_str(), vec![])] {
            let answer = asked(&fixture, turn, query, &lines).await;
            assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{cursor}");
        }
        let line = path(turn).replacen("GET", "HEAD", 1);
        let head = raw(fixture.server.addr(), &line, &[&header], b"").await;
        assert_eq!(head.status, 204);
    }
    fixture.check_history().await;
}

// S1-005
#[tokio::test]
async fn after_the_cost_only_the_terminal_is_sent() {
    let fixture = fixture().await;
    let (turn, frames) = over(&fixture, "one").await;
    let usage = &frames[frames.len() - 2];
    assert_eq!(usage.event(), "usage");
    for (name, carry) in [
        ("header", CursorPlacement::Header),
        ("query", CursorPlacement::Query),
        ("both", CursorPlacement::Both),
    ] {
        let stream =
            ChatStream::resume(&fixture.api, name, turn, Some(id(usage)), carry, None).await;
        let mut stream = stream.expect("a stream");
        let remaining_frames = stream
            .read_to_end()
            .await
            .expect("the terminal and the sentinel");
        assert_eq!(events(&remaining_frames), ["completed"]);
        assert_eq!(
            remaining_frames[0].frame_text(),
            frames[frames.len() - 1].text
        );
    }
    fixture.check_history().await;
}

// LAW-2, C-13
#[tokio::test]
async fn every_cursor_resumes_exactly_and_header_wins() {
    let fixture = fixture().await;
    let (turn, frames) = over(&fixture, "one").await;
    for (index, frame) in frames.iter().enumerate().take(frames.len() - 1) {
        let cursor = id(frame);
        let mut stream = back(&fixture.api, &format!("at {index}"), turn, Some(cursor)).await;
        let remaining_frames = stream.read_to_end().await.expect("the rest");
        assert_eq!(
            words(&frames[..=index]) + &words(&remaining_frames),
            words(&frames)
        );
        let query = format!("?last_event_id={}", id(&frames[0]));
        let answer = asked(
            &fixture,
            turn,
            &query,
            &[&format!("last-event-id: {cursor}")],
        )
        .await;
        let first = format!("id: {}\n", id(&remaining_frames[0]));
        assert!(answer.body.contains(&first), "{index}: {}", answer.body);
        assert!(
            !answer.body.contains(&format!("id: {cursor}\n")),
            "{}",
            answer.body
        );
    }
    // An empty header says nothing, as that of an `EventSource` that has seen nothing.
    let query = format!("?last_event_id={}", id(&frames[frames.len() - 2]));
    let answer = asked(&fixture, turn, &query, &["last-event-id: "]).await;
    assert!(answer.body.contains("event: completed") && !answer.body.contains("event: usage"));
    fixture.check_history().await;
}

// D-09
#[tokio::test]
async fn other_version_conflicts_and_unknown_is_refused() {
    let fixture = fixture().await;
    let question = ChatSubmit::new("go")
        .session(fixture.session)
        .version("0.4");
    let (turn, _) = whole(&fixture.api, "old", &question).await;
    let answer = asked(&fixture, turn, "", &["x-wire-version: 0.5"]).await;
    problem(&answer, 409, "wire_version_mismatch", "0.5");
    for unknown in ["0.6", "05", "0.4,0.4"] {
        let header = format!("x-wire-version: {unknown}");
        problem(
            &asked(&fixture, turn, "", &[&header]).await,
            422,
            "invalid_request",
            unknown,
        );
    }
    let twice = ["x-wire-version: 0.4", "x-wire-version: 0.4"];
    problem(
        &asked(&fixture, turn, "", &twice).await,
        422,
        "invalid_request",
        "twice",
    );
    let answer = asked(&fixture, turn, "", &["x-wire-version: 0.4"]).await;
    assert_eq!(answer.status, 200);
}

// LAW-10, G1
#[tokio::test]
async fn foreign_turn_is_answered_as_missing() {
    let fixture = fixture().await;
    let open = running(&fixture, "mine").await;
    let missing = "GET /chat/resp_00000000000000000000000001/stream";
    let tenant = "x-tenant-id: 3c33212c-d119-4ef1-8db0-2ca93cd3b2dd";
    let cursor = format!("last-event-id: {}", open.last().expect("a frame"));
    for stranger in [tenant, "x-turnwire-principal: mallory"] {
        for lines in [
            vec![stranger],
            vec![stranger, &cursor],
            vec![stranger, "x-wire-version: 0.4"],
        ] {
            let one = asked(&fixture, open.turn(), "", &lines).await;
            let two = raw(fixture.server.addr(), missing, &lines, b"").await;
            problem(&one, 404, "turn_not_found", stranger);
            assert_eq!((one.status, one.essence()), (two.status, two.essence()));
        }
        let body = format!(
            "{{\"message\":\"hi\",\"session_id\":\"{}\"}}",
            fixture.session
        );
        let lines = [stranger, "content-type: application/json"];
        let post = raw(
            fixture.server.addr(),
            "POST /chat/stream",
            &lines,
            body.as_bytes(),
        )
        .await;
        problem(&post, 404, "session_not_found", stranger);
    }
    let row = fixture.api.turn(open.turn()).await.expect("an answer");
    assert_eq!(row["state"], "running", "{row}");
}

// D-05
#[tokio::test]
async fn head_request_does_not_attend_the_turn() {
    let fixture = fixture().await;
    let stream = running(&fixture, "mine").await;
    let turn = stream.turn();
    let line = path(turn).replacen("GET", "HEAD", 1);
    let head = raw(fixture.server.addr(), &line, &[], b"").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(
        head.header("x-response-id"),
        ResponseId::from(turn).to_string()
    );
    let row = fixture.api.turn(turn).await.expect("an answer");
    assert_eq!(
        row["state"], "running",
        "a head that left has cancelled nothing: {row}"
    );
    drop(stream);
    let row = fixture.api.ended(turn).await.expect("an end");
    assert_eq!(row["terminal"]["payload"]["reason"], "client_disconnected");
    fixture.check_history().await;
}
