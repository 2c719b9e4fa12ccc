//! Checks the headers of a provider: names and values that a request can carry, none that carries
//! a key, and none that is written anyway.

use super::page::Page;
use crate::finding::shown;
use crate::place::At;
use crate::source::form::Pairs;

/// Headers of one provider.
const HEADERS_MAX: usize = 32;
/// Bytes of a value.
const VALUE_MAX: usize = 1_024;

/// Headers that carry a key, whatever stands in them.
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

/// Headers that are written anyway, or that belong to the connection.
const OWN: [&str; 15] = [
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

/// How keys begin.
const KEYS: [&str; 5] = ["sk-", "bearer ", "basic ", "aiza", "eyj"];

/// The headers, names in lower case.
pub(crate) fn check(page: &mut Page<'_>, source: &Pairs<At<String>>) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (written, value) in &source.0 {
        let name = written.value.to_ascii_lowercase();
        name_form(page, written, &name);
        if headers.iter().any(|(known, _)| *known == name) {
            let what = format!("the header `{}` is there twice", shown(&name));
            page.error(written.place, what).write("it once");
        }
        value_form(page, value);
        headers.push((name, value.value.clone()));
    }
    if let Some((over, _)) = source.0.get(HEADERS_MAX) {
        let what = format!("more than {HEADERS_MAX} headers");
        page.error(over.place, what).write("fewer");
    }
    headers
}

fn name_form(page: &mut Page<'_>, written: &At<String>, name: &str) {
    let shown = shown(&written.value);
    if !is_token(name) {
        page.error(
            written.place,
            format!("`{shown}` is not the name of a header"),
        )
        .write("letters, digits and `-`, for example `x-team`");
    } else if SECRET.contains(&name) {
        page.error(written.place, format!("the header `{shown}` carries a key"))
            .write("`key: ${NAME}` of the provider: its dialect knows the header");
    } else if OWN.contains(&name) {
        let what = format!("the header `{shown}` is not the pack's to write");
        page.error(written.place, what).write("nothing");
    }
}

/// Messages do not repeat the value: a key may have been written there.
fn value_form(page: &mut Page<'_>, value: &At<String>) {
    let text = value.value.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if text.contains("${") {
        page.error(value.place, "variables are not filled in in a header")
            .write("the value itself; a key as `key: ${NAME}`");
    } else if KEYS.iter().any(|key| text.starts_with(key)) {
        page.error(value.place, "this looks like a key")
            .write("`key: ${NAME}` of the provider");
    } else if text.is_empty() || text.len() > VALUE_MAX || !text.bytes().all(is_plain) {
        page.error(value.place, "this cannot be the value of a header")
            .write("plain ASCII on one line, 1 to 1024 characters");
    }
}

/// Whether this can be a header's name.
fn is_token(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
