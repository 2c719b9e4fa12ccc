//! The five dimensions of the metrics of turns, with values, at the server's `/metrics`.

use serde_json::json;
use turnwire_e2e::chat::MetricsSnapshot;
use turnwire_e2e::data_service::FakeDataService;
use turnwire_e2e::engine::{EngineFixture, asks, working};
use turnwire_testkit::pack::TestPack;
use turnwire_testkit::server::ServerOptions;

// S1-133, R-26
#[tokio::test]
async fn stream_metrics_have_values_in_all_five_dimensions() {
    let ccs = FakeDataService::start().await;
    let pack = TestPack::market(&ccs.url())
        .flag("ai_assistant_axis2_terminal", "{principals: [user-42]}")
        .script(&working(asks(&["shop"], "Done.")));
    let options = ServerOptions::pack(pack).set("turn", "dm_types", "daily_digest");
    let engine = EngineFixture::on(ccs, options).await;
    let body = json!({"message": "offers", "origin": "dm", "dm_type": "daily_digest"});
    let path = format!("/sessions/{}/turns", engine.session);
    let accepted = engine
        .api
        .post(&path, body)
        .await
        .expect("an answer")
        .json();
    let turn = accepted["turn_id"].as_str().and_then(|id| id.parse().ok());
    engine
        .api
        .ended(turn.expect("accepted"))
        .await
        .expect("its end");
    let metrics = MetricsSnapshot::read(&engine.api).await;
    let name = "turnwire_stream_status_event_emitted_total";
    let dimensions = [
        "vertical",
        "sub_agent_id",
        "dm_type",
        "experiment_arm",
        "agent_definition_version",
    ];
    let whole = metrics.series(name).find(|(labels, value)| {
        let has_value = |name: &str| labels.get(name).is_some_and(|text| !text.is_empty());
        *value > 0.0 && dimensions.iter().all(|name| has_value(name))
    });
    let (labels, _) =
        whole.unwrap_or_else(|| panic!("{:?}", metrics.series(name).collect::<Vec<_>>()));
    assert_eq!(
        (labels["vertical"].as_str(), labels["sub_agent_id"].as_str()),
        ("shop", "shop")
    );
    assert_eq!(labels["dm_type"], "daily_digest");
    assert_eq!(labels["experiment_arm"], "ai_assistant_axis2_terminal");
    assert!(
        labels["agent_definition_version"].contains('@'),
        "{labels:?}"
    );
    // Every metric of a stream has all five, also without a value.
    for name in metrics
        .names()
        .filter(|name| name.starts_with("turnwire_stream_"))
    {
        for (labels, _) in metrics.series(name) {
            let is_service_wide = ["registry_size", "unregistered_event"];
            if is_service_wide.iter().any(|part| name.contains(part)) {
                continue;
            }
            for dimension in dimensions {
                assert!(
                    labels.contains_key(dimension),
                    "{name} has no {dimension}: {labels:?}"
                );
            }
        }
    }
}
