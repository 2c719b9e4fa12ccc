//! Readers of single values: text in, a typed value or "what was expected" out. Files,
//! environment and flags all come through here, so a bad value is refused in the same words.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

/// A whole number within bounds.
pub(in crate::config) fn number<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| text.parse::<u64>().ok())
            .flatten()
            .filter(|n| range.contains(n))
            .and_then(|n| T::try_from(n).ok())
            .ok_or_else(|| {
                let (low, high) = (range.start(), range.end());
                format!("a whole number from {low} to {high}")
            })
    }
}

/// One of a few words.
pub(in crate::config) fn choice<T: Copy>(
    words: &'static [(&'static str, T)],
) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let entry = words.iter().find(|(word, _)| *word == text);
        entry.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            names.join(" or ")
        })
    }
}

/// An address of this machine only: there is no authentication yet, so whoever can reach the
/// port is taken at their word (reliability G4).
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

/// A path, or nothing.
pub(in crate::config) fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

/// Parses values that are separated by commas.
pub(in crate::config) fn list<T: FromStr<Err: Display>>(text: &str) -> Result<Vec<T>, String> {
    let each = text
        .split(',')
        .map(str::trim)
        .filter(|each| !each.is_empty());
    each.map(|each| {
        each.parse()
            .map_err(|wrong: T::Err| format!("a list between commas ({wrong})"))
    })
    .collect()
}

/// Any text that is not empty.
pub(in crate::config) fn words(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("some text".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
