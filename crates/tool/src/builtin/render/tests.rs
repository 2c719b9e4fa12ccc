//! The events of a render tool, the stored messages, and inputs that are rejected.

use std::collections::BTreeMap;

use turnwire_event::code::ToolErrorClass;
use turnwire_event::port::Emission;
use turnwire_event::{ToolUseId, Ulid};
use turnwire_pack::{Enricher, ToolKind};

use super::*;
use crate::data_service::{Connector, EnricherType, NoVerifier};
use crate::tests::support::{CountingIdGenerator, EventSink, call};
use crate::tool::Tool as _;

/// Offers, each with an id and a title; and a total, which only an enricher knows.
fn offers() -> Vec<Arc<EnricherType>> {
    of_enrichers(&[offer_search()])
}

fn offer_search() -> Enricher {
    Enricher {
        enricher_id: "offer_search".into(),
        domain_type: "offer_list".into(),
        service: "market".into(),
        version: "1.2.0".into(),
        items: "items".into(),
        item_id: "id".into(),
        payload_schema: Some(json!({
            "type": "object",
            "properties": {
                "total": {"type": "integer"},
                "items": {"type": "array", "items": {"$ref": "#/$defs/offer"}},
            },
            "required": ["items", "total"],
            "$defs": {"offer": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "title": {"type": "string"}},
                "required": ["id", "title"],
                "additionalProperties": false,
            }},
        })),
    }
}

fn of_enrichers(enrichers: &[Enricher]) -> Vec<Arc<EnricherType>> {
    let mut services = BTreeMap::new();
    let service = turnwire_pack::DataService {
        mcp: None,
        url: "http://127.0.0.1:1".into(),
        timeout_ms: 1,
        max_bytes: 1,
        ..turnwire_pack::DataService::default()
    };
    services.insert("market".to_owned(), service);
    let connector =
        Connector::with_transports(&services, enrichers, Arc::new(NoVerifier), |_, _| {
            Ok(Arc::new(|_| {
                Box::pin(async { Err(turnwire_dial::DialError::Unreachable) })
            }))
        });
    connector
        .expect("a connector")
        .registry
        .of_domain("offer_list")
}

/// A tool that shows found offers and those that a model writes.
fn tool(shape: RenderShape, enricher: Vec<Arc<EnricherType>>) -> PackTool {
    tool_with(shape, enricher, true)
}

fn tool_with(shape: RenderShape, enricher: Vec<Arc<EnricherType>>, model_items: bool) -> PackTool {
    let def = ToolDef {
        approval: false,
        progress_status: None,
        name: "render_offer_list".into(),
        description: "Shows offers.".into(),
        kind: ToolKind::Render {
            data_type: "offer_list".into(),
            shape,
            model_items,
        },
        input_schema: Value::Null,
        status: None,
        timeout_ms: None,
        remember: false,
    };
    let id_generator: Arc<dyn IdGenerator> = Arc::new(CountingIdGenerator::default());
    let shown = ("offer_list", shape, model_items);
    RenderTool::build(&def, shown, enricher, &id_generator)
}

fn offer(n: u32) -> Value {
    json!({"id": format!("OFF_{n}"), "title": "Oat milk"})
}

/// Runs `tool` with offers 1 to 3 in the store.
async fn run(tool: &PackTool, input: Value) -> (Result<Value, ToolFailure>, Vec<Emission>) {
    let sink = EventSink::with_room(10);
    let call = call(input, &sink);
    for n in 1..=3 {
        call.context
            .items
            .put("offer_list", &format!("OFF_{n}"), offer(n));
    }
    let result = tool.run(call).await;
    (result, sink.emissions())
}

fn shown(ids: &[&str]) -> Value {
    json!({"shown": ids.len(), "type": "offer_list", "ids": ids})
}

fn key(ids: &[&str]) -> CollectionKey {
    let key = |&id: &&str| ItemKey { id: id.to_owned() };
    CollectionKey {
        ids: ids.iter().map(key).collect(),
    }
}

// S1-082, S1-085, S1-088
#[tokio::test]
async fn list_is_loading_then_loaded_and_stored() {
    let (result, events) = run(
        &tool(RenderShape::List, offers()),
        json!({"ids": ["OFF_2", "OFF_1", "OFF_2"]}),
    )
    .await;
    assert_eq!(result, Ok(shown(&["OFF_2", "OFF_1"])));
    let ids = ["OFF_2", "OFF_1"];
    let id = format!("data_{}", Ulid(1));
    let items = vec![offer(2), offer(1)];
    let actor = Actor::tool("render_offer_list");
    let trace = crate::tests::support::context().trace;
    let loading = Emission {
        trace: trace.clone(),
        ..Emission::new(
            actor.clone(),
            Body::DataLoading(DataLoading {
                id: id.clone(),
                data_type: "offer_list".into(),
                key: key(&ids),
            }),
        )
    };
    let loaded = Emission {
        provider_response_id: None,
        sub_agent_id: None,
        actor,
        trace,
        body: Body::DataLoaded(DataLoaded {
            id: id.clone(),
            data_type: "offer_list".into(),
            key: key(&ids),
            items: items.clone(),
        }),
        message: Some(NewMessage {
            provider_state: turnwire_event::ProviderState::default(),
            id: MessageId(Ulid(2)),
            role: Role::Tool,
            content: vec![ContentBlock::Data {
                data_id: id,
                data_type: "offer_list".into(),
                key: json!({"ids": [{"id": "OFF_2"}, {"id": "OFF_1"}]}),
                items: Value::Array(items),
            }],
            metadata: turnwire_event::JsonObject::default(),
            scope: MessageScope::Shared,
        }),
    };
    assert_eq!(events, [loading, loaded]);
}

