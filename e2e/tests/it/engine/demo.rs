//! The built-in demo pack with a plain `turnwire serve`: questions in three languages, several at
//! once, empty results, a failing, slow or missing data service, and many users at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged, raw, whole};
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{ChatReply, EngineFixture, check_dispatch_rules, of, only};
use turnwire_e2e::load;
use turnwire_event::SessionId;
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::server::ServerOptions;

/// People at once in the crowd.
const CROWD: usize = 200;

async fn demo() -> EngineFixture {
    // The stage's own data service is not used: the demo brings one.
    EngineFixture::on(FakeDataService::start().await, ServerOptions::demo()).await
}

async fn ask(engine: &EngineFixture, locale: &str, words: &str) -> ChatReply {
    let reply = engine
        .submit(ChatSubmit::new(words).field("locale", locale))
        .await;
    assert!(reply.last().is_terminal(), "{words}");
    assert!(
        !reply.text().trim().is_empty(),
        "{words}: {:?}",
        reply.labels()
    );
    reply.assert_absent(&[
        "cache_meta",
        "enricher_response",
        "127.0.0.1",
        "\"principal\"",
    ]);
    reply.assert_tools_paired();
    reply
}

async fn invoked(engine: &EngineFixture, reply: &ChatReply) -> Vec<String> {
    let events = engine.events(reply.turn).await;
    let ids = only(&events, "dispatch.traced")["payload"]["sub_agents_invoked"].clone();
    serde_json::from_value(ids).expect("ids")
}

// S2-086
#[tokio::test]
async fn questions_are_answered_in_their_language() {
    let engine = demo().await;
    let mut texts = Vec::new();
    for (locale, words) in [
        ("en", "Do you have offers for oat milk?"),
        ("de", "Gibt es Angebote für Hafermilch?"),
        ("es", "¿Hay ofertas de leche de avena?"),
    ] {
        let reply = ask(&engine, locale, words).await;
        assert_eq!(reply.last().event(), "completed", "{words}");
        assert_eq!(invoked(&engine, &reply).await, ["shop"], "{words}");
        assert!(
            reply.count("data_loaded") + reply.count("component") > 0,
            "{words}: {:?}",
            reply.labels()
        );
        let statuses = reply.statuses();
        assert!(!statuses.is_empty(), "{words}");
        texts.push((statuses[0].1.clone(), reply.text()));
    }
    let mut messages: Vec<&String> = texts.iter().map(|(status, _)| status).collect();
    messages.dedup();
    assert_eq!(messages.len(), 3, "{texts:?}");
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// S2-086
#[tokio::test]
async fn each_vertical_and_several_at_once_answer() {
    let engine = demo().await;
    for (words, agent) in [
        ("How many points do I have?", "rewards"),
        ("Where is my receipt?", "ereceipts"),
        ("I need help with a refund, please ask support", "support"),
    ] {
        let reply = ask(&engine, "en", words).await;
        assert_eq!(reply.last().event(), "completed", "{words}");
        let invoked = invoked(&engine, &reply).await;
        assert!(invoked.contains(&agent.to_owned()), "{words}: {invoked:?}");
    }
    let reply = ask(
        &engine,
        "en",
        "Find offers for oat milk and tell me my points",
    )
    .await;
    let mut invoked = invoked(&engine, &reply).await;
    invoked.sort();
    assert_eq!(invoked, ["rewards", "shop"]);
    assert_eq!(reply.last().event(), "completed");
    let reply = ask(&engine, "en", "hello").await;
    assert_eq!(reply.last().event(), "completed");
    engine.check_history().await;
}

// D-11
#[tokio::test]
async fn empty_result_and_service_failure_are_explained() {
    let engine = demo().await;
    let reply = ask(&engine, "en", "Any offers for unobtainium?").await;
    assert_eq!(
        (reply.last().event(), reply.errors()),
        ("completed", vec![])
    );
    for locale in ["en", "de", "es"] {
        let reply = ask(&engine, locale, "offers outage").await;
        let errors = reply.errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(
            (&errors[0].0["code"], &errors[0].1),
            (&json!("CCS_ENVELOPE_ERROR"), &json!(false))
        );
        assert_eq!(reply.last().event(), "completed");
        assert!(!reply.text().contains("upstream"), "{}", reply.text());
    }
    engine.check_history().await;
}

// S2-057
#[tokio::test]
async fn slow_service_is_announced_and_answers_later() {
    let engine = demo().await;
    let reply = ask(&engine, "en", "slow offers for oat milk").await;
    assert_eq!(reply.last().event(), "completed");
    assert!(
        reply.elapsed > Duration::from_secs(2),
        "{:?}",
        reply.elapsed
    );
    assert!(reply.count("status") >= 1);
    engine.check_history().await;
}

/// Where the demo's data service listens, as the server says at its start.
fn service(engine: &EngineFixture) -> std::net::SocketAddr {
    let stderr = engine.server.stderr();
    let own = engine.server.addr().to_string();
    let mut addresses = stderr.split("http://").skip(1).filter_map(|tail| {
        let end = tail.find(|c: char| !c.is_ascii_digit() && !".:".contains(c));
        tail[..end.unwrap_or(tail.len())]
            .trim_end_matches(['.', ':'])
            .parse()
            .ok()
    });
    let other = addresses.find(|addr: &std::net::SocketAddr| addr.to_string() != own);
    other.unwrap_or_else(|| panic!("nobody says where the data service is:\n{stderr}"))
}

// D-31
#[tokio::test]
async fn stopped_demo_service_fails_and_turn_still_answers() {
    let engine = demo().await;
    let before = ask(&engine, "en", "offers for oat milk").await;
    assert_eq!(before.errors(), []);
    let stopped = raw(service(&engine), "POST /stop", &["content-length: 0"], b"").await;
    assert!((200..300).contains(&stopped.status), "{stopped:?}");
    let started = Instant::now();
    let reply = loop {
        let reply = ask(&engine, "en", "offers for oat milk").await;
        if !reply.errors().is_empty() {
            break reply;
        }
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "it does not stop"
        );
    };
    let (error, last) = &reply.errors()[0];
    assert_eq!(
        (&error["code"], last),
        (&json!("CCS_ENVELOPE_ERROR"), &json!(false))
    );
    assert_eq!(reply.last().event(), "completed");
    engine.check_history().await;
}

