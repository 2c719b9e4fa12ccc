//! W3C Trace Context: the headers of an outgoing call, and the ids of spans.
//!
//! The id of a span comes from the id of what it measures: a turn, a model call, a tool use. So
//! whoever knows that id can name the span to a service before the span exists, and no span has to
//! be handed through a turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, InvocationId, ToolUseId, TurnId, Ulid};

/// The header with the ids and the flags.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what vendors add.
pub const TRACESTATE: &str = "tracestate";

/// Tells the span of a call to a data service from that of the tool that calls it.
const SERVICE_SALT: u64 = 0x5e71_1ce0_ca11_ed00;
/// Tells the span of a worker's turn from that of the tool that delegates to it.
const WORKER_SALT: u64 = 0x3017_4e70_7012_ed00;

/// The id of a span: 64 bits, never zero, which the standard reserves for "invalid".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl SpanId {
    /// The span of what has the id `ulid`: its lower half, which is random.
    pub const fn of_ulid(ulid: Ulid) -> Self {
        Self::of_bits(ulid.0 as u64)
    }

    /// A span with these bits.
    pub const fn of_bits(bits: u64) -> Self {
        match bits {
            0 => Self(1),
            bits => Self(bits),
        }
    }

    /// The span of a turn whose caller sent no trace.
    pub fn of_turn(turn: TurnId) -> Self {
        Self::of_ulid(turn.0)
    }

    /// The span of a model call, or of a call of an agent elsewhere.
    pub fn of_call(call: CallId) -> Self {
        Self::of_ulid(call.0)
    }

    /// The span of a tool.
    pub fn of_tool(tool_use: ToolUseId) -> Self {
        Self::of_ulid(tool_use.0)
    }

    /// The span of a run of a sub-agent.
    pub fn of_invocation(invocation: InvocationId) -> Self {
        Self::of_ulid(invocation.0)
    }

    /// The span of the call of a data service that a tool makes.
    pub fn of_service_call(tool_use: ToolUseId) -> Self {
        Self::of_bits(tool_use.0.0 as u64 ^ SERVICE_SALT)
    }

    /// The span of the turn of a worker that a tool delegates to.
    pub fn of_worker(tool_use: ToolUseId) -> Self {
        Self::of_bits(tool_use.0.0 as u64 ^ WORKER_SALT)
    }

    /// The span that `text` names: 16 digits of lower-case hexadecimal, not all zero.
    pub fn parse(text: &str) -> Option<Self> {
        is_hex(text, 16)
            .then(|| u64::from_str_radix(text, 16).ok())
            .flatten()
            .filter(|bits| *bits != 0)
            .map(Self)
    }

    /// The eight bytes of the id.
    pub const fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl std::fmt::Display for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The 16 bytes of a trace id: 32 digits of lower-case hexadecimal, not all zero.
pub fn trace_id_bytes(text: &str) -> Option<[u8; 16]> {
    is_hex(text, 32)
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
        .filter(|bits| *bits != 0)
        .map(u128::to_be_bytes)
}

fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The W3C trace context that an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceContext {
    pub trace_id: String,
    pub span_id: String,
    /// The caller's span, 16 hex digits.
    pub parent_span_id: Option<String>,
}

/// What a trace has beside its ids, for the services that a turn calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePropagation {
    /// The flag `sampled`: spans of the turn are recorded, here or by the caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// The `tracestate` of the caller, which is passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
    /// True if this server exports spans. Tools over HTTP get the headers only then.
    #[serde(skip)]
    pub is_exporting: bool,
}

impl TracePropagation {
    /// The value of `traceparent` for a call in `span` of the trace `trace_id`.
    pub fn traceparent(&self, trace_id: &str, span: SpanId) -> String {
        format!("00-{trace_id}-{span}-{:02x}", u8::from(self.sampled))
    }

    /// The headers of a call in `span` of the trace `trace_id`.
    pub fn headers(&self, trace_id: &str, span: SpanId) -> Vec<(&'static str, String)> {
        let state = self.state.as_deref();
        let state = state.map(|state| (TRACESTATE, state.to_owned()));
        let parent = (TRACEPARENT, self.traceparent(trace_id, span));
        [parent].into_iter().chain(state).collect()
    }
}

/// The trace of a caller: its ids, and what it has beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct CallerTrace {
    pub context: TraceContext,
    pub propagation: TracePropagation,
}

/// The trace id of a turn: that of its caller, or the turn's own.
pub fn trace_id_of(trace: Option<&TraceContext>, turn: TurnId) -> String {
    trace.map_or_else(|| turn.trace_id(), |trace| trace.trace_id.clone())
}

/// The span of a turn: as in its [`TraceContext`], or that of its id.
pub fn turn_span(trace: Option<&TraceContext>, turn: TurnId) -> SpanId {
    let own = || SpanId::of_turn(turn);
    trace.map_or_else(own, |trace| {
        SpanId::parse(&trace.span_id).unwrap_or_else(own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_ids_are_never_zero_and_parse_back() {
        for bits in [0, 1, u128::MAX, 7 << 64] {
            let span = SpanId::of_call(CallId(Ulid(bits)));
            assert_ne!(span.bytes(), [0; 8]);
            assert_eq!(SpanId::parse(&span.to_string()), Some(span));
        }
        for bad in [
            "",
            "0000000000000000",
            "00F067AA0BA902B7",
            "+0f067aa0ba902b7",
            "00f0",
        ] {
            assert_eq!(SpanId::parse(bad), None, "{bad}");
        }
        let tool = ToolUseId(Ulid(0xabcd));
        let spans = [
            SpanId::of_tool(tool),
            SpanId::of_service_call(tool),
            SpanId::of_worker(tool),
        ];
        assert!(spans[0] != spans[1] && spans[1] != spans[2] && spans[0] != spans[2]);
    }

    #[test]
    fn headers_have_the_flag_and_the_state_of_the_caller() {
        let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = SpanId::parse("00f067aa0ba902b7").expect("a span");
        let sampled = TracePropagation {
            sampled: true,
            state: Some("congo=t61rcWkgMzE".into()),
            is_exporting: false,
        };
        let expected = [
            ("traceparent", format!("00-{trace_id}-00f067aa0ba902b7-01")),
            ("tracestate", "congo=t61rcWkgMzE".to_owned()),
        ];
        assert_eq!(sampled.headers(trace_id, span), expected);
        let unsampled = TracePropagation::default().headers(trace_id, span);
        assert_eq!(
            unsampled,
            [("traceparent", format!("00-{trace_id}-00f067aa0ba902b7-00"))]
        );
        let stored = serde_json::to_string(&sampled).expect("JSON");
        assert_eq!(stored, r#"{"sampled":true,"state":"congo=t61rcWkgMzE"}"#);
        assert_eq!(
            serde_json::from_str::<TracePropagation>(&stored).expect("stored"),
            sampled
        );
        assert_eq!(
            serde_json::from_str::<TracePropagation>("{}").expect("older"),
            TracePropagation::default()
        );
    }
}
