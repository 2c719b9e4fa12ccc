//! Timeouts of a call: silence, steady pings, slow consumers, and limits that overflow the clock.
//! Only time spent waiting for the provider counts.

use turnwire_event::port::BoxFuture;

use super::test_server::{chunk, end, head};
use super::*;

#[tokio::test]
async fn silent_provider_is_a_timeout_at_any_point() {
    let timeout_item = transient(LlmErrorClass::Timeout);
    let first = CallTimeouts {
        first_byte: SHORT,
        ..NO_TIMEOUT
    };
    let idle = CallTimeouts {
        idle: SHORT,
        ..NO_TIMEOUT
    };
    let total = CallTimeouts {
        total: SHORT,
        ..NO_TIMEOUT
    };
    // The first delta must arrive before the timeout, on a busy machine too.
    let later = CallTimeouts {
        total: 20 * SHORT,
        ..NO_TIMEOUT
    };
    let say = || chunk("data: say a\n\n");
    let hang = || vec![ServerStep::Hang];
    let hang_after_head = || vec![head(), ServerStep::Hang];
    let hang_after_text = || vec![head(), say(), chunk("data: st"), ServerStep::Hang];
    for (steps, timeouts, deltas) in [
        (hang(), first, vec![]),
        (hang_after_head(), first, vec![]),
        (hang(), total, vec![]),
        (hang_after_head(), total, vec![]),
        (hang_after_text(), idle, vec![text("a")]),
        (hang_after_text(), later, vec![text("a")]),
    ] {
        let mut test_server = TestServer::start(steps).await;
        let items = collect(&remote(&test_server.base, timeouts)).await;
        let expected: DeltaResults = deltas.into_iter().chain([timeout_item.clone()]).collect();
        assert_eq!(items, expected);
        let closed = tokio::time::timeout(LONG, test_server.closed.recv()).await;
        assert_eq!(closed, Ok(Some(())));
    }
}

#[tokio::test]
async fn steady_pings_end_at_the_total_timeout() {
    let mut steps = vec![head()];
    for _ in 0..10_000 {
        steps.extend([chunk(": p\n"), ServerStep::Pause(SHORT / 20)]);
    }
    let timeouts = CallTimeouts {
        total: 5 * SHORT,
        ..NO_TIMEOUT
    };
    assert_eq!(
        collect_steps(steps, timeouts).await,
        [transient(LlmErrorClass::Timeout)]
    );
}

/// Pings and events without output end an idle time, but not the time without a part of the answer.
#[tokio::test]
async fn steady_pings_without_output_end_at_the_silence_timeout() {
    let timeouts = CallTimeouts {
        silence: 5 * SHORT,
        ..NO_TIMEOUT
    };
    for ping in [": p\n", "data: ping\n\n"] {
        let mut steps = vec![head(), chunk("data: say a\n\n")];
        for _ in 0..10_000 {
            steps.extend([chunk(ping), ServerStep::Pause(SHORT / 20)]);
        }
        let expected = [text("a"), transient(LlmErrorClass::Timeout)];
        assert_eq!(collect_steps(steps, timeouts).await, expected, "{ping:?}");
    }
}

#[tokio::test]
async fn slow_consumer_does_not_cause_an_idle_timeout() {
    let steps = vec![
        head(),
        chunk("data: say a\n\n"),
        chunk("data: stop\n\n"),
        end(),
    ];
    let test_server = TestServer::start(steps).await;
    let timeouts = CallTimeouts {
        idle: 3 * SHORT,
        ..NO_TIMEOUT
    };
    let mut stream = remote(&test_server.base, timeouts).stream(request());
    assert_eq!(stream.next().await, Some(text("a")));
    tokio::time::sleep(6 * SHORT).await;
    assert_eq!(stream.next().await, Some(stop(0.0)));
    assert_eq!(stream.next().await, None);
}

/// A transport whose chunks are ready at once.
struct ReadyChunks(Vec<&'static str>);

impl ModelTransport for ReadyChunks {
    fn open(
        &self,
        _: TransportRequest,
    ) -> BoxFuture<'static, Result<TransportResponse, ModelError>> {
        let chunks = self.0.clone().into_iter();
        let chunks = chunks.map(|text| Ok(bytes::Bytes::from(text)));
        let reply = TransportResponse {
            status: 200,
            retry_after: None,
            is_event_stream: true,
            chunks: futures_util::stream::iter(chunks).boxed(),
        };
        Box::pin(async move { Ok(reply) })
    }
}

#[tokio::test(start_paused = true)]
async fn slow_consumer_does_not_use_up_the_total_timeout() {
    let ready = ReadyChunks(vec!["data: say a\n\n", "data: say b\n\n", "data: stop\n\n"]);
    let timeouts = CallTimeouts {
        total: SHORT,
        ..NO_TIMEOUT
    };
    let params = ModelParams::default();
    let remote = RemoteProvider::new(
        "local",
        Arc::new(TestDialect),
        Arc::new(ready),
        params,
        timeouts,
        None,
    );
    let mut stream = remote.stream(request());
    for item in [text("a"), text("b"), stop(0.0)] {
        assert_eq!(stream.next().await, Some(item));
        tokio::time::sleep(10 * SHORT).await;
    }
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn overflowing_timeouts_do_not_fire() {
    let longest = CallTimeouts {
        connect: Duration::MAX,
        first_byte: Duration::MAX,
        idle: Duration::MAX,
        silence: Duration::MAX,
        total: Duration::MAX,
    };
    let steps = vec![head(), chunk("data: stop\n\n"), end()];
    assert_eq!(collect_steps(steps, longest).await, [stop(0.0)]);
}
