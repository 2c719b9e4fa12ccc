//! Calls that are answered: in order, in time, within their bytes, and gone when nobody listens.

use std::sync::atomic::Ordering;

use turnwire_event::port::BoxFuture;

use super::upstream::{chunk, end, head, raw};
use super::*;

/// A thousandth of a dollar a token, more for what was cached.
struct Price;

impl Priced for Price {
    fn cost_usd(&self, model: &str, usage: &Usage, cache_written_tokens: u64) -> f64 {
        assert_eq!(model, "local:big:8b");
        (usage.total_tokens + cache_written_tokens) as f64
    }
}

#[tokio::test]
async fn a_call_is_asked_in_the_dialects_words_and_answered_in_ours() {
    let parts = vec![
        head(),
        chunk(": ping\n\ndata: say he"),
        chunk("llo\n\ndata: unknown\n\ndata: say th\u{e9}re\r\n\r\ndata: st"),
        chunk("op\n\ndata: say nothing more\n\n"),
        end(),
    ];
    let mut upstream = Upstream::start(parts).await;
    let params = Params {
        max_tokens: Some(10),
        temperature: Some(0.5),
        extra: json!({"a": 1, "b": 1})
            .as_object()
            .cloned()
            .expect("fields"),
        ..Params::default()
    };
    let own = Params {
        max_tokens: Some(20),
        extra: json!({"b": 2}).as_object().cloned().expect("fields"),
        ..Params::default()
    };
    let transport = live(&upstream.base, &PATIENT);
    let price = Some(Arc::new(Price) as Arc<dyn Priced>);
    let remote = Remote::new("local", Arc::new(Tiny), transport, params, PATIENT, price);
    let remote = remote.for_model("big:8b", &own);
    let expected = [text("hello"), text("thére"), stop(145.0)];
    assert_eq!(told(&remote).await, expected);

    let asked = upstream.asked.recv().await.expect("asked");
    let (head, body) = asked.split_once("\r\n\r\n").expect("a head");
    let head = head.to_ascii_lowercase();
    assert!(
        head.starts_with("post /v1/say?alt=sse http/1.1\r\n"),
        "{head}"
    );
    for line in ["x-key: key sk-very-secret", "x-team: market", "x-warm: yes"] {
        assert_eq!(head.matches(line).count(), 1, "{line} in {head}");
    }
    assert!(!head.contains("nobody") && !head.contains("few"), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let expected = json!({
        "provider": "local", "model": "big:8b", "text": "hello",
        "max_tokens": 20, "temperature": 0.5, "extra": {"a": 1, "b": 2},
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_connection_that_ended_well_is_used_again() {
    let upstream = Upstream::start(vec![head(), chunk("data: stop\n\n"), end()]).await;
    let remote = remote(&upstream.base, PATIENT);
    for _ in 0..5 {
        assert_eq!(told(&remote).await, [stop(0.0)]);
    }
    // One is put back when its task gets to run, which may be after the next request has left.
    assert!(upstream.connections.load(Ordering::SeqCst) < 5);
}

#[tokio::test]
async fn an_answer_that_is_whole_waits_for_nobody() {
    // The provider says all and then neither ends the body nor closes.
    let parts = vec![head(), chunk("data: stop\n\n"), Part::Hang];
    let mut upstream = Upstream::start(parts).await;
    assert_eq!(told(&remote(&upstream.base, PATIENT)).await, [stop(0.0)]);
    let closed = tokio::time::timeout(LONG, upstream.closed.recv()).await;
    assert_eq!(closed, Ok(Some(())));
}

#[tokio::test]
async fn nothing_happens_before_the_stream_is_polled() {
    let mut upstream = Upstream::start(vec![head(), end()]).await;
    let stream = remote(&upstream.base, PATIENT).stream(request());
    let asked = tokio::time::timeout(SHORT, upstream.asked.recv()).await;
    assert!(asked.is_err(), "{asked:?}");
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 0);
    drop(stream);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection_at_every_point() {
    // Before the head, after it, and between two deltas.
    for sent in 0..3 {
        let all = [head(), chunk("data: say a\n\n")];
        let parts = all.into_iter().take(sent).chain([Part::Hang]);
        let mut upstream = Upstream::start(parts.collect()).await;
        let mut stream = remote(&upstream.base, PATIENT).stream(request());
        if sent == 2 {
            assert_eq!(stream.next().await, Some(text("a")));
        }
        let heard = tokio::select! {
            next = stream.next() => Some(next),
            asked = upstream.asked.recv() => { assert!(asked.is_some()); None }
        };
        assert_eq!(heard, None);
        drop(stream);
        let closed = tokio::time::timeout(LONG, upstream.closed.recv()).await;
        assert_eq!(closed, Ok(Some(())), "{sent} parts sent");
    }
}

#[tokio::test]
async fn back_pressure_reaches_the_provider() {
    // What the kernel holds for both sides, and one read of the client.
    const HELD_MAX: usize = 8 * 1_048_576;
    let flood = "data: say x\n\n".repeat(1_000).into_bytes();
    let mut upstream = Upstream::start(vec![head(), Part::Flood(flood)]).await;
    let mut stream = remote(&upstream.base, PATIENT).stream(request());
    assert_eq!(stream.next().await, Some(text("x")));
    // The provider would write for ever; it stops because nobody reads.
    let mut written = 0;
    while upstream.written.load(Ordering::SeqCst) > written {
        written = upstream.written.load(Ordering::SeqCst);
        assert!(written < HELD_MAX, "{written} bytes left while nobody read");
        tokio::time::sleep(5 * SHORT).await;
    }
    // It goes on when somebody does, and ends when nobody wants more.
    while upstream.written.load(Ordering::SeqCst) <= written {
        assert_eq!(stream.next().await, Some(text("x")));
    }
    drop(stream);
    let closed = tokio::time::timeout(LONG, upstream.closed.recv()).await;
    assert_eq!(closed, Ok(Some(())));
}

#[tokio::test]
async fn silence_is_a_timeout_wherever_it_begins() {
    let late = passing(LlmErrorClass::Timeout);
    let first = Timeouts {
        first_byte: SHORT,
        ..PATIENT
    };
    let idle = Timeouts {
        idle: SHORT,
        ..PATIENT
    };
    let total = Timeouts {
        total: SHORT,
        ..PATIENT
    };
    // The first words must come through before it is over, on a busy machine too.
    let later = Timeouts {
        total: 20 * SHORT,
        ..PATIENT
    };
    let say = || chunk("data: say a\n\n");
    let silent = || vec![Part::Hang];
    let headed = || vec![head(), Part::Hang];
    let begun = || vec![head(), say(), chunk("data: st"), Part::Hang];
    for (parts, timeouts, words) in [
        (silent(), first, vec![]),
        (headed(), first, vec![]),
        (silent(), total, vec![]),
        (headed(), total, vec![]),
        (begun(), idle, vec![text("a")]),
        (begun(), later, vec![text("a")]),
    ] {
        let mut upstream = Upstream::start(parts).await;
        let told = told(&remote(&upstream.base, timeouts)).await;
        let expected: Told = words.into_iter().chain([late.clone()]).collect();
        assert_eq!(told, expected);
        let closed = tokio::time::timeout(LONG, upstream.closed.recv()).await;
        assert_eq!(closed, Ok(Some(())));
    }
}

#[tokio::test]
async fn a_drip_is_never_idle_and_ends_with_the_calls_own_time() {
    let mut parts = vec![head()];
    for _ in 0..10_000 {
        parts.extend([chunk(": p\n"), Part::Pause(SHORT / 20)]);
    }
    let timeouts = Timeouts {
        total: 5 * SHORT,
        ..PATIENT
    };
    assert_eq!(
        says(parts, timeouts).await,
        [passing(LlmErrorClass::Timeout)]
    );
}

#[tokio::test]
async fn a_reader_that_takes_its_time_is_not_the_providers_silence() {
    let parts = vec![
        head(),
        chunk("data: say a\n\n"),
        chunk("data: stop\n\n"),
        end(),
    ];
    let upstream = Upstream::start(parts).await;
    let timeouts = Timeouts {
        idle: 3 * SHORT,
        ..PATIENT
    };
    let mut stream = remote(&upstream.base, timeouts).stream(request());
    assert_eq!(stream.next().await, Some(text("a")));
    tokio::time::sleep(6 * SHORT).await;
    assert_eq!(stream.next().await, Some(stop(0.0)));
    assert_eq!(stream.next().await, None);
}

/// A provider whose pieces are all there at once.
struct Ready(Vec<&'static str>);

impl Transport for Ready {
    fn open(&self, _: Ask) -> BoxFuture<'static, Result<Reply, ModelError>> {
        let chunks = self.0.clone().into_iter();
        let chunks = chunks.map(|text| Ok(bytes::Bytes::from(text)));
        let reply = Reply {
            status: 200,
            retry_after: None,
            events: true,
            chunks: futures_util::stream::iter(chunks).boxed(),
        };
        Box::pin(async move { Ok(reply) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_its_time_uses_up_none_of_the_providers() {
    let ready = Ready(vec!["data: say a\n\n", "data: say b\n\n", "data: stop\n\n"]);
    let timeouts = Timeouts {
        total: SHORT,
        ..PATIENT
    };
    let params = Params::default();
    let remote = Remote::new(
        "local",
        Arc::new(Tiny),
        Arc::new(ready),
        params,
        timeouts,
        None,
    );
    let mut stream = remote.stream(request());
    for word in [text("a"), text("b"), stop(0.0)] {
        assert_eq!(stream.next().await, Some(word));
        tokio::time::sleep(10 * SHORT).await;
    }
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_call_that_fails_says_what_it_has_used_up() {
    let spent = |cost_usd| {
        let usage = Usage {
            input_tokens: 60,
            total_tokens: 60,
            cost_usd,
            ..Usage::default()
        };
        Ok(Delta::Spent { usage })
    };
    let broken = passing(LlmErrorClass::Transport);
    let parts = || vec![head(), chunk("data: read 60\ndata: say a\n\n"), end()];
    let expected = [text("a"), spent(0.0), broken.clone()];
    assert_eq!(says(parts(), PATIENT).await, expected);
    // What it costs is said as for a whole answer, and a vendor's own error changes nothing.
    let fails = vec![head(), chunk("data: read 60\ndata: fail\n\n"), end()];
    for (parts, expected) in [
        (parts(), vec![text("a"), spent(100.0), broken.clone()]),
        (fails, vec![spent(100.0), never(LlmErrorClass::Provider)]),
    ] {
        let upstream = Upstream::start(parts).await;
        let transport = live(&upstream.base, &PATIENT);
        let price = Some(Arc::new(Price) as Arc<dyn Priced>);
        let params = Params::default();
        let remote = Remote::new("local", Arc::new(Tiny), transport, params, PATIENT, price);
        assert_eq!(told(&remote).await, expected);
    }
    // Where the vendor said nothing of it, nothing is said.
    let parts = vec![head(), chunk("data: say a\n\n"), end()];
    assert_eq!(says(parts, PATIENT).await, [text("a"), broken]);
    // An answer that is whole says it once.
    let parts = vec![head(), chunk("data: read 60\n\ndata: stop\n\n"), end()];
    assert_eq!(says(parts, PATIENT).await, [stop(0.0)]);
}

#[tokio::test]
async fn a_stream_without_its_end_has_broken() {
    let say = || chunk("data: say a\n\n");
    let broken = || vec![text("a"), passing(LlmErrorClass::Transport)];
    let cuts: [Vec<Part>; 6] = [
        // The connection is cut between frames, in a frame, in a character, in a chunk's head.
        vec![head(), say()],
        vec![head(), say(), chunk("data: sto")],
        vec![head(), say(), Part::Chunk(b"data: say \xf0\x9f".to_vec())],
        vec![head(), say(), raw("ff")],
        // The body ends as it should, the answer does not.
        vec![head(), say(), end()],
        vec![head(), say(), chunk("data: stop\n"), end()],
    ];
    for parts in cuts {
        assert_eq!(says(parts, PATIENT).await, broken());
    }
    let closing = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: say a\n\n";
    assert_eq!(says(vec![raw(closing)], PATIENT).await, broken());
}

#[tokio::test]
async fn what_was_said_before_a_failure_is_heard_first() {
    let parts = vec![
        head(),
        chunk("data: say a\ndata: fail\ndata: say b\n\n"),
        end(),
    ];
    let expected = [text("a"), never(LlmErrorClass::Provider)];
    assert_eq!(says(parts, PATIENT).await, expected);
    let parts = vec![
        head(),
        Part::Chunk(b"data: say a\n\ndata: \xff\n\n".to_vec()),
    ];
    let expected = [text("a"), passing(LlmErrorClass::Provider)];
    assert_eq!(says(parts, PATIENT).await, expected);
}

#[tokio::test]
async fn g9_a_frame_or_an_answer_that_never_ends_is_ended() {
    let limits = Limits {
        frame_bytes_max: 100_000,
        call_bytes_max: 2_000_000,
    };
    let ask = async |parts: Vec<Part>| {
        let upstream = Upstream::start(parts).await;
        let told = told(&remote(&upstream.base, PATIENT).limits(limits)).await;
        (told, upstream.written.load(Ordering::SeqCst))
    };
    let flood = |text: &str| Part::Flood(text.repeat(1_000).into_bytes());
    let wrong = || never(LlmErrorClass::Provider);
    // A frame without end, after words that are heard.
    let (told, _) = ask(vec![head(), chunk("data: say a\n\ndata: "), flood("x")]).await;
    assert_eq!(told, [text("a"), wrong()]);
    // Pings, unknown events and empty lines without end.
    for nothing in [": ping\n\n", "data: what\n\n", "event: ping\n\n", "\r\n"] {
        let (told, _) = ask(vec![head(), flood(nothing)]).await;
        assert_eq!(told, [wrong()], "{nothing:?}");
    }
    // One that fits is heard whole.
    let long = format!("data: say {}\n\ndata: stop\n\n", "x".repeat(99_000));
    let (told, _) = ask(vec![head(), chunk(&long), end()]).await;
    assert_eq!(told, [text(&"x".repeat(99_000)), stop(0.0)]);
}

#[tokio::test]
async fn times_that_cannot_be_counted_are_long_times() {
    let longest = Timeouts {
        connect: Duration::MAX,
        first_byte: Duration::MAX,
        idle: Duration::MAX,
        total: Duration::MAX,
    };
    let parts = vec![head(), chunk("data: stop\n\n"), end()];
    assert_eq!(says(parts, longest).await, [stop(0.0)]);
}
