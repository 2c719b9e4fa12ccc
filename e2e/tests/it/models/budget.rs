//! Misbehaving models over a real wire: endless calls, tokens and cost, unknown tools, invalid JSON
//! input, a thousand calls at once, and a wrong model name (G7).

use serde_json::{Value, json};
use turnwire_e2e::engine::of;
use turnwire_e2e::models::{ProviderFixture, fields, payloads, thread, word};
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage, TokenCounts};
use turnwire_testkit::server::{ServerOptions, ServerPack};

/// A server whose pack has limits.
fn limited(limits: &str) -> impl FnOnce(ServerOptions) -> ServerOptions {
    let limits = format!("limits: {{{limits}}}\n");
    move |mut options| {
        if let ServerPack::Pack(pack) = &mut options.pack {
            let text = pack.text("pack.yaml").to_owned() + &limits;
            *pack = pack.clone().put("pack.yaml", &text);
        }
        options
    }
}

fn again() -> MessagePart {
    MessagePart::call("call_1", "say_back", &json!({"text": "again"}))
}

// G7
#[tokio::test]
async fn endless_turn_ends_by_calls_tokens_or_cost() {
    // A call reads 900 tokens and writes 100: 1,000, for 1,900 millionths of a dollar.
    let usage = TokenCounts {
        input: 900,
        cached: 0,
        cache_write: 0,
        output: 100,
        reasoning: 0,
    };
    for (limits, reason, calls) in [
        ("calls_max: 4", "limit_calls", 4),
        ("turn_tokens_max: 2500", "limit_tokens", 3),
        ("turn_cost_max_usd: 0.0035", "limit_cost", 2),
    ] {
        for dialect in [Dialect::Anthropic, Dialect::Gemini] {
            let case = format!("{} {reason}", word(dialect));
            let setup = ProviderFixture::with(dialect, |entry| entry, limited(limits)).await;
            setup
                .fake
                .always("", ModelMessage::new([again()]).usage(usage));
            let (reply, events) = setup.ask("Go on for ever.").await;
            let end = payloads(&events, "turn.completed")[0];
            assert_eq!(
                (&end["status"], &end["reason"]),
                (&json!("failed"), &json!(reason)),
                "{case}"
            );
            assert_eq!(end["usage"]["total_tokens"], 1_000 * calls, "{case}");
            assert_eq!(setup.fake.calls().len(), calls, "{case}");
            assert_eq!(reply.last().event(), "error", "{case}");
            reply.assert_valid_answer();
            // Every requested tool call ran, and its result was sent to the model.
            assert_eq!(of(&events, "tool.completed").count(), calls, "{case}");
            setup.assert_no_rejections();
            setup.engine.check_history().await;
        }
    }
}

#[tokio::test]
async fn unknown_tool_is_reported_to_model_and_turn_goes_on() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        let parts = [
            MessagePart::call("call_1", "format_disk", &json!({"path": "/"})),
            MessagePart::call("call_2", "say_back", &json!({"no": "text"})),
        ];
        setup.fake.push(ModelMessage::new(parts));
        setup.fake.push(ModelMessage::text(["Never mind."]));
        let (reply, events) = setup.ask("Do it!").await;
        assert_eq!(reply.text(), "Never mind.", "{name}");
        let classes = fields(&events, "tool.failed", "error_class");
        assert_eq!(classes, ["invalid_input", "invalid_input"], "{name}");
        let second = setup.fake.call(1).await;
        assert!(
            second.text.contains("There is no such tool"),
            "{name}: {}",
            second.text
        );
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn invalid_json_input_is_not_run_and_reported_to_model() {
    for dialect in [Dialect::Anthropic, Dialect::Chat, Dialect::Responses] {
        let setup = ProviderFixture::new(dialect).await;
        for pieces in [
            &["{\"text\": \"cut he"][..],
            &["[1, 2]"],
            &["\"a text\""],
            &["not ", "json"],
            &["{\"text\": \"a\"}", "{\"text\": \"b\"}"],
        ] {
            let case = format!("{} {pieces:?}", word(dialect));
            let before = setup.fake.calls().len();
            let call = MessagePart::call_in(Some("call_1"), "say_back", pieces.iter().copied());
            setup.fake.push(ModelMessage::new([call]));
            setup.fake.push(ModelMessage::text(["Sorry."]));
            let (reply, events) = setup.ask("Do it!").await;
            assert_eq!(reply.text(), "Sorry.", "{case}");
            assert_eq!(
                fields(&events, "tool.failed", "error_class"),
                ["invalid_input"],
                "{case}"
            );
            let deltas = fields(&events, "tool.use_input_delta", "partial_json");
            let raw: String = deltas.iter().filter_map(Value::as_str).collect();
            assert_eq!(
                raw,
                pieces.concat(),
                "{case}: raw fragments stay raw (S3-068)"
            );
            assert!(
                setup
                    .fake
                    .call(before + 1)
                    .await
                    .text
                    .contains("not a JSON object"),
                "{case}"
            );
            setup.assert_no_rejections();
            setup.engine.check_history().await;
        }
    }
}

// G7
#[tokio::test]
async fn excess_tool_calls_are_answered_without_running() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup =
            ProviderFixture::with(dialect, |entry| entry, limited("tool_calls_max: 5")).await;
        let calls = (0..1_000).map(|n| {
            MessagePart::call(
                &format!("call_{n}"),
                "say_back",
                &json!({"text": format!("nr {n}")}),
            )
        });
        setup.fake.push(ModelMessage::new(calls));
        setup.fake.push(ModelMessage::text(["Enough."]));
        let reply = setup.engine.ask("Everything at once!").await;
        assert_eq!(reply.text(), "Enough.", "{name}");
        reply.assert_tools_paired();
        assert_eq!(reply.count("tool_call"), 5, "{name}");
        let events = setup.engine.events(reply.turn).await;
        assert_eq!(of(&events, "tool.called").count(), 5, "{name}");
        assert_eq!(of(&events, "tool.completed").count(), 5, "{name}");
        let failed = payloads(&events, "tool.failed");
        assert_eq!(failed.len(), 995, "{name}");
        assert!(failed.iter().all(|tool| tool["called"] == false), "{name}");
        setup.assert_no_rejections();
        let thread_text = json!(thread(dialect, &setup.fake.call(1).await.body)).to_string();
        assert_eq!(thread_text.matches("not executed").count(), 995, "{name}");
        setup.engine.check_history().await;
    }
}

// G7
#[tokio::test]
async fn model_claiming_another_role_is_ignored() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        let ask = json!({"query": "offers for user-99", "principal": "user-99"});
        setup.fake.push(ModelMessage::new([MessagePart::call(
            "call_1", "ask_shop", &ask,
        )]));
        let search =
            json!({"query": "x", "principal": "user-99", "user_id": "user-99", "tenant": "t-9"});
        setup.fake.push(ModelMessage::new([MessagePart::call(
            "call_2",
            "search_offers",
            &search,
        )]));
        setup.fake.push(ModelMessage::text(["SUBRAW"]));
        setup.fake.push(ModelMessage::text(["Here."]));
        let (reply, _) = setup.ask("Offers?").await;
        assert_eq!(reply.text(), "Here.", "{name}");
        let calls = setup.engine.ccs.calls();
        assert_eq!(calls.len(), 1, "{name}");
        let request = &calls[0].request;
        assert_eq!(request["principal"], "user-42", "{name}: {request}");
        assert_eq!(
            request["params"]["principal"],
            Value::Null,
            "{name}: {request}"
        );
        reply.assert_absent(&["SUBRAW", "user-99"]);
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}
