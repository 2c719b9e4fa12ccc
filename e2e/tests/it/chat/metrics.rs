//! Metrics of the chat wire (S1 1.12): the counts are exactly what clients received.

use std::collections::BTreeMap;

use serde_json::json;
use turnwire_e2e::chat::{MetricsSnapshot, back, say, streams, whole};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_testkit::chat::{Block, ChatSubmit};
use turnwire_testkit::script::{ModelScript, ScriptStep, tool};
use turnwire_testkit::server::ServerOptions;

const DIMENSIONS: [&str; 5] = [
    "agent_definition_version",
    "dm_type",
    "experiment_arm",
    "sub_agent_id",
    "vertical",
];

fn script() -> ModelScript {
    ModelScript::new()
        .on("^stall", [ScriptStep::text("wait"), ScriptStep::stall()])
        .on(
            "^limited",
            [
                ScriptStep::text("so far"),
                ScriptStep::error("rate_limited"),
            ],
        )
        .on("^broken", [ScriptStep::error("internal")])
        .on(
            "^tools",
            [
                ScriptStep::thinking("hm", "c2VhbA=="),
                ScriptStep::text("I look. "),
                ScriptStep::thinking("hm again", "c2VhbA=="),
                ScriptStep::tool(tool::CLOCK, json!({})),
                ScriptStep::tool(tool::FAIL, json!({})),
                ScriptStep::slow("There it is, word by word.", 3, 1),
            ],
        )
        .on("", [ScriptStep::slow("plain words", 2, 1)])
}

type MetricSums = BTreeMap<String, u64>;

/// What the frames that clients got add up to.
#[derive(Debug, Default, PartialEq)]
struct MetricDeltas {
    events: MetricSums,
    terminals: MetricSums,
    errors: MetricSums,
}

impl MetricDeltas {
    fn add(&mut self, frames: &[Block]) {
        for frame in frames {
            let event = frame.event().to_owned();
            if frame.is_terminal() {
                *self.terminals.entry(event.clone()).or_default() += 1;
            }
            if event == "error" {
                let code = frame.field("error")["code"].as_str().expect("a code");
                *self.errors.entry(code.to_owned()).or_default() += 1;
            }
            *self.events.entry(event).or_default() += 1;
        }
    }

    fn counted(metrics: &MetricsSnapshot) -> Self {
        Self {
            events: metrics.by("turnwire_stream_events_emitted_total", "event_type"),
            terminals: metrics.by("turnwire_stream_terminal_frame_emitted_total", "type"),
            errors: metrics.by("turnwire_stream_error_frame_emitted_total", "code"),
        }
    }
}

/// Submits a turn that stalls, and cancels it; gives all its frames.
async fn cancelled(fixture: &ServerFixture, name: &str, question: ChatSubmit) -> Vec<Block> {
    let mut stream = say(&fixture.api, name, &question.session(fixture.session)).await;
    let mut frames = stream.until("text").await.expect("words");
    fixture.api.cancel(stream.turn()).await.expect("an answer");
    frames.extend(stream.read_to_end().await.expect("an end"));
    frames
}

// LAW-11, S1-103, S1-123, S1-126, S1-127, S1-129, I-22
#[tokio::test]
async fn counters_equal_the_frames_clients_received() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let mut got = MetricDeltas::default();
    let mut turns = 0;
    for version in ["0.5", "0.4"] {
        for message in ["plain", "tools", "limited", "broken"] {
            let question = ChatSubmit::new(message)
                .session(fixture.session)
                .version(version);
            let name = format!("{message} {version}");
            let (turn, frames) = whole(&fixture.api, &name, &question).await;
            turns += 1;
            got.add(&frames);
            // Everybody who resumes gets the rest, and the last one nothing.
            for (at, frame) in frames.iter().enumerate().step_by(4) {
                let late = &format!("{name} from {at}");
                if !frame.is_terminal() {
                    let mut late = back(&fixture.api, late, turn, frame.id()).await;
                    got.add(&late.read_to_end().await.expect("the rest"));
                }
            }
            let mut all = back(&fixture.api, &format!("{name} again"), turn, None).await;
            got.add(&all.read_to_end().await.expect("a replay"));
        }
        let question = ChatSubmit::new("stall").version(version);
        got.add(&cancelled(&fixture, &format!("cancelled {version}"), question).await);
        turns += 1;
    }
    // Two at once.
    let question = ChatSubmit::new("tools").session(fixture.session);
    let mut one = say(&fixture.api, "one", &question).await;
    let mut two = back(&fixture.api, "two", one.turn(), None).await;
    got.add(&one.read_to_end().await.expect("a whole stream"));
    got.add(&two.read_to_end().await.expect("a whole stream"));
    turns += 1;
    streams(&fixture.api, 0).await;

    let metrics = MetricsSnapshot::read(&fixture.api).await;
    assert_eq!(MetricDeltas::counted(&metrics), got);
    for event in ["reasoning", "cancelled", "error", "tool_completed"] {
        assert!(got.events.contains_key(event), "no {event} was tried");
    }
    assert_eq!(got.errors.len(), 3, "{:?}", got.errors);
    assert_eq!(metrics.sum("turnwire_stream_sse_frame_dropped_total"), 0.0);
    assert_eq!(metrics.sum("turnwire_turn_started_total") as u64, turns);
    fixture.check_history().await;
}

