//! Tools made from the files of a pack.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnwire_dial::{Dialer, DialerOptions};
use turnwire_event::code::ToolType;
use turnwire_event::{Body, Clock, IdGenerator};
use turnwire_pack::{HttpDef, Pack, PackFiles, ToolDef, ToolKind, ToolMethod, check};

use crate::data_service::{Connector, ConnectorError, NoVerifier, ServiceCredentials};
use crate::secrets::Secrets;
use crate::tests::support::{CountingIdGenerator, EventSink, FixedClock, LogCapture, call};
use crate::toolbox::{DuplicateToolName, ToolBuildError, ToolDependencies, Toolbox, build_toolbox};

const TOOLS: &str = "
tools:
  - name: search_offers
    connector: ccs_rest
    enricher_id: offer_search
    domain_type: offer_list
    description: Finds offers.
    input_schema: {type: object, properties: {query: {type: string}}}
    status: searching_offers
    timeout_ms: 3000
    remember: true
  - {name: render_offer_list, connector: render, shape: list, description: Shows offers.}
  - {name: render_offer_card, connector: render, shape: single, data_type: offer_list, description: Shows an offer.}
  - {name: llm_feedback, connector: direct, function: llm_feedback}
  - {name: tell, connector: direct, function: emit_status}
  - {name: now, connector: direct, function: clock}
  - {name: echo, connector: direct, function: echo}
  - {name: wait, connector: direct, function: sleep}
  - {name: fail, connector: direct, function: fail}
  - {name: burst, connector: direct, function: burst}
";

fn pack() -> Pack {
    let files = PackFiles::from_pairs([
        (
            "pack.yaml",
            "name: market\nversion: \"1.0.0\"\ndefault_locale: en\nmodels: {default: \"scripted:market\"}\n",
        ),
        (
            "orchestrator.yaml",
            "id: orchestrator\nversion: \"1\"\nkind: orchestrator\ndescription: Speaks.\n\
             model: default\nprompt_blocks: [persona]\nsub_agents: [shop]\ntools: [llm_feedback]\n",
        ),
        (
            "verticals/shop/agent.yaml",
            "id: shop\nversion: \"1\"\nkind: sub_agent\nvertical: shop\ndescription: Sells.\n\
             model: default\nprompt_blocks: [persona]\ntools: [search_offers]\n\
             emits: [searching_offers]\non_cancel: discard\n",
        ),
        (
            "verticals/shop/status_events.yaml",
            "- {id: searching_offers, description: Looks., default_render_key: status.searching_offers, \
             default_policy: transform, emitter_subagents: [shop], lifecycle: active}\n",
        ),
        (
            "connectors.yaml",
            "services: {market: {url: \"http://127.0.0.1:9\"}}\nenrichers:\n\
             - {enricher_id: offer_search, domain_type: offer_list, service: market, version: \"1.2.0\"}\n",
        ),
        ("tools.yaml", TOOLS),
        ("locales/en.yaml", "status.searching_offers: Searching.\n"),
        ("prompts/persona.md", "Be kind.\n"),
        ("scripts/a.yaml", "- when: {}\n  steps:\n    - text: hi\n"),
    ]);
    let report = check(&files, &|_| None);
    report
        .pack
        .unwrap_or_else(|| panic!("{:#?}", report.findings))
}

fn connector(pack: &Pack) -> Result<Arc<Connector>, ConnectorError> {
    let dialer = Dialer::new(DialerOptions::default()).expect("a dialer");
    Connector::new(
        pack,
        Arc::new(dialer),
        &|_, _| Ok(ServiceCredentials::default()),
        &|_, _| Err(String::new()),
        Arc::new(NoVerifier),
    )
    .map(Arc::new)
}

fn tools(pack: &Pack, names: &[&str]) -> Result<Toolbox, ToolBuildError> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let clock: Arc<dyn Clock> = Arc::new(FixedClock(1_000));
    let id_generator: Arc<dyn IdGenerator> = Arc::new(CountingIdGenerator::default());
    let dependencies = ToolDependencies {
        keys: Secrets::default(),
        connector: connector(pack).expect("a connector"),
        clock,
        id_generator,
        dialer: Arc::new(Dialer::new(DialerOptions::default()).expect("a dialer")),
        runner: crate::tests::support::runner(),
        mcp_toolset: Arc::default(),
    };
    build_toolbox(pack, &names, &dependencies)
}

