//! The URL of an HTTP tool: an address of the pack with fields of the input. A field stands in a
//! segment of the path or in a value of the query only, and its value stays there: scheme, host, port
//! and the number of segments are always those of the pack (G5).

use serde_json::{Map, Value};
use turnwire_dial::{Dialer, Url};
use turnwire_pack::is_plain_url_char;

use crate::percent::encoded;
use crate::tool::ToolFailure;

/// The limit of a filled URL; most servers reject longer ones.
const URL_BYTES_MAX: usize = 8 * 1_024;
/// Characters of a field name in a message.
const NAME_CHARS_MAX: usize = 64;

/// A part of a segment or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UrlPart {
    /// Text as it is encoded in a URL.
    Fixed(String),
    /// A field of the input.
    Field(String),
}

/// A URL with fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UrlTemplate {
    /// Scheme, host and port, without a `/` at the end.
    origin: String,
    /// Segments of the path, without `/`.
    path: Vec<Vec<UrlPart>>,
    /// Encoded names, and values.
    query: Vec<(String, Vec<UrlPart>)>,
    /// The decoded names of `query`, which no other field may have.
    reserved: Vec<String>,
}

impl UrlTemplate {
    /// Parses `text` and adds `query` to its query.
    pub(super) fn new(text: &str, query: &[(String, String)]) -> Result<Self, String> {
        let (origin, path) = split_origin(text)?;
        let (path, own_query) = path.split_once('?').unwrap_or((path, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path
            .split('/')
            .map(|segment| parts(segment, plain))
            .collect::<Result<Vec<_>, _>>()?;
        let mut pairs = Vec::new();
        for pair in own_query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.contains(['{', '}']) {
                return url_error("has a field in the name of a parameter");
            }
            pairs.push((plain(name)?, parts(value, plain)?));
        }
        for (name, value) in query {
            pairs.push((encoded(name), parts(value, |text| Ok(encoded(text)))?));
        }
        Self {
            reserved: names(&origin, &pairs),
            origin,
            path,
            query: pairs,
        }
        .validate()
    }

    /// Checks that the template is a URL when its fields are filled with plain text.
    fn validate(self) -> Result<Self, String> {
        let sample = self.fields().map(|name| (name.to_owned(), "x".into()));
        match self.fill(&sample.collect()) {
            Ok(_) => Ok(self),
            Err(_) => {
                url_error("has a path that is not plain: write it without `.` and `..` as segments")
            }
        }
    }

    /// The names of the fields.
    fn fields(&self) -> impl Iterator<Item = &str> {
        let values = self.query.iter().map(|(_, value)| value);
        let parts = self.path.iter().chain(values).flatten();
        parts.filter_map(|part| match part {
            UrlPart::Field(name) => Some(name.as_str()),
            UrlPart::Fixed(_) => None,
        })
    }

    /// Whether the template has `field`.
    pub(super) fn uses(&self, field: &str) -> bool {
        self.fields().any(|name| name == field)
    }

    /// Fills the fields from `input` and appends `query`.
    pub(super) fn fill_with_query(
        &self,
        input: &Map<String, Value>,
        query: &Map<String, Value>,
    ) -> Result<Url, ToolFailure> {
        let mut url = self.fill(input)?;
        let mut added = Vec::new();
        for (name, value) in query {
            ToolFailure::require(!self.reserved.contains(name), || {
                format!("The field `{}` cannot be set.", short(name))
            })?;
            let name = encoded(name);
            let texts = texts(value);
            added.extend(texts.iter().map(|text| format!("{name}={}", encoded(text))));
        }
        if !added.is_empty() {
            let filled = url.query().filter(|query| !query.is_empty());
            let pairs = filled.map(str::to_owned).into_iter().chain(added);
            let pairs: Vec<String> = pairs.collect();
            url.set_query(Some(&pairs.join("&")));
        }
        let is_short = url.as_str().len() <= URL_BYTES_MAX;
        ToolFailure::require(is_short, || "The input is too long for a URL.")?;
        Ok(url)
    }

    fn fill(&self, input: &Map<String, Value>) -> Result<Url, ToolFailure> {
        let mut path = String::new();
        for segment in &self.path {
            path.push('/');
            path.push_str(&fill_segment(segment, input)?);
        }
        let mut text = format!("{}{path}", self.origin);
        let mut mark = '?';
        for (name, value) in &self.query {
            for value in fill_values(value, input)? {
                text.push(mark);
                mark = '&';
                text.push_str(&format!("{name}={value}"));
            }
        }
        // The encoding keeps the values in their places; checked again nevertheless.
        let url = Url::parse(&text).ok().filter(|url| {
            url.path() == path && url.as_str().starts_with(&self.origin) && url.fragment().is_none()
        });
        url.ok_or_else(|| ToolFailure::internal("The address is not allowed."))
    }
}

/// The URL of a pack cannot be used; `reason` says what is wrong and what to do.
fn url_error<T>(reason: &str) -> Result<T, String> {
    Err(format!("its url {reason}"))
}

/// Splits `text` into its normalised scheme, host and port, and its path and query.
fn split_origin(text: &str) -> Result<(String, &str), String> {
    let not_http = "must begin with `http://` or `https://` and a host";
    let Some((scheme @ ("http" | "https"), after)) = text.split_once("://") else {
        return url_error(not_http);
    };
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (host, path) = after.split_at(end);
    if host.contains(['{', '}']) {
        return url_error("has a field in its host: only path and query may have fields");
    }
    if host.contains('@') {
        return url_error("has a user or a password: write them as a header");
    }
    if path.contains('#') {
        return url_error("must be without `#`");
    }
    let Ok(url) = Url::parse(&format!("{scheme}://{host}/")) else {
        return url_error(not_http);
    };
    let normalised = url.host_str().unwrap_or_default();
    let ip = normalised.trim_start_matches('[').trim_end_matches(']');
    let is_ip = ip.parse::<std::net::IpAddr>().is_ok();
    let port = host.to_ascii_lowercase();
    let port = port.strip_prefix(normalised);
    // An IP address in an unusual notation is a mistake or an attack.
    if is_ip && !port.is_some_and(|port| port.is_empty() || port.starts_with(':')) {
        return url_error(
            "has an address in an unusual form: write it like `10.1.2.3` or `[fd12::1]`",
        );
    }
    if Dialer::check_url(&url).is_err() {
        return url_error("has a link-local address, which is never called");
    }
    let origin = url.as_str().trim_end_matches('/').to_owned();
    Ok((origin, path))
}

/// Splits `text` into fixed text and fields.
fn parts(
    text: &str,
    fixed: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<UrlPart>, String> {
    let braces = "has a `{` or `}` that is not around the name of a field";
    let mut parts = Vec::new();
    let mut unparsed = text;
    while let Some((before, after)) = unparsed.split_once('{') {
        let (field, after) = after.split_once('}').unwrap_or_default();
        if before.contains('}') || field.is_empty() || field.contains('{') {
            return url_error(braces);
        }
        parts.push(UrlPart::Fixed(fixed(before)?));
        parts.push(UrlPart::Field(field.to_owned()));
        unparsed = after;
    }
    if unparsed.contains('}') {
        return url_error(braces);
    }
    parts.push(UrlPart::Fixed(fixed(unparsed)?));
    parts.retain(|part| !matches!(part, UrlPart::Fixed(text) if text.is_empty()));
    Ok(parts)
}

/// Fixed text of the pack, if it has only characters of a URL.
fn plain(text: &str) -> Result<String, String> {
    match text.chars().all(is_plain_url_char) {
        true => Ok(text.to_owned()),
        false => url_error("has characters that a URL cannot contain: write them percent-encoded"),
    }
}

/// The names of `query`, decoded.
fn names(origin: &str, query: &[(String, Vec<UrlPart>)]) -> Vec<String> {
    let names: Vec<&str> = query.iter().map(|(name, _)| name.as_str()).collect();
    let url = Url::parse(&format!("{origin}/?{}", names.join("&"))).ok();
    let pairs = url.iter().flat_map(Url::query_pairs);
    pairs.map(|(name, _)| name.into_owned()).collect()
}

/// Fills a segment. The result is one segment that is not empty, `.` or `..`.
fn fill_segment(parts: &[UrlPart], input: &Map<String, Value>) -> Result<String, ToolFailure> {
    let segment = fill_parts(parts, input)?;
    let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
    let has_field = parts.iter().any(|part| matches!(part, UrlPart::Field(_)));
    let is_empty = has_field && segment.is_empty();
    let is_segment = !is_empty && !matches!(decoded.as_str(), "." | "..");
    ToolFailure::require(
        is_segment,
        || "A field of the input must not be empty, `.` or `..`.",
    )?;
    Ok(segment)
}

/// Fills a query parameter: no value if its only field is missing, several for a list.
fn fill_values(parts: &[UrlPart], input: &Map<String, Value>) -> Result<Vec<String>, ToolFailure> {
    if let [UrlPart::Field(name)] = parts {
        let value = input.get(name).unwrap_or(&Value::Null);
        return Ok(texts(value).iter().map(|text| encoded(text)).collect());
    }
    Ok(vec![fill_parts(parts, input)?])
}

fn fill_parts(parts: &[UrlPart], input: &Map<String, Value>) -> Result<String, ToolFailure> {
    let texts = parts.iter().map(|part| match part {
        UrlPart::Fixed(text) => Ok(text.clone()),
        UrlPart::Field(name) => single(name, input).map(|text| encoded(&text)),
    });
    texts.collect()
}

/// A field that must be one string, number or boolean.
fn single(name: &str, input: &Map<String, Value>) -> Result<String, ToolFailure> {
    let reason = match input.get(name).unwrap_or(&Value::Null) {
        Value::Null => "is missing",
        Value::Array(_) | Value::Object(_) => "must be a string, a number or a boolean",
        one => return Ok(text(one)),
    };
    let message = format!("The field `{}` {reason}.", short(name));
    Err(ToolFailure::invalid_input(message))
}

/// The parameters of a value: none for null, one for each item of a list, JSON for an object.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(text).collect(),
        one => vec![text(one)],
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn short(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
