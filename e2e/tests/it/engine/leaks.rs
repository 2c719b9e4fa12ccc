//! Nothing leaks: unique markers are in every field of every envelope, error body, header and
//! status line of the data service, in all text, thinking and queries of sub-agents, and in
//! prompts, descriptions and addresses. Every byte of every wire is searched for them; only
//! rendered items may appear.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{back, raw};
use turnwire_e2e::data_service::{FakeDataService, ServiceReply, envelope_with};
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR};
use turnwire_event::ResponseId;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::history::{ConnectionEntry, History};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::rng::SeededRng;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, binary};
use turnwire_testkit::watch::SubscribeOptions;

/// The credentials of the data service, at the start of its entry.
const CREDENTIALS: &str = "market: {headers: {x-team: blue}, key_headers: {authorization: \
    {key: '${MARKET_TOKEN}', prefix: 'Bearer '}, x-client-key: {key_file: '${MARKET_KEY_FILE}'}}, ";

/// Turns whose sub-agent goes wrong by itself.
const OTHERS: [&str; 7] = [
    "breaks", "fatal", "repair", "unknown", "status", "render", "card",
];

/// Markers of one run: each is new, and no part of one can come about by chance.
struct Markers {
    run: String,
    count: usize,
    /// The keys of the data service, which it repeats wherever it can.
    keys: [String; 2],
}

impl Markers {
    fn new() -> Self {
        let mut rng = SeededRng::from_env();
        let run = format!("mk{:016x}{:016x}", rng.next_u64(), rng.next_u64());
        let keys = ["token", "key"].map(|name| format!("{run}-0-{name}"));
        Self {
            run,
            count: 0,
            keys,
        }
    }

    /// The next one, with where it is planted.
    fn put(&mut self, at: &str) -> String {
        self.count += 1;
        format!("{}-{}-{at}", self.run, self.count)
    }

    /// Every value of a JSON text that is no name the contract fixes, as a marker.
    fn envelope(&mut self, fields: Value) -> Value {
        // What is shown to people has the credentials of the request, as a service may log them.
        let [token, key] = &self.keys;
        let echoed = json!({"sent": format!("Bearer {token}"), (key.as_str()): [key, token]});
        let shown_item = json!({"id": "OFF_1", "title": "SHOWN", "extra": {"deep": ["SHOWN"], "echoed": echoed}});
        let hidden = json!({"id": self.put("id"), "title": self.put("title")});
        let payload = json!({"items": [shown_item, hidden], "total": self.put("payload"), (self.put("key")): 1});
        let mut envelope = envelope_with("offer_search", &fields);
        let fixed = envelope.clone();
        let fill = |name: &str, value: Value| {
            if fields[name].is_null() {
                value
            } else {
                fixed[name].clone()
            }
        };
        envelope["payload"] = fill("payload", payload);
        envelope["version"] = fill("version", json!(format!("1.2.0+{}", self.put("build"))));
        let cache = json!({"cached": true, "cacheable": true, "ttl": 60, "key": self.put("cache"), (self.put("k")): self.put("v")});
        envelope["cache_meta"] = cache;
        envelope["timing"] = json!({"total_ms": 12, (self.put("timing")): self.put("timing")});
        let source = json!({"source": self.put("source"), "critical": true, "reason": self.put("reason"), "host": self.put("host")});
        envelope["partial"] = json!([source]);
        envelope[self.put("field")] = json!(self.put("unknown"));
        envelope
    }
}

