//! Provider faults in all four formats: every turn ends once and in order; transient errors are
//! retried before the first token and never after it (S1-099, S3-096, D-45, R-05).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::code;
use turnwire_e2e::chat_reply::ChatReply;
use turnwire_e2e::models::{ProviderFixture, fields, payloads, shape, word};
use turnwire_testkit::provider::{
    Dialect, ErrorForm, LineEnding, MessagePart, ModelMessage, ProviderAnswer, ProviderError,
};

/// The frame with the first of the words.
const fn first_word(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Anthropic => 3,
        Dialect::Chat => 1,
        Dialect::Responses => 4,
        Dialect::Gemini => 0,
    }
}

const PIECES: [&str; 4] = ["Grüße ", "aus ", "München ", "水."];

fn words() -> ProviderAnswer {
    ProviderAnswer::text(PIECES)
}

/// The model calls of a turn, apart from the sentence of the house that tells of a failure: which
/// try each was, and how it ended.
fn tries(events: &[Value]) -> Vec<(u64, String)> {
    let started = payloads(events, "llm.call_started");
    let own = started
        .iter()
        .filter(|call| call["purpose"] == "orchestrate");
    own.map(|call| {
        let ends = |kind: &str| {
            let ended = payloads(events, kind);
            ended
                .into_iter()
                .find(|end| end["call_id"] == call["call_id"])
                .cloned()
        };
        let end = match (ends("llm.call_completed"), ends("llm.call_failed")) {
            (Some(_), None) => "completed".to_owned(),
            (None, Some(end)) => end["error_class"].as_str().unwrap_or_default().to_owned(),
            other => panic!("a call ends once: {other:?}"),
        };
        (call["attempt"].as_u64().unwrap_or_default(), end)
    })
    .collect()
}

fn tried(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter()
        .map(|(n, end)| (*n, (*end).to_owned()))
        .collect()
}

/// Asserts that a turn failed once after its first text (D-45), with the server's own code.
fn broken(case: &str, reply: &ChatReply, events: &[Value], class: &str) {
    assert_eq!(tries(events), tried(&[(1, class)]), "{case}: no second try");
    let own = fields(events, "message.start", "message_id")[0].clone();
    let ends = payloads(events, "message.complete");
    assert_eq!(
        (&ends[0]["message_id"], &ends[0]["stop_reason"]),
        (&own, &json!("error")),
        "{case}"
    );
    let failed = payloads(events, "llm.call_failed")[0];
    assert_eq!(failed["message_id"], own, "{case}");
    let names = shape(events);
    let at = |kind: &str| names.iter().position(|name| *name == kind).expect(kind);
    assert_eq!(
        at("llm.call_failed"),
        at("message.complete") + 1,
        "{case}: {names:?}"
    );
    failure(case, reply, events, "MODEL_UNAVAILABLE");
}

/// A turn that failed.
fn failure(case: &str, reply: &ChatReply, events: &[Value], wanted: &str) {
    let end = payloads(events, "turn.completed")[0];
    assert_eq!(
        (&end["status"], &end["error"]["code"]),
        (&json!("failed"), &json!(wanted)),
        "{case}"
    );
    assert_eq!(
        (reply.last().event(), code(&reply.frames)),
        ("error", wanted),
        "{case}"
    );
    assert_eq!(reply.last().field("is_final"), &json!(true), "{case}");
    assert_eq!(
        *shape(events).last().expect("an end"),
        "turn.completed",
        "{case}"
    );
    reply.assert_valid_answer();
}

