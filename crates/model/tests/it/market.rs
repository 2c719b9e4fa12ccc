//! The demo pack's script: which assistants it calls for a question in three languages, and its
//! answers from their results.

mod skeleton;
mod free_text;

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use turnwire_event::{ContentBlock, Role, ToolUseId, Ulid};
use turnwire_model::{
    Delta, ModelMessage, ModelRequest, ModelScript, ProviderLookup as _, ProviderTable,
    ScriptedProvider,
};
use turnwire_pack::{Pack, PackFiles};

fn pack() -> Pack {
    let service = |name: &str| (name == "DEMO_CCS").then(|| "http://127.0.0.1:9".to_owned());
    let report = turnwire_pack::check(&PackFiles::market(), &service);
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings, [""; 0]);
    report.pack.expect("a pack without findings")
}

fn models() -> ProviderTable {
    let script = ModelScript::parse_many(&pack().scripts);
    ProviderTable::new(Some(ScriptedProvider::new(
        script.expect("the script is right"),
    )))
}

/// Plays one call: its text, and its tool uses with their inputs.
async fn call(models: &ProviderTable, request: ModelRequest) -> (String, Vec<(String, Value)>) {
    let provider = models
        .provider("scripted:market")
        .expect("a scripted model");
    let mut stream = provider.stream(request);
    let (mut answer, mut tools, mut input) = (String::new(), Vec::new(), String::new());
    while let Some(delta) = stream.next().await {
        match delta.expect("no failure in the script") {
            Delta::Text { text, .. } => answer.push_str(&text),
            Delta::ToolStart { name, .. } => tools.push((name, Value::Null)),
            Delta::ToolInput { fragment, .. } => input.push_str(&fragment),
            Delta::ToolEnd { .. } => {
                let complete = std::mem::take(&mut input);
                tools.last_mut().expect("an open tool").1 =
                    serde_json::from_str(&complete).expect("an input that is JSON");
            }
            Delta::Started { .. }
            | Delta::ProviderData { .. }
            | Delta::Thinking { .. }
            | Delta::PartialUsage { .. }
            | Delta::Stop { .. } => {}
        }
    }
    (answer, tools)
}

fn request(agent: &str, locale: &str, user: &str) -> ModelRequest {
    ModelRequest {
        model: "scripted:market".into(),
        agent: agent.into(),
        call: 1,
        attempt: 1,
        locale: locale.into(),
        system: None,
        messages: vec![Arc::new(ModelMessage::new(
            Role::User,
            vec![ContentBlock::text(user)],
        ))],
        tools: [].into(),
    }
}

/// The request after these parallel tools returned `results`.
fn after(mut request: ModelRequest, results: &[(&str, Result<Value, &str>)]) -> ModelRequest {
    let id = |n: usize| ToolUseId(Ulid(u128::from(request.call) * 100 + n as u128));
    let tool_uses = results
        .iter()
        .enumerate()
        .map(|(n, (tool, _))| ContentBlock::ToolUse {
            id: id(n),
            name: (*tool).into(),
            input: json!({}),
        });
    let mut messages = vec![Arc::new(ModelMessage::new(
        Role::Assistant,
        tool_uses.collect(),
    ))];
    for (n, (_, result)) in results.iter().enumerate() {
        let content = vec![ContentBlock::ToolResult {
            tool_use_id: id(n),
            content: result.clone().unwrap_or_else(Value::from),
            is_error: result.is_err(),
        }];
        let role = Role::Tool;
        messages.push(Arc::new(ModelMessage::new(role, content)));
    }
    request.messages.extend(messages);
    request.call += 1;
    request
}

// S1-066
#[test]
fn market_registry_has_the_seed_entries_and_emitters() {
    let pack = pack();
    for (id, emitters) in [
        ("searching_offers", &["shop"][..]),
        ("matching_receipt", &["ereceipts"]),
        ("looking_up_purchase_history", &["shop", "rewards"]),
        ("looking_up_points_balance", &["rewards"]),
    ] {
        let entry = pack.registry.get(id).expect("a seed entry");
        assert_eq!(entry.emitters, emitters, "{id}");
        assert_eq!(entry.render_key, format!("status.{id}"));
        assert_eq!(entry.policy, turnwire_event::RenderPolicy::Transform);
    }
    let line = pack.locales.line("en-GB", "status.searching_offers");
    let message = line.expect("a text").message.clone();
    assert_eq!(message, "Searching for offers...");
}

