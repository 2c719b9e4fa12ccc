//! The trace of a request: taken from a valid `traceparent` header, else generated. Its id is in every
//! problem and in the server's log.

use axum::http::HeaderMap;
use turnwire_event::TraceContext;

use crate::request::header::single_value;

const HEADER: &str = "traceparent";

/// The trace id of a request, and the span of its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTrace {
    pub trace_id: String,
    /// The caller's span, if the caller sent one.
    pub caller: Option<String>,
}

impl RequestTrace {
    /// The caller's trace, or a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        match single_value(headers, HEADER).ok().flatten().and_then(parse) {
            Some((trace_id, span_id)) => Self {
                trace_id: trace_id.to_owned(),
                caller: Some(span_id.to_owned()),
            },
            None => Self {
                trace_id: random_hex() + &random_hex(),
                caller: None,
            },
        }
    }

    /// The [`TraceContext`] for events of a turn, if the caller sent a trace.
    pub fn for_turn(&self) -> Option<TraceContext> {
        self.caller.as_ref().map(|caller| TraceContext {
            trace_id: self.trace_id.clone(),
            span_id: random_hex(),
            parent_span_id: Some(caller.clone()),
        })
    }
}

/// Trace id and span id of a W3C `traceparent`. A later version may say more after them.
fn parse(text: &str) -> Option<(&str, &str)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let digits = |part: &str, len: usize| part.len() == len && part.bytes().all(is_hex);
    let some = |part: &str| part.bytes().any(|b| b != b'0');
    let is_complete = version != "00" || parts.next().is_none();
    let valid = digits(version, 2)
        && version != "ff"
        && digits(trace, 32)
        && some(trace)
        && digits(span, 16)
        && some(span)
        && digits(flags, 2)
        && is_complete;
    valid.then_some((trace, span))
}

/// A random 64-bit number as 16 digits of lower-case hex.
fn random_hex() -> String {
    let number = getrandom::u64().expect("the system gives random bytes");
    format!("{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn of(values: &[&str]) -> RequestTrace {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HEADER, value.parse().expect("a header"));
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
            let turn = trace.for_turn().expect("the caller traces");
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
}
