//! The spans of turns, as a real OTLP receiver reads them.

use serde_json::json;
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, ORCHESTRATOR, PRINCIPAL, asks, reference, working};
use turnwire_e2e::server_fixture::ServerFixture;
use turnwire_e2e::workers::{self, WorkerFixture, delegates, read_by};
use turnwire_testkit::chat::ChatSubmit;
use turnwire_testkit::collector::{CollectedSpan, Collector, ancestors};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};
use turnwire_testkit::server::{ServerOptions, TestServer};
use turnwire_testkit::watch::SubscribeOptions;

pub(super) const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub(super) const CALLER: &str = "00f067aa0ba902b7";

/// A server that runs the market pack and exports to `collector`.
pub(super) async fn engine(
    script: ModelScript,
    collector: &Collector,
    more: &[(&str, &str)],
) -> EngineFixture {
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url()).script(&script);
    let mut options = ServerOptions::pack(pack);
    options.env = collector.variables();
    let more = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    options.env.extend(more);
    EngineFixture::on(ccs, options).await
}

pub(super) fn named<'a>(spans: &'a [CollectedSpan], name: &str) -> &'a CollectedSpan {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found
        .next()
        .unwrap_or_else(|| panic!("no span {name}: {spans:#?}"));
    assert!(found.next().is_none(), "two spans {name}: {spans:#?}");
    span
}

pub(super) fn has(spans: &[CollectedSpan], name: &str) -> bool {
    spans.iter().any(|span| span.name == name)
}

