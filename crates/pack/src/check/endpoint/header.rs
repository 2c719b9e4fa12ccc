//! Checks headers: valid names and values; for a provider no header that carries a key or that its
//! dialect sets.

use crate::check::report::FileReport;
use crate::source::form::Pairs;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The maximum number of headers.
const HEADERS_MAX: usize = 32;
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

/// The headers of a provider, names in lower case.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    source: &Pairs<Located<String>>,
) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (written, value) in &source.0 {
        let lower = written.value.to_ascii_lowercase();
        if check_name(report, written, &lower) {
            check_allowed(report, written, &lower);
        }
        if headers.iter().any(|(known_names, _)| *known_names == lower) {
            report_duplicate(report, written, &lower);
        }
        check_value(report, value);
        headers.push((lower, value.value.clone()));
    }
    check_count(report, source);
    headers
}

/// True if a name is valid; an invalid one is reported.
pub(crate) fn check_name(
    report: &mut FileReport<'_>,
    written: &Located<String>,
    name: &str,
) -> bool {
    let is_token = is_token(name);
    if !is_token {
        let message = format!("`{}` is not the name of a header", one_line(&written.value));
        report
            .error(written.position, message)
            .suggest("letters, digits and `-`, for example `x-team`");
    }
    is_token
}

/// Reports a header that is there twice.
pub(crate) fn report_duplicate(report: &mut FileReport<'_>, written: &Located<String>, name: &str) {
    let message = format!("the header `{}` is there twice", one_line(name));
    report.error(written.position, message).suggest("it once");
}

/// Reports a header that a pack may not set.
pub(crate) fn report_reserved(report: &mut FileReport<'_>, written: &Located<String>) {
    let quoted_name = one_line(&written.value);
    let message = format!("the header `{quoted_name}` is not the pack's to write");
    report.error(written.position, message).suggest("nothing");
}

/// Reports too many headers.
pub(crate) fn check_count(report: &mut FileReport<'_>, source: &Pairs<Located<String>>) {
    let first_extra = source.0.get(HEADERS_MAX).map(|(name, _)| name.position);
    report.at_most(first_extra, HEADERS_MAX, "headers");
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
    report
        .error(position, "this cannot be the value of a header")
        .suggest(format!("plain ASCII on one line, 1 to {most} characters"));
}

fn check_allowed(report: &mut FileReport<'_>, written: &Located<String>, name: &str) {
    if is_secret(name) {
        let quoted_name = one_line(&written.value);
        report
            .error(
                written.position,
                format!("the header `{quoted_name}` carries a key"),
            )
            .suggest("`key: ${NAME}` of the provider: its dialect knows the header");
    } else if RESERVED.contains(&name) {
        report_reserved(report, written);
    }
}

/// Messages do not repeat the value: a key may have been written there.
fn check_value(report: &mut FileReport<'_>, value: &Located<String>) {
    if value.value.contains("${") {
        report
            .error(value.position, "variables are not filled in in a header")
            .suggest("the value itself; a key as `key: ${NAME}`");
    } else if is_key(&value.value) {
        report
            .error(value.position, "this looks like a key")
            .suggest("`key: ${NAME}` of the provider");
    } else if !is_value(&value.value, VALUE_MAX) {
        report_bad_value(report, value.position, VALUE_MAX);
    }
}

/// True if `name` is a valid name of a header.
fn is_token(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
