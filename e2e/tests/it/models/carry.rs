//! Provider state is returned to the provider unchanged: call ids, reasoning signatures, encrypted
//! reasoning; in the next call, in the next turn, and after a kill of the server. Clients and other
//! providers do not get it.

use serde_json::{Value, json};
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::EngineFixture;
use turnwire_e2e::models::{KEY, ModelEntry, ProviderFixture, options, pack, thread, word};
use turnwire_testkit::provider::{BlockOrder, Dialect, FakeProvider, MessagePart, ModelMessage};
use turnwire_testkit::watch::SubscribeOptions;

const SEAL: &str = "c2VhbCBvZiB0aGUgdGhvdWdodA==";
const CALL_SEAL: &str = "c2VhbCBvZiB0aGUgY2FsbA==";
const SEALED: &str = "b25seSB0aGUgdmVuZG9yIGNhbiByZWFkIHRoaXM=";

/// A thought, another that is only given sealed, words, and two calls.
fn first() -> ModelMessage {
    let parts = [
        MessagePart::thinking(["Two ", "at once."], SEAL),
        MessagePart::Redacted {
            data: SEALED.to_owned(),
        },
        MessagePart::text(["Let me look."]),
        MessagePart::call("call_alpha", "say_back", &json!({"text": "eins"})).signed(CALL_SEAL),
        MessagePart::call("call_beta", "boom", &json!({"message": "zwei"})),
    ];
    let message = ModelMessage::new(parts).order(BlockOrder::Interleaved);
    message.chat_reasoning("reasoning_content")
}

/// Responses gives its reasoning away, sealed, only to those who ask it to think.
fn thinking(dialect: Dialect, entry: ModelEntry) -> ModelEntry {
    match dialect {
        Dialect::Responses => entry.with("params", "{effort: low}"),
        Dialect::Anthropic | Dialect::Chat | Dialect::Gemini => entry,
    }
}

/// Every text in a value, wherever it stands.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| texts(value, out)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What of the first answer must be in a request, in each format's own places.
fn carried(dialect: Dialect, thread: &[Value]) {
    let name = word(dialect);
    let all = json!(thread);
    let find = |kind: &str| -> Vec<Value> {
        let mut carried = Vec::new();
        of_type(&all, kind, &mut carried);
        carried
    };
    match dialect {
        Dialect::Anthropic => {
            let thought = &find("thinking")[0];
            assert_eq!(thought["thinking"], "Two at once.");
            assert_eq!(thought["signature"], SEAL);
            assert_eq!(find("redacted_thinking")[0]["data"], SEALED);
            let ids: Vec<Value> = find("tool_use").iter().map(|u| u["id"].clone()).collect();
            assert_eq!(ids, ["call_alpha", "call_beta"]);
            let results = find("tool_result");
            let ids: Vec<&Value> = results.iter().map(|r| &r["tool_use_id"]).collect();
            assert!(ids.contains(&&json!("call_alpha")) && ids.contains(&&json!("call_beta")));
            let failed = results.iter().find(|r| r["is_error"] == true).expect("one");
            assert_eq!(failed["tool_use_id"], "call_beta");
        }
        Dialect::Chat => {
            let call_message = thread
                .iter()
                .find(|m| m["tool_calls"].is_array())
                .expect("calls");
            let calls = call_message["tool_calls"].as_array().expect("a list");
            let ids: Vec<&Value> = calls.iter().map(|call| &call["id"]).collect();
            assert_eq!(ids, ["call_alpha", "call_beta"]);
            let input = calls[0]["function"]["arguments"].as_str().expect("a text");
            assert_eq!(
                serde_json::from_str::<Value>(input).expect("JSON"),
                json!({"text": "eins"})
            );
        }
        Dialect::Responses => {
            let reasoning = find("reasoning");
            let sealed: Vec<&Value> = reasoning.iter().map(|r| &r["encrypted_content"]).collect();
            assert_eq!(sealed, [SEAL, SEALED], "{reasoning:?}");
            // What the vendor has not stored it does not know by an id.
            assert!(
                reasoning.iter().all(|item| item.get("id").is_none()),
                "{reasoning:?}"
            );
            let calls = find("function_call");
            let ids: Vec<&Value> = calls.iter().map(|call| &call["call_id"]).collect();
            assert_eq!(ids, ["call_alpha", "call_beta"]);
            let outputs = find("function_call_output");
            assert_eq!(outputs.len(), 2, "{outputs:?}");
        }
        Dialect::Gemini => {
            let mut all = Vec::new();
            texts(&json!(thread), &mut all);
            for seal in [SEAL, SEALED, CALL_SEAL] {
                assert!(all.iter().any(|text| text == seal), "{seal}: {thread:?}");
            }
            let parts = thread
                .iter()
                .filter_map(|content| content["parts"].as_array());
            let parts: Vec<&Value> = parts.flatten().collect();
            let call = parts
                .iter()
                .find(|p| p["functionCall"].is_object())
                .expect("a call");
            assert_eq!(call["thoughtSignature"], CALL_SEAL, "on its very part");
            assert_eq!(call["functionCall"]["id"], "call_alpha");
        }
    }
    println!("{name}: carried");
}

