//! All responses of a data service: every status, reason and version, invalid, slow, large and
//! missing bodies. The turn always answers and ends (S1-086, S1-087, S1-091, S2-036..043).

use std::time::Duration;

use serde_json::{Value, json};
use turnwire_e2e::chat::{MetricsSnapshot, assert_no_errors_logged};
use turnwire_e2e::data_service::{FakeDataService, ServiceReply, envelope, envelope_with, offers};
use turnwire_e2e::engine::{ChatReply, EngineFixture, asks, only, working};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::script::{ModelScript, ScriptStep};

const SORRY: &str = "I could not look that up.";

/// The service of the stage is given half a second and 64 KiB.
fn hasty(pack: TestPack) -> TestPack {
    pack.change(
        "connectors.yaml",
        "'}\nenrichers",
        "', timeout_ms: 500, max_bytes: 65536}\nenrichers",
    )
}

fn script() -> ModelScript {
    working(asks(&["shop"], SORRY))
}

async fn engine() -> EngineFixture {
    EngineFixture::with(script(), hasty).await
}

/// One question that finds the service broken: an error with its reason, words, an end.
async fn unavailable(engine: &EngineFixture, name: &str, reason: &str) -> ChatReply {
    let reply = engine.ask(name).await;
    let error =
        json!({"code": "CCS_ENVELOPE_ERROR", "enricher_id": "offer_search", "reason": reason});
    assert_eq!(reply.errors(), [(error, json!(false))], "{name}");
    assert_eq!(
        (reply.text().as_str(), reply.last().event()),
        (SORRY, "completed"),
        "{name}"
    );
    reply.assert_no_data(name);
    reply.assert_absent(&["OFF_1", "Oat milk", "MARKER"]);
    reply.assert_tools_paired();
    reply
}