// S3-096, D-45, S1-118
#[tokio::test]
async fn stream_broken_after_first_token_fails_once() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        let next = first_word(dialect) + 1;
        let mut cases = vec![
            ("cut in a frame", words().cut_inside(next), "transport"),
            ("reset", words().cut_inside(next).with_reset(), "transport"),
            ("no end", words().without_end(), "transport"),
            (
                "overloaded",
                words().error_at(next, ProviderError::Overloaded),
                "provider",
            ),
            (
                "limited",
                words().error_at(next, ProviderError::RateLimited),
                "rate_limited",
            ),
            ("malformed", words().malformed_at(next), "provider"),
            ("too large", words().huge_at(next, 5 << 20), "provider"),
        ];
        if dialect == Dialect::Responses {
            for form in [ErrorForm::Nested, ErrorForm::Failed] {
                cases.push((
                    "form",
                    words().error_as(next, ProviderError::Server, form),
                    "provider",
                ));
            }
        }
        // The first word of all is cut in the middle of a character.
        let text = ["So. ", "Grüße."];
        cases.push((
            "character",
            ProviderAnswer::text(text).cut_inside_character(),
            "transport",
        ));
        for (name, answer, class) in cases {
            let case = format!("{} {name}", word(dialect));
            let before = setup.fake.calls().len();
            setup.fake.push(answer);
            let (reply, events) = setup.ask("Speak!").await;
            if class == "rate_limited" {
                assert_eq!(tries(&events), tried(&[(1, class)]), "{case}");
                failure(&case, &reply, &events, "RATE_LIMIT_ERROR");
            } else {
                broken(&case, &reply, &events, class);
            }
            assert_eq!(setup.fake.calls().len(), before + 1, "{case}");
            assert!(
                reply.text().starts_with("Grüße ") || reply.text().starts_with("So. "),
                "{case}"
            );
        }
        // Whatever was left of all these, a provider understands it.
        setup.fake.push(ProviderAnswer::text(["Here ", "again."]));
        let (reply, _) = setup.ask("Once more.").await;
        assert_eq!(reply.text(), "Here again.", "{}", word(dialect));
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn transient_failure_before_first_token_is_retried() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        // Anthropic says how long in whole seconds.
        let wait = Duration::from_millis(if dialect == Dialect::Anthropic { 1 } else { 30 });
        for (name, answer, class) in [
            (
                "500",
                ProviderAnswer::refuse(ProviderError::Server),
                "provider",
            ),
            (
                "503",
                ProviderAnswer::refuse(ProviderError::Unavailable),
                "provider",
            ),
            (
                "overloaded",
                ProviderAnswer::refuse(ProviderError::Overloaded),
                "provider",
            ),
            (
                "proxy",
                ProviderAnswer::page(502, "<html>bad gateway</html>"),
                "provider",
            ),
            (
                "429",
                ProviderAnswer::refuse(ProviderError::RateLimited),
                "rate_limited",
            ),
            (
                "429 later",
                ProviderAnswer::rate_limited(wait),
                "rate_limited",
            ),
            ("cut", words().cut_inside(0), "transport"),
            ("cut at once", words().cut_after(0), "transport"),
            (
                "in the stream",
                words().error_at(first_word(dialect), ProviderError::Overloaded),
                "provider",
            ),
        ] {
            let case = format!("{} {name}", word(dialect));
            let before = setup.fake.calls().len();
            setup.fake.push(answer);
            setup.fake.push(words());
            let (reply, events) = setup.ask("Speak!").await;
            assert_eq!(
                tries(&events),
                tried(&[(1, class), (2, "completed")]),
                "{case}"
            );
            assert_eq!(setup.fake.calls().len(), before + 2, "{case}");
            assert_eq!(payloads(&events, "message.start").len(), 1, "{case}");
            assert_eq!(payloads(&events, "message.complete").len(), 1, "{case}");
            let failed = payloads(&events, "llm.call_failed")[0];
            assert_eq!(
                (&failed["message_id"], &failed["content_sha256"]),
                (&Value::Null, &Value::Null)
            );
            assert_eq!(reply.text(), PIECES.concat(), "{case}");
            assert_eq!(
                (reply.last().event(), reply.count("thinking")),
                ("completed", 1),
                "{case}"
            );
            assert_eq!(
                payloads(&events, "turn.completed")[0]["status"],
                "ok",
                "{case}"
            );
        }
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}

