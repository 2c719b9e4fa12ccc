//! Parsers of single setting values. The error of a parser describes the expected value, for
//! example "a whole number from 1 to 10". Settings files, the environment and flags use the same
//! parsers, so an invalid value has the same message everywhere.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

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

/// Parses an IP address and a port; the address must be a loopback address, because requests are
/// not authenticated (reliability G4).
pub(in crate::config) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "an IP address and a port, such as 127.0.0.1:8421".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(
            "a loopback address such as 127.0.0.1:8421: requests are not authenticated, so the \
             server must not be reachable from other machines"
                .to_owned(),
        )
    }
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

/// Accepts any text that is not empty.
pub(in crate::config) fn non_empty(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("some text".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