// S1-091, S2-049, D-29, R-23
#[tokio::test]
async fn reason_shaped_like_a_code_is_kept() {
    let engine = engine().await;
    let error = |reason: Value| {
        let fields = json!({"status": "error", "reason": reason, "MARKER": "MARKER"});
        ServiceReply::envelope(&envelope_with("offer_search", &fields))
    };
    for reason in [
        "upstream_unavailable",
        "upstream_timeout",
        "upstream_partial",
        "unauthorized",
        "invalid_request",
        // Not in the contract.
        "quota_exceeded",
    ] {
        engine.ccs.set("offer_search", error(json!(reason)));
        unavailable(&engine, reason, reason).await;
    }
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let counted = metrics.by("turnwire_stream_ccs_error_total", "reason");
    let once = [
        "invalid_request",
        "other",
        "unauthorized",
        "upstream_partial",
        "upstream_timeout",
        "upstream_unavailable",
    ]
    .map(|label| (label.to_owned(), 1));
    assert_eq!(counted, once.into());
    for (name, reason) in [
        ("new", json!("MARKER_new_word")),
        ("none", Value::Null),
        ("odd", json!({"MARKER": 1})),
    ] {
        engine.ccs.set("offer_search", error(reason));
        unavailable(&engine, name, "upstream_unavailable").await;
    }
    let refused = |status: &str, body: Value| ServiceReply::http(status, &[], &body.to_string());
    for (name, reply, reason) in [
        (
            "400",
            refused("400 Bad Request", json!({"error": "missing_principal"})),
            "invalid_request",
        ),
        (
            "403",
            refused("403 Forbidden", json!({"error": "principal_mismatch"})),
            "unauthorized",
        ),
        (
            "500",
            refused("500 MARKER", json!({"error": "MARKER"})),
            "upstream_unavailable",
        ),
        (
            "503",
            refused("503 MARKER", json!("MARKER")),
            "upstream_unavailable",
        ),
    ] {
        engine.ccs.set("offer_search", reply);
        engine.ccs.take();
        unavailable(&engine, name, reason).await;
        assert_eq!(
            engine.ccs.calls().len(),
            1,
            "s2_022: {name} is not tried again"
        );
    }
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// S1-084, S2-036, S2-037
#[tokio::test]
async fn invalid_enricher_envelope_is_no_data() {
    let engine = engine().await;
    let with = |fields: Value| ServiceReply::envelope(&envelope_with("offer_search", &fields));
    for (name, reply) in [
        (
            "text",
            ServiceReply::http("200 OK", &[], "MARKER is no JSON"),
        ),
        ("list", ServiceReply::http("200 OK", &[], "[]")),
        ("empty", ServiceReply::http("200 OK", &[], "")),
        (
            "cut",
            ServiceReply::raw(
                b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"MARKER\":".to_vec(),
            ),
        ),
        ("nothing", ServiceReply::raw(Vec::new())),
        ("noise", ServiceReply::raw(b"MARKER\r\n\r\n".to_vec())),
        (
            "moved",
            ServiceReply::http("302 Found", &["location: http://127.0.0.1:9/MARKER"], "{}"),
        ),
        (
            "another pair",
            with(json!({"domain_type": "points_balance"})),
        ),
        ("another enricher", with(json!({"enricher_id": "points"}))),
        ("status", with(json!({"status": "MARKER"}))),
        ("no payload", with(json!({"payload": null}))),
        (
            "schema",
            with(json!({"payload": {"items": [{"id": 7, "title": "Oat milk"}]}})),
        ),
        (
            "shape",
            with(json!({"payload": {"things": offers()["items"]}})),
        ),
        ("version", with(json!({"version": "MARKER"}))),
    ] {
        engine.ccs.set("offer_search", reply);
        let reply = engine.ask(name).await;
        let errors = reply.errors();
        assert_eq!(errors.len(), 1, "{name}: {errors:?}");
        assert_eq!(errors[0].0["code"], "CCS_ENVELOPE_ERROR", "{name}");
        assert_eq!(
            (reply.text().as_str(), reply.last().event()),
            (SORRY, "completed"),
            "{name}"
        );
        reply.assert_no_data(name);
        reply.assert_absent(&["OFF_1", "Oat milk", "MARKER"]);
    }
    assert_no_errors_logged(&engine.server);
    engine.check_history().await;
}

// D-31, S1-142
#[tokio::test]
async fn slow_endless_large_and_absent_services_end_in_time() {
    let engine = engine().await;
    let good = || ServiceReply::envelope(&envelope("offer_search"));
    let large = json!({"items": [{"id": "OFF_1", "title": "Oat milk".repeat(20_000)}]});
    let large = ServiceReply::envelope(&envelope_with("offer_search", &json!({"payload": large})));
    for (name, reply, reason) in [
        ("silent", good().after(30_000), "upstream_timeout"),
        ("drop by drop", good().in_pieces(1, 50), "upstream_timeout"),
        ("large", large, "upstream_unavailable"),
    ] {
        engine.ccs.set("offer_search", reply);
        let reply = unavailable(&engine, name, reason).await;
        assert!(
            reply.elapsed < Duration::from_secs(20),
            "{name}: {:?}",
            reply.elapsed
        );
    }
    engine.ccs.stop();
    // The listener is gone when the task has ended.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let reply = unavailable(&engine, "nobody there", "upstream_unavailable").await;
    assert!(
        reply.elapsed < Duration::from_secs(20),
        "{:?}",
        reply.elapsed
    );
    reply.assert_absent(&["127.0.0.1", "refused"]);
    engine.check_history().await;
}

// S1-087, S2-042, S2-085
#[tokio::test]
async fn newer_minor_is_accepted_and_major_is_no_data() {
    let engine = engine().await;
    let version = |version: &str| {
        ServiceReply::envelope(&envelope_with("offer_search", &json!({"version": version})))
    };
    let mismatches = || async {
        MetricsSnapshot::read(&engine.api)
            .await
            .sum("turnwire_ps6_envelope_version_mismatch_total")
    };
    let same = engine.ask("as declared").await;
    for minor in ["1.9.0", "1.0.0", "1.2.7"] {
        engine.ccs.set("offer_search", version(minor));
        let reply = engine.ask(minor).await;
        assert_eq!(reply.labels(), same.labels(), "{minor}");
        assert_eq!(reply.errors(), []);
    }
    assert_eq!(mismatches().await, 0.0);
    for major in ["2.0.0", "0.9.0"] {
        engine.ccs.set("offer_search", version(major));
        let reply = unavailable(&engine, major, "upstream_unavailable").await;
        reply.assert_absent(&["\"2.0.0\"", "\"0.9.0\"", "mismatch"]);
    }
    assert_eq!(mismatches().await, 2.0);
    engine.check_history().await;
}

// S1-086, S2-039, S2-083
#[tokio::test]
async fn partial_data_is_shown_and_marked_for_orchestrator() {
    let script = working(asks(&["shop"], "Some of it: {{last_tool_result}}"));
    let engine = EngineFixture::new(script).await;
    let partial = json!([{"source": "FIDORA", "critical": false, "reason": "upstream_timeout"}]);
    let fields = json!({"status": "partial", "partial": partial});
    engine.ccs.set(
        "offer_search",
        ServiceReply::envelope(&envelope_with("offer_search", &fields)),
    );
    let reply = engine.ask("offers").await;
    assert_eq!(
        (reply.errors(), reply.last().event()),
        (vec![], "completed")
    );
    let loaded = reply.of("data_loaded").next().expect("the data there is");
    assert_eq!(loaded.field("data")["items"], offers()["items"]);
    let result: Value =
        serde_json::from_str(reply.text().trim_start_matches("Some of it: ")).expect("the result");
    assert_eq!(result["caveat"], true);
    reply.assert_absent(&["FIDORA", "critical", "\"partial\"", "upstream_timeout"]);
    let events = engine.events(reply.turn).await;
    assert_eq!(
        only(&events, "subagent.completed")["payload"]["outcome"],
        "success"
    );
    engine.check_history().await;
}

// S2-038, S2-041, S2-043, S2-083
#[tokio::test]
async fn ok_envelope_is_ok_whatever_other_fields_say() {
    let engine = engine().await;
    let plain = engine.ask("plain").await;
    let critical = json!([{"source": "FIDORA", "critical": true, "reason": "upstream_timeout"}]);
    for (name, fields) in [
        ("critical", json!({"partial": critical})),
        (
            "cached",
            json!({"cache_meta": {"cached": true, "cacheable": false, "ttl": -1, "key": "LEAK"}}),
        ),
        (
            "no extras",
            json!({"cache_meta": null, "timing": null, "partial": null}),
        ),
        (
            "more",
            json!({"zzz": {"LEAK": 1}, "reason": "unauthorized"}),
        ),
    ] {
        engine.ccs.set(
            "offer_search",
            ServiceReply::envelope(&envelope_with("offer_search", &fields)),
        );
        let reply = engine.ask(name).await;
        assert_eq!(reply.labels(), plain.labels(), "{name}");
        reply.assert_absent(&["FIDORA", "LEAK"]);
    }
    engine.check_history().await;
}

// S2-035, S2-048, R-21
#[tokio::test]
async fn data_request_is_one_post_with_every_field() {
    let engine = engine().await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let question = turnwire_testkit::chat::ChatSubmit::new("offers").header("traceparent", trace);
    engine.submit(question).await;
    let calls = engine.ccs.calls();
    assert_eq!(calls.len(), 1);
    let call = &calls[0];
    assert!(
        call.head.starts_with("POST /v1/enrich HTTP/1.1\r\n"),
        "{}",
        call.head
    );
    assert!(call.answered.is_some());
    let mut keys: Vec<&str> = call
        .request
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "domain_type",
            "enricher_id",
            "params",
            "principal",
            "trace",
            "version"
        ]
    );
    assert_eq!(call.request["principal"], "user-42");
    assert_eq!(
        (&call.request["domain_type"], &call.request["version"]),
        (&json!("offer_list"), &json!("1.2.0"))
    );
    assert_eq!(call.request["params"], json!({"query": "oat milk"}));
    assert!(
        call.request["trace"]
            .to_string()
            .contains("0af7651916cd43dd8448eb211c80319c"),
        "{}",
        call.request
    );
}

