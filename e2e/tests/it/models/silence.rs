//! Providers that stall, drip and flood, and users who disconnect mid-token: provider and turn
//! timeouts, bounded memory, a socket that is closed at once, and one end (S3-096, SC-22, D-44).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::engine::{json_of, of};
use turnwire_e2e::models::{ProviderFixture, payloads, shape, word};
use turnwire_event::{Event, EventType};
use turnwire_testkit::cancel_case::{CancelCase, classify_cancel};
use turnwire_testkit::provider::{
    AnswerProgress, Dialect, MessagePart, ModelMessage, ProviderAnswer,
};
use turnwire_testkit::watch::{SubscribeOptions, WatchClient};

/// Times that end within a test.
const SHORT: &str = "{connect_ms: 2000, first_byte_ms: 300, idle_ms: 300, total_ms: 900}";
/// The same for a provider that does begin, also on a busy machine.
const BEGUN: &str = "{connect_ms: 2000, first_byte_ms: 3000, idle_ms: 300, total_ms: 3000}";
/// For a provider whose answer is complete after it was asked again, also on a busy machine.
const ANSWERED: &str = "{connect_ms: 2000, first_byte_ms: 1500, idle_ms: 1500, total_ms: 6000}";

/// The frame with the first of the words, and a piece more.
const fn second_word(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Anthropic => 4,
        Dialect::Chat => 2,
        Dialect::Responses => 5,
        Dialect::Gemini => 1,
    }
}

fn words() -> ProviderAnswer {
    ProviderAnswer::text(["One ", "two ", "three ", "four."])
}

async fn hurried(dialect: Dialect, timeouts: &'static str) -> ProviderFixture {
    ProviderFixture::with(
        dialect,
        |entry| entry.with("timeouts", timeouts),
        |options| options,
    )
    .await
}

/// How the calls of the model that speaks failed.
fn failures(events: &[Value]) -> Vec<&Value> {
    let failed = payloads(events, "llm.call_failed");
    failed
        .into_iter()
        .map(|call| &call["error_class"])
        .collect()
}

fn failed(case: &str, events: &[Value]) {
    let end = payloads(events, "turn.completed");
    assert_eq!(end.len(), 1, "{case}: {:?}", shape(events));
    assert_eq!(end[0]["status"], "failed", "{case}");
    assert_eq!(
        end[0]["error"],
        json!({"code": "MODEL_UNAVAILABLE"}),
        "{case}"
    );
}

#[tokio::test]
async fn unresponsive_provider_is_abandoned_after_all_tries() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = hurried(dialect, SHORT).await;
        for _ in 0..3 {
            setup.fake.push(words().silent());
        }
        let (reply, events) = setup.ask("Speak!").await;
        assert_eq!(failures(&events), ["timeout"; 3], "{name}");
        failed(name, &events);
        reply.assert_valid_answer();
        for call in 0..3 {
            let call = setup.fake.closed(call).await;
            assert_eq!(call.progress, AnswerProgress::Left, "{name}");
        }
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn stalling_provider_is_bounded_in_time() {
    for dialect in Dialect::ALL {
        let setup = hurried(dialect, BEGUN).await;
        let many: Vec<String> = (0..100).map(|n| format!("{n} ")).collect();
        for (call, (name, answer)) in [
            ("stalls", words().stall_at(second_word(dialect))),
            // Never silent for long, and never done.
            (
                "dawdles",
                ProviderAnswer::text(many).frames_every(Duration::from_millis(60)),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let case = format!("{} {name}", word(dialect));
            setup.fake.push(answer);
            let (reply, events) = setup.ask("Speak!").await;
            assert_eq!(failures(&events), ["timeout"], "{case}: not tried again");
            assert_eq!(
                payloads(&events, "message.complete")[0]["stop_reason"],
                "error",
                "{case}"
            );
            failed(&case, &events);
            reply.assert_valid_answer();
            setup.fake.closed(call).await;
        }
        setup.engine.check_history().await;
    }
    // A byte now and then: there is no silence, and no word either.
    let setup = hurried(Dialect::Anthropic, ANSWERED).await;
    setup.fake.push(words().drip(Duration::from_millis(40)));
    setup.fake.push(words());
    let (reply, events) = setup.ask("Speak!").await;
    assert_eq!(failures(&events), ["timeout"]);
    assert_eq!(reply.text(), "One two three four.", "tried again");
    setup.fake.closed(0).await;
    setup.engine.check_history().await;
}

#[tokio::test]
async fn comments_keep_a_call_open_for_the_time_of_silence_only() {
    const PATIENT: &str =
        "{connect_ms: 2000, first_byte_ms: 300000, idle_ms: 400, total_ms: 600000}";
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::with(
            dialect,
            |entry| entry.with("timeouts", PATIENT),
            |options| options.set("model", "silence_ms", 1500),
        )
        .await;
        let comments = ": still here\n\n".repeat(20_000);
        let comments = ProviderAnswer::raw(comments).drip(Duration::from_millis(20));
        setup.fake.push(comments);
        setup.fake.push(words());
        let (reply, events) = setup.ask("Speak!").await;
        assert_eq!(failures(&events), ["timeout"], "{name}");
        assert_eq!(reply.text(), "One two three four.", "{name}: tried again");
        let call = setup.fake.closed(0).await;
        assert_eq!(call.progress, AnswerProgress::Left, "{name}");
        setup.engine.check_history().await;
    }
}