/// Every turn of the run: what is asked, and what the data service answers to it.
fn cases(marks: &mut Markers) -> Vec<(&'static str, ServiceReply)> {
    let header = |marks: &mut Markers| format!("x-{}: {}", marks.put("name"), marks.put("value"));
    let http = |marks: &mut Markers, status: u16, body: Value| {
        let line = format!("{status} {}", marks.put("phrase").replace('-', " "));
        let line = format!("{line} {}", marks.put("phrase"));
        let header = header(marks);
        let echoed = format!("www-authenticate: Bearer {}", marks.keys[0]);
        ServiceReply::http(
            &line,
            &[&header, &echoed, "server: db-7.internal"],
            &body.to_string(),
        )
    };
    let mut cases = Vec::new();
    for (name, fields) in [
        ("ok", json!({})),
        ("partial", json!({"status": "partial"})),
        (
            "error",
            json!({"status": "error", "reason": "upstream_timeout"}),
        ),
        (
            "unknown reason",
            json!({"status": "error", "reason": marks.put("reason")}),
        ),
        ("unknown status", json!({"status": marks.put("status")})),
        ("mismatch", json!({"principal": marks.put("principal")})),
        (
            "major",
            json!({"version": format!("9.0.0-{}", marks.put("version"))}),
        ),
        (
            "schema",
            json!({"payload": {"items": [{"id": 1, "title": marks.put("title")}]}}),
        ),
        ("pair", json!({"domain_type": marks.put("domain")})),
    ] {
        let body = marks.envelope(fields);
        cases.push((name, http(marks, 200, body)));
    }
    for (name, status) in [
        ("307", 307),
        ("400", 400),
        ("401", 401),
        ("403", 403),
        ("404", 404),
        ("500", 500),
        ("503", 503),
    ] {
        let body = json!({"error": marks.put("error"), "message": marks.put("body"), "stack": [marks.put("stack")], "echoed": marks.keys.clone()});
        cases.push((name, http(marks, status, body)));
    }
    let text = format!("java.lang.NPE {} at db-7.internal", marks.put("text"));
    cases.push(("no json", ServiceReply::http("200 OK", &[], &text)));
    let noise = format!("{}\r\n{}\r\n\r\n", marks.put("noise"), marks.put("noise"));
    cases.push(("noise", ServiceReply::raw(noise.into_bytes())));
    cases
}

/// The sub-agent thinks, talks and asks in markers, in every call; then it answers, breaks, or
/// runs a tool that fails with one.
fn script(marks: &mut Markers) -> ModelScript {
    let mut script = ModelScript::new();
    for (heard, end) in [
        (
            "^breaks",
            vec![
                ScriptStep::text(&marks.put("half")),
                ScriptStep::error("provider"),
            ],
        ),
        (
            "^fatal",
            vec![ScriptStep::tool(
                "boom",
                json!({"fatal": true, "message": marks.put("fatal")}),
            )],
        ),
        (
            "^repair",
            vec![ScriptStep::tool(
                "boom",
                json!({"message": marks.put("told")}),
            )],
        ),
        (
            "^unknown",
            vec![ScriptStep::tool(
                &format!("no_{}", marks.put("tool").replace('-', "_")),
                json!({}),
            )],
        ),
        (
            "^status",
            vec![ScriptStep::tool(
                "look_up",
                json!({"event_id": marks.put("status")}),
            )],
        ),
        (
            "^render",
            vec![ScriptStep::tool(
                "render_offer_list",
                json!({"ids": [marks.put("id")]}),
            )],
        ),
        (
            "^card",
            vec![ScriptStep::tool(
                "render_offer_card",
                json!({"id": marks.put("id"), (marks.put("key")): 1}),
            )],
        ),
    ] {
        script = script.on_call("shop", heard, 1, end);
    }
    let first = [
        ScriptStep::thinking(&marks.put("thought"), "c2VhbA=="),
        ScriptStep::text(&marks.put("narration")),
        ScriptStep::tool(
            "search_offers",
            json!({"query": marks.put("query"), (marks.put("key")): marks.put("input")}),
        ),
    ];
    let ids = json!({"ids": ["OFF_1"]});
    script
        .call("shop", 1, first)
        .call(
            "shop",
            2,
            [
                ScriptStep::text(&marks.put("narration")),
                ScriptStep::tool("render_offer_list", ids),
            ],
        )
        .call(
            "shop",
            3,
            [
                ScriptStep::thinking(&marks.put("thought"), "c2VhbA=="),
                ScriptStep::text(&marks.put("answer")),
            ],
        )
        .call(
            ORCHESTRATOR,
            1,
            [ScriptStep::tool("ask_shop", json!({"query": "{{user}}"}))],
        )
        .call(ORCHESTRATOR, 2, [ScriptStep::text("COMPOSED")])
}

