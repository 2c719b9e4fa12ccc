//! The headers `RateLimit-Policy` and `RateLimit` of routes that count in quotas: which quotas there
//! are, and what is left of them. They have the form of the IETF draft
//! draft-ietf-httpapi-ratelimit-headers. A server without quotas sends none.

use std::fmt::Write as _;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use turnwire_identity::Caller;
use turnwire_session::{QuotaKind, QuotaState, SessionQuotas};

use crate::error::{RATE_LIMIT, RATE_LIMIT_POLICY};

/// Adds what is left of the quotas of submits to the response.
pub(super) async fn of_submits(
    State(quotas): State<SessionQuotas>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let mut response = next.run(request).await;
    // A response without them is better than none.
    if let Some(caller) = caller
        && let Ok(states) = quotas.of_submits(&caller.owner).await
    {
        add(&states, &mut response);
    }
    response
}

/// Adds what is left of the quotas of streams and replays to the response.
pub(super) async fn of_reads(
    State(quotas): State<SessionQuotas>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let mut response = next.run(request).await;
    if let Some(caller) = caller {
        add(&quotas.of_reads(&caller.owner), &mut response);
    }
    response
}

fn add(states: &[QuotaState], response: &mut Response) {
    if states.is_empty() {
        return;
    }
    let (mut policies, mut left) = (String::new(), String::new());
    for state in states {
        let separator = if policies.is_empty() { "" } else { ", " };
        let name = name(state);
        let window_s = state.kind.window().as_secs();
        let unit = unit(state.kind);
        let _ = write!(
            policies,
            "{separator}{name};q={};w={window_s}{unit}",
            state.limit
        );
        let full_in_s = state.full_in.as_millis().div_ceil(1_000);
        let _ = write!(left, "{separator}{name};r={};t={full_in_s}", state.left);
    }
    let mut insert = |header: HeaderName, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(header, value);
        }
    };
    insert(RATE_LIMIT_POLICY, policies);
    insert(RATE_LIMIT, left);
}

/// The name of a policy, quoted as the headers have it.
fn name(state: &QuotaState) -> String {
    let kind = match state.kind {
        QuotaKind::Turns => "turns",
        QuotaKind::Subscribes => "subscribes",
        QuotaKind::ReplayBytes => "replay",
        QuotaKind::Tokens => "tokens",
        QuotaKind::Cost => "cost",
    };
    format!("\"{}-{kind}\"", state.scope.name())
}

/// The parameter with the unit of a quota; without one, requests are counted.
fn unit(kind: QuotaKind) -> &'static str {
    match kind {
        QuotaKind::Turns | QuotaKind::Subscribes => "",
        QuotaKind::ReplayBytes => ";qu=\"content-bytes\"",
        QuotaKind::Tokens => ";qu=\"tokens\"",
        QuotaKind::Cost => ";qu=\"micro-usd\"",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use turnwire_session::QuotaScope;

    use super::*;

    #[test]
    fn headers_tell_every_quota_and_what_is_left() {
        let state = |kind, scope, limit, left, full_in_ms| QuotaState {
            kind,
            scope,
            limit,
            left,
            full_in: Duration::from_millis(full_in_ms),
        };
        let states = [
            state(QuotaKind::Turns, QuotaScope::Principal, 60, 59, 1_000),
            state(
                QuotaKind::Cost,
                QuotaScope::Tenant,
                2_500_000,
                0,
                43_200_001,
            ),
        ];
        let mut response = Response::new(Body::empty());
        add(&states, &mut response);
        let header = |name: &HeaderName| response.headers()[name].to_str().expect("a text");
        let policies =
            "\"principal-turns\";q=60;w=60, \"tenant-cost\";q=2500000;w=86400;qu=\"micro-usd\"";
        assert_eq!(header(&RATE_LIMIT_POLICY), policies);
        let left = "\"principal-turns\";r=59;t=1, \"tenant-cost\";r=0;t=43201";
        assert_eq!(header(&RATE_LIMIT), left);
    }

    #[test]
    fn server_without_quotas_sends_no_headers() {
        let mut response = Response::new(Body::empty());
        add(&[], &mut response);
        assert!(response.headers().is_empty());
    }
}