// D-44
#[tokio::test]
async fn turn_deadline_ends_a_patient_provider_call() {
    for dialect in Dialect::ALL {
        let change = |options: turnwire_testkit::server::ServerOptions| {
            options.set("turn", "timeout_ms", 700)
        };
        let setup = ProviderFixture::with(dialect, |entry| entry, change).await;
        for (call, (name, answer)) in [
            ("silent", words().silent()),
            ("stalls", words().stall_at(second_word(dialect))),
            (
                "waits",
                ProviderAnswer::rate_limited(Duration::from_secs(20)),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let case = format!("{} {name}", word(dialect));
            setup.fake.push(answer);
            let (reply, events) = setup.ask("Speak!").await;
            if name == "waits" {
                // A wait that cannot end before the turn does is not begun.
                assert_eq!(reply.last().event(), "error", "{case}");
                assert_eq!(failures(&events), ["rate_limited"], "{case}");
            } else {
                assert_eq!(reply.last().event(), "cancelled", "{case}");
                let end = payloads(&events, "turn.cancelled")[0];
                assert_eq!(end["reason"], "turn_timeout", "{case}");
                setup.fake.closed(call).await;
            }
        }
        setup.engine.check_history().await;
    }
}

/// A line of `/proc/PID/status`, in MiB.
fn mib(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process");
    let value = status.lines().find_map(|text| text.strip_prefix(line));
    let kib = value.and_then(|text| text.split_whitespace().next());
    kib.and_then(|n| n.parse::<u64>().ok()).expect("a number") / 1024
}

// serial: compares the server's memory before and after
#[tokio::test]
async fn ten_megabyte_answer_is_bounded_and_ends_once() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        // The largest message that is one: code, caches and pages are there before it is counted.
        setup
            .fake
            .push(ModelMessage::new([MessagePart::flood(2_000_000)]));
        let accepted = setup
            .engine
            .api
            .submit(setup.engine.session, "Warm up.")
            .await;
        let turn = accepted.expect("an answer").turn_id;
        let row = setup.engine.api.ended(turn).await.expect("an end");
        assert_eq!(row["terminal"]["payload"]["status"], "ok", "{row}");
        let pid = setup.engine.server.pid();
        let flood = ProviderAnswer::message(ModelMessage::new([MessagePart::flood(10 << 20)]));
        let mut cases = vec![("10 MB", flood)];
        if dialect == Dialect::Chat {
            let pieces = ["word ".repeat(800), "end".to_owned()];
            cases.push(("endless", ProviderAnswer::text(pieces).endless()));
        }
        for (call, (name, answer)) in cases.into_iter().enumerate() {
            let case = format!("{} {name}", word(dialect));
            // From here on the highest mark is this turn's.
            std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("a mark");
            let before = mib(pid, "VmRSS:");
            setup.fake.push(answer);
            // No client watches: a client that cannot keep up would be disconnected, which another
            // test covers.
            let accepted = setup
                .engine
                .api
                .submit(setup.engine.session, "Speak!")
                .await;
            let turn = accepted.expect("an answer").turn_id;
            setup.engine.api.ended(turn).await.expect("an end");
            let events = setup.engine.events(turn).await;
            assert_eq!(failures(&events), ["provider"], "{case}");
            failed(&case, &events);
            let call = setup.fake.closed(call + 1).await;
            // Ten megabytes fit into the buffers between two processes.
            let is_left = call.progress == AnswerProgress::Left;
            assert!(is_left || name == "10 MB", "{case}: {:?}", call.progress);
            // The most it ever had.
            let grown = mib(pid, "VmHWM:").saturating_sub(before);
            println!(
                "{case}: {} bytes sent, {grown} MiB more than {before}",
                call.written
            );
            assert!(grown < 40, "{case}: {grown} MiB more than {before}");
        }
        setup.fake.push(words());
        let (reply, _) = setup.ask("Again.").await;
        assert_eq!(reply.text(), "One two three four.");
        setup.engine.check_history().await;
    }
}

/// Waits for an event of a kind; gives what was seen up to it.
async fn reach(client: &mut WatchClient, kind: EventType) -> Vec<Event> {
    let events = client.until(|event| event.body.kind() == kind).await;
    events.expect("it comes")
}