#[test]
fn status_texts_exist_with_phrases_in_every_language() {
    let pack = pack();
    for entry in &pack.registry.entries {
        let texts: Vec<String> = ["en", "de", "es"]
            .map(|tag| {
                let line = pack.locales.line(tag, &entry.render_key).expect("a text");
                assert!(line.phrase.is_some(), "{tag}: {}", entry.id);
                line.message.clone()
            })
            .into();
        assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
    }
}

// S2-086
#[test]
fn market_pack_has_the_sample_agents_and_the_cap() {
    let pack = pack();
    let ids: Vec<&str> = pack.agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["shop", "rewards", "ereceipts", "support"]);
    assert_eq!(pack.agents[0].aliases, ["shopping"]);
    assert!(pack.prompts["routing"].contains("{{cap}}"));
    assert!(
        pack.tool("get_support_answer")
            .is_some_and(|tool| tool.remember)
    );
}

// S2-087
#[tokio::test(start_paused = true)]
async fn answer_covers_each_result_in_the_request_language() {
    let models = models();
    let results = [
        (
            "ask_shop",
            Ok(json!({"text": "MILK", "components": [], "caveat": true})),
        ),
        (
            "ask_rewards",
            Err("The rewards assistant could not answer."),
        ),
        (
            "ask_support",
            Err("not executed: at most 2 assistants can be asked at once."),
        ),
    ];
    for (locale, parts) in [
        (
            "en",
            [
                "one by one",
                "MILK Not everyone",
                "couldn't look up your points",
                "too much",
            ],
        ),
        (
            "de-AT",
            [
                "der Reihe nach",
                "MILK Nicht alle",
                "konnte ich gerade nicht",
                "zu viel",
            ],
        ),
        (
            "es",
            [
                "por partes",
                "MILK No todos",
                "no he podido consultar",
                "demasiado",
            ],
        ),
        (
            "fr",
            [
                "one by one",
                "MILK Not everyone",
                "couldn't look up your points",
                "too much",
            ],
        ),
    ] {
        let question = request("orchestrator", locale, "offers, points and my order");
        let (text, tools) = call(&models, after(question, &results)).await;
        assert!(tools.is_empty(), "{tools:?}");
        let mut remaining = text.as_str();
        for part in parts {
            let at = remaining.find(part);
            assert!(
                at.is_some(),
                "{locale}: {part} is not in its place in: {text}"
            );
            remaining = &remaining[at.unwrap_or_default() + part.len()..];
        }
        assert!(!text.contains("could not answer"), "{text}");
        assert!(!text.contains("not executed"), "{text}");
    }
}

// S2-062
#[tokio::test(start_paused = true)]
async fn single_result_is_the_answer_and_failure_is_explained() {
    let models = models();
    for (agent, text) in [
        ("ask_shop", "offers"),
        ("ask_rewards", "my points"),
        ("ask_ereceipts", "my receipts"),
        ("ask_support", "where is my order"),
    ] {
        let results = [(agent, Ok(json!({"text": "THE FINDING"})))];
        let question = request("orchestrator", "en", text);
        assert_eq!(
            call(&models, after(question.clone(), &results)).await.0,
            "THE FINDING"
        );
        let results = [(agent, Err("The x assistant could not answer."))];
        let (text, _) = call(&models, after(question, &results)).await;
        assert!(text.contains("I couldn't"), "{agent}: {text}");
    }
}

