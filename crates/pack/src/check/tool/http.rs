//! Checks an HTTP tool: where it asks, how, and with what.

use super::super::address;
use super::super::filled::{self, Vars};
use super::super::page::Page;
use crate::finding::{Known, shown};
use crate::place::{At, Place};
use crate::source::form::Pairs;
use crate::source::tool::ToolSource;
use crate::tool::{HttpDef, Method, ToolKind};

/// The longest call: who waits longer for a service should delegate.
pub(super) const TIMEOUT_MS_MAX: u64 = 60_000;
/// Where the tool does not say.
pub(super) const TIMEOUT_MS: u64 = 10_000;
/// Bytes of an answer at most: what is larger is no result of a tool.
const BYTES_MAX: u64 = 1 << 20;
/// A quarter of that where the tool does not say: all of it is read by a model.
const BYTES: u64 = 1 << 18;
/// Hops at most: who sends a request on more often does not know where it belongs.
const HOPS_MAX: u64 = 5;
const HOPS: u64 = 3;
/// Parameters that a tool adds to the query.
const QUERY_MAX: usize = 64;

const METHODS: [(&str, Method); 5] = [
    ("GET", Method::Get),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("PATCH", Method::Patch),
    ("DELETE", Method::Delete),
];

/// Checks it; `known` are the fields of its input.
pub(super) fn check(
    page: &mut Page<'_>,
    home: Place,
    source: &ToolSource,
    known: &Known,
    vars: Vars<'_>,
) -> ToolKind {
    let method = source.method.as_ref();
    let method = method.and_then(|word| page.choice(word, "method", &METHODS));
    let example = "url: https://api.example.com/v1/{field}";
    let url = match page.needed(&source.url, "url", home, example) {
        Some(url) => address::check(page, url, Some(known), vars),
        None => String::new(),
    };
    let query = source.query.as_ref();
    let headers = source.headers.as_ref();
    ToolKind::Http(HttpDef {
        method: method.unwrap_or(Method::Get),
        url,
        query: query
            .map(|pairs| added(page, &pairs.value, known, vars))
            .unwrap_or_default(),
        headers: headers
            .map(|pairs| filled::headers(page, &pairs.value, &[], vars))
            .unwrap_or_default(),
        max_bytes: page.number(&source.max_bytes, "max_bytes", (1, BYTES_MAX), BYTES),
        redirects_max: page.number(&source.redirects_max, "redirects_max", (0, HOPS_MAX), HOPS)
            as u32,
    })
}

/// What is added to the query.
fn added(
    page: &mut Page<'_>,
    pairs: &Pairs<At<String>>,
    known: &Known,
    vars: Vars<'_>,
) -> Vec<(String, String)> {
    let mut query = Vec::new();
    for (name, value) in &pairs.0 {
        let is_name = !name.value.trim().is_empty()
            && !name
                .value
                .contains(|c: char| c.is_control() || "{}".contains(c));
        if !is_name {
            let what = format!("`{}` is not the name of a parameter", shown(&name.value));
            page.error(name.place, what)
                .write("a plain name; `{field}` only in its value");
        }
        let text = filled::text(page, value, vars).unwrap_or_default();
        let before = page.found.count();
        filled::held(page, value, &text, known);
        if page.found.count() == before {
            value_form(page, value.place, &text);
        }
        query.push((name.value.clone(), text));
    }
    if let Some((over, _)) = pairs.0.get(QUERY_MAX) {
        let what = format!("more than {QUERY_MAX} parameters");
        page.error(over.place, what).write("fewer");
    }
    query
}

fn value_form(page: &mut Page<'_>, place: Place, text: &str) {
    if text.contains(char::is_control) {
        page.error(place, "this cannot be the value of a parameter")
            .write("text on one line");
    } else if !address::is_braced(text) {
        let what = "this has a `{` or `}` that is not around the name of a field";
        page.error(place, what).write("`{field}`, or no braces");
    }
}
