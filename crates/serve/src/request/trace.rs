//! The trace of a request: taken from a valid `traceparent` header, else generated. Its id is in every
//! problem and in the server's log.

use std::sync::Arc;

use axum::http::HeaderMap;
use turnwire_event::trace::{TRACEPARENT, TRACESTATE};
use turnwire_event::{CallerTrace, SpanId, TraceContext, TracePropagation};

use crate::access::header::single_value;

/// The longest `tracestate` that is passed on: the length that W3C asks every server to carry. A
/// longer one is dropped whole.
const TRACESTATE_BYTES_MAX: usize = 512;

/// The trace id of a request, and the span of its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTrace {
    pub trace_id: String,
    /// The caller's span, if the caller sent one.
    pub caller: Option<String>,
    /// The flag and the `tracestate` of the caller.
    propagation: TracePropagation,
}

impl RequestTrace {
    /// The caller's trace, or a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        match single_value(headers, TRACEPARENT)
            .ok()
            .flatten()
            .and_then(parse)
        {
            Some(parent) => Self {
                trace_id: parent.trace_id.to_owned(),
                caller: Some(parent.span_id.to_owned()),
                propagation: TracePropagation {
                    sampled: parent.sampled,
                    state: state(headers),
                    is_exporting: false,
                },
            },
            None => Self {
                trace_id: random_hex() + &random_hex(),
                caller: None,
                propagation: TracePropagation::default(),
            },
        }
    }

    /// The trace of a turn that the request starts, if the caller sent one.
    pub fn for_turn(&self) -> Option<CallerTrace> {
        self.caller.as_ref().map(|caller| CallerTrace {
            context: TraceContext {
                trace_id: self.trace_id.clone(),
                span_id: SpanId::of_bits(random_bits()).to_string(),
                parent_span_id: Some(caller.clone()),
            },
            propagation: self.propagation.clone(),
        })
    }
}

/// The parts of the header that a server reads.
struct TraceParent<'a> {
    trace_id: &'a str,
    span_id: &'a str,
    sampled: bool,
}

/// The parts of a `traceparent`. A later version may say more after them.
fn parse(text: &str) -> Option<TraceParent<'_>> {
    let mut parts = text.split('-');
    let (version, trace_id, span_id, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let digits = |part: &str, len: usize| part.len() == len && part.bytes().all(is_hex);
    let some = |part: &str| part.bytes().any(|b| b != b'0');
    let is_complete = version != "00" || parts.next().is_none();
    let valid = digits(version, 2)
        && version != "ff"
        && digits(trace_id, 32)
        && some(trace_id)
        && digits(span_id, 16)
        && some(span_id)
        && digits(flags, 2)
        && is_complete;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    valid.then_some(TraceParent {
        trace_id,
        span_id,
        sampled: flags & 1 == 1,
    })
}

/// The `tracestate` of a request, which may have several of these headers; `None` if there is none or
/// if it cannot be passed on.
fn state(headers: &HeaderMap) -> Option<Arc<str>> {
    let mut state = String::new();
    for value in headers.get_all(TRACESTATE) {
        let value = value.to_str().ok()?.trim();
        if state.len() + value.len() >= TRACESTATE_BYTES_MAX {
            return None;
        }
        if !state.is_empty() && !value.is_empty() {
            state.push(',');
        }
        state.push_str(value);
    }
    (!state.is_empty()).then(|| state.into())
}

/// A random 64-bit number as 16 digits of lower-case hex.
fn random_hex() -> String {
    format!("{:016x}", random_bits())
}

fn random_bits() -> u64 {
    getrandom::u64().expect("the system gives random bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn of(values: &[&str]) -> RequestTrace {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, value.parse().expect("a header"));
        }
        RequestTrace::of(&headers)
    }

    #[test]
    fn valid_traceparent_is_adopted() {
        for good in [
            format!("00-{TRACE}-{SPAN}-01"),
            format!("cc-{TRACE}-{SPAN}-01-more"),
        ] {
            let trace = of(&[&good]);
            assert_eq!(trace.trace_id, TRACE);
            let turn = trace.for_turn().expect("the caller traces").context;
            assert_eq!(turn.trace_id, TRACE);
            assert_eq!(turn.parent_span_id.as_deref(), Some(SPAN));
            assert_eq!(turn.span_id.len(), 16);
        }
    }

    #[test]
    fn invalid_traceparent_gets_a_fresh_trace() {
        let valid = format!("00-{TRACE}-{SPAN}-01");
        for bad in [
            vec![],
            vec![""],
            vec!["00-zz-yy-01"],
            vec![valid.as_str(), valid.as_str()],
            vec!["ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
            vec!["00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"],
            vec!["00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
            vec!["00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"],
            vec!["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x"],
        ] {
            let trace = of(&bad);
            assert_ne!(trace.trace_id, TRACE, "{bad:?}");
            assert_eq!(trace.trace_id.len(), 32);
            assert_eq!(trace.for_turn(), None, "{bad:?}");
        }
        assert_ne!(of(&[]).trace_id, of(&[]).trace_id);
    }

    #[test]
    fn flag_and_state_of_the_caller_are_kept() {
        let propagation = |flags: &str, states: &[&str]| {
            let mut headers = HeaderMap::new();
            let parent = format!("00-{TRACE}-{SPAN}-{flags}");
            headers.append(TRACEPARENT, parent.parse().expect("a header"));
            for state in states {
                headers.append(TRACESTATE, state.parse().expect("a header"));
            }
            let trace = RequestTrace::of(&headers).for_turn();
            trace.expect("the caller traces").propagation
        };
        for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("ff", true)] {
            assert_eq!(propagation(flags, &[]).sampled, sampled, "{flags}");
        }
        let state = |states: &[&str]| propagation("01", states).state;
        assert_eq!(state(&[]), None);
        assert_eq!(state(&["", " "]), None);
        assert_eq!(
            state(&["a=1,b=2", "", "c=3"]).as_deref(),
            Some("a=1,b=2,c=3")
        );
        let long = "a".repeat(TRACESTATE_BYTES_MAX - 1);
        assert_eq!(state(&[&long]).as_deref(), Some(long.as_str()));
        assert_eq!(state(&[&format!("{long}a")]), None);
    }
}
