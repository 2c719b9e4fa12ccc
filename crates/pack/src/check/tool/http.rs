//! Checks an HTTP tool: address, query and headers.

use crate::check::endpoint::expansion::{self, Vars};
use crate::check::endpoint::tool_url;
use crate::check::report::{FileReport, value_or, word};
use crate::finding::KnownNames;
use crate::pack::tool::{HttpDef, ToolKind, ToolMethod};
use crate::source::form::Pairs;
use crate::source::tool::ToolSource;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The maximum timeout: a slower service needs a delegate tool.
pub(super) const TIMEOUT_MS_MAX: u64 = 60_000;
/// The default of `timeout_ms`.
pub(super) const TIMEOUT_MS: u64 = 10_000;
/// The default of `max_bytes`: a model reads the whole response.
const MAX_BYTES: u64 = 1 << 18;
/// The default of `redirects_max`.
const REDIRECTS_MAX: u64 = 3;
/// The maximum number of additional query parameters.
const QUERY_MAX: usize = 64;

/// Checks the tool; `known_names` are the fields of its input.
pub(super) fn check(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    known_names: &KnownNames,
    vars: Vars<'_>,
) -> ToolKind {
    let example = "url: https://api.example.com/v1/{field}";
    let url = match report.require(&source.url, "url", home, example) {
        Some(url) => tool_url::check(report, url, Some(known_names), vars),
        None => String::new(),
    };
    let query = source.query.as_ref();
    let headers = source.headers.as_ref();
    ToolKind::Http(HttpDef {
        method: word(&source.method).unwrap_or(ToolMethod::Get),
        url,
        query: query
            .map(|pairs| query_parameters(report, &pairs.value, known_names, vars))
            .unwrap_or_default(),
        headers: headers
            .map(|pairs| expansion::headers(report, &pairs.value, &[], vars))
            .unwrap_or_default(),
        max_bytes: value_or(&source.max_bytes, MAX_BYTES),
        redirects_max: value_or(&source.redirects_max, REDIRECTS_MAX) as u32,
    })
}

/// The additional query parameters.
fn query_parameters(
    report: &mut FileReport<'_>,
    pairs: &Pairs<Located<String>>,
    known_names: &KnownNames,
    vars: Vars<'_>,
) -> Vec<(String, String)> {
    let mut query = Vec::new();
    for (name, value) in &pairs.0 {
        let is_name = !name.value.trim().is_empty()
            && !name
                .value
                .contains(|c: char| c.is_control() || "{}".contains(c));
        if !is_name {
            let message = format!("`{}` is not the name of a parameter", one_line(&name.value));
            report
                .error(name.position, message)
                .suggest("a plain name; `{field}` only in its value");
        }
        let text = expansion::expand(report, value, vars).unwrap_or_default();
        let before = report.findings.count();
        expansion::check_fields(report, value, &text, known_names);
        if report.findings.count() == before {
            check_value(report, value.position, &text);
        }
        query.push((name.value.clone(), text));
    }
    let first_extra = pairs.0.get(QUERY_MAX).map(|(name, _)| name.position);
    report.at_most(first_extra, QUERY_MAX, "parameters");
    query
}

fn check_value(report: &mut FileReport<'_>, position: TextPosition, text: &str) {
    if text.contains(char::is_control) {
        report
            .error(position, "this cannot be the value of a parameter")
            .suggest("text on one line");
    } else if !tool_url::is_braced(text) {
        let message = "this has a `{` or `}` that is not around the name of a field";
        report
            .error(position, message)
            .suggest("`{field}`, or no braces");
    }
}