/// The pack with markers in whatever only models and operators read.
fn pack(marks: &mut Markers, ccs: &FakeDataService, script: &ModelScript) -> TestPack {
    let url = format!("{}/{}", ccs.url(), marks.put("path"));
    let describe = |marks: &mut Markers, text: &str, count| {
        let mut out = text.to_owned();
        for _ in 0..count {
            out = out.replacen(
                "description: Finds offers.",
                &format!("description: {}", marks.put("tool")),
                1,
            );
        }
        out
    };
    let pack = TestPack::market(&url)
        .script(script)
        .function("shop", "boom", "fail");
    let tools = describe(marks, pack.text("tools.yaml"), 1);
    pack.put("tools.yaml", &tools)
        .change("connectors.yaml", "market: {", CREDENTIALS)
        .put("prompts/persona.md", &marks.put("persona"))
        .put("prompts/worker.md", &marks.put("worker"))
        .change(
            "verticals/shop/agent.yaml",
            "Knows everything about shop.",
            &marks.put("agent"),
        )
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
            out.push('\n');
        }
    }
    for request in &history.requests {
        out.push_str(&format!("{:?}\n", request.answer));
    }
    for log in &history.sessions {
        out.extend(log.events.iter().map(|event| event.text.as_str()));
        out.push_str(&json!([log.messages, log.turns, log.tool_calls]).to_string());
    }
}

