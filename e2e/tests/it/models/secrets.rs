//! Secrets stay inside (I7, G8): the provider's key, its address, its error texts, and the user's
//! own token, which is for this server only.

use std::process::Command;

use serde_json::json;
use turnwire_e2e::chat::{raw, whole};
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::EngineFixture;
use turnwire_e2e::models::{
    KEY, KEY_NAME, ModelEntry, ProviderFixture, fields, options, pack, word,
};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::history::{ConnectionEntry, History};
use turnwire_testkit::journal::Journal;
use turnwire_testkit::provider::{
    Dialect, FakeProvider, MessagePart, ModelMessage, ProviderAnswer, ProviderError,
};
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::server::{ServerOptions, TestServer, binary};
use turnwire_testkit::watch::SubscribeOptions;

/// A word that no run has had before.
fn marker(rng: &mut SeededRng) -> String {
    format!("mk{:016x}{:016x}", rng.next_u64(), rng.next_u64())
}

/// Everything that came over any wire, as one text.
fn captured(history: &History, out: &mut String) {
    for chat in &history.chats {
        out.push_str(&format!("{:?}\n", chat.head));
        out.extend(chat.blocks.iter().map(|block| block.text.as_str()));
    }
    for line in history.connections.iter().flat_map(|c| &c.lines) {
        if let ConnectionEntry::Received(frame) = line {
            out.push_str(&frame.text);
        }
    }
    for log in &history.sessions {
        out.extend(log.events.iter().map(|event| event.text.as_str()));
        out.push_str(&json!([log.messages, log.turns, log.tool_calls]).to_string());
    }
}

/// Every list of the server, and answers to what cannot be answered.
async fn listed(setup: &ProviderFixture, token: &str) -> String {
    let session = setup.engine.session.to_string();
    let own = [
        "",
        "/messages",
        "/turns",
        "/tool-calls",
        "/llm-calls",
        "/events",
    ];
    let own = own.map(|list| format!("/sessions/{session}{list}"));
    let all = [
        "/sessions",
        "/usage",
        "/metrics",
        "/status-events",
        "/openapi.json",
        "/readyz",
    ];
    let missing_paths = [
        "/nowhere",
        "/sessions/sess_0",
        "/usage?from=yesterday",
        "/turns/nope",
    ];
    let mut seen = String::new();
    let paths = own
        .into_iter()
        .chain(all.into_iter().chain(missing_paths).map(str::to_owned));
    for path in paths {
        let answer = setup.engine.api.get(&path).await.expect("an answer");
        seen += &format!("{path} {:?} {}\n", answer.headers, answer.body);
    }
    let header = format!("authorization: Bearer {token}");
    let lines = [header.as_str(), "content-type: application/json"];
    let addr = setup.engine.api.addr();
    for body in [
        &b"{"[..],
        b"{\"message\": 7}",
        b"{\"message\":\"x\",\"model\":\"vendor:small\"}",
    ] {
        let answer = raw(addr, "POST /chat/stream", &lines, body).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
        seen += &(answer.head + &answer.body);
    }
    seen
}

