//! Parsers of single setting values. The error of a parser describes the expected value, for
//! example "a whole number from 1 to 10". Settings files, the environment and flags use the same
//! parsers, so an invalid value has the same message everywhere.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use turnwire_dial::Url;
use turnwire_event::TenantId;
use turnwire_identity::{KeyLocation, Scope, ScopeSet, UnknownScope};

/// Returns a parser of whole numbers in `range`.
pub(in crate::config) fn number<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        is_number
            .then(|| text.parse::<u64>().ok())
            .flatten()
            .filter(|number| range.contains(number))
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                let (low, high) = (range.start(), range.end());
                format!("a whole number from {low} to {high}")
            })
    }
}

/// Like [`number`]; an empty text is `None`.
pub(in crate::config) fn optional_number<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<Option<T>, String> {
    let number = number(range);
    move |text| match text {
        "" => Ok(None),
        text => number(text).map(Some),
    }
}

/// Parses US dollars as millionths; an empty text is `None`.
pub(in crate::config) fn optional_micro_usd(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str, max| {
        (1..=max).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let micros = (is_digits(whole, 9) && is_digits(fraction, 6))
        .then(|| format!("{whole}{fraction:0<6}").parse::<u64>().ok())
        .flatten();
    let micros = micros.filter(|micros| *micros > 0);
    micros
        .map(Some)
        .ok_or_else(|| "US dollars above 0 with at most six decimals, such as 2.50".to_owned())
}

/// Returns a parser that accepts the names in `choices` and returns the value of the name.
pub(in crate::config) fn choice<T: Copy>(
    choices: &'static [(&'static str, T)],
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let entry = choices.iter().find(|(name, _)| *name == text);
        entry.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            names.join(" or ")
        })
    }
}

/// Parses an IP address and a port.
pub(in crate::config) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "an IP address and a port, such as 127.0.0.1:8421".to_owned())
}

/// Parses a path; an empty text is `None`.
pub(in crate::config) fn optional_path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

/// Accepts any text; an empty one is `None`.
pub(in crate::config) fn optional_text(text: &str) -> Result<Option<String>, String> {
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// Parses values that are separated by commas; empty ones are skipped.
pub(in crate::config) fn list<T: FromStr<Err: Display>>(text: &str) -> Result<Vec<T>, String> {
    let items = text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items
        .map(|item| {
            item.parse()
                .map_err(|error: T::Err| format!("a list between commas ({error})"))
        })
        .collect()
}

/// Accepts texts between commas; empty ones are skipped.
pub(in crate::config) fn texts(text: &str) -> Result<Vec<String>, String> {
    list(text)
}

/// Parses host names between commas, without ports.
pub(in crate::config) fn host_names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list(text)?;
    let is_name = |name: &String| {
        let bytes = name.bytes();
        name.len() <= 253
            && bytes
                .clone()
                .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
    };
    if names.iter().all(is_name) {
        Ok(names
            .into_iter()
            .map(|name| name.to_ascii_lowercase())
            .collect())
    } else {
        Err("host names without ports between commas, such as turnwire.internal".to_owned())
    }
}

/// Parses a tenant; an empty text is `None`.
pub(in crate::config) fn optional_tenant(text: &str) -> Result<Option<TenantId>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let tenant = text.parse().map_err(|_| "a UUID".to_owned())?;
    Ok(Some(tenant))
}

/// Parses scopes between commas or spaces.
pub(in crate::config) fn scopes(text: &str) -> Result<ScopeSet, String> {
    let names = text.split([',', ' ']).filter(|name| !name.is_empty());
    let scopes: Result<ScopeSet, UnknownScope> = names.map(str::parse::<Scope>).collect();
    scopes.map_err(|unknown| format!("a list between commas ({unknown})"))
}

/// Parses the place of a key set: a URL, or else a path. An empty text is `None`.
pub(in crate::config) fn key_location(text: &str) -> Result<Option<KeyLocation>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.contains("://") {
        return Ok(Some(KeyLocation::File(text.into())));
    }
    let expected = || {
        "a path, or a URL such as https://id.example.com/.well-known/jwks.json; http is for loopback \
         only"
            .to_owned()
    };
    let url: Url = text.parse().map_err(|_| expected())?;
    let is_loopback = match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_matches(['[', ']']);
            host.parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
        }
        None => false,
    };
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback;
    let is_plain = url.username().is_empty() && url.password().is_none();
    (is_safe && is_plain)
        .then_some(Some(KeyLocation::Url(url)))
        .ok_or_else(expected)
}

/// Accepts any text that is not empty.
pub(in crate::config) fn non_empty(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("some text".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
