//! `/problems` and `/problems/{code}`: the meaning of every error, as an HTML page, or as JSON if the
//! client prefers it. The `type` of a problem is such a path.

mod html;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use turnwire_wire::problem::Code;
use turnwire_wire::problem::help::{ProblemDescription, ProblemList};

use crate::access::header::preferences;
use crate::error::RequestFault;
use crate::page::policy;
use crate::state::AppState;

pub(super) fn router() -> Router<AppState> {
    Router::new()
        .route("/problems", get(list))
        .route("/problems/{code}", get(read))
}

async fn list(headers: HeaderMap) -> Response {
    let list = ProblemList::all();
    respond(&headers, &list, || html::list(&list))
}

async fn read(
    headers: HeaderMap,
    code: Result<Path<String>, PathRejection>,
) -> Result<Response, RequestFault> {
    let code = code.ok().and_then(|Path(name)| Code::named(&name));
    let unknown = || {
        let detail = "There is no problem with this code; /problems has them all.";
        RequestFault::new(Code::NotFound, detail)
    };
    let description = ProblemDescription::from(code.ok_or_else(unknown)?);
    Ok(respond(&headers, &description, || html::one(&description)))
}

/// The page, or the JSON of `value` if the client prefers it.
fn respond<T: Serialize>(headers: &HeaderMap, value: &T, page: impl Fn() -> String) -> Response {
    let mut response = if prefers_json(headers) {
        Json(value).into_response()
    } else {
        let page = page();
        let policy = (header::CONTENT_SECURITY_POLICY, policy(&page));
        ([policy], Html(page)).into_response()
    };
    let vary = HeaderValue::from_static("Accept");
    response.headers_mut().append(header::VARY, vary);
    response
}

/// True if the client prefers JSON to HTML; without a preference it gets HTML.
fn prefers_json(headers: &HeaderMap) -> bool {
    let accepted = preferences(headers, header::ACCEPT);
    let weight = |names: [&str; 3]| {
        // The most specific entry counts, whatever the weights of the others.
        names.iter().find_map(|name| {
            let mut accepted = accepted.iter();
            let preference = accepted.find(|(media_type, _)| media_type.eq_ignore_ascii_case(name));
            preference.map(|(_, weight)| *weight)
        })
    };
    let json = weight(["application/json", "application/*", "*/*"]).unwrap_or(0);
    json > weight(["text/html", "text/*", "*/*"]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_served_when_preferred() {
        let prefers = |accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().expect("a header"));
            }
            prefers_json(&headers)
        };
        for accept in [
            &["application/json"][..],
            &["application/json, text/html;q=0.9"],
            &["text/html;q=0.5", "APPLICATION/JSON;q=0.6"],
            &["application/*"],
            &["*/*;q=0.1, application/json"],
            &["text/html;q=0, */*"],
        ] {
            assert!(prefers(accept), "{accept:?}");
        }
        for accept in [
            &[][..],
            &["*/*"],
            &["text/html"],
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            &["text/html, application/json"],
            &["application/json;q=0"],
            &["image/png"],
        ] {
            assert!(!prefers(accept), "{accept:?}");
        }
    }

    // G10
    #[test]
    fn every_page_is_self_contained_with_one_style() {
        let pages = ProblemList::all()
            .problems
            .into_iter()
            .map(|one| html::one(&one));
        for page in pages.chain([html::list(&ProblemList::all())]) {
            for risky in ["<script", "style=\"", "http://", "https://", "src=", "url("] {
                let found = page
                    .split("<pre>")
                    .next()
                    .is_some_and(|p| p.contains(risky));
                assert!(!found, "{risky} in {page}");
            }
            let policy = policy(&page);
            assert!(
                policy.contains("script-src 'none'; style-src 'sha256-"),
                "{policy}"
            );
        }
    }
}