// LAW-1
// serial: calls to the data service have 10 s each, 200 turns at once
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_concurrent_users_are_answered() {
    let engine = demo().await;
    const QUESTIONS: [&str; 5] = [
        "offers for oat milk",
        "how many points do I have?",
        "offers for coffee and my points",
        "offers outage",
        "hello",
    ];
    let started = Instant::now();
    let turns = (0..CROWD).map(|n| {
        let api = engine.api.clone();
        tokio::spawn(async move {
            let session = api.create().await.expect("a session");
            let words = QUESTIONS[n % QUESTIONS.len()];
            let question = ChatSubmit::new(words).session(session);
            let (_, frames) = whole(&api, &format!("person {n}"), &question).await;
            assert_eq!(
                frames.last().expect("a frame").event(),
                "completed",
                "{words}"
            );
            session
        })
    });
    let turns: Vec<_> = turns.collect();
    let mut sessions: Vec<SessionId> = Vec::new();
    for turn in turns {
        sessions.push(turn.await.expect("a turn"));
    }
    let took = started.elapsed();
    println!(
        "{CROWD} people at once: {took:?}, {:.0} turns a second",
        CROWD as f64 / took.as_secs_f64()
    );
    assert!(took < Duration::from_secs(60), "{took:?}");
    for &session in &sessions {
        let log = engine.log(session).await;
        check_dispatch_rules(&log);
        let ends: Vec<&Value> = of(&log, "turn.completed").collect();
        assert_eq!(ends.len(), 1);
    }
    let metrics = MetricsSnapshot::read(&engine.api).await;
    assert_eq!(metrics.sum("turnwire_stream_sse_frame_dropped_total"), 0.0);
    assert_eq!(metrics.sum("turnwire_turn_started_total") as usize, CROWD);
    assert_no_errors_logged(&engine.server);
    load::check_history(&engine.api, &sessions).await;
}