// S1-021, S1-085
#[tokio::test]
async fn single_item_is_a_component_with_its_tool_call() {
    for (input, component, ids) in [
        (json!({"id": "OFF_3"}), offer(3), vec!["OFF_3"]),
        (json!({"component": offer(9)}), offer(9), vec!["OFF_9"]),
    ] {
        let (result, events) = run(&tool(RenderShape::Single, offers()), input).await;
        assert_eq!(result, Ok(shown(&ids)));
        let [event] = events.as_slice() else {
            panic!("one event, not {events:?}");
        };
        let rendered = ComponentRendered {
            component: component.clone(),
            tool_call: RenderingToolCall {
                upstream_id: None,
                id: ToolUseId(Ulid(7)),
                name: "render_offer_list".into(),
                tool_type: ToolType::Render,
            },
        };
        assert_eq!(event.body, Body::ComponentRendered(rendered));
        let message = event.message.as_ref().expect("kept");
        assert_eq!(
            (message.role, &message.scope),
            (Role::Tool, &MessageScope::Shared)
        );
        let block = ContentBlock::Component {
            tool_use_id: ToolUseId(Ulid(7)),
            component,
        };
        assert_eq!(message.content, [block]);
    }
}

#[tokio::test]
async fn unknown_ids_are_named_and_nothing_is_shown() {
    let list = tool(RenderShape::List, offers());
    let (result, events) = run(&list, json!({"ids": ["OFF_1", "OFF_8", "made up"]})).await;
    let failure = result.expect_err("not there");
    assert_eq!(failure.class, ToolErrorClass::InvalidInput);
    assert_eq!(
        failure.message,
        "Nothing was shown: there are no items with these ids: OFF_8, made up. \
         Use ids of what was found."
    );
    assert!(!failure.fatal && failure.fault.is_none());
    assert_eq!(events, []);

    let many: Vec<String> = (0..100)
        .map(|n| format!("{n}{}", "x".repeat(1_000)))
        .collect();
    let (result, _) = run(&list, json!({"ids": many})).await;
    let message = result.expect_err("not there").message;
    assert!(
        message.contains(" and 80 more") && message.len() < 2_000,
        "{message}"
    );

    let (result, events) = run(&tool(RenderShape::Single, offers()), json!({"id": "OFF_8"})).await;
    assert!(result.expect_err("not there").message.contains("OFF_8"));
    assert_eq!(events, []);
}

//
#[tokio::test]
async fn items_of_a_model_must_match_their_schema() {
    let list = tool(RenderShape::List, offers());
    let (result, events) = run(&list, json!({"items": [offer(7), offer(8)]})).await;
    assert_eq!(result, Ok(shown(&["OFF_7", "OFF_8"])));
    assert_eq!(events.len(), 2);

    let wrong = [
        json!([{"id": "OFF_7"}]),
        json!([offer(7), {"id": "OFF_8", "title": 5}]),
        json!([{"id": "OFF_7", "title": "x", "principal": "user-99"}]),
        json!([{"title": "no id"}]),
        json!(["OFF_7"]),
        json!([]),
        json!({"OFF_7": 1}),
    ];
    for items in wrong {
        let (result, events) = run(&list, json!({"items": items})).await;
        let failure = result.expect_err("does not fit");
        assert_eq!(failure.class, ToolErrorClass::InvalidInput, "{items}");
        assert_eq!(events, [], "{items}");
    }
    let (result, events) = run(
        &tool(RenderShape::Single, offers()),
        json!({"component": {"id": "x"}}),
    )
    .await;
    assert!(result.is_err() && events.is_empty());

    // A type without an enricher has no schema that an item could match; nor has an enricher without.
    let recent = Enricher {
        enricher_id: "offer_recent".into(),
        payload_schema: None,
        ..offer_search()
    };
    for enrichers in [Vec::new(), of_enrichers(&[offer_search(), recent])] {
        let free = tool(RenderShape::List, enrichers);
        let (result, events) = run(&free, json!({"items": [{"id": "5", "any": [1]}]})).await;
        assert!(result.is_err() && events.is_empty());
    }
}