#[tokio::test]
async fn all_tools_of_a_pack_are_built() {
    let pack = pack();
    let names: Vec<&str> = pack.tools.iter().map(|tool| tool.name.as_str()).collect();
    let toolbox = tools(&pack, &names).expect("all of them");
    let kinds: Vec<(&str, ToolType)> = toolbox
        .iter()
        .map(|tool| (tool.name(), tool.tool_type()))
        .collect();
    let function = ToolType::Function;
    assert_eq!(
        kinds,
        [
            ("search_offers", ToolType::Ccs),
            ("render_offer_list", ToolType::Render),
            ("render_offer_card", ToolType::Render),
            ("llm_feedback", function),
            ("tell", function),
            ("now", function),
            ("echo", function),
            ("wait", function),
            ("fail", function),
            ("burst", function),
        ]
    );
    for tool in toolbox.iter() {
        assert!(!tool.description().is_empty(), "{}", tool.name());
        assert_eq!(
            tool.input_schema()["type"],
            json!("object"),
            "{}",
            tool.name()
        );
    }
    let search = toolbox.get("search_offers").expect("there");
    assert_eq!(search.status(), Some("searching_offers"));
    assert_eq!(search.timeout(), Some(Duration::from_secs(4)));
    assert!(search.remember());
    let now = toolbox.get("now").expect("there");
    let now = now.run(call(json!({}), &EventSink::with_room(0))).await;
    assert_eq!(now, Ok(Value::from("1970-01-01T00:00:01.000Z")));
}

// S1-145
#[tokio::test]
async fn unreachable_service_is_counted_by_vertical() {
    let logs = LogCapture::start();
    let pack = pack();
    let toolbox = tools(&pack, &["search_offers"]).expect("one");
    let search = toolbox.get("search_offers").expect("there");
    let failure = search.run(call(json!({}), &EventSink::with_room(0))).await;
    let fault = failure.expect_err("nobody there").fault.expect("a fault");
    assert_eq!(fault.enricher_id, "offer_search");
    let counted =
        logs.metrics("turnwire_stream_ccs_error_total{vertical=\"shop\",sub_agent_id=\"shop\"");
    assert_eq!(counted.len(), 1);
}

#[test]
fn build_errors_name_the_tool() {
    let mut pack = pack();
    let unknown = tools(&pack, &["now", "ask_shop"]).err();
    assert_eq!(unknown, Some(ToolBuildError::Unknown("ask_shop".into())));
    let twice = tools(&pack, &["now", "now"]).err();
    assert_eq!(
        twice,
        Some(ToolBuildError::Duplicate(DuplicateToolName("now".into())))
    );
    pack.tools[0].input_schema = json!({"type": "sideways"});
    let schema = tools(&pack, &["search_offers"]).err();
    let schema = schema.expect("an invalid schema");
    assert_eq!(schema.tool(), "search_offers");
    let reason = "tool `search_offers`: its input_schema cannot be used: ";
    assert!(schema.to_string().starts_with(reason), "{schema}");
    pack.enrichers.clear();
    let dangling = tools(&pack, &["search_offers"]).err();
    assert_eq!(
        dangling
            .map(|reason| reason.to_string())
            .unwrap_or_default(),
        "tool `search_offers`: no enricher `offer_search` returns `offer_list`"
    );
}

/// An HTTP tool without a service.
fn asks(url: &str, input_schema: Value) -> ToolDef {
    ToolDef {
        name: "weather".into(),
        description: "Tells the weather.".into(),
        kind: ToolKind::Http(HttpDef {
            method: ToolMethod::Get,
            url: url.into(),
            query: Vec::new(),
            headers: Vec::new(),
            max_bytes: 1_000,
            redirects_max: 0,
        }),
        input_schema,
        status: None,
        timeout_ms: None,
        remember: false,
        approval: false,
        progress_status: None,
    }
}

