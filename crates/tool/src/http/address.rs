//! Where an HTTP tool asks: an address of the pack with holes that fields of the input fill. A
//! hole is in a segment of the path or in a value of the query and nowhere else, and what fills
//! it stays there: scheme, host, port and the number of segments are the pack's (G5).

use serde_json::{Map, Value};
use turnwire_dial::{Dialer, Url};
use turnwire_pack::is_plain_url_char;

use crate::percent::encoded;
use crate::tool::ToolFailure;

/// Of an address that is filled; longer ones are refused by most servers.
const ADDRESS_BYTES_MAX: usize = 8 * 1_024;
/// Characters of a name that a sentence repeats.
const NAME_CHARS_MAX: usize = 64;

/// An address of a pack cannot be used; what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadAddress(pub(super) String);

impl BadAddress {
    fn new(why: &str) -> Self {
        Self(format!("its url {why}"))
    }
}

/// A piece of a segment or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Text as it stands in an address.
    Fixed(String),
    /// A field of the input.
    Field(String),
}

/// An address with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Scheme, host and port, without a `/` at the end.
    origin: String,
    /// Segments of the path, each after its `/`.
    path: Vec<Vec<Part>>,
    /// Names as they stand in an address, and values.
    query: Vec<(String, Vec<Part>)>,
    /// The same names as they are meant, which no other field may have.
    taken: Vec<String>,
}

impl Address {
    /// The address `text`, with `query` added to its query.
    pub(super) fn new(text: &str, query: &[(String, String)]) -> Result<Self, BadAddress> {
        let (origin, rest) = split(text)?;
        let (path, asked) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path
            .split('/')
            .map(|segment| parts(segment, plain))
            .collect::<Result<Vec<_>, _>>()?;
        let mut pairs = Vec::new();
        for pair in asked.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.contains(['{', '}']) {
                return Err(BadAddress::new("has a field in the name of a parameter"));
            }
            pairs.push((plain(name)?, parts(value, plain)?));
        }
        for (name, value) in query {
            pairs.push((encoded(name), parts(value, |text| Ok(encoded(text)))?));
        }
        let address = Self {
            taken: names(&origin, &pairs),
            origin,
            path,
            query: pairs,
        };
        address.try_out()
    }

    /// Itself, if it is an address when something plain is put in.
    fn try_out(self) -> Result<Self, BadAddress> {
        let fields = self.path.iter().chain(self.query.iter().map(|(_, v)| v));
        let fields = fields.flatten().filter_map(|part| match part {
            Part::Field(name) => Some((name.clone(), Value::from("x"))),
            Part::Fixed(_) => None,
        });
        let sample: Map<String, Value> = fields.collect();
        match self.fill(&sample) {
            Ok(_) => Ok(self),
            Err(_) => Err(BadAddress::new(
                "has a path that is not plain: write it without `.` and `..` as segments",
            )),
        }
    }

    /// The names of fields that it takes.
    pub(super) fn uses(&self, field: &str) -> bool {
        let values = self.query.iter().map(|(_, value)| value);
        let mut parts = self.path.iter().chain(values).flatten();
        parts.any(|part| matches!(part, Part::Field(name) if name == field))
    }

    /// The address for `input`, with the `loose` fields in its query.
    pub(super) fn with(
        &self,
        input: &Map<String, Value>,
        loose: &Map<String, Value>,
    ) -> Result<Url, ToolFailure> {
        let mut url = self.fill(input)?;
        let mut added = Vec::new();
        for (name, value) in loose {
            if self.taken.contains(name) {
                let told = format!("The field `{}` cannot be set.", short(name));
                return Err(ToolFailure::invalid_input(told));
            }
            let name = encoded(name);
            added.extend(texts(value).map(|text| format!("{name}={}", encoded(&text))));
        }
        if !added.is_empty() {
            let own = url.query().filter(|own| !own.is_empty());
            let all = own.map(str::to_owned).into_iter().chain(added);
            let all: Vec<String> = all.collect();
            url.set_query(Some(&all.join("&")));
        }
        if url.as_str().len() > ADDRESS_BYTES_MAX {
            let told = "The input is too long to stand in an address.";
            return Err(ToolFailure::invalid_input(told));
        }
        Ok(url)
    }

    fn fill(&self, input: &Map<String, Value>) -> Result<Url, ToolFailure> {
        let mut path = String::new();
        for segment in &self.path {
            path.push('/');
            path.push_str(&segment_of(segment, input)?);
        }
        let mut text = format!("{}{path}", self.origin);
        let mut mark = '?';
        for (name, value) in &self.query {
            for value in values_of(value, input)? {
                text.push(mark);
                mark = '&';
                text.push_str(&format!("{name}={value}"));
            }
        }
        // What was put in is harmless by its encoding; that the address still is the pack's is
        // looked at all the same.
        let url = Url::parse(&text).ok().filter(|url| {
            url.path() == path && url.as_str().starts_with(&self.origin) && url.fragment().is_none()
        });
        url.ok_or_else(|| ToolFailure::internal("The address is not allowed."))
    }
}

