//! The service over HTTP: envelopes, refusals, and the words that trigger failures.

use axum::body::{Body, to_bytes};
use tower::ServiceExt as _;

use super::*;

async fn send(request: axum::http::request::Builder, body: &str) -> (StatusCode, Value) {
    let request = request
        .body(Body::from(body.to_owned()))
        .expect("a request");
    let answer = router(CancellationToken::new())
        .oneshot(request)
        .await
        .expect("an answer");
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (
        status,
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    )
}

fn post_to(path: &str) -> axum::http::request::Builder {
    Request::builder().method("POST").uri(path)
}

async fn ask(pair: (&str, &str), params: Value) -> Value {
    let body = json!({
        "principal": "user-42", "enricher_id": pair.0, "domain_type": pair.1,
        "version": "1.2.0", "params": params, "trace": {},
    });
    let (status, answer) = send(post_to("/v1/enrich"), &body.to_string()).await;
    assert_eq!(status, StatusCode::OK);
    answer
}

const OFFERS: (&str, &str) = ("offer_search", "offer_list");
const ALL: [(&str, &str); 5] = [
    OFFERS,
    ("points_balance", "points"),
    ("receipt_match", "receipt_list"),
    ("purchase_history", "purchase_list"),
    ("support_answer", "support_note"),
];

//
#[tokio::test]
async fn answer_has_every_field_of_the_envelope() {
    for pair in ALL {
        let answer = ask(pair, json!({"query": "oat milk", "language": "de"})).await;
        assert_eq!(answer["enricher_id"], pair.0);
        assert_eq!(answer["domain_type"], pair.1);
        assert_eq!(answer["principal"], "user-42");
        assert_eq!(answer["version"], "1.2.0");
        assert_eq!(answer["status"], "ok", "{pair:?}");
        assert_eq!(answer["partial"], json!([]));
        assert_eq!(answer["cache_meta"]["cacheable"], true);
        assert!(answer["timing"]["total_ms"].is_u64());
        assert_eq!(answer["reason"], Value::Null);
        let items = answer["payload"]["items"].as_array().expect("items");
        assert!(!items.is_empty(), "{pair:?}");
        assert!(items.iter().all(|item| item["id"].is_string()), "{pair:?}");
    }
}

// S1-084
#[tokio::test]
async fn payloads_satisfy_the_schemas_of_the_pack() {
    let files = turnwire_pack::PackFiles::market();
    for pair in ALL {
        let path = format!("schemas/{}.json", pair.1);
        let schema = files.get(&path).expect("a schema");
        let mut schema: Value = serde_json::from_str(schema).expect("JSON");
        for place in ["", "/properties/items/items"] {
            schema.pointer_mut(place).expect("there")["additionalProperties"] = json!(false);
        }
        let schema = jsonschema::validator_for(&schema).expect("a schema");
        for query in [
            "oat milk",
            "partial coffee",
            "my usual",
            "refund",
            "unicorn",
            "",
        ] {
            for language in ["en", "de", "es"] {
                let answer = ask(pair, json!({"query": query, "language": language})).await;
                if answer["payload"].is_null() {
                    continue;
                }
                let checked = schema
                    .validate(&answer["payload"])
                    .map_err(|why| why.to_string());
                assert_eq!(checked, Ok(()), "{pair:?} {query} {language}");
            }
        }
    }
}

#[tokio::test]
async fn items_have_no_field_of_the_envelope() {
    const ENVELOPE: [&str; 8] = [
        "status",
        "partial",
        "cache_meta",
        "principal",
        "version",
        "timing",
        "enricher_id",
        "domain_type",
    ];
    for pair in ALL {
        let answer = ask(pair, json!({})).await;
        for item in answer["payload"]["items"].as_array().expect("items") {
            for key in ENVELOPE {
                assert_eq!(item.get(key), None, "{pair:?}");
            }
        }
    }
}

//
#[tokio::test]
async fn outage_is_an_error_without_payload() {
    for text in [
        "offers during an outage",
        "broken offers",
        "Angebote beim Ausfall",
    ] {
        let answer = ask(OFFERS, json!({"query": text})).await;
        assert_eq!(answer["status"], "error", "{text}");
        assert_eq!(answer["reason"], "upstream_unavailable");
        assert_eq!(answer["partial"][0]["critical"], true);
        assert_eq!(answer["payload"], Value::Null);
    }
    let support = ask(ALL[4], json!({"query": "my cup arrived broken"})).await;
    assert_eq!(support["status"], "ok");
}

#[tokio::test]
async fn partial_answer_is_not_critical() {
    let answer = ask(OFFERS, json!({"query": "partial offers"})).await;
    assert_eq!(answer["status"], "partial");
    assert_eq!(answer["partial"][0]["critical"], false);
    assert_eq!(answer["payload"]["items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn only_a_slow_query_is_delayed() {
    let delay_of = |text: &str| delay(&SearchQuery::new(text.chars()));
    assert_eq!(delay_of("slow offers"), Some(SLOW_DELAY));
    assert_eq!(delay_of("¿ofertas? Lento, por favor"), Some(SLOW_DELAY));
    assert_eq!(delay_of("offers"), None);
}

//
#[tokio::test]
async fn request_without_a_principal_is_refused() {
    for body in [
        json!({}),
        json!({"principal": ""}),
        json!({"principal": null}),
    ] {
        let (status, answer) = send(post_to("/v1/enrich"), &body.to_string()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(answer, json!({"error": "missing_principal"}));
    }
}

#[tokio::test]
async fn malformed_request_is_refused_with_a_code() {
    let (status, answer) = send(post_to("/v1/enrich"), "{").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(answer, json!({"error": "invalid_request"}));
    let unknown = ask(("offer_search", "points"), json!({})).await;
    assert_eq!(
        (&unknown["status"], &unknown["reason"]),
        (&json!("error"), &json!("invalid_request"))
    );
    let (status, _) = send(post_to("/v1/enrich"), &" ".repeat(BODY_BYTES_MAX + 1)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn request_of_a_web_page_is_refused() {
    let (status, _) = send(post_to("/stop").header("origin", "http://evil.test"), "").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn connection_after_stop_is_refused() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = tokio::spawn(serve(listener, std::future::pending()));
    let mut socket = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    let stop = b"POST /stop HTTP/1.1\r\nhost: demo\r\ncontent-length: 0\r\n\r\n";
    socket.write_all(stop).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    served.await.expect("no panic").expect("served");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn public_address_is_refused() {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let refused = serve(listener, std::future::pending()).await;
    assert!(refused.is_err());
}