#[tokio::test]
async fn http_tool_runs_only_with_a_valid_input() {
    let mut pack = pack();
    let city = json!({"type": "object", "required": ["city"]});
    pack.tools.push(asks("http://127.0.0.1:9/{city}", city));
    let toolbox = tools(&pack, &["weather"]).expect("one");
    let weather = toolbox.get("weather").expect("there");
    assert_eq!(weather.tool_type(), ToolType::Http);
    let message = async |input| {
        let ran = weather.run(call(input, &EventSink::with_room(0))).await;
        ran.expect_err("nobody there").message
    };
    assert!(message(json!({})).await.contains("\"city\" is a required"));
    let gone = "The service could not be reached.";
    assert_eq!(message(json!({"city": "Wien"})).await, gone);
}

#[test]
fn invalid_http_definition_is_a_build_error() {
    for (url, schema, reason) in [
        (
            "https://{host}/",
            json!({}),
            "tool `weather`: its url has a field in its host",
        ),
        (
            "http://0x7f.1/",
            json!({}),
            "tool `weather`: its url has an address in an unusual form",
        ),
        (
            "https://a.example/",
            json!({"type": "sideways"}),
            "tool `weather`: its input_schema cannot be used: ",
        ),
        (
            "https://a.example/",
            json!("object"),
            "tool `weather`: its input_schema cannot be used: ",
        ),
    ] {
        let mut pack = pack();
        pack.tools.push(asks(url, schema));
        let bad = tools(&pack, &["weather"]).err().expect("no tool");
        assert!(bad.to_string().starts_with(reason), "{bad}");
    }
}

#[test]
fn connector_errors_name_the_enricher() {
    let bad = |change: &dyn Fn(&mut Pack)| {
        let mut pack = pack();
        change(&mut pack);
        connector(&pack)
            .err()
            .map(|reason| reason.to_string())
            .unwrap_or_default()
    };
    let url = |url: &str| {
        let url = url.to_owned();
        bad(&move |pack| {
            for service in pack.services.values_mut() {
                service.url = url.clone();
            }
        })
    };
    for broken in ["", "market", "ftp://market", "file:///market", "//market"] {
        assert_eq!(
            url(broken),
            "service `market`: its url is not an http or https address"
        );
    }
    assert_eq!(url("https://market.example/base/"), "");
    assert_eq!(
        bad(&|pack| pack.enrichers[0].service = "bazaar".into()),
        "enricher `offer_search`: there is no such service"
    );
    assert_eq!(
        bad(&|pack| pack.enrichers[0].version = "new".into()),
        "enricher `offer_search`: its version must be like 1.2.0"
    );
    assert_eq!(
        bad(&|pack| pack.enrichers.push(pack.enrichers[0].clone())),
        "enricher `offer_search`: there are two of the same domain type"
    );
    let schema = bad(&|pack| pack.enrichers[0].payload_schema = Some(json!({"type": 5})));
    assert!(
        schema.contains("payload_schema is not a JSON Schema"),
        "{schema}"
    );
    // References of a schema are not fetched.
    let remote = json!({"$ref": "http://127.0.0.1:9/schema.json"});
    let remote = bad(&|pack| pack.enrichers[0].payload_schema = Some(remote.clone()));
    assert!(
        remote.contains("payload_schema is not a JSON Schema"),
        "{remote}"
    );
}

// AC-8, FR-16
#[tokio::test]
async fn placeholder_is_announced_when_its_data_is_requested() {
    let pack = pack();
    for (names, announced) in [
        (&["search_offers", "render_offer_list"][..], true),
        (&["search_offers", "render_offer_card"], false),
        (&["search_offers"], false),
    ] {
        let toolbox = tools(&pack, names).expect("all of them");
        let search = toolbox.get("search_offers").expect("it is there");
        let sink = EventSink::with_room(10);
        let first = call(json!({"query": "oats"}), &sink);
        let mut again = call(json!({"query": "rye"}), &sink);
        again.context = Arc::clone(&first.context);
        // Nobody serves the data; what matters is what is emitted before.
        assert!(search.run(first).await.is_err());
        assert!(search.run(again).await.is_err());
        let bodies: Vec<Body> = sink.emissions().into_iter().map(|e| e.body).collect();
        let places = bodies.iter().filter_map(|body| match body {
            Body::DataLoading(place) => Some((place.data_type.as_str(), place.key.ids.len())),
            _ => None,
        });
        let places: Vec<(&str, usize)> = places.collect();
        let expected: &[(&str, usize)] = if announced { &[("offer_list", 0)] } else { &[] };
        assert_eq!(places, expected, "{names:?}");
        assert_eq!(bodies.len(), places.len());
    }
}