// SC-22, S3-072
#[tokio::test]
async fn cancel_mid_token_closes_provider_socket() {
    for (dialect, stall) in [
        (Dialect::Anthropic, 8),
        (Dialect::Chat, 4),
        (Dialect::Responses, 10),
    ] {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        let call = MessagePart::call_in(
            Some("call_1"),
            "read_file",
            ["{\"path\":\"/a", " long way\"}"],
        );
        let message = ModelMessage::new([MessagePart::text(["I'll start by"]), call]);
        setup
            .fake
            .push(ProviderAnswer::message(message).stall_at(stall));
        let mut client = setup
            .engine
            .watch("canceller", SubscribeOptions::live())
            .await;
        let accepted = setup.engine.api.submit(setup.engine.session, "go").await;
        let turn = accepted.expect("an answer").turn_id;
        let mut seen = reach(&mut client, EventType::ToolUseInputDelta).await;
        setup.fake.reached(0, AnswerProgress::Held).await;
        let frame = json!({"type": "cancel", "turn_id": turn, "reason": "user_cancel"});
        client.send(&frame).await.expect("sent");
        seen.extend(client.turn(turn).await.expect("an end"));
        seen.retain(|event| event.turn_id == Some(turn));
        setup.fake.closed(0).await;
        assert_eq!(classify_cancel(&seen), Ok(CancelCase::Llm), "{name}");
        let events = json_of(&seen);
        let kinds = shape(&events);
        let at = kinds
            .iter()
            .position(|kind| *kind == "turn.cancel_requested");
        assert_eq!(
            kinds[at.expect("it was asked for") + 1..],
            [
                "tool.use_end",
                "message.complete",
                "llm.call_failed",
                "dispatch.traced",
                "turn.cancelled"
            ],
            "{name}"
        );
        assert_eq!(
            payloads(&events, "tool.use_end")[0]["final_input"],
            json!({})
        );
        let end = payloads(&events, "message.complete")[0];
        assert_eq!(end["stop_reason"], "cancelled", "{name}");
        assert_eq!(end["final_content"][0]["text"], "I'll start by", "{name}");
        assert_eq!(failures(&events), ["cancelled"], "{name}");
        let end = payloads(&events, "turn.cancelled")[0];
        assert_eq!(
            (&end["reason"], &end["phase"]),
            (&json!("user_cancel"), &json!("llm"))
        );
        assert!(payloads(&events, "tool.failed").is_empty());
        // A second cancel adds nothing, and a new turn is a new turn, which the provider
        // understands although a call was left half said.
        client.send(&frame).await.expect("sent");
        setup.fake.push(words());
        let (reply, events) = setup.ask("Go on.").await;
        assert_ne!(reply.turn, turn);
        assert_eq!(payloads(&events, "route.decided").len(), 1);
        assert_eq!(reply.text(), "One two three four.", "{name}");
        setup.assert_no_rejections();
        let stored = setup.engine.messages().await;
        let cut: Vec<&Value> = stored
            .iter()
            .filter(|m| m["status"] == "cancelled")
            .collect();
        assert_eq!(cut.len(), 1, "{name}");
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn cancel_while_provider_is_silent_ends_turn_at_once() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        for (call, (name, answer)) in [
            ("before its head", words().silent()),
            ("in its words", words().stall_at(second_word(dialect))),
            (
                "before the next try",
                ProviderAnswer::rate_limited(Duration::from_secs(20)),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let case = format!("{} {name}", word(dialect));
            setup.fake.push(answer);
            let mut client = setup.engine.watch(&case, SubscribeOptions::live()).await;
            let accepted = setup.engine.api.submit(setup.engine.session, "go").await;
            let turn = accepted.expect("an answer").turn_id;
            let kind = match name {
                "before its head" => EventType::LlmCallStarted,
                "in its words" => EventType::TextDelta,
                _ => EventType::LlmCallFailed,
            };
            let mut seen = reach(&mut client, kind).await;
            setup.fake.call(call).await;
            setup.engine.api.cancel(turn).await.expect("an answer");
            seen.extend(client.turn(turn).await.expect("an end"));
            let events = json_of(&seen);
            assert_eq!(payloads(&events, "turn.cancelled").len(), 1, "{case}");
            assert_eq!(of(&events, "llm.call_started").count(), 1, "{case}");
            if name != "before the next try" {
                assert_eq!(failures(&events), ["cancelled"], "{case}");
                setup.fake.closed(call).await;
            }
        }
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn killed_server_ends_mid_token_turn_after_restart() {
    let mut setup = ProviderFixture::new(Dialect::Anthropic).await;
    setup
        .fake
        .push(words().stall_at(second_word(Dialect::Anthropic)));
    let accepted = setup.engine.api.submit(setup.engine.session, "go").await;
    let turn = accepted.expect("an answer").turn_id;
    setup.fake.reached(0, AnswerProgress::Held).await;
    setup.engine.server.kill().await;
    setup.fake.closed(0).await;
    setup.engine.server.run().await.expect("it comes back");
    let row = setup.engine.api.ended(turn).await.expect("an end");
    assert_eq!(
        row["terminal"]["payload"]["reason"], "server_restart",
        "{row}"
    );
    assert_eq!(setup.fake.calls().len(), 1, "nobody asks again by itself");
    setup.fake.push(words());
    let (reply, _) = setup.ask("Again.").await;
    assert_eq!(reply.text(), "One two three four.");
    setup.assert_no_rejections();
    setup.engine.check_history().await;
}