/// What a command prints about the stored session.
fn printed(engine: &EngineFixture, words: &[&str]) -> String {
    let mut command = Command::new(binary());
    command
        .args(words)
        .env("TURNWIRE_HOME", engine.server.home());
    let done = command.output().expect("the command runs");
    assert!(
        done.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Everything that is asked, in both versions of the wire, with those who watch and come late;
/// gives what they saw apart from the journal, and how often something rendered was shown.
async fn asked(
    engine: &EngineFixture,
    replies: &[(&'static str, ServiceReply)],
) -> (String, usize) {
    let everything = SubscribeOptions::live().filter(json!({"include_suppressed": true}));
    let mut live = engine.watch("live", everything).await;
    let mut chat = engine
        .watch("chat", SubscribeOptions::live().filter("preset:chat"))
        .await;
    let (mut seen, mut shown) = (String::new(), 0);
    for version in ["0.5", "0.4"] {
        let named = replies.iter().map(|(name, reply)| (*name, Some(reply)));
        for (name, reply) in named.chain(OTHERS.map(|name| (name, None))) {
            if let Some(reply) = reply {
                engine.ccs.set("offer_search", reply.clone());
            }
            let reply = engine.submit(ChatSubmit::new(name).version(version)).await;
            assert!(reply.last().is_terminal(), "{name}");
            let words = reply.text();
            assert!(words.starts_with("COMPOSED"), "{name}: {words}");
            shown += reply.raw().matches("SHOWN").count();
            let late = format!("{name} {version} late");
            let mut late = back(&engine.api, &late, reply.turn, None).await;
            late.read_to_end().await.expect("a replay");
            live.turn(reply.turn).await.expect("the turn");
            chat.turn(reply.turn).await.expect("the turn");
            let headers = ["x-turnwire-principal: user-42"];
            for path in [
                format!("GET /turns/{}", reply.turn),
                format!("GET /chat/{}/stream", ResponseId::from(reply.turn)),
            ] {
                let answer = raw(engine.server.addr(), &path, &headers, b"").await;
                assert_eq!(answer.status, 200, "{path}");
                seen += &(answer.head + &answer.body);
            }
        }
    }
    let everything = SubscribeOptions::snapshot().filter(json!({"include_suppressed": true}));
    let mut late = engine.watch("late", everything).await;
    late.deadline = Duration::from_millis(200);
    late.end().await;
    (seen, shown)
}

/// Every list, and what the commands print.
async fn listed(engine: &EngineFixture) -> String {
    let mut seen = String::new();
    let session = engine.session.to_string();
    let own = ["", "/messages", "/turns", "/tool-calls", "/llm-calls"];
    let own = own.map(|list| format!("/sessions/{session}{list}"));
    let all = [
        "/sessions",
        "/metrics",
        "/status-events",
        "/usage",
        "/openapi.json",
        "/readyz",
        "/nowhere",
    ];
    for path in own.into_iter().chain(all.map(str::to_owned)) {
        let answer = engine.api.get(&path).await.expect("an answer");
        seen += &format!("{path} {:?} {}\n", answer.headers, answer.body);
    }
    let home = engine.server.home().display().to_string();
    let tail = ["tail", &session, "--data", &home, "--principal", "user-42"];
    seen += &printed(engine, &tail);
    seen += &printed(engine, &[&tail[..], &["--json"]].concat());
    let replay = ["replay", &session, "--home", &home, "--wire"];
    for wire in [&["pc3"][..], &["pc3", "--version", "0.4"], &["session"]] {
        seen += &printed(engine, &[&replay[..], wire].concat());
    }
    seen
}

// S1-083, S1-093, S1-120, S2-013, D-46, D-83, C-37, I-07, G6, G8
#[tokio::test]
async fn marker_secrets_appear_on_no_wire() {
    let mut marks = Markers::new();
    let script = script(&mut marks);
    let ccs = FakeDataService::start().await;
    let pack = pack(&mut marks, &ccs, &script);
    let folder = tempfile::tempdir().expect("a folder");
    let key_file = folder.path().join("market.key");
    std::fs::write(&key_file, format!("{}\n", marks.keys[1])).expect("a file");
    let options = ServerOptions {
        env: vec![
            ("MARKET_TOKEN".to_owned(), marks.keys[0].clone()),
            ("MARKET_KEY_FILE".to_owned(), key_file.display().to_string()),
        ],
        ..ServerOptions::pack(pack)
    };
    let engine = EngineFixture::on(ccs, options).await;
    let (mut capture, shown) = asked(&engine, &cases(&mut marks)).await;
    let [token, key] = &marks.keys;
    for call in engine.ccs.calls() {
        for line in [
            format!("authorization: Bearer {token}"),
            format!("x-client-key: {key}"),
            "x-team: blue".to_owned(),
        ] {
            assert!(call.head.contains(&line), "{line}: {}", call.head);
        }
        assert!(call.head.contains("traceparent: 00-"), "{}", call.head);
    }
    assert!(
        capture.contains("***"),
        "a key that was sent back is hidden"
    );
    assert!(shown >= 4, "what is rendered is shown: {shown}");
    let requested = json!(engine.ccs.params("offer_search")).to_string();
    assert!(
        requested.contains(&marks.run),
        "the markers are in use: {requested}"
    );
    capture += &listed(&engine).await;
    captured(&engine.check_history().await, &mut capture);
    assert!(
        capture.len() > 100_000 && capture.contains("SHOWN"),
        "there is something to search"
    );
    // The log has texts of the pack and of models; it has no key.
    let log = engine.server.stderr();
    for key in &marks.keys {
        assert!(!log.contains(key), "{key} is in the log");
    }
    let address = engine.ccs.url();
    let address = address.trim_start_matches("http://");
    for word in [marks.run.as_str(), "db-7.internal", "java.lang", address] {
        if let Some(at) = capture.find(word) {
            let from = capture.floor_char_boundary(at.saturating_sub(300));
            let to = capture.floor_char_boundary((at + 300).min(capture.len()));
            let place = &capture[from..to];
            panic!("{word} leaked ({} planted): …{place}…", marks.count);
        }
    }
}