// S1-131
#[tokio::test]
async fn cancelled_turn_is_counted_once_by_code() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    let count = || async {
        let metrics = MetricsSnapshot::read(&fixture.api).await;
        metrics.by("turnwire_stream_cancellation_total", "code")
    };
    assert_eq!(count().await, MetricSums::new());
    cancelled(&fixture, "one", ChatSubmit::new("stall")).await;
    let after = |n: u64| MetricSums::from([("REQUEST_CANCELLED".to_owned(), n)]);
    assert_eq!(count().await, after(1));
    // In the old shape too, by leaving, and while it waits.
    cancelled(&fixture, "two", ChatSubmit::new("stall").version("0.4")).await;
    let mut abandoned = say(
        &fixture.api,
        "three",
        &ChatSubmit::new("stall").session(fixture.session),
    )
    .await;
    abandoned.until("text").await.expect("words");
    let question = ChatSubmit::new("next")
        .session(fixture.session)
        .field("on_busy", "enqueue");
    let waiting = say(&fixture.api, "four", &question).await;
    let turns = [abandoned.turn(), waiting.turn()];
    drop(waiting);
    fixture.api.ended(turns[1]).await.expect("an end");
    assert_eq!(count().await, after(3));
    drop(abandoned);
    fixture.api.ended(turns[0]).await.expect("an end");
    assert_eq!(count().await, after(4));
    // One that ends by itself, or fails, is none.
    for message in ["plain", "limited"] {
        let question = ChatSubmit::new(message).session(fixture.session);
        whole(&fixture.api, message, &question).await;
    }
    assert_eq!(count().await, after(4));
    fixture.check_history().await;
}

// S1-048, S1-049, S1-130, S1-133, R-26
#[tokio::test]
async fn stream_metrics_have_five_dimensions_and_times() {
    let fixture = ServerFixture::new(ServerOptions::script(script())).await;
    for message in ["plain", "limited", "tools"] {
        let question = ChatSubmit::new(message).session(fixture.session);
        whole(&fixture.api, message, &question).await;
    }
    cancelled(&fixture, "cancelled", ChatSubmit::new("stall")).await;
    let metrics = MetricsSnapshot::read(&fixture.api).await;
    let names: Vec<&str> = metrics
        .names()
        .filter(|name| name.starts_with("turnwire_stream_"))
        .collect();
    for expected in [
        "turnwire_stream_events_emitted_total",
        "turnwire_stream_terminal_frame_emitted_total",
        "turnwire_stream_error_frame_emitted_total",
        "turnwire_stream_sse_frame_dropped_total",
        "turnwire_stream_frame_oversize_total",
        "turnwire_stream_cancellation_total",
    ] {
        assert!(
            names.contains(&expected),
            "{expected} is missing: {names:?}"
        );
    }
    for histogram in [
        "turnwire_stream_ttfe_seconds",
        "turnwire_stream_writer_overhead_seconds",
    ] {
        let count = metrics.sum(&format!("{histogram}_count"));
        assert!(count >= 4.0, "{histogram} has {count}");
        let of = |name: &&&str| name.starts_with(histogram);
        let parts = names.iter().filter(of).count();
        assert!(parts > 3, "{histogram} tells no shares: {parts}");
    }
    for name in names {
        for (labels, _) in metrics.series(name) {
            for dimension in DIMENSIONS {
                assert!(
                    labels.contains_key(dimension),
                    "{name} {labels:?}: {dimension}"
                );
            }
        }
    }
    // One first frame a submit; those who come back have waited for nothing.
    assert_eq!(metrics.sum("turnwire_stream_ttfe_seconds_count"), 4.0);
}
