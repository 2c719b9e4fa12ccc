//! Calls that succeed or break off: order, size limits, backpressure, usage, and closed
//! connections after a drop.

use std::sync::atomic::Ordering;

use super::test_server::{chunk, end, head, raw};
use super::*;

/// One dollar per token, cache-written tokens counted twice.
struct TestPrices;

impl CostCalculator for TestPrices {
    fn cost_usd(&self, model: &str, usage: &TokenUsage, cache_written_tokens: u64) -> f64 {
        assert_eq!(model, "local:big:8b");
        (usage.total_tokens + cache_written_tokens) as f64
    }
}

#[tokio::test]
async fn call_sends_encoded_request_and_yields_deltas() {
    let steps = vec![
        head(),
        chunk(": ping\n\ndata: say he"),
        chunk("llo\n\ndata: unknown\n\ndata: say th\u{e9}re\r\n\r\ndata: st"),
        chunk("op\n\ndata: say nothing more\n\n"),
        end(),
    ];
    let mut test_server = TestServer::start(steps).await;
    let params = ModelParams {
        max_tokens: Some(10),
        temperature: Some(0.5),
        extra: json!({"a": 1, "b": 1})
            .as_object()
            .cloned()
            .expect("fields"),
        ..ModelParams::default()
    };
    let model_params = ModelParams {
        max_tokens: Some(20),
        extra: json!({"b": 2}).as_object().cloned().expect("fields"),
        ..ModelParams::default()
    };
    let transport = http_transport(&test_server.base, &NO_TIMEOUT);
    let price = Some(Arc::new(TestPrices) as Arc<dyn CostCalculator>);
    let remote = RemoteProvider::new(
        "local",
        Arc::new(TestDialect),
        transport,
        params,
        NO_TIMEOUT,
        price,
    );
    let remote = remote.with_model_params("big:8b", &model_params);
    let expected = [text("hello"), text("thére"), stop(145.0)];
    assert_eq!(collect(&remote).await, expected);

    let request = test_server.requests.recv().await.expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
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
async fn connection_is_reused_after_a_complete_body() {
    let test_server = TestServer::start(vec![head(), chunk("data: stop\n\n"), end()]).await;
    let remote = remote(&test_server.base, NO_TIMEOUT);
    for _ in 0..5 {
        assert_eq!(collect(&remote).await, [stop(0.0)]);
    }
    // A connection returns to the pool when its task runs, which may be after the next request.
    assert!(test_server.connections.load(Ordering::SeqCst) < 5);
}

#[tokio::test]
async fn complete_answer_does_not_wait_for_the_body_to_end() {
    // The provider sends everything and then neither ends the body nor closes the connection.
    let steps = vec![head(), chunk("data: stop\n\n"), ServerStep::Hang];
    let mut test_server = TestServer::start(steps).await;
    assert_eq!(
        collect(&remote(&test_server.base, NO_TIMEOUT)).await,
        [stop(0.0)]
    );
    let closed = tokio::time::timeout(LONG, test_server.closed.recv()).await;
    assert_eq!(closed, Ok(Some(())));
}

#[tokio::test]
async fn stream_sends_nothing_before_it_is_polled() {
    let mut test_server = TestServer::start(vec![head(), end()]).await;
    let stream = remote(&test_server.base, NO_TIMEOUT).stream(request());
    let request = tokio::time::timeout(SHORT, test_server.requests.recv()).await;
    assert!(request.is_err(), "{request:?}");
    assert_eq!(test_server.connections.load(Ordering::SeqCst), 0);
    drop(stream);
}

#[tokio::test]
async fn dropped_stream_closes_the_connection_at_any_point() {
    // Before the head, after it, and between two deltas.
    for sent in 0..3 {
        let all = [head(), chunk("data: say a\n\n")];
        let steps = all.into_iter().take(sent).chain([ServerStep::Hang]);
        let mut test_server = TestServer::start(steps.collect()).await;
        let mut stream = remote(&test_server.base, NO_TIMEOUT).stream(request());
        if sent == 2 {
            assert_eq!(stream.next().await, Some(text("a")));
        }
        let early_item = tokio::select! {
            next = stream.next() => Some(next),
            request = test_server.requests.recv() => { assert!(request.is_some()); None }
        };
        assert_eq!(early_item, None);
        drop(stream);
        let closed = tokio::time::timeout(LONG, test_server.closed.recv()).await;
        assert_eq!(closed, Ok(Some(())), "{sent} parts sent");
    }
}

#[tokio::test]
async fn slow_consumer_stops_the_provider_from_writing() {
    // Kernel buffers of both sides, and one read of the client.
    const BUFFERED_MAX: usize = 8 * 1_048_576;
    let flood = "data: say x\n\n".repeat(1_000).into_bytes();
    let mut test_server = TestServer::start(vec![head(), ServerStep::Flood(flood)]).await;
    let mut stream = remote(&test_server.base, NO_TIMEOUT).stream(request());
    assert_eq!(stream.next().await, Some(text("x")));
    // The provider would write forever; it blocks because nobody reads.
    let mut written = 0;
    while test_server.written.load(Ordering::SeqCst) > written {
        written = test_server.written.load(Ordering::SeqCst);
        assert!(
            written < BUFFERED_MAX,
            "{written} bytes left while nobody read"
        );
        tokio::time::sleep(5 * SHORT).await;
    }
    // It goes on when the client reads again, and ends when the client disconnects.
    while test_server.written.load(Ordering::SeqCst) <= written {
        assert_eq!(stream.next().await, Some(text("x")));
    }
    drop(stream);
    let closed = tokio::time::timeout(LONG, test_server.closed.recv()).await;
    assert_eq!(closed, Ok(Some(())));
}

#[tokio::test]
async fn failed_call_reports_usage_and_cost() {
    let usage_delta = |cost_usd| {
        let usage = TokenUsage {
            input_tokens: 60,
            total_tokens: 60,
            cost_usd,
            ..TokenUsage::default()
        };
        Ok(Delta::PartialUsage { usage })
    };
    let transport_error = transient(LlmErrorClass::Transport);
    let steps = || vec![head(), chunk("data: read 60\ndata: say a\n\n"), end()];
    // It is told as soon as it is known: who stops the call has no later number.
    let expected = [usage_delta(0.0), text("a"), transport_error.clone()];
    assert_eq!(collect_steps(steps(), NO_TIMEOUT).await, expected);
    // The cost is computed as for a complete answer, also for a vendor's own error.
    let failing = vec![head(), chunk("data: read 60\ndata: fail\n\n"), end()];
    for (steps, expected) in [
        (
            steps(),
            vec![usage_delta(100.0), text("a"), transport_error.clone()],
        ),
        (
            failing,
            vec![usage_delta(100.0), permanent(LlmErrorClass::Provider)],
        ),
    ] {
        let test_server = TestServer::start(steps).await;
        let transport = http_transport(&test_server.base, &NO_TIMEOUT);
        let price = Some(Arc::new(TestPrices) as Arc<dyn CostCalculator>);
        let params = ModelParams::default();
        let remote = RemoteProvider::new(
            "local",
            Arc::new(TestDialect),
            transport,
            params,
            NO_TIMEOUT,
            price,
        );
        assert_eq!(collect(&remote).await, expected);
    }
    // Without reported usage there is no usage delta.
    let steps = vec![head(), chunk("data: say a\n\n"), end()];
    assert_eq!(
        collect_steps(steps, NO_TIMEOUT).await,
        [text("a"), transport_error]
    );
    // The usage of a complete answer is that of its end.
    let steps = vec![head(), chunk("data: read 60\n\ndata: stop\n\n"), end()];
    let expected = [usage_delta(0.0), stop(0.0)];
    assert_eq!(collect_steps(steps, NO_TIMEOUT).await, expected);
}

#[tokio::test]
async fn stream_without_stop_is_a_transport_error() {
    let say = || chunk("data: say a\n\n");
    let transport_error = || vec![text("a"), transient(LlmErrorClass::Transport)];
    let cut_answers: [Vec<ServerStep>; 6] = [
        // The connection breaks between frames, in a frame, in a character, in a chunk's head.
        vec![head(), say()],
        vec![head(), say(), chunk("data: sto")],
        vec![
            head(),
            say(),
            ServerStep::Chunk(b"data: say \xf0\x9f".to_vec()),
        ],
        vec![head(), say(), raw("ff")],
        // The body ends properly, the answer does not.
        vec![head(), say(), end()],
        vec![head(), say(), chunk("data: stop\n"), end()],
    ];
    for steps in cut_answers {
        assert_eq!(collect_steps(steps, NO_TIMEOUT).await, transport_error());
    }
    let closing = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: say a\n\n";
    assert_eq!(
        collect_steps(vec![raw(closing)], NO_TIMEOUT).await,
        transport_error()
    );
}

#[tokio::test]
async fn deltas_before_a_failure_are_delivered_first() {
    let steps = vec![
        head(),
        chunk("data: say a\ndata: fail\ndata: say b\n\n"),
        end(),
    ];
    let expected = [text("a"), permanent(LlmErrorClass::Provider)];
    assert_eq!(collect_steps(steps, NO_TIMEOUT).await, expected);
    let steps = vec![
        head(),
        ServerStep::Chunk(b"data: say a\n\ndata: \xff\n\n".to_vec()),
    ];
    let expected = [text("a"), transient(LlmErrorClass::Provider)];
    assert_eq!(collect_steps(steps, NO_TIMEOUT).await, expected);
}

// G9
#[tokio::test]
async fn endless_frame_or_body_ends_at_its_limit() {
    let limits = ModelResponseLimits {
        frame_bytes_max: 100_000,
        call_bytes_max: 2_000_000,
    };
    let collect_limited = async |steps: Vec<ServerStep>| {
        let test_server = TestServer::start(steps).await;
        let items = collect(&remote(&test_server.base, NO_TIMEOUT).with_limits(limits)).await;
        (items, test_server.written.load(Ordering::SeqCst))
    };
    let flood = |text: &str| ServerStep::Flood(text.repeat(1_000).into_bytes());
    let provider_error = || permanent(LlmErrorClass::Provider);
    // A frame without an end, after a complete one.
    let (items, _) =
        collect_limited(vec![head(), chunk("data: say a\n\ndata: "), flood("x")]).await;
    assert_eq!(items, [text("a"), provider_error()]);
    // Endless pings, unknown events and empty lines.
    for noise in [": ping\n\n", "data: what\n\n", "event: ping\n\n", "\r\n"] {
        let (items, _) = collect_limited(vec![head(), flood(noise)]).await;
        assert_eq!(items, [provider_error()], "{noise:?}");
    }
    // A frame below the limit is decoded.
    let long = format!("data: say {}\n\ndata: stop\n\n", "x".repeat(99_000));
    let (items, _) = collect_limited(vec![head(), chunk(&long), end()]).await;
    assert_eq!(items, [text(&"x".repeat(99_000)), stop(0.0)]);
}
