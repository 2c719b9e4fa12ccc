//! Checks headers: valid names and values; for a provider no header that carries a key or that its
//! dialect sets.

use crate::check::report::FileReport;
use crate::source::form::Pairs;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The maximum size of the value of a provider's header.
const VALUE_MAX: usize = 1_024;

/// Headers that carry a key.
const SECRET: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
    "x-access-token",
    "cookie",
];

/// Headers that the client sets, or that belong to the connection.
const RESERVED: [&str; 15] = [
    "accept",
    "accept-encoding",
    "anthropic-version",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

const KEYS: [&str; 5] = ["sk-", "bearer ", "basic ", "aiza", "eyj"];

/// What a header without a key is about: where its key would be written.
pub(crate) struct HeaderField {
    /// What to write instead of a header that carries a key.
    pub(crate) key_header: &'static str,
    /// What to write instead of a value that is a key.
    pub(crate) key_value: &'static str,
    /// Headers that the server sets there, beside those of every request.
    pub(crate) reserved: &'static [&'static str],
}

/// The headers of a provider or an upstream.
pub(crate) const PROVIDER: HeaderField = HeaderField {
    key_header: "`key: ${NAME}` of the provider: its dialect knows the header",
    key_value: "`key: ${NAME}` of the provider",
    reserved: &[],
};

/// Headers that carry the trace of a request.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// The headers of a data service.
pub(crate) const SERVICE: HeaderField = HeaderField {
    key_header: "it in `key_headers`: `{key: ${NAME}}`, or `{key_file: …}` with a path",
    key_value: "it in `key_headers`: `{key: ${NAME}}`",
    reserved: &TRACE,
};

/// The headers without a key, names in lower case.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    source: &Pairs<Located<String>>,
    field: &HeaderField,
) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (written, value) in &source.0 {
        let lower = written.value.to_ascii_lowercase();
        check_allowed(report, written, &lower, field);
        if headers.iter().any(|(known_names, _)| *known_names == lower) {
            report_duplicate(report, written, &lower);
        }
        check_value(report, value, field);
        headers.push((lower, value.value.clone()));
    }
    headers
}

/// Reports a header that is there twice.
pub(crate) fn report_duplicate(report: &mut FileReport<'_>, written: &Located<String>, name: &str) {
    let message = format!("the header `{}` is there twice", one_line(name));
    report.error(written.position, message, "it once");
}

/// Reports a header that a pack may not set.
pub(crate) fn report_reserved(report: &mut FileReport<'_>, written: &Located<String>) {
    let quoted_name = one_line(&written.value);
    let message = format!("the header `{quoted_name}` is not the pack's to write");
    report.error(written.position, message, "nothing");
}

/// True if a header of this name carries a key.
pub(crate) fn is_secret(name: &str) -> bool {
    SECRET.contains(&name)
}

/// True if `value` looks like a key.
pub(crate) fn is_key(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    !value.contains("${") && KEYS.iter().any(|key| value.starts_with(key))
}

/// True if `text` is a valid value of a header.
pub(crate) fn is_value(text: &str, most: usize) -> bool {
    let is_plain_url_char = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    (1..=most).contains(&text.len()) && text.bytes().all(is_plain_url_char)
}

/// Reports an invalid value of a header.
pub(crate) fn report_bad_value(report: &mut FileReport<'_>, position: TextPosition, most: usize) {
    let instead = format!("plain ASCII on one line, 1 to {most} characters");
    report.error(position, "this cannot be the value of a header", instead);
}

fn check_allowed(
    report: &mut FileReport<'_>,
    written: &Located<String>,
    name: &str,
    field: &HeaderField,
) {
    if is_secret(name) {
        let quoted_name = one_line(&written.value);
        let message = format!("the header `{quoted_name}` carries a key");
        report.error(written.position, message, field.key_header);
    } else {
        check_reserved(report, written, name, field);
    }
}

/// Reports a header that the server sets.
pub(crate) fn check_reserved(
    report: &mut FileReport<'_>,
    written: &Located<String>,
    name: &str,
    field: &HeaderField,
) {
    if RESERVED.contains(&name) || field.reserved.contains(&name) {
        report_reserved(report, written);
    }
}

/// Messages do not repeat the value: a key may have been written there.
fn check_value(report: &mut FileReport<'_>, value: &Located<String>, field: &HeaderField) {
    if value.value.contains("${") {
        let message = "variables are not filled in in a header";
        let instead = "the value itself; a key as `key: ${NAME}`";
        report.error(value.position, message, instead);
    } else if is_key(&value.value) {
        let message = "this looks like a key";
        report.error(value.position, message, field.key_value);
    } else if !is_value(&value.value, VALUE_MAX) {
        report_bad_value(report, value.position, VALUE_MAX);
    }
}