// FR-10
#[tokio::test]
async fn items_of_a_model_are_refused_by_default() {
    for (shape, input, field) in [
        (RenderShape::List, json!({"items": [offer(7)]}), "items"),
        (
            RenderShape::Single,
            json!({"component": offer(7)}),
            "component",
        ),
    ] {
        let strict = tool_with(shape, offers(), false);
        let (result, events) = run(&strict, input).await;
        let message = "Only what was found can be shown: name it by its id.";
        assert_eq!(result, Err(ToolFailure::invalid_input(message)));
        assert_eq!(events, []);
        let schema = strict.input_schema();
        assert_eq!(schema["properties"].get(field), None, "{schema}");
        let schema = tool(shape, offers()).input_schema();
        assert!(schema["properties"].get(field).is_some(), "{schema}");
    }
}

// AC-8, FR-16
#[tokio::test]
async fn list_fills_the_placeholder_of_its_data() {
    let sink = EventSink::with_room(10);
    let call = call(json!({"ids": ["OFF_1"]}), &sink);
    let items = &call.context.items;
    items.put("offer_list", "OFF_1", offer(1));
    // A placeholder that no client has seen cannot be filled, and is given up with its call.
    let given_up = items.begin_loading("offer_list").expect("the first");
    assert!(items.begin_loading("offer_list").is_none(), "one of a type");
    assert_eq!(items.end_loading("offer_list"), None);
    drop(given_up);
    let begun = items.begin_loading("offer_list").expect("a new one");
    begun.announced("data_early".to_owned());
    assert!(items.begin_loading("offer_list").is_none(), "one of a type");
    let context = Arc::clone(&call.context);
    let result = tool_with(RenderShape::List, offers(), false)
        .run(call)
        .await;
    assert_eq!(result, Ok(shown(&["OFF_1"])));
    let events = sink.emissions();
    let [event] = events.as_slice() else {
        panic!("one event, not {events:?}");
    };
    let Body::DataLoaded(loaded) = &event.body else {
        panic!("{event:?}");
    };
    assert_eq!(
        (loaded.id.as_str(), &loaded.key),
        ("data_early", &key(&["OFF_1"]))
    );
    assert_eq!(context.items.end_loading("offer_list"), None);
}

// S1-012
#[tokio::test]
async fn list_is_limited_in_count_and_bytes() {
    let list = tool(RenderShape::List, offers());
    let items = |count: usize, bytes: usize| {
        let item = |n: usize| json!({"id": n.to_string(), "title": "x".repeat(bytes)});
        json!({"items": (0..count).map(item).collect::<Vec<_>>()})
    };
    assert!(run(&list, items(500, 0)).await.0.is_ok());
    let (result, events) = run(&list, items(501, 0)).await;
    let message = result.expect_err("too many").message;
    assert_eq!(message, "At most 500 items can be shown at once.");
    assert_eq!(events, []);
    // Large, and within the limit.
    assert!(run(&list, items(4, 1_000_000)).await.0.is_ok());
    let (result, events) = run(&list, items(5, 1_000_000)).await;
    assert!(result.expect_err("too large").message.contains("4 MiB"));
    assert_eq!(events, []);
}

#[tokio::test]
async fn invalid_inputs_are_described() {
    let (list, single) = (
        tool(RenderShape::List, offers()),
        tool(RenderShape::Single, offers()),
    );
    let cases = [
        (&list, json!({}), "Give either `ids` or `items`: a list."),
        (
            &list,
            json!({"ids": ["OFF_1"], "items": []}),
            "Give either `ids` or `items`: a list.",
        ),
        (&list, json!({"ids": "OFF_1"}), "`ids` must be a list."),
        (
            &list,
            json!({"ids": [1]}),
            "`ids` must be a list of strings.",
        ),
        (&list, json!({"ids": []}), "There is nothing to show."),
        (
            &list,
            json!({"id": "OFF_1"}),
            "The input may only have: ids, items.",
        ),
        (
            &single,
            json!({}),
            "Give either `id`, a string, or `component`, an object.",
        ),
        (
            &single,
            json!({"component": []}),
            "`component` must be an object.",
        ),
        (&single, json!({"id": 1}), "`id` must be a string."),
    ];
    for (tool, input, message) in cases {
        let (result, events) = run(tool, input).await;
        assert_eq!(result, Err(ToolFailure::invalid_input(message)));
        assert_eq!(events, []);
    }
}

#[tokio::test]
async fn cancelled_turn_is_shown_nothing() {
    for room in [0, 1] {
        let sink = EventSink::with_room(room);
        let call = call(json!({"ids": ["OFF_1"]}), &sink);
        call.context.items.put("offer_list", "OFF_1", offer(1));
        let failure = tool(RenderShape::List, offers())
            .run(call)
            .await
            .expect_err("refused");
        assert_eq!(failure.class, ToolErrorClass::Cancelled);
        assert_eq!(sink.emissions().len(), room);
    }
}

#[test]
fn render_tool_has_its_type_and_schema() {
    let list = tool(RenderShape::List, offers());
    assert_eq!(list.tool_type(), ToolType::Render);
    assert_eq!(
        list.input_schema()["properties"]["ids"]["maxItems"],
        json!(500)
    );
    let single = tool(RenderShape::Single, offers());
    assert_eq!(
        single.input_schema()["properties"]["id"]["type"],
        json!("string")
    );
}
