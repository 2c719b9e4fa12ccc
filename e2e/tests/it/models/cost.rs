//! Token usage and cost per call, turn, session and day (S1-024, S1-146, S3-107).

use serde_json::{Value, json};
use turnwire_e2e::models::{MODEL, ProviderFixture, payloads, price, word};
use turnwire_testkit::provider::{Dialect, MessagePart, ModelMessage, TokenCounts};

/// What every answer costs here; Gemini does not say what it wrote into its cache.
const USAGE: TokenCounts = TokenCounts {
    input: 1_000,
    cached: 200,
    cache_write: 0,
    output: 50,
    reasoning: 10,
};

fn close(found: &Value, wanted: f64) {
    let actual = found.as_f64().unwrap_or(f64::NAN);
    assert!((actual - wanted).abs() < 1e-9, "{actual}, not {wanted}");
}

/// An answer that asks for a tool.
fn tool() -> ModelMessage {
    let call = MessagePart::call("call_alpha", "say_back", &json!({"text": "eins"}));
    ModelMessage::new([MessagePart::text(["Let me look."]), call]).usage(USAGE)
}

// S1-024, S1-146, S3-107
#[tokio::test]
async fn turn_cost_is_the_sum_of_its_calls() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::new(dialect).await;
        let second = TokenCounts {
            input: 2_000,
            cached: 500,
            cache_write: 0,
            output: 5,
            reasoning: 0,
        };
        setup.fake.push(tool().id("answer-one"));
        setup
            .fake
            .push(ModelMessage::text(["Done."]).usage(second).id("answer-two"));
        let (reply, events) = setup.ask("Both, please.").await;
        let usage = reply.of("usage").next().expect("a usage");
        let counts = ["input", "output", "total", "reasoning", "cached"];
        let counts = counts.map(|name| usage.field(&format!("{name}_tokens")).as_u64());
        assert_eq!(counts, [3_000, 55, 3_055, 10, 700].map(Some), "{name}");
        assert_eq!(reply.count("usage"), 1);
        assert_eq!(
            reply.labels().iter().rev().nth(1).map(String::as_str),
            Some("usage")
        );
        let cost = price(1_000, 200, 0, 50) + price(2_000, 500, 0, 5);
        close(
            &payloads(&events, "turn.completed")[0]["usage"]["cost_usd"],
            cost,
        );
        let row = setup
            .engine
            .api
            .attach(setup.engine.session)
            .await
            .expect("an answer");
        close(&row["cost_so_far_usd"], cost);
        let path = format!("/sessions/{}/llm-calls", setup.engine.session);
        let calls = setup.engine.api.get(&path).await.expect("an answer").json();
        let mut calls = calls["llm_calls"].as_array().expect("rows").clone();
        calls.sort_by_key(|call| call["started_at"].to_string());
        let ids: Vec<&Value> = calls
            .iter()
            .map(|call| &call["provider_response_id"])
            .collect();
        assert_eq!(ids, ["answer-one", "answer-two"], "{name}");
        assert_ne!(
            reply.of("usage").next().expect("it").field("response_id"),
            "answer-one"
        );
        close(&calls[1]["usage"]["cost_usd"], price(2_000, 500, 0, 5));
        let report = setup
            .engine
            .api
            .get("/usage")
            .await
            .expect("an answer")
            .json();
        let rows = report["rows"].as_array().expect("rows");
        // A day may end while this runs; the sums do not.
        assert!(
            rows.iter()
                .all(|row| row["model"] == format!("vendor:{MODEL}")),
            "{report}"
        );
        assert_eq!(
            (&report["totals"]["calls"], &report["totals"]["failed"]),
            (&json!(2), &json!(0))
        );
        assert_eq!(report["totals"]["usage"]["total_tokens"], 3_055, "{report}");
        close(&report["totals"]["usage"]["cost_usd"], cost);
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn cache_writes_are_billed() {
    for dialect in [Dialect::Anthropic, Dialect::Chat, Dialect::Responses] {
        let setup = ProviderFixture::new(dialect).await;
        let usage = TokenCounts {
            cache_write: 300,
            ..USAGE
        };
        setup.fake.push(ModelMessage::text(["So."]).usage(usage));
        let (_, events) = setup.ask("Hallo!").await;
        let cost = &payloads(&events, "llm.call_completed")[0]["usage"]["cost_usd"];
        close(cost, price(1_000, 200, 300, 50));
    }
}
