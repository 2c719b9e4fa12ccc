//! A span that has ended, and its form in OTLP.

use std::sync::Arc;

use turnwire_event::SpanId;
use turnwire_event::port::SpanValue;

use crate::protobuf::{put_bytes, put_double, put_fixed32, put_fixed64, put_int, put_message};

/// The longest text of an attribute, in bytes. Names of agents, models and tools are far shorter.
const TEXT_BYTES_MAX: usize = 256;

/// The flags of a span in OTLP: `sampled`, and that its parent is known to be elsewhere or here.
const SAMPLED: u32 = 0x001;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// An attribute of a span.
pub(crate) type Attribute = (&'static str, SpanValue);

/// The role of a span in a call between services, with its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The trace that the spans of a turn belong to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanTrace {
    pub(crate) trace_id: [u8; 16],
    /// The `tracestate` of the caller.
    pub(crate) state: Option<Arc<str>>,
}

/// A span with everything but its end.
#[derive(Clone, Debug)]
pub(crate) struct SpanStart {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) span: SpanId,
    pub(crate) parent: Option<SpanId>,
    /// True if the parent is a span of the caller.
    pub(crate) has_remote_parent: bool,
    /// Nanoseconds since the Unix epoch.
    pub(crate) started: u64,
    pub(crate) attributes: Vec<Attribute>,
}

impl SpanStart {
    /// Appends the span, which ended at `ended`, as a `Span` of OTLP. `failure` is the class of its
    /// failure.
    pub(crate) fn write(
        &self,
        trace: &SpanTrace,
        ended: u64,
        failure: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        put_bytes(out, 1, &trace.trace_id);
        put_bytes(out, 2, &self.span.bytes());
        if let Some(state) = &trace.state {
            put_bytes(out, 3, state.as_bytes());
        }
        if let Some(parent) = self.parent {
            put_bytes(out, 4, &parent.bytes());
        }
        put_bytes(out, 5, cut(&self.name).as_bytes());
        put_int(out, 6, self.kind as u64);
        put_fixed64(out, 7, self.started);
        put_fixed64(out, 8, ended.max(self.started));
        for (name, value) in &self.attributes {
            put_attribute(out, 9, name, value);
        }
        if let Some(class) = failure {
            put_attribute(out, 9, "error.type", &class.into());
            // `STATUS_CODE_ERROR`, without a message: the class says it.
            put_message(out, 15, |out| put_int(out, 3, 2));
        }
        let remote = match self.has_remote_parent {
            true => IS_REMOTE,
            false => 0,
        };
        put_fixed32(out, 16, SAMPLED | HAS_IS_REMOTE | remote);
    }
}

/// Appends a name and its value, as a `KeyValue` of OTLP.
pub(crate) fn put_attribute(out: &mut Vec<u8>, field: u32, name: &str, value: &SpanValue) {
    put_message(out, field, |out| {
        put_bytes(out, 1, name.as_bytes());
        put_message(out, 2, |out| put_value(out, value));
    });
}

fn put_value(out: &mut Vec<u8>, value: &SpanValue) {
    match value {
        SpanValue::Text(text) => put_bytes(out, 1, cut(text).as_bytes()),
        SpanValue::Bool(value) => put_int(out, 2, u64::from(*value)),
        SpanValue::Int(value) => put_int(out, 3, value.cast_unsigned()),
        SpanValue::Float(value) => put_double(out, 4, *value),
        SpanValue::Texts(texts) => put_message(out, 5, |out| {
            for text in texts {
                put_message(out, 1, |out| put_bytes(out, 1, cut(text).as_bytes()));
            }
        }),
    }
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
