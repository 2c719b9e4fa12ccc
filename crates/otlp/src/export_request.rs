//! The request of an export and its response: `ExportTraceServiceRequest` and
//! `ExportTraceServiceResponse` of OTLP.

use bytes::Bytes;
use turnwire_event::port::SpanValue;

use crate::protobuf::{FieldValue, next_field, put_bytes, put_message};
use crate::span::put_attribute;

/// The name of what makes the spans.
const SCOPE: &str = "turnwire";

/// The attributes of this server, encoded once: the `Resource` of every request.
#[derive(Clone, Debug)]
pub(crate) struct EncodedResource(Vec<u8>);

impl EncodedResource {
    pub(crate) fn new(attributes: &[(String, String)]) -> Self {
        let mut out = Vec::new();
        for (name, value) in attributes {
            put_attribute(&mut out, 1, name, &SpanValue::Text(value.clone()));
        }
        Self(out)
    }
}

/// The request with encoded spans.
pub(crate) fn export_request(resource: &EncodedResource, spans: &[Bytes]) -> Bytes {
    let bytes = spans.iter().map(|span| span.len() + 6).sum::<usize>();
    let mut scope_spans = Vec::with_capacity(bytes + 64);
    put_message(&mut scope_spans, 1, |out| {
        put_bytes(out, 1, SCOPE.as_bytes());
        put_bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
    });
    for span in spans {
        put_bytes(&mut scope_spans, 2, span);
    }
    let mut resource_spans = Vec::with_capacity(scope_spans.len() + resource.0.len() + 16);
    put_bytes(&mut resource_spans, 1, &resource.0);
    put_bytes(&mut resource_spans, 2, &scope_spans);
    let mut request = Vec::with_capacity(resource_spans.len() + 8);
    put_bytes(&mut request, 1, &resource_spans);
    request.into()
}

/// The number of spans that a successful response says were rejected. A body that is no response
/// rejects none: the status alone decides then.
pub(crate) fn rejected_spans(mut response: &[u8]) -> u64 {
    let mut rejected = 0;
    while let Some((field, value)) = next_field(&mut response) {
        let (1, FieldValue::Bytes(mut partial)) = (field, value) else {
            continue;
        };
        while let Some((field, value)) = next_field(&mut partial) {
            if let (1, FieldValue::Int(count)) = (field, value) {
                rejected = count;
            }
        }
    }
    // The field is signed: a negative number is none.
    u64::try_from(rejected.cast_signed()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
    };
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use prost::Message as _;
    use turnwire_event::SpanId;

    use super::*;
    use crate::span::{SpanKind, SpanStart, SpanTrace};

    #[test]
    fn request_is_read_by_the_types_of_the_specification() {
        let start = SpanStart {
            name: "chat small".into(),
            kind: SpanKind::Client,
            span: SpanId::of_bits(5),
            parent: Some(SpanId::of_bits(6)),
            has_remote_parent: true,
            started: 1_000,
            attributes: vec![
                ("text", "é".repeat(200).into()),
                ("int", SpanValue::Int(-5)),
                ("bool", SpanValue::Bool(true)),
                ("float", SpanValue::Float(0.25)),
                ("texts", SpanValue::Texts(vec!["a".into(), "b".into()])),
            ],
        };
        let trace = SpanTrace {
            trace_id: [9; 16],
            state: Some("a=1".into()),
        };
        let mut span = Vec::new();
        start.write(&trace, 2_000, Some("timeout"), &mut span);
        let resource = EncodedResource::new(&[("service.name".into(), "shop".into())]);
        let request = export_request(&resource, &[span.into()]);
        let request = ExportTraceServiceRequest::decode(request).expect("a request");
        let [resource_spans] = &request.resource_spans[..] else {
            panic!("one resource")
        };
        let resource = resource_spans.resource.as_ref().expect("a resource");
        assert_eq!(resource.attributes[0].key, "service.name");
        let [scope_spans] = &resource_spans.scope_spans[..] else {
            panic!("one scope")
        };
        assert_eq!(
            scope_spans.scope.as_ref().expect("a scope").name,
            "turnwire"
        );
        let [span] = &scope_spans.spans[..] else {
            panic!("one span")
        };
        assert_eq!(span.trace_id, [9; 16]);
        assert_eq!(span.span_id, 5_u64.to_be_bytes());
        assert_eq!(span.parent_span_id, 6_u64.to_be_bytes());
        assert_eq!(
            (span.trace_state.as_str(), span.name.as_str()),
            ("a=1", "chat small")
        );
        assert_eq!((span.kind, span.flags), (3, 0x301));
        assert_eq!(
            (span.start_time_unix_nano, span.end_time_unix_nano),
            (1_000, 2_000)
        );
        assert_eq!(span.status.as_ref().expect("a status").code, 2);
        let values = span.attributes.iter().map(|attribute| {
            let value = attribute
                .value
                .as_ref()
                .and_then(|value| value.value.clone());
            (attribute.key.as_str(), value.expect("a value"))
        });
        let values: Vec<(&str, Value)> = values.collect();
        assert_eq!(values[0], ("text", Value::StringValue("é".repeat(128))));
        assert_eq!(values[1], ("int", Value::IntValue(-5)));
        assert_eq!(values[2], ("bool", Value::BoolValue(true)));
        assert_eq!(values[3], ("float", Value::DoubleValue(0.25)));
        let ("texts", Value::ArrayValue(texts)) = &values[4] else {
            panic!("a list")
        };
        assert_eq!(texts.values.len(), 2);
        assert_eq!(
            values[5],
            ("error.type", Value::StringValue("timeout".into()))
        );
    }

    #[test]
    fn rejected_spans_are_those_of_a_partial_success() {
        let response = |rejected_spans| ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans,
                error_message: "too many".into(),
            }),
        };
        assert_eq!(rejected_spans(&response(7).encode_to_vec()), 7);
        assert_eq!(rejected_spans(&response(-1).encode_to_vec()), 0);
        assert_eq!(rejected_spans(&[]), 0);
        assert_eq!(rejected_spans(b"<html>"), 0);
    }
}
