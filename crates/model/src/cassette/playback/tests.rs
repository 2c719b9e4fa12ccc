//! Which call answers, and when its chunks arrive. The clock is paused. Calls are picked by agent,
//! number and user text.

use bytes::Bytes;

use super::super::{RecordedChunk, ResponseHead};
use super::*;

fn call(agent: &str, call: u32, user_text: &str, body: &str) -> RecordedCall {
    RecordedCall {
        provider: "local".into(),
        dialect: "plain".into(),
        model: "m".into(),
        agent: agent.into(),
        call,
        salt: CassetteSalt::default(),
        words_sha256: user_text.into(),
        body_sha256: String::new(),
        answer: Some(ResponseHead {
            after: Duration::from_millis(100),
            status: 200,
            retry_after: None,
            events: true,
        }),
        chunks: vec![RecordedChunk {
            after: Duration::from_millis(300),
            bytes: Bytes::copy_from_slice(body.as_bytes()),
        }],
        ended_after: Duration::from_millis(1_000),
        ending: CallEnding::End,
    }
}

fn picked_body(tape: &CassettePlayback, agent: &str, call: u32, user_text: &str) -> Option<String> {
    let call = tape.pick(agent, call, user_text)?;
    Some(String::from_utf8_lossy(&call.chunks[0].bytes).into_owned())
}

#[test]
fn best_match_is_picked_and_equal_matches_take_turns() {
    let tape = CassettePlayback::new(
        vec![
            call("shop", 1, "a", "a1"),
            call("shop", 1, "b", "b1"),
            call("shop", 2, "a", "a2"),
            call("shop", 1, "a", "a1 again"),
        ],
        0.0,
    );
    let picked_body =
        |call, user_text| picked_body(&tape, "shop", call, user_text).expect("a call");
    assert_eq!(picked_body(1, "a"), "a1");
    assert_eq!(picked_body(1, "a"), "a1 again");
    assert_eq!(picked_body(1, "a"), "a1", "from the beginning");
    assert_eq!(picked_body(2, "a"), "a2");
    assert_eq!(picked_body(1, "c"), "b1", "the call's number, played least");
    assert_eq!(picked_body(2, "c"), "a2");
    assert_eq!(picked_body(7, "b"), "b1", "any of the agent, played least");
    assert_eq!(tape.pick("rewards", 1, "a"), None);
}

#[test]
fn user_text_is_matched_whatever_the_salt() {
    let salted = |salt: &str, user_text: &str, body: &str| {
        let salt = CassetteSalt::parse(Some(salt)).expect("a salt");
        RecordedCall {
            words_sha256: salt.digest(user_text),
            salt,
            ..call("shop", 1, "", body)
        }
    };
    let tape = CassettePlayback::new(
        vec![
            salted("x", "a", "a, salted"),
            salted("y", "b", "b, salted otherwise"),
            call("shop", 1, "c", "c, as before there were salts"),
            salted("x", "d", "d, salted"),
        ],
        0.0,
    );
    let picked_body = |user_text| picked_body(&tape, "shop", 1, user_text).expect("a call");
    for _ in 0..2 {
        assert_eq!(picked_body("d"), "d, salted");
        assert_eq!(picked_body("c"), "c, as before there were salts");
        assert_eq!(picked_body("b"), "b, salted otherwise");
        assert_eq!(picked_body("a"), "a, salted");
    }
}

fn request_of(agent: &str) -> TransportRequest {
    TransportRequest {
        provider: "cassette".into(),
        model: "m".into(),
        agent: agent.into(),
        call: 1,
        user_text_sha: "a".into(),
        path: "/".into(),
        headers: Vec::new(),
        body: Bytes::new(),
    }
}

async fn playback_times(pace: f64) -> [u128; 3] {
    let tape = CassettePlayback::new(vec![call("shop", 1, "a", "x")], pace);
    let started = Instant::now();
    let mut reply = tape.open(request_of("shop")).await.expect("an answer");
    let head = started.elapsed().as_millis();
    reply.chunks.next().await.expect("a chunk").expect("bytes");
    let chunk = started.elapsed().as_millis();
    assert_eq!(reply.chunks.next().await, None);
    [head, chunk, started.elapsed().as_millis()]
}

#[tokio::test(start_paused = true)]
async fn playback_times_scale_with_the_pace() {
    assert_eq!(playback_times(1.0).await, [100, 300, 1_000]);
    assert_eq!(playback_times(0.5).await, [50, 150, 500]);
    assert_eq!(playback_times(2.0).await, [200, 600, 2_000]);
    assert_eq!(playback_times(0.0).await, [0, 0, 0]);
    assert_eq!(playback_times(-1.0).await, [0, 0, 0]);
    assert_eq!(playback_times(f64::NAN).await, [100, 300, 1_000]);
}

#[tokio::test(start_paused = true)]
async fn playback_ends_like_the_recording() {
    let error = ModelError::transient(LlmErrorClass::Transport);
    let mut failed = call("cut", 1, "a", "x");
    failed.ending = CallEnding::Cut(error.clone());
    let mut closed = call("closed", 1, "a", "x");
    closed.ending = CallEnding::Closed;
    let mut failed_without_response = call("never", 1, "a", "x");
    (
        failed_without_response.answer,
        failed_without_response.ending,
    ) = (None, CallEnding::Cut(error.clone()));
    let mut closed_without_response = call("left", 1, "a", "x");
    (
        closed_without_response.answer,
        closed_without_response.ending,
    ) = (None, CallEnding::Closed);
    let tape = CassettePlayback::new(
        vec![
            failed,
            closed,
            failed_without_response,
            closed_without_response,
        ],
        1.0,
    );
    let mut reply = tape.open(request_of("cut")).await.expect("an answer");
    reply.chunks.next().await.expect("a chunk").expect("bytes");
    assert_eq!(reply.chunks.next().await, Some(Err(error.clone())));
    assert_eq!(reply.chunks.next().await, None);
    let mut reply = tape.open(request_of("closed")).await.expect("an answer");
    reply.chunks.next().await.expect("a chunk").expect("bytes");
    let day = Duration::from_secs(86_400);
    let pending = tokio::time::timeout(day, reply.chunks.next()).await;
    assert!(pending.is_err(), "it waits as whoever closed it had to");
    assert_eq!(
        tape.open(request_of("never")).await.expect_err("none"),
        error
    );
    let pending = tokio::time::timeout(day, tape.open(request_of("left"))).await;
    assert!(pending.is_err());
    let unmatched = tape.open(request_of("other")).await.expect_err("nobody");
    assert_eq!(unmatched, LlmErrorClass::Internal.into());
}
