//! Checks an HTTP tool: where it asks, how, and with what.

use super::super::address;
use super::super::filled::{self, Vars};
use super::super::page::{Page, value_or, word};
use crate::finding::Known;
use crate::source::form::Pairs;
use crate::source::tool::ToolSource;
use crate::tool::{HttpDef, Method, ToolKind};
use crate::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The longest call: who waits longer for a service should delegate.
pub(super) const TIMEOUT_MS_MAX: u64 = 60_000;
/// Where the tool does not say.
pub(super) const TIMEOUT_MS: u64 = 10_000;
/// Bytes of an answer at most where the tool does not say: all of it is read by a model.
const MAX_BYTES: u64 = 1 << 18;
/// Redirects at most where the tool does not say.
const REDIRECTS_MAX: u64 = 3;
/// Parameters that a tool adds to the query.
const QUERY_MAX: usize = 64;

/// Checks it; `known` are the fields of its input.
pub(super) fn check(
    page: &mut Page<'_>,
    home: TextPosition,
    source: &ToolSource,
    known: &Known,
    vars: Vars<'_>,
) -> ToolKind {
    let example = "url: https://api.example.com/v1/{field}";
    let url = match page.needed(&source.url, "url", home, example) {
        Some(url) => address::check(page, url, Some(known), vars),
        None => String::new(),
    };
    let query = source.query.as_ref();
    let headers = source.headers.as_ref();
    ToolKind::Http(HttpDef {
        method: word(&source.method).unwrap_or(Method::Get),
        url,
        query: query
            .map(|pairs| added(page, &pairs.value, known, vars))
            .unwrap_or_default(),
        headers: headers
            .map(|pairs| filled::headers(page, &pairs.value, &[], vars))
            .unwrap_or_default(),
        max_bytes: value_or(&source.max_bytes, MAX_BYTES),
        redirects_max: value_or(&source.redirects_max, REDIRECTS_MAX) as u32,
    })
}

/// What is added to the query.
fn added(
    page: &mut Page<'_>,
    pairs: &Pairs<Located<String>>,
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
            let what = format!("`{}` is not the name of a parameter", one_line(&name.value));
            page.error(name.position, what)
                .write("a plain name; `{field}` only in its value");
        }
        let text = filled::text(page, value, vars).unwrap_or_default();
        let before = page.found.count();
        filled::held(page, value, &text, known);
        if page.found.count() == before {
            value_form(page, value.position, &text);
        }
        query.push((name.value.clone(), text));
    }
    let over = pairs.0.get(QUERY_MAX).map(|(name, _)| name.position);
    page.at_most(over, QUERY_MAX, "parameters");
    query
}

fn value_form(page: &mut Page<'_>, position: TextPosition, text: &str) {
    if text.contains(char::is_control) {
        page.error(position, "this cannot be the value of a parameter")
            .write("text on one line");
    } else if !address::is_braced(text) {
        let what = "this has a `{` or `}` that is not around the name of a field";
        page.error(position, what).write("`{field}`, or no braces");
    }
}
