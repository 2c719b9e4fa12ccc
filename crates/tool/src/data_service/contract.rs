//! The contract of data services as it is written down: the JSON Schemas in `schema/data_service` and
//! the examples of `docs/data-services.md`, against the requests and the verdicts of the code.

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use turnwire_dial::JsonResponse;
use turnwire_event::Principal;
use turnwire_pack::Enricher;

use super::NoVerifier;
use super::envelope_fields::EnvelopeFields;
use super::registry::EnricherRegistry;
use super::request::request_body;
use super::service_span::ServiceTrace;
use super::verdict::judge;
use crate::tests::support::{EventSink, call};

const PAGE: &str = include_str!("../../../../docs/data-services.md");

fn schema(text: &str) -> Validator {
    let schema = serde_json::from_str(text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

fn request_schema() -> Validator {
    schema(include_str!(
        "../../../../schema/data_service/enrich_request.json"
    ))
}

fn response_schema() -> Validator {
    schema(include_str!(
        "../../../../schema/data_service/enrich_response.json"
    ))
}

fn registry() -> EnricherRegistry {
    let enricher = Enricher {
        enricher_id: "offer_search".to_owned(),
        domain_type: "offer_list".to_owned(),
        service: "market".to_owned(),
        version: "1.2.0".to_owned(),
        items: "items".to_owned(),
        item_id: "id".to_owned(),
        payload_schema: None,
    };
    EnricherRegistry::new(&[enricher]).expect("a registry")
}

/// The JSON examples of the page: a request, an envelope, and an envelope with an error.
fn examples() -> [Value; 3] {
    let blocks = PAGE.split("```json\n").skip(1);
    let examples = blocks.map(|block| {
        let json = block.split("```").next().expect("an end");
        serde_json::from_str(json).expect("JSON")
    });
    let examples: Vec<Value> = examples.collect();
    examples.try_into().expect("three examples")
}

/// The verdict on an envelope for user-42: whether it has data.
fn is_accepted(envelope: &Value) -> bool {
    let registry = registry();
    let enricher = registry.get("offer_list", "offer_search").expect("one");
    let response = JsonResponse {
        status: 200,
        body: envelope.to_string().into(),
    };
    let principal: Principal = "user-42".parse().expect("a principal");
    let span = tracing::Span::none();
    judge(
        &response,
        enricher,
        &principal,
        &NoVerifier,
        (&span, &EnvelopeFields::default()),
    )
    .is_ok()
}

// R-21, S2-084
#[test]
fn request_matches_its_schema_and_its_example() {
    let schema = request_schema();
    let [example, ..] = examples();
    assert!(schema.is_valid(&example));
    let registry = registry();
    let enricher = registry.get("offer_list", "offer_search").expect("one");
    let params = Map::from_iter([("query".to_owned(), json!("oat milk"))]);
    let call = call(json!({}), &EventSink::with_room(0));
    let body = request_body(
        &call.context,
        enricher,
        &params,
        &ServiceTrace::new(&call.context, None).ids,
    );
    let sent: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(schema.is_valid(&sent), "{sent}");
    let keys = |value: &Value| {
        let keys = value.as_object().expect("an object").keys().cloned();
        keys.collect::<Vec<_>>()
    };
    assert_eq!(keys(&sent), keys(&example));
    for field in keys(&sent) {
        let mut without = sent.clone();
        without
            .as_object_mut()
            .expect("an object")
            .shift_remove(&field);
        assert!(!schema.is_valid(&without), "without {field}");
    }
}

// R-22, S2-084
#[test]
fn schema_and_verdict_agree_on_envelopes() {
    let schema = response_schema();
    let [_, good, error] = examples();
    assert!(schema.is_valid(&good) && is_accepted(&good));
    assert!(schema.is_valid(&error) && !is_accepted(&error));
    let partial = |envelope: &Value| {
        let mut envelope = envelope.clone();
        envelope["status"] = json!("partial");
        envelope
    };
    assert!(schema.is_valid(&partial(&good)) && is_accepted(&partial(&good)));
    let needed = [
        "principal",
        "enricher_id",
        "domain_type",
        "version",
        "status",
        "payload",
    ];
    for field in good.as_object().expect("an object").keys() {
        let mut without = good.clone();
        without
            .as_object_mut()
            .expect("an object")
            .shift_remove(field);
        let is_needed = needed.contains(&field.as_str());
        assert_eq!(schema.is_valid(&without), !is_needed, "without {field}");
        assert_eq!(is_accepted(&without), !is_needed, "without {field}");
    }
    for (field, odd) in [
        ("principal", json!(null)),
        ("principal", json!("")),
        ("version", json!("v1")),
        ("version", json!(1)),
        ("status", json!("OK")),
        ("payload", json!(null)),
        ("enricher_id", json!(7)),
    ] {
        let mut envelope = good.clone();
        envelope[field] = odd.clone();
        assert!(!schema.is_valid(&envelope), "{field} {odd}");
        assert!(!is_accepted(&envelope), "{field} {odd}");
    }
}