/// An agent, its data tool, the tool's payload, the render tool with its input, and a part of the
/// final text.
type AssistantCase = (
    &'static str,
    &'static str,
    Value,
    Option<(&'static str, Value)>,
    &'static str,
);

fn cases() -> Vec<AssistantCase> {
    let offers = json!({"items": [{"id": "A", "label": "Oat"}, {"id": "B", "label": "Rye"}]});
    let points = json!({"items": [{"id": "balance", "label": "4,820 points", "tier": "Gold", "missing": 180}]});
    let note = json!({"items": [{"id": "T-1", "answer": "it is on its way", "ticket": "T-1"}]});
    let partial = json!({"data": offers, "caveat": true});
    let render = Some(("render_offer_list", json!({"ids": ["A", "B"]})));
    let receipts = Some(("render_receipt_list", json!({"ids": ["A", "B"]})));
    let card = Some(("render_points_card", json!({"id": "balance"})));
    vec![
        (
            "shop",
            "search_offers",
            offers.clone(),
            render.clone(),
            "Oat, Rye.",
        ),
        ("shop", "search_offers", partial, render, "Oat, Rye."),
        (
            "shop",
            "search_offers",
            json!({"items": []}),
            None,
            "nothing like that",
        ),
        (
            "rewards",
            "get_points_balance",
            points,
            card,
            "4,820 points and your tier is Gold",
        ),
        ("ereceipts", "find_receipts", offers, receipts, "Oat, Rye."),
        (
            "support",
            "get_support_answer",
            note,
            None,
            "it is on its way. Your ticket is T-1",
        ),
    ]
}

// S2-014
#[tokio::test(start_paused = true)]
async fn assistant_calls_its_data_tool_renders_and_answers() {
    let models = models();
    for (agent, tool, payload, render, end) in cases() {
        let question = request(agent, "en", "a question");
        let (text, tools) = call(&models, question.clone()).await;
        let input = json!({"query": "a question", "language": "en"});
        assert_eq!(
            (text.as_str(), &tools[..]),
            ("", &[(tool.to_owned(), input)][..])
        );
        let mut next = after(question, &[(tool, Ok(payload))]);
        let (mut text, tools) = call(&models, next.clone()).await;
        if let Some((name, input)) = render {
            assert_eq!(tools, [(name.to_owned(), input)], "{agent}");
            next = after(next, &[(name, Ok(json!("shown")))]);
            text = call(&models, next).await.0;
        } else {
            assert!(tools.is_empty(), "{agent}: {tools:?}");
        }
        assert!(text.contains(end), "{agent}: {text}");
    }
}

// S2-040
#[tokio::test(start_paused = true)]
async fn assistant_without_data_apologises_in_the_language() {
    let models = models();
    let cases = cases();
    for (locale, apology) in [
        ("en", "just now"),
        ("de", "gerade nicht"),
        ("es", "Ahora mismo"),
    ] {
        for (agent, tool, ..) in &cases {
            let question = request(agent, locale, "a question");
            let failed_request = after(question, &[(tool, Err("data unavailable"))]);
            let (text, tools) = call(&models, failed_request).await;
            assert!(
                tools.is_empty() && text.contains(apology),
                "{agent}: {text}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn question_about_the_usual_reads_purchase_history() {
    let models = models();
    for (agent, text) in [
        ("shop", "offers for my usual things"),
        ("rewards", "what have I earned my points with?"),
    ] {
        let (_, tools) = call(&models, request(agent, "en", text)).await;
        assert!(
            tools.iter().any(|(name, _)| name == "get_purchase_history"),
            "{agent}"
        );
        assert_eq!(tools.len(), 2, "{agent}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_story_streams_for_half_a_minute_in_each_language() {
    let models = models();
    for locale in ["en", "de", "es"] {
        let started = tokio::time::Instant::now();
        call(
            &models,
            request("orchestrator", locale, "tell me a long story"),
        )
        .await;
        let seconds = started.elapsed().as_secs();
        assert!((20..45).contains(&seconds), "{locale}: {seconds} s");
        let started = tokio::time::Instant::now();
        call(&models, request("orchestrator", locale, "hello")).await;
        assert!(started.elapsed().as_millis() < 2_000, "{locale}");
    }
}

#[tokio::test(start_paused = true)]
async fn paced_answer_takes_as_long_as_that_of_a_real_model() {
    let script = ModelScript::parse_many(&pack().scripts).expect("the script is right");
    let models = ProviderTable::new(Some(ScriptedProvider::new(script).paced(100)));
    let begun = tokio::time::Instant::now();
    let seconds = || begun.elapsed().as_secs_f64();
    let question = "any oat milk offers, and what is my points balance?";
    let first = request("orchestrator", "en", question);
    let (_, tools) = call(&models, first.clone()).await;
    assert_eq!(tools.len(), 2, "{tools:?}");
    let sub_agents_start = seconds();
    assert!((0.5..2.0).contains(&sub_agents_start), "{sub_agents_start}");
    // A sub-agent calls a tool, and then writes what it found.
    call(&models, request("shop", "en", question)).await;
    let found = json!({"items": [{"id": "OFF_1", "title": "Oat milk", "price": "1.79"}]});
    let shop = after(
        request("shop", "en", question),
        &[("search_offers", Ok(found))],
    );
    call(&models, shop).await;
    let composing_starts = seconds();
    let sub_agent = composing_starts - sub_agents_start;
    assert!((1.2..6.0).contains(&sub_agent), "{sub_agent}");
    let text = "I found some offers for oat milk that are valid this week in your market.";
    let results = [
        ("ask_shop", Ok(json!({"text": text, "components": []}))),
        ("ask_rewards", Ok(json!({"text": text, "components": []}))),
    ];
    call(&models, after(first, &results)).await;
    let answer = seconds() - composing_starts;
    assert!((1.2..10.0).contains(&answer), "{answer}");
}
