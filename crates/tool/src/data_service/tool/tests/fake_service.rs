//! A tool over a transport that plays steps and records the requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use turnwire_dial::JsonResponse;
use turnwire_event::port::BoxFuture;
use turnwire_pack::{DataService, Enricher, ToolKind};

use super::*;
use crate::data_service::{EnvelopeVerifier, NoVerifier, ServiceRequest, ServiceTransport};
use crate::tool::Tool as _;

/// What the service does with one request.
pub(super) enum Step {
    /// Responds after this time.
    Say(Duration, JsonResponse),
    /// Fails in the dialer.
    Lost(DialError),
    /// Never responds.
    Silence,
    /// Panics.
    Panic,
}

impl Step {
    pub(super) fn answer(body: Value) -> Self {
        Self::status(200, body)
    }

    pub(super) fn status(status: u16, body: Value) -> Self {
        Self::late(Duration::ZERO, status, body)
    }

    pub(super) fn late(after: Duration, status: u16, body: Value) -> Self {
        let body = body.to_string().into();
        Self::Say(after, JsonResponse { status, body })
    }
}

/// The service: its next steps, the requests, and the number of responses.
#[derive(Default)]
pub(super) struct Played {
    steps: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<Value>>,
    pub(super) answered: AtomicUsize,
}

impl Played {
    fn send(
        self: &Arc<Self>,
        request: Bytes,
    ) -> BoxFuture<'static, Result<JsonResponse, DialError>> {
        let played = Arc::clone(self);
        Box::pin(async move {
            let asked = serde_json::from_slice(&request).expect("JSON");
            played.asked.lock().push(asked);
            let step = played.steps.lock().pop_front().expect("a step");
            match step {
                Step::Say(after, answer) => {
                    tokio::time::sleep(after).await;
                    played.answered.fetch_add(1, Ordering::Relaxed);
                    Ok(answer)
                }
                Step::Lost(error) => Err(error),
                Step::Silence => std::future::pending().await,
                Step::Panic => panic!("a step that breaks"),
            }
        })
    }
}

/// A tool and its service.
pub(super) struct ToolFixture {
    pub(super) tool: PackTool,
    pub(super) sink: Arc<EventSink>,
    pub(super) played: Arc<Played>,
}

impl ToolFixture {
    pub(super) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::with(steps, &tool())
    }

    pub(super) fn with(steps: impl IntoIterator<Item = Step>, def: &ToolDef) -> Self {
        let played = Arc::new(Played::default());
        played.steps.lock().extend(steps);
        let transport = Arc::clone(&played);
        let connector = connector("http://127.0.0.1:1", |_| {
            let played = Arc::clone(&transport);
            Ok(Arc::new(move |request: ServiceRequest| {
                played.send(request.body)
            }))
        });
        Self {
            tool: enricher_tool(def, &connector),
            sink: EventSink::with_room(100),
            played,
        }
    }

    pub(super) fn call(&self, input: Value) -> ToolInvocation {
        call(input, &self.sink)
    }

    pub(super) async fn run(&self, input: Value) -> Result<Value, ToolFailure> {
        self.tool.run(self.call(input)).await
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        self.played.asked.lock().clone()
    }
}

/// A connector to the one enricher at `url`.
pub(super) fn connector(
    url: &str,
    transport: impl Fn(&DataService) -> Result<Arc<ServiceTransport>, String>,
) -> Arc<Connector> {
    let service = DataService {
        mcp: None,
        url: url.to_owned(),
        timeout_ms: 10_000,
        max_bytes: 1_048_576,
        ..DataService::default()
    };
    let services = BTreeMap::from([("market".to_owned(), service)]);
    let enricher = Enricher {
        enricher_id: "offer_search".into(),
        domain_type: "offer_list".into(),
        service: "market".into(),
        version: "1.2.0".into(),
        items: "items".into(),
        item_id: "id".into(),
        payload_schema: Some(json!({
            "type": "object",
            "properties": {"items": {"type": "array"}},
            "required": ["items"],
        })),
    };
    let verifier: Arc<dyn EnvelopeVerifier> = Arc::new(NoVerifier);
    let connector = Connector::with_transports(&services, &[enricher], verifier, |_, service| {
        transport(service)
    });
    Arc::new(connector.expect("a connector"))
}

pub(super) fn enricher_tool(def: &ToolDef, connector: &Arc<Connector>) -> PackTool {
    let enricher = connector.registry.get("offer_list", "offer_search");
    let tool = EnricherTool::build(def, enricher.expect("registered"), connector, None);
    tool.checked().expect("a tool")
}

pub(super) fn tool() -> ToolDef {
    ToolDef {
        approval: false,
        progress_status: None,
        name: "search_offers".into(),
        description: "Finds offers.".into(),
        kind: ToolKind::Ccs {
            enricher_id: "offer_search".into(),
            domain_type: "offer_list".into(),
        },
        input_schema: json!({
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "additionalProperties": false,
        }),
        status: Some("searching_offers".into()),
        timeout_ms: Some(12_000),
        remember: true,
    }
}

pub(super) fn offers() -> Value {
    json!({"items": [
        {"id": "OFF_1", "title": "Oat milk"},
        {"id": "OFF_2", "title": "Granola"},
    ]})
}

/// The default envelope with some fields changed.
pub(super) fn envelope(fields: Value) -> Value {
    let mut envelope = json!({
        "enricher_id": "offer_search", "domain_type": "offer_list", "principal": "user-42",
        "version": "1.2.0", "status": "ok", "partial": [],
        "cache_meta": {"cached": false, "cacheable": true, "ttl": 60, "key": "LEAK_CACHE"},
        "timing": {"total_ms": 12}, "payload": offers(),
    });
    for (key, value) in fields.as_object().expect("fields") {
        envelope[key] = value.clone();
    }
    envelope
}