fn of_type(value: &Value, kind: &str, out: &mut Vec<Value>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| of_type(value, kind, out)),
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|found| found == kind) {
                out.push(value.clone());
            }
            fields.values().for_each(|value| of_type(value, kind, out));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The thread without marks of what to cache, which stand at its end, wherever that is.
fn plain(mut thread: Vec<Value>) -> Vec<Value> {
    fn unmark(value: &mut Value) {
        match value {
            Value::Array(list) => list.iter_mut().for_each(unmark),
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(unmark);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    thread.iter_mut().for_each(unmark);
    thread
}

#[tokio::test]
async fn provider_state_returns_in_turn_next_turn_and_crash() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let mut setup =
            ProviderFixture::with(dialect, |entry| thinking(dialect, entry), |o| o).await;
        setup.fake.push(first());
        for words in ["One went wrong.", "Welcome.", "Still here."] {
            setup.fake.push(ModelMessage::text([words]));
        }
        let (reply, _) = setup.ask("Both, please.").await;
        assert_eq!(reply.last().event(), "completed", "{name}");
        setup.ask("Thank you.").await;
        setup.engine.server.restart().await;
        let (reply, _) = setup.ask("Are you there?").await;
        assert_eq!(reply.text(), "Still here.", "{name}");
        let calls = setup.fake.calls();
        assert_eq!(calls.len(), 4, "{name}");
        setup.assert_no_rejections();
        let threads: Vec<Vec<Value>> = calls
            .iter()
            .map(|call| plain(thread(dialect, &call.body)))
            .collect();
        for thread in &threads[1..] {
            carried(dialect, thread);
        }
        // Each request says all that the one before said, and then more.
        for (before, after) in threads.iter().zip(&threads[1..]) {
            assert!(before.len() < after.len(), "{name}");
            assert_eq!(&after[..before.len()], &before[..], "{name}");
        }
        let thread_text = json!(threads[3]).to_string();
        for words in [
            "Both, please.",
            "One went wrong.",
            "Thank you.",
            "Welcome.",
            "Are you there?",
        ] {
            assert_eq!(thread_text.matches(words).count(), 1, "{name}: {words}");
        }
        setup.engine.check_history().await;
    }
}