// S1-099
#[tokio::test]
async fn rate_limit_on_all_tries_ends_turn_and_next_is_new() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        for _ in 0..3 {
            setup
                .fake
                .push(ProviderAnswer::refuse(ProviderError::RateLimited));
        }
        let (reply, events) = setup.ask("Speak!").await;
        let limited = "rate_limited";
        assert_eq!(
            tries(&events),
            tried(&[(1, limited), (2, limited), (3, limited)]),
            "{name}"
        );
        failure(name, &reply, &events, "RATE_LIMIT_ERROR");
        assert_eq!(reply.count("text"), 1, "{name}: one sentence of the house");
        setup.fake.push(words());
        let (reply, events) = setup.ask("Again.").await;
        assert_eq!(tries(&events), tried(&[(1, "completed")]), "{name}");
        assert_eq!(reply.text(), PIECES.concat(), "{name}");
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn permanent_failure_is_not_retried() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        for trouble in [
            ProviderError::Unauthorized,
            ProviderError::Forbidden,
            ProviderError::NotFound,
            ProviderError::BadRequest,
            ProviderError::TooLarge,
        ] {
            let case = format!("{} {trouble:?}", word(dialect));
            setup.fake.push(ProviderAnswer::refuse(trouble));
            let (reply, events) = setup.ask("Speak!").await;
            assert_eq!(tries(&events), tried(&[(1, "provider")]), "{case}");
            failure(&case, &reply, &events, "MODEL_UNAVAILABLE");
            assert_eq!(setup.fake.unused_lines(), 0, "{case}");
        }
        // A page that is no stream, although the status says that all is well.
        setup
            .fake
            .push(ProviderAnswer::page(200, "<html>please sign in</html>"));
        let (reply, events) = setup.ask("Speak!").await;
        failure(word(dialect), &reply, &events, "MODEL_UNAVAILABLE");
        assert_eq!(tries(&events).len(), 1);
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn unusual_but_valid_stream_changes_nothing() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::new(dialect).await;
        let next = first_word(dialect) + 1;
        for (name, answer) in [
            ("byte by byte", words().byte_by_byte()),
            ("CR LF", words().line_end(LineEnding::CrLf)),
            ("CR", words().line_end(LineEnding::Cr)),
            ("LF", words().line_end(LineEnding::Lf)),
            ("mark", words().with_bom()),
            ("comments", words().with_comments()),
            (
                "unknown events",
                words().unknown_at(0).unknown_at(next).unknown_at(next + 2),
            ),
            ("unknown fields", words().with_unknown_fields()),
            ("a megabyte", words().huge_at(next, 1 << 20)),
            (
                "all at once",
                words()
                    .with_bom()
                    .with_comments()
                    .with_unknown_fields()
                    .byte_by_byte(),
            ),
        ] {
            setup.fake.push(answer);
            let (reply, events) = setup.ask("Speak!").await;
            assert_eq!(reply.text(), PIECES.concat(), "{} {name}", word(dialect));
            assert_eq!(
                tries(&events),
                tried(&[(1, "completed")]),
                "{} {name}",
                word(dialect)
            );
        }
        setup.engine.check_history().await;
    }
}

// D-45
#[tokio::test]
async fn tool_use_before_broken_stream_is_never_run() {
    for dialect in [Dialect::Anthropic, Dialect::Chat, Dialect::Responses] {
        let setup = ProviderFixture::new(dialect).await;
        let call = MessagePart::call(
            "call_alpha",
            "say_back",
            &json!({"text": "never done, and long"}),
        );
        let cut =
            |frame| ProviderAnswer::message(ModelMessage::new([call.clone()])).cut_inside(frame);
        // Inside the input's pieces: behind its start, wherever that is.
        let frame = match dialect {
            Dialect::Anthropic => 5,
            Dialect::Chat | Dialect::Gemini => 3,
            Dialect::Responses => 4,
        };
        setup.fake.push(cut(frame));
        let (reply, events) = setup.ask("Do it!").await;
        assert_eq!(
            payloads(&events, "tool.use_start").len(),
            1,
            "{}",
            word(dialect)
        );
        let end = payloads(&events, "tool.use_end")[0];
        assert_eq!(end["final_input"], json!({}), "{}", word(dialect));
        assert!(payloads(&events, "tool.called").is_empty());
        broken(word(dialect), &reply, &events, "transport");
        setup.fake.push(words());
        let (reply, _) = setup.ask("Again.").await;
        assert_eq!(reply.text(), PIECES.concat());
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}