// S2-065, S2-043, S4-014, S4-017
#[tokio::test]
async fn turn_is_one_chain_of_spans_at_the_collector() {
    let collector = Collector::start().await;
    let engine = engine(
        reference(),
        &collector,
        &[("OTEL_SERVICE_NAME", "shop-assistant")],
    )
    .await;
    let parent = format!("00-{TRACE_ID}-{CALLER}-01");
    let question = ChatSubmit::new("oat milk SECRET WORDS")
        .header("traceparent", &parent)
        .header("tracestate", "vendor=abc");
    let reply = engine.submit(question).await;
    let turn_id = reply.turn;
    let spans = collector
        .spans_until("the delivery of the turn", |spans| {
            has(spans, "deliver chat") && has(spans, "invoke_agent orchestrator")
        })
        .await;
    let turn = named(&spans, "invoke_agent orchestrator");
    assert_eq!((turn.kind, turn.parent_id.as_str()), (2, CALLER));
    for span in &spans {
        assert_eq!(span.trace_id, TRACE_ID, "{span:?}");
        assert_eq!(span.state, "vendor=abc", "{span:?}");
        assert_eq!(span.resource["service.name"], "shop-assistant");
        if span.span_id != turn.span_id {
            let chain = ancestors(&spans, span);
            let end = &chain[chain.len() - 2..];
            assert_eq!(
                end,
                ["invoke_agent orchestrator", CALLER],
                "{span:?}\n{spans:#?}"
            );
        }
        assert!(span.ended_ns >= span.started_ns, "{span:?}");
        let text = format!("{span:?}");
        for hidden in ["SECRET", PRINCIPAL, "oat milk", "OFF_1", "SUBRAW"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
    assert_eq!(turn.text("turnwire.turn.id"), turn_id.to_string());
    assert_eq!(
        turn.text("gen_ai.conversation.id"),
        engine.session.to_string()
    );
    assert_eq!(turn.text("gen_ai.operation.name"), "invoke_agent");
    assert_eq!(turn.text("turnwire.turn.status"), "ok");
    assert!(turn.text("gen_ai.agent.version").contains('@'), "{turn:?}");
    // The events have the same spans.
    let events = engine.events(turn_id).await;
    assert_eq!(events[0]["trace"]["span_id"], turn.span_id);
    let sub_agent = named(&spans, "invoke_agent shop");
    let is_of_shop = |event: &&serde_json::Value| {
        event["type"] == "llm.call_started" && event["actor"] == "subagent:shop"
    };
    let call = events
        .iter()
        .find(is_of_shop)
        .expect("a call of the sub-agent");
    assert_eq!(call["trace"]["span_id"], sub_agent.span_id);
    assert_eq!(sub_agent.text("gen_ai.agent.name"), "shop");
    let calls: Vec<_> = spans
        .iter()
        .filter(|span| span.name.starts_with("chat "))
        .collect();
    let of_shop = calls
        .iter()
        .filter(|span| span.parent_id == sub_agent.span_id)
        .count();
    assert_eq!((calls.len(), of_shop), (5, 3));
    for call in &calls {
        assert_eq!((call.kind, call.text("gen_ai.operation.name")), (3, "chat"));
        assert_eq!(call.text("gen_ai.provider.name"), "scripted");
        assert!(
            call.attributes["gen_ai.usage.output_tokens"].is_i64(),
            "{call:?}"
        );
        assert!(
            call.attributes["gen_ai.response.finish_reasons"].is_array(),
            "{call:?}"
        );
    }
    let tool = named(&spans, "execute_tool search_offers");
    assert_eq!(tool.parent_id, sub_agent.span_id);
    assert_eq!(tool.text("gen_ai.tool.type"), "datastore");
    let service = named(&spans, "data_service offer_search");
    assert_eq!(
        (service.kind, service.parent_id.as_str()),
        (3, tool.span_id.as_str())
    );
    assert_eq!(service.text("turnwire.enricher.id"), "offer_search");
    assert!(
        service.attributes.contains_key("turnwire.cache.cached"),
        "{service:?}"
    );
    assert!(!format!("{service:?}").contains("LEAK_CACHE"));
    // The service was told this span.
    let asked = engine.ccs.calls();
    let sent = format!("traceparent: 00-{TRACE_ID}-{}-01", service.span_id);
    assert!(asked[0].head.contains(&sent), "{sent}: {}", asked[0].head);
    assert!(
        asked[0].head.contains("tracestate: vendor=abc"),
        "{}",
        asked[0].head
    );
    assert_eq!(asked[0].request["trace"]["span_id"], service.span_id);
    let commits: Vec<_> = spans.iter().filter(|span| span.name == "commit").collect();
    assert!((3..=30).contains(&commits.len()), "{}", commits.len());
    let committed: i64 = commits
        .iter()
        .filter_map(|c| c.attributes["turnwire.log.events"].as_i64())
        .sum();
    assert_eq!(
        committed,
        events.len() as i64,
        "every stored event is in one commit"
    );
    let delivery = named(&spans, "deliver chat");
    assert!(!delivery.is_error, "{delivery:?}");
    assert!(
        delivery.attributes["turnwire.delivery.frames"].as_i64() > Some(5),
        "{delivery:?}"
    );
    engine.check_history().await;
}

#[tokio::test]
async fn parallel_sub_agents_have_overlapping_spans() {
    let collector = Collector::start().await;
    let script = asks(&["shop", "rewards"], "Both.")
        .call("shop", 1, [ScriptStep::slow("SUBRAW slowly", 4, 50)])
        .call("rewards", 1, [ScriptStep::slow("SUBRAW slowly", 4, 50)]);
    let engine = engine(script, &collector, &[]).await;
    let reply = engine.ask("both").await;
    let spans = collector
        .spans_until("the end", |spans| has(spans, "invoke_agent orchestrator"))
        .await;
    let turn = named(&spans, "invoke_agent orchestrator");
    // Without a caller the trace is the turn's own.
    assert_eq!(turn.trace_id, reply.turn.trace_id());
    assert_eq!(turn.parent_id, "");
    let (shop, rewards) = (
        named(&spans, "invoke_agent shop"),
        named(&spans, "invoke_agent rewards"),
    );
    assert!(shop.started_ns < rewards.ended_ns && rewards.started_ns < shop.ended_ns);
    for span in [shop, rewards] {
        assert_eq!(
            (span.parent_id.as_str(), span.kind),
            (turn.span_id.as_str(), 1)
        );
    }
}

#[tokio::test]
async fn failures_and_stops_are_in_the_status_of_spans() {
    let collector = Collector::start().await;
    let script = working(asks(&["shop"], "Sorry."));
    let failing = engine(script, &collector, &[]).await;
    let broken = json!({"status": "error", "reason": "upstream_unavailable"});
    let broken = turnwire_e2e::data_service::envelope_with("offer_search", &broken);
    failing.ccs.set(
        "offer_search",
        turnwire_e2e::data_service::ServiceReply::envelope(&broken),
    );
    failing.ask("offers").await;
    let spans = collector
        .spans_until("the end", |spans| has(spans, "invoke_agent orchestrator"))
        .await;
    let service = named(&spans, "data_service offer_search");
    assert_eq!(
        (service.is_error, service.text("error.type")),
        (true, "upstream_unavailable")
    );
    let tool = named(&spans, "execute_tool search_offers");
    assert_eq!(
        (tool.is_error, tool.text("error.type")),
        (true, "envelope_error")
    );
    let before = spans.len();
    let script = ModelScript::new().on("", [ScriptStep::stall()]);
    let engine = engine(script, &collector, &[]).await;
    let turn = engine
        .api
        .submit(engine.session, "stall")
        .await
        .expect("accepted")
        .turn_id;
    engine.reached(turn, "llm.call_started").await;
    engine.api.cancel(turn).await.expect("an answer");
    let spans = collector
        .spans_until("the stopped turn", |spans| {
            spans[before..]
                .iter()
                .any(|span| span.name == "invoke_agent orchestrator")
        })
        .await;
    let spans = &spans[before..];
    let stopped = named(spans, "invoke_agent orchestrator");
    assert_eq!(stopped.text("turnwire.turn.status"), "cancelled");
    assert_eq!(stopped.text("turnwire.turn.reason"), "user_cancel");
    assert!(!stopped.is_error, "a stop that was asked for is no error");
    let call = spans.iter().find(|span| span.name.starts_with("chat "));
    assert_eq!(call.expect("a call").text("error.type"), "cancelled");
}

#[tokio::test]
async fn websocket_delivery_is_one_span_a_turn() {
    let collector = Collector::start().await;
    let script = ModelScript::new().on("", [ScriptStep::slow("one two three four", 2, 20)]);
    let mut options = ServerOptions::script(script);
    options.env = collector.variables();
    let fixture = ServerFixture::new(options).await;
    let mut client = fixture.watch("watching", SubscribeOptions::live()).await;
    for expected in 1..=2 {
        let turn = fixture.submit("go").await;
        client.turn(turn).await.expect("its events");
        let spans = collector
            .spans_until("a delivery a turn", |spans| {
                spans
                    .iter()
                    .filter(|span| span.name == "deliver session")
                    .count()
                    == expected
            })
            .await;
        let found = spans.iter().rfind(|span| span.name == "deliver session");
        let delivery = found.expect("a delivery");
        assert_eq!(delivery.trace_id, turn.trace_id());
        assert!(!delivery.is_error, "{delivery:?}");
        assert!(
            delivery.attributes["turnwire.delivery.frames"].as_i64() > Some(3),
            "{delivery:?}"
        );
    }
}

// S4-017
#[tokio::test]
async fn worker_continues_the_trace_of_its_parent() {
    let collector = Collector::start().await;
    let script = read_by(delegates("count", "Done."), [ScriptStep::text("one two")]);
    let mut options = ServerOptions::pack(workers::pack(&script, 60_000));
    options.env = collector.variables();
    let fixture = WorkerFixture::on(options).await;
    let turn = fixture.say("go").await;
    fixture.api.ended(turn).await.expect("its end");
    let spans = collector
        .spans_until("the end", |spans| has(spans, "invoke_agent orchestrator"))
        .await;
    for span in &spans {
        assert_eq!(span.trace_id, turn.trace_id(), "{span:?}");
    }
    let worker = named(&spans, "invoke_agent reader");
    assert_eq!(worker.text("turnwire.turn.kind"), "worker");
    assert_eq!(
        ancestors(&spans, worker),
        ["execute_tool research", "invoke_agent orchestrator"]
    );
}

#[tokio::test]
async fn last_spans_are_sent_before_the_process_ends() {
    let collector = Collector::start().await;
    let script = ModelScript::new().on("", [ScriptStep::slow("a slow answer", 2, 50)]);
    let mut options = ServerOptions::script(script);
    options.env = collector.variables();
    // Nothing is sent before the end.
    options
        .env
        .push(("OTEL_BSP_SCHEDULE_DELAY".into(), "600000".into()));
    let mut server = TestServer::start(options).await;
    let api = server.api();
    let session = api.create().await.expect("a session");
    let turn = api.submit(session, "go").await.expect("accepted").turn_id;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(collector.spans(), []);
    server.sigterm();
    assert!(
        server
            .wait(std::time::Duration::from_secs(60))
            .await
            .success()
    );
    let spans = collector.spans();
    let span = named(&spans, &format!("invoke_agent {ORCHESTRATOR}"));
    assert_eq!(span.text("turnwire.turn.id"), turn.to_string());
    assert_eq!(
        span.text("turnwire.turn.status"),
        "ok",
        "the turn ended by itself"
    );
    assert!(has(&spans, "commit"));
}
