//! The registered statuses, as a server lists them.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use turnwire_client::Client;
use turnwire_wire::rest::status_event::LifecycleState;

// S1-064
#[tokio::test]
async fn registry_with_unknown_fields_is_parsed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = Client::new(&format!("http://{address}")).expect("an address");
    let response = json!({
        "status_events": [{
            "id": "searching_offers",
            "description": "A search begins.",
            "default_render_key": "status.searching_offers",
            "default_policy": "transform",
            "emitter_subagents": ["shop"],
            "lifecycle": "deprecated",
            "note": "use browsing",
            "fragment": "verticals/shop/status_events.yaml",
            "messages": {"en": "Searching for offers...", "de": "Angebote werden gesucht..."},
            "emissions": {"total": 7, "days": {"2026-11-16": 7}, "weeks": {}},
            "icon": "new",
        }],
        "version": "r1",
    });
    let response = response.to_string();
    let server = async {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut request).await.expect("a request"), 0);
        }
        let length = response.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{response}");
        stream.write_all(head.as_bytes()).await.expect("an answer");
        String::from_utf8(request).expect("text")
    };
    let (registry, request) = tokio::join!(client.status_events(), server);
    assert!(
        request.starts_with("GET /status-events HTTP/1.1\r\n"),
        "{request}"
    );
    let registry = registry.expect("a registry");
    let entry = &registry.status_events[0];
    assert_eq!(registry.version, "r1");
    assert_eq!(entry.lifecycle, LifecycleState::Deprecated);
    assert_eq!(entry.messages.len(), 2);
    assert_eq!(entry.emissions.days["2026-11-16"], 7);
}