// D-46
#[tokio::test]
async fn sub_agent_provider_state_returns_only_to_it() {
    for dialect in Dialect::ALL {
        let name = word(dialect);
        let setup = ProviderFixture::with(dialect, |entry| thinking(dialect, entry), |o| o).await;
        let ask = MessagePart::call("call_ask", "ask_shop", &json!({"query": "oat milk"}));
        setup.fake.push(ModelMessage::new([ask]));
        let search = json!({"query": "oat milk"});
        let parts = [
            MessagePart::thinking(["SUBRAW thinks."], SEAL),
            MessagePart::call("call_search", "search_offers", &search).signed(CALL_SEAL),
        ];
        setup.fake.push(ModelMessage::new(parts));
        setup
            .fake
            .push(ModelMessage::text(["SUBRAW says: two offers."]));
        setup.fake.push(ModelMessage::text(["Two offers."]));
        let (reply, events) = setup.ask("Offers?").await;
        assert_eq!(reply.text(), "Two offers.", "{name}");
        // Its own second call has its thought and its call's id; the one that speaks does not.
        let calls = setup.fake.calls();
        assert_eq!(calls.len(), 4, "{name}");
        let own = &calls[2].text;
        assert!(
            own.contains("call_search") || dialect == Dialect::Gemini,
            "{name}: {own}"
        );
        let seal = match dialect {
            Dialect::Anthropic | Dialect::Responses => SEAL,
            Dialect::Chat => "call_search",
            Dialect::Gemini => CALL_SEAL,
        };
        assert!(own.contains(seal), "{name}: {own}");
        assert!(
            !calls[3].text.contains(seal) && !calls[3].text.contains("SUBRAW thinks"),
            "{name}"
        );
        reply.assert_absent(&["SUBRAW", SEAL]);
        let seen = json!(events).to_string() + &json!(setup.engine.messages().await).to_string();
        assert!(
            !seen.contains("SUBRAW") && !seen.contains(SEAL),
            "{name}: {seen}"
        );
        setup.assert_no_rejections();
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn sealed_provider_state_reaches_only_the_provider() {
    for dialect in Dialect::ALL {
        let setup = ProviderFixture::with(dialect, |entry| thinking(dialect, entry), |o| o).await;
        setup.fake.push(first());
        setup.fake.push(ModelMessage::text(["Done."]));
        let everything = SubscribeOptions::live().filter(json!({"include_suppressed": true}));
        let mut watcher = setup.engine.watch("all", everything).await;
        let reply = setup.engine.ask("Both, please.").await;
        let seen = watcher.turn(reply.turn).await.expect("the turn");
        let mut out = reply.raw();
        out += &json!(turnwire_e2e::engine::json_of(&seen)).to_string();
        out += &json!(setup.engine.messages().await).to_string();
        out += &json!(setup.engine.log(setup.engine.session).await).to_string();
        for word in [
            SEALED,
            CALL_SEAL,
            "call_alpha",
            "call_beta",
            "encrypted",
            "thoughtSignature",
        ] {
            assert!(
                !out.contains(word),
                "{}: {word} in {out}",
                self::word(dialect)
            );
        }
        // Of what only the provider can read an empty place is left, and it says nothing.
        assert_eq!(reply.text(), "Let me look.Done.");
        setup.engine.check_history().await;
    }
}

#[tokio::test]
async fn other_provider_gets_history_without_foreign_state() {
    for (before, after) in [
        (Dialect::Anthropic, Dialect::Chat),
        (Dialect::Chat, Dialect::Gemini),
        (Dialect::Gemini, Dialect::Responses),
        (Dialect::Responses, Dialect::Anthropic),
        // The same format is not the same provider: its proofs are no proofs elsewhere.
        (Dialect::Anthropic, Dialect::Anthropic),
    ] {
        let case = format!("{} then {}", word(before), word(after));
        let (one, other) = (FakeProvider::start().await, FakeProvider::start().await);
        one.require_key(KEY);
        other.require_key(KEY);
        let ccs = FakeDataService::start().await;
        let entries = [
            thinking(before, ModelEntry::new("one", before, &one.base_url())),
            thinking(after, ModelEntry::new("other", after, &other.base_url())),
        ];
        let rules = "rules:\n  - {name: germans, when: {locale: de}, use: 'other:big'}\n";
        let pack = pack(&ccs.url(), &entries).put("routing.yaml", rules);
        let engine = EngineFixture::on(ccs, options(pack)).await;
        one.push(first());
        one.push(ModelMessage::text(["One went wrong."]));
        engine.ask("Both, please.").await;
        other.push(ModelMessage::text(["Gern geschehen."]));
        let german = turnwire_testkit::chat::ChatSubmit::new("Danke.").field("locale", "de");
        let reply = engine.submit(german).await;
        assert_eq!(reply.text(), "Gern geschehen.", "{case}");
        let call = other.call(0).await;
        assert_eq!(call.refused, None, "{case}: {}", call.text);
        for seal in [SEAL, SEALED, CALL_SEAL] {
            assert!(!call.text.contains(seal), "{case}: {}", call.text);
        }
        for words in [
            "Both, please.",
            "Let me look.",
            "eins",
            "One went wrong.",
            "Danke.",
        ] {
            assert!(
                call.text.contains(words),
                "{case}: {words} is lost in {}",
                call.text
            );
        }
        // And back again, to whom it belongs.
        one.push(ModelMessage::text(["Welcome."]));
        engine.ask("Thank you.").await;
        let call = one.call(2).await;
        assert_eq!(call.refused, None, "{case}: {}", call.text);
        carried(before, &plain(thread(before, &call.body)));
        assert!(call.text.contains("Gern geschehen."), "{case}");
        engine.check_history().await;
    }
}