/// What a command prints about the stored session.
fn printed(setup: &ProviderFixture, words: &[&str]) -> String {
    let mut command = Command::new(binary());
    let done = command
        .args(words)
        .env("TURNWIRE_HOME", setup.engine.server.home())
        .output();
    let done = done.expect("the command runs");
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Answers of every kind, with a marker in whatever the provider says of itself.
fn answers(mark: &str) -> Vec<(&'static str, Vec<ProviderAnswer>)> {
    let page = |status| {
        let body = json!({"error": {"type": "x", "message": mark, "code": mark, "status": mark}});
        ProviderAnswer::page(status, &body.to_string()).header("x-secret", mark)
    };
    let answer = || ModelMessage::text(["One ", "two."]);
    let call = MessagePart::call(mark, "say_back", &json!({"text": "eins"}));
    vec![
        ("well", vec![answer().into()]),
        (
            "tools",
            vec![ModelMessage::new([call]).into(), answer().into()],
        ),
        ("bad request", vec![page(400)]),
        ("key", vec![page(401)]),
        ("limit", vec![page(429), page(429), page(429)]),
        (
            "server",
            vec![page(500), page(503), ProviderAnswer::page(502, mark)],
        ),
        (
            "stream",
            vec![ProviderAnswer::raw(
                format!("data: {{\"error\": {{\"message\": \"{mark}\"}}}}\n\n").into_bytes(),
            )],
        ),
        (
            "garbage",
            vec![
                ProviderAnswer::raw(format!("event: {mark}\ndata: {mark}\n\n").into_bytes()),
                answer().into(),
            ],
        ),
        (
            "cut",
            vec![
                ProviderAnswer::from(answer())
                    .header("x-secret", mark)
                    .cut_inside(4),
            ],
        ),
        (
            "late",
            vec![
                ProviderAnswer::from(answer()).silent(),
                ProviderAnswer::from(answer()).silent(),
                answer().into(),
            ],
        ),
        (
            "refusal",
            vec![ProviderAnswer::refuse(ProviderError::Forbidden)],
        ),
    ]
}

// I7, G8
#[tokio::test]
async fn provider_keys_addresses_and_texts_never_leak() {
    let mut rng = SeededRng::from_env();
    for dialect in Dialect::ALL {
        let (mark, token) = (marker(&mut rng), marker(&mut rng));
        let short = "{connect_ms: 2000, first_byte_ms: 200, idle_ms: 200, total_ms: 900}";
        let setup =
            ProviderFixture::with(dialect, |entry| entry.with("timeouts", short), |o| o).await;
        let api = setup
            .engine
            .api
            .clone()
            .with("authorization", &format!("Bearer {token}"));
        let everything = SubscribeOptions::live().filter(json!({"include_suppressed": true}));
        let mut watcher = setup.engine.watch("everything", everything).await;
        for (name, list) in answers(&mark) {
            for answer in list {
                setup.fake.push(answer);
            }
            let question = ChatSubmit::new(name).session(setup.engine.session);
            let (turn, frames) = whole(&api, name, &question).await;
            assert!(
                frames.last().is_some_and(|f| f.is_terminal()),
                "{} {name}",
                word(dialect)
            );
            watcher.turn(turn).await.expect("the turn");
        }
        let mut seen = listed(&setup, &token).await;
        let home = setup.engine.server.home().display().to_string();
        let session = setup.engine.session.to_string();
        seen += &printed(
            &setup,
            &[
                "tail",
                &session,
                "--data",
                &home,
                "--principal",
                "user-42",
                "--json",
            ],
        );
        seen += &printed(
            &setup,
            &["replay", &session, "--home", &home, "--wire", "pc3"],
        );
        captured(&setup.engine.check_history().await, &mut seen);
        let log = setup.engine.server.stderr();
        assert!(
            log.contains("a model call failed"),
            "there is something to read:\n{log}"
        );
        let address = setup.fake.addr().to_string();
        let port = setup.fake.addr().port().to_string();
        let near = format!(":{port}");
        let everywhere = [KEY, KEY_NAME, mark.as_str(), token.as_str()];
        // The log names the address of a provider that fails; the wires do not.
        let on_wires = [address.as_str(), near.as_str()];
        let on_wires: Vec<&str> = everywhere.into_iter().chain(on_wires).collect();
        for (place, text, secrets) in [
            ("a wire", &seen, on_wires.as_slice()),
            ("the log", &log, &everywhere),
        ] {
            for secret in secrets {
                if let Some(at) = text.find(*secret) {
                    let from = text.floor_char_boundary(at.saturating_sub(200));
                    let to = text.floor_char_boundary((at + 200).min(text.len()));
                    panic!(
                        "{}: {secret} is on {place}: …{}…",
                        word(dialect),
                        &text[from..to]
                    );
                }
            }
        }
        let calls = setup.fake.calls();
        assert!(calls.len() > 15, "{}", calls.len());
        for call in calls {
            let all = format!("{:?} {} {}", call.headers, call.query, call.text);
            assert!(!all.contains(&token), "g8: {all}");
            assert!(
                !all.contains("user-42"),
                "a provider is not told who asks: {all}"
            );
            assert!(!call.query.contains(KEY), "a key is no part of an address");
        }
    }
}

#[tokio::test]
async fn missing_or_invalid_key_is_named_at_start_but_hidden() {
    let fake = FakeProvider::start().await;
    let entry = ModelEntry::new("vendor", Dialect::Anthropic, &fake.base_url());
    let pack = pack("http://127.0.0.1:9", &[entry]);
    let bad = "sk-with a space and\ttab";
    for (env, wanted) in [(None, KEY_NAME), (Some(bad), KEY_NAME)] {
        let mut options = ServerOptions::pack(pack.clone());
        options
            .env
            .extend(env.map(|key: &str| (KEY_NAME.to_owned(), key.to_owned())));
        let journal = Journal::new();
        let failed = TestServer::try_start(options, journal).await;
        let error = failed.expect_err("it does not start");
        assert!(
            error.status.is_some_and(|status| !status.success()),
            "{error}"
        );
        assert!(error.stderr.contains(wanted), "{error}");
        assert!(error.stderr.contains("providers.yaml:"), "where: {error}");
        assert!(!error.stderr.contains(bad), "{error}");
    }
    assert_eq!(fake.connections(), 0, "nobody was asked");
}

#[tokio::test]
async fn unreachable_provider_is_a_typed_failure() {
    let stopped_provider = FakeProvider::start().await;
    let address = stopped_provider.addr().to_string();
    let url = stopped_provider.base_url();
    drop(stopped_provider);
    let ccs = FakeDataService::start().await;
    let entry = ModelEntry::new("vendor", Dialect::Chat, &url);
    let entry = entry.with("timeouts", "{connect_ms: 500}");
    let pack = pack(&ccs.url(), &[entry]);
    let options = options(pack);
    let engine = EngineFixture::on(ccs, options).await;
    let reply = engine.ask("Hello?").await;
    assert_eq!(reply.last().event(), "error");
    reply.assert_valid_answer();
    reply.assert_absent(&[&address]);
    let events = engine.events(reply.turn).await;
    let classes = fields(&events, "llm.call_failed", "error_class");
    assert_eq!(classes, ["transport", "transport", "transport"]);
    assert!(!format!("{events:?}").contains(&address));
    let log = engine.server.stderr();
    assert!(log.contains(&address), "it is named to the operator: {log}");
    engine.check_history().await;
}