// S2-045
#[tokio::test]
async fn no_retry_within_turn_and_recovered_service_is_used() {
    let ccs = FakeDataService::start().await;
    let error = json!({"status": "error", "reason": "upstream_unavailable"});
    let replies = vec![
        ServiceReply::envelope(&envelope_with("offer_search", &error)),
        ServiceReply::envelope(&envelope("offer_search")),
    ];
    ccs.set_all("offer_search", replies);
    let script = asks(&["shop"], "Done.")
        .call(
            "shop",
            1,
            [ScriptStep::tool("search_offers", json!({"query": "first"}))],
        )
        .call(
            "shop",
            2,
            [ScriptStep::tool(
                "search_offers",
                json!({"query": "second"}),
            )],
        )
        .call(
            "shop",
            3,
            [ScriptStep::tool(
                "render_offer_list",
                json!({"ids": ["OFF_2"]}),
            )],
        )
        .call("shop", 4, [ScriptStep::text("SUBRAW")]);
    let pack = TestPack::market(&ccs.url()).script(&script);
    let engine = EngineFixture::on(ccs, turnwire_testkit::server::ServerOptions::pack(pack)).await;
    let reply = engine.ask("offers").await;
    let params: Vec<Value> = engine.ccs.params("offer_search");
    assert_eq!(
        params,
        [json!({"query": "first"}), json!({"query": "second"})]
    );
    assert_eq!(reply.count("error"), 1);
    let loaded = reply.of("data_loaded").next().expect("data").field("data");
    assert_eq!(loaded["items"], json!([offers()["items"][1]]));
    engine.check_history().await;
}
