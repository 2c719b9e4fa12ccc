//! Which call answers, and when what of it comes. Time is the test's own.

use bytes::Bytes;

use super::super::{Chunk, Head};
use super::*;

fn call(agent: &str, call: u32, words: &str, says: &str) -> Call {
    Call {
        provider: "local".into(),
        dialect: "plain".into(),
        model: "m".into(),
        agent: agent.into(),
        call,
        salt: Salt::default(),
        words_sha256: words.into(),
        body_sha256: String::new(),
        answer: Some(Head {
            after: Duration::from_millis(100),
            status: 200,
            retry_after: None,
            events: true,
        }),
        chunks: vec![Chunk {
            after: Duration::from_millis(300),
            bytes: Bytes::copy_from_slice(says.as_bytes()),
        }],
        ended_after: Duration::from_millis(1_000),
        ending: Ending::End,
    }
}

fn said(tape: &Tape, agent: &str, call: u32, words: &str) -> Option<String> {
    let found = tape.pick(agent, call, words)?;
    Some(String::from_utf8_lossy(&found.chunks[0].bytes).into_owned())
}

#[test]
fn the_most_alike_call_answers_and_among_equals_the_next_one() {
    let tape = Tape::new(
        vec![
            call("shop", 1, "a", "a1"),
            call("shop", 1, "b", "b1"),
            call("shop", 2, "a", "a2"),
            call("shop", 1, "a", "a1 again"),
        ],
        0.0,
    );
    let said = |call, words| said(&tape, "shop", call, words).expect("a call");
    assert_eq!(said(1, "a"), "a1");
    assert_eq!(said(1, "a"), "a1 again");
    assert_eq!(said(1, "a"), "a1", "from the beginning");
    assert_eq!(said(2, "a"), "a2");
    assert_eq!(said(1, "c"), "b1", "the call's number, played least");
    assert_eq!(said(2, "c"), "a2");
    assert_eq!(said(7, "b"), "b1", "any of the agent, played least");
    assert_eq!(tape.pick("rewards", 1, "a"), None);
}

#[test]
fn the_same_words_are_found_whatever_a_file_is_salted_with() {
    let salted = |salt: &str, words: &str, says: &str| {
        let salt = Salt::read(salt).expect("a salt");
        Call {
            words_sha256: salt.over(words),
            salt,
            ..call("shop", 1, "", says)
        }
    };
    let tape = Tape::new(
        vec![
            salted("x", "a", "a, salted"),
            salted("y", "b", "b, salted otherwise"),
            call("shop", 1, "c", "c, as before there were salts"),
            salted("x", "d", "d, salted"),
        ],
        0.0,
    );
    let said = |words| said(&tape, "shop", 1, words).expect("a call");
    for _ in 0..2 {
        assert_eq!(said("d"), "d, salted");
        assert_eq!(said("c"), "c, as before there were salts");
        assert_eq!(said("b"), "b, salted otherwise");
        assert_eq!(said("a"), "a, salted");
    }
}

fn ask(agent: &str) -> Ask {
    Ask {
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

async fn took(pace: f64) -> [u128; 3] {
    let tape = Tape::new(vec![call("shop", 1, "a", "x")], pace);
    let begun = Instant::now();
    let mut reply = tape.open(ask("shop")).await.expect("an answer");
    let head = begun.elapsed().as_millis();
    reply.chunks.next().await.expect("a chunk").expect("bytes");
    let chunk = begun.elapsed().as_millis();
    assert_eq!(reply.chunks.next().await, None);
    [head, chunk, begun.elapsed().as_millis()]
}

#[tokio::test(start_paused = true)]
async fn it_plays_in_its_own_time_or_in_a_part_of_it_or_in_none() {
    assert_eq!(took(1.0).await, [100, 300, 1_000]);
    assert_eq!(took(0.5).await, [50, 150, 500]);
    assert_eq!(took(2.0).await, [200, 600, 2_000]);
    assert_eq!(took(0.0).await, [0, 0, 0]);
    assert_eq!(took(-1.0).await, [0, 0, 0]);
    assert_eq!(took(f64::NAN).await, [100, 300, 1_000]);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_as_it_did() {
    let cut = ModelError::passing(LlmErrorClass::Transport);
    let mut broken = call("cut", 1, "a", "x");
    broken.ending = Ending::Cut(cut);
    let mut closed = call("closed", 1, "a", "x");
    closed.ending = Ending::Closed;
    let mut never = call("never", 1, "a", "x");
    (never.answer, never.ending) = (None, Ending::Cut(cut));
    let mut left = call("left", 1, "a", "x");
    (left.answer, left.ending) = (None, Ending::Closed);
    let tape = Tape::new(vec![broken, closed, never, left], 1.0);
    let mut reply = tape.open(ask("cut")).await.expect("an answer");
    reply.chunks.next().await.expect("a chunk").expect("bytes");
    assert_eq!(reply.chunks.next().await, Some(Err(cut)));
    assert_eq!(reply.chunks.next().await, None);
    let mut reply = tape.open(ask("closed")).await.expect("an answer");
    reply.chunks.next().await.expect("a chunk").expect("bytes");
    let day = Duration::from_secs(86_400);
    let silent = tokio::time::timeout(day, reply.chunks.next()).await;
    assert!(silent.is_err(), "it waits as whoever closed it had to");
    assert_eq!(tape.open(ask("never")).await.expect_err("none"), cut);
    let silent = tokio::time::timeout(day, tape.open(ask("left"))).await;
    assert!(silent.is_err());
    let unknown = tape.open(ask("other")).await.expect_err("nobody");
    assert_eq!(unknown, LlmErrorClass::Internal.into());
}
