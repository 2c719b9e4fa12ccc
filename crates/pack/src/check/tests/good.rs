//! What a good pack becomes, and what its versions see.

use super::*;
use crate::pack::overrides::{OverrideTarget, RenderOverride};
use crate::pack::status::StatusLifecycle;
use crate::pack::tool::{DataService, RenderShape, ToolKind};
use turnwire_event::{EventType, RenderPolicy};

fn good() -> Pack {
    let report = check(&files(&[]), &vars);
    report.pack.expect("the good pack has no findings")
}

// D-23
#[test]
fn fan_out_cap_is_three_unless_set() {
    for (cap, expected) in [("", 3), ("fan_out: {cap: 5}\n", 5)] {
        let edit = Swap("pack.yaml", "fan_out: {cap: 3}\n", cap);
        let pack = check(&files(&[edit]), &vars).pack.expect("a good pack");
        assert_eq!(pack.cap, expected);
    }
}

// D-24, R-18
#[test]
fn good_pack_is_fully_resolved() {
    let pack = good();
    assert_eq!(
        (pack.name.as_str(), pack.version.as_str(), pack.cap),
        ("corner", "1.0.0", 3)
    );
    assert_eq!(pack.limits, crate::pack::PackLimits::default());
    assert_eq!(pack.agents[0].model, "scripted:big");
    assert_eq!(pack.agents[1].model, "scripted:corner", "the default");
    assert_eq!(
        (pack.agents[0].timeout_ms, pack.agents[1].timeout_ms),
        (15_000, 20_000)
    );
    assert_eq!(pack.agents[0].vertical.as_deref(), Some("shop"));
    assert_eq!(
        pack.orchestrator.sub_agents[1].flag.as_deref(),
        Some("ai_assistant_some")
    );
    let service = DataService {
        mcp: None,
        url: "http://127.0.0.1:8422".to_owned(),
        timeout_ms: 10_000,
        max_bytes: 1_048_576,
        ..DataService::default()
    };
    assert_eq!(pack.services["market"], service);
    let enricher = &pack.enrichers[0];
    assert_eq!(
        (enricher.items.as_str(), enricher.item_id.as_str()),
        ("items", "id")
    );
    let schema = enricher.payload_schema.as_ref().expect("the file's schema");
    assert_eq!(schema["type"], "object");
    let render = pack.tool("render_offer_list").expect("a tool");
    let kind = ToolKind::Render {
        model_items: false,
        data_type: "offer_list".to_owned(),
        shape: RenderShape::List,
    };
    assert_eq!(render.kind, kind);
    assert_eq!(pack.prompts["persona"], "You are kind.\n");
    assert_eq!(
        pack.scripts,
        [("corner".to_owned(), "- steps: [{text: hi}]\n".to_owned())]
    );
}

// S1-064, C-40
#[test]
fn registry_merges_fragments_with_their_owner() {
    let pack = good();
    let entries: Vec<(&str, &str, StatusLifecycle)> = pack
        .registry
        .entries
        .iter()
        .map(|entry| (entry.id.as_str(), entry.fragment.as_str(), entry.lifecycle))
        .collect();
    let shop = "verticals/shop/status_events.yaml";
    assert_eq!(
        entries,
        [
            (
                "looking_back",
                "platform/status_events.yaml",
                StatusLifecycle::Active
            ),
            ("searching_offers", shop, StatusLifecycle::Active),
            ("old_search", shop, StatusLifecycle::Deprecated),
        ]
    );
}

// D-20
#[test]
fn override_alias_covers_several_event_types() {
    let to = |target: OverrideTarget, policy| RenderOverride {
        flag: "ai_assistant_batch".to_owned(),
        target,
        policy: Some(policy),
        render_key: None,
    };
    let suppress = |kind| to(OverrideTarget::Type(kind), RenderPolicy::Suppress);
    let searching = OverrideTarget::Status("searching_offers".to_owned());
    assert_eq!(
        good().overrides,
        [
            to(searching, RenderPolicy::Batch),
            suppress(EventType::ToolCalled),
            suppress(EventType::ToolCompleted),
            suppress(EventType::ToolFailed),
            RenderOverride {
                flag: "ai_assistant_few".to_owned(),
                ..suppress(EventType::ComponentRendered)
            },
        ]
    );
}

#[test]
fn definitions_version_ignores_urls() {
    let version = |changes: &[Change<'_>], url: &'static str| {
        let report = check(&files(changes), &|_| Some(url.to_owned()));
        let pack = report
            .pack
            .unwrap_or_else(|| panic!("{:?}", report.findings));
        pack.versions(&pack.cohort("user-42")).agent_definition
    };
    let address = "http://127.0.0.1:8422";
    let before = version(&[], address);
    assert_eq!(before, version(&[], "https://ccs.example.com"));
    let changes = [
        Swap(
            "tools.yaml",
            "description: Searches offers.",
            "description: Finds offers.",
        ),
        Swap(
            "tools.yaml",
            "properties: {query: {type: string}}",
            "properties: {words: {type: string}}",
        ),
        Swap(
            "connectors.yaml",
            "version: \"1.2.0\"",
            "version: \"1.3.0\"",
        ),
        Swap(
            "schemas/offer_list.json",
            "\"array\"}",
            "\"array\", \"maxItems\": 5}",
        ),
    ];
    for change in changes {
        assert_ne!(before, version(&[change], address));
    }
}