/// Scheme, host and port as they are meant, and the rest of `text`.
fn split(text: &str) -> Result<(String, &str), BadAddress> {
    let web = "must begin with `http://` or `https://` and a host";
    let (scheme, after) = text.split_once("://").ok_or(BadAddress::new(web))?;
    if !matches!(scheme, "http" | "https") {
        return Err(BadAddress::new(web));
    }
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (host, rest) = after.split_at(end);
    if host.contains(['{', '}']) {
        return Err(BadAddress::new(
            "has a field in its host: only path and query may have fields",
        ));
    }
    if host.contains('@') {
        return Err(BadAddress::new(
            "has a user or a password: write them as a header",
        ));
    }
    if rest.contains('#') {
        return Err(BadAddress::new("must be without `#`"));
    }
    let url = Url::parse(&format!("{scheme}://{host}/"));
    let url = url.map_err(|_| BadAddress::new(web))?;
    let plain = url.host_str().unwrap_or_default();
    let numbers = plain.trim_start_matches('[').trim_end_matches(']');
    let numbers = numbers.parse::<std::net::IpAddr>().is_ok();
    let port = host.to_ascii_lowercase();
    let port = port.strip_prefix(plain);
    // An address in an odd form is a mistake or a trick, whoever wrote it.
    if numbers && !port.is_some_and(|port| port.is_empty() || port.starts_with(':')) {
        return Err(BadAddress::new(
            "has an address in an unusual form: write it like `10.1.2.3` or `[fd12::1]`",
        ));
    }
    if Dialer::lets_out(&url).is_err() {
        return Err(BadAddress::new(
            "leads to an address that is never called: this network's link",
        ));
    }
    let origin = url.as_str().trim_end_matches('/').to_owned();
    Ok((origin, rest))
}

/// Text and fields, as they alternate in `text`.
fn parts(
    text: &str,
    fixed: impl Fn(&str) -> Result<String, BadAddress>,
) -> Result<Vec<Part>, BadAddress> {
    let braces = || BadAddress::new("has a `{` or `}` that is not around the name of a field");
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (field, after) = after.split_once('}').ok_or_else(braces)?;
        if before.contains('}') || field.is_empty() || field.contains('{') {
            return Err(braces());
        }
        parts.push(Part::Fixed(fixed(before)?));
        parts.push(Part::Field(field.to_owned()));
        rest = after;
    }
    if rest.contains('}') {
        return Err(braces());
    }
    parts.push(Part::Fixed(fixed(rest)?));
    parts.retain(|part| !matches!(part, Part::Fixed(text) if text.is_empty()));
    Ok(parts)
}

/// What the pack wrote as a part of an address, as it is.
fn plain(text: &str) -> Result<String, BadAddress> {
    if text.chars().all(is_plain_url_char) {
        Ok(text.to_owned())
    } else {
        Err(BadAddress::new(
            "has characters that an address cannot carry: write them percent-encoded",
        ))
    }
}

/// The names of `query` as the other side will read them.
fn names(origin: &str, query: &[(String, Vec<Part>)]) -> Vec<String> {
    let all: Vec<&str> = query.iter().map(|(name, _)| name.as_str()).collect();
    let url = Url::parse(&format!("{origin}/?{}", all.join("&")));
    url.map_or_else(
        |_| Vec::new(),
        |url| {
            let pairs = url.query_pairs();
            pairs.map(|(name, _)| name.into_owned()).collect()
        },
    )
}

/// A segment, filled. Its shape is one segment that is not empty and does not lead upwards.
fn segment_of(parts: &[Part], input: &Map<String, Value>) -> Result<String, ToolFailure> {
    let mut segment = String::new();
    for part in parts {
        match part {
            Part::Fixed(text) => segment.push_str(text),
            Part::Field(name) => segment.push_str(&encoded(&single(name, input)?)),
        }
    }
    let read = segment.to_ascii_lowercase().replace("%2e", ".");
    let filled = parts.iter().any(|part| matches!(part, Part::Field(_)));
    if matches!(read.as_str(), "." | "..") || (filled && segment.is_empty()) {
        let told = "A field of the input is empty, `.` or `..`, which it must not be.";
        return Err(ToolFailure::invalid_input(told));
    }
    Ok(segment)
}

/// The values of a parameter: none where its only field is not there, several for a list.
fn values_of(parts: &[Part], input: &Map<String, Value>) -> Result<Vec<String>, ToolFailure> {
    if let [Part::Field(name)] = parts {
        let value = input.get(name).unwrap_or(&Value::Null);
        return Ok(texts(value).map(|text| encoded(&text)).collect());
    }
    let mut value = String::new();
    for part in parts {
        match part {
            Part::Fixed(text) => value.push_str(text),
            Part::Field(name) => value.push_str(&encoded(&single(name, input)?)),
        }
    }
    Ok(vec![value])
}

/// A field that must be one text, number or boolean.
fn single(name: &str, input: &Map<String, Value>) -> Result<String, ToolFailure> {
    let name_told = short(name);
    match input.get(name).unwrap_or(&Value::Null) {
        Value::Null => Err(ToolFailure::invalid_input(format!(
            "The field `{name_told}` is missing."
        ))),
        Value::Array(_) | Value::Object(_) => Err(ToolFailure::invalid_input(format!(
            "The field `{name_told}` must be a text, a number or a boolean."
        ))),
        one => Ok(text(one)),
    }
}

/// A value as parameters: nothing for null, one for each of a list, JSON for what has parts.
fn texts(value: &Value) -> impl Iterator<Item = String> {
    let all = match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(text).collect(),
        one => vec![text(one)],
    };
    all.into_iter()
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
