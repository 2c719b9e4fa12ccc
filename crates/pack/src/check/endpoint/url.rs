//! Fills in the variables of a url and checks the result. Messages never repeat the result: a variable
//! may hold a secret.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::check::report::FileReport;
use crate::text::wording::one_line;
use crate::yaml::Located;

/// The maximum length of a url.
const URL_MAX: usize = 2_048;

/// The words for a url in messages.
pub(crate) struct UrlField {
    pub(crate) field: &'static str,
    /// An example without a path.
    pub(crate) example: &'static str,
    /// What to write instead of a url with a query.
    pub(crate) query: &'static str,
    /// What to write instead of a url with a user name.
    pub(crate) user: &'static str,
}

/// The url of a data service.
pub(crate) const SERVICE: UrlField = UrlField {
    field: "url",
    example: "http://127.0.0.1:8422",
    query: "it without a query: /v1/enrich is put after it",
    user: "it without: a key is written into `key_headers`",
};

/// The url with variables filled in and without a slash at the end.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    url: &Located<String>,
    field: &UrlField,
    vars: &dyn Fn(&str) -> Option<String>,
) -> String {
    let Some(filled) = expand(report, url, field.example, vars) else {
        return String::new();
    };
    report_problem(
        report,
        url,
        &filled,
        (field.field, check_url(&filled, field)),
    );
    filled.trim_end_matches('/').to_owned()
}

/// A text with its variables filled in; `None` if a variable is not set, which is reported.
pub(crate) fn expand(
    report: &mut FileReport<'_>,
    text: &Located<String>,
    example: &str,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let filled = fill(&text.value, example, vars);
    let report = |(message, instead)| report.error(text.position, message, instead);
    filled.map_err(report).ok()
}

/// Reports what is wrong with the url of `field` once its variables are filled in.
pub(crate) fn report_problem(
    report: &mut FileReport<'_>,
    url: &Located<String>,
    filled: &str,
    (field, checked): (&str, Result<(), UrlProblem>),
) {
    if let Err((message, instead)) = checked {
        let after = match filled == url.value {
            true => "",
            false => ", once its variables are filled in",
        };
        report.error(
            url.position,
            format!("the {field} {message}{after}"),
            instead,
        );
    }
}

/// What is wrong, and what to write.
pub(crate) type UrlProblem = (String, String);

/// Fills in `${NAME}` and `${NAME:-default}`; `example` is a possible default.
pub(crate) fn fill(
    text: &str,
    example: &str,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Result<String, UrlProblem> {
    let mut filled = String::new();
    let mut remaining = text;
    while let Some(start) = remaining.find("${") {
        filled.push_str(&remaining[..start]);
        let inside = &remaining[start + 2..];
        let Some(end) = inside.find('}') else {
            let message = "a variable begins with `${` and does not end".to_owned();
            return Err((message, "`${NAME}` or `${NAME:-default}`".to_owned()));
        };
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        if !is_name(name) {
            let message = format!("`{}` is not the name of a variable", one_line(name));
            return Err((message, "`${NAME}` or `${NAME:-default}`".to_owned()));
        }
        let value = vars(name).filter(|value| !value.is_empty());
        match value.as_deref().or(default) {
            Some(value) => filled.push_str(value),
            None => {
                let instead = format!(
                    "`${{{name}:-{example}}}` for a default, or set {name} before the start"
                );
                return Err((format!("the variable `{name}` is not set"), instead));
            }
        }
        remaining = &inside[end + 1..];
    }
    filled.push_str(remaining);
    Ok(filled)
}

/// True if `name` is a valid name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Fails if no request can be sent to the url. The parser is the one that requests use.
pub(crate) fn check_url(text: &str, field: &UrlField) -> Result<(), UrlProblem> {
    let problem = |message: &str, instead: &str| Err((message.to_owned(), instead.to_owned()));
    let example = "`http://host:port` or `https://host`, with a path if there is one";
    let remaining = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let Some(remaining) = remaining else {
        return problem("does not begin with http:// or https://", example);
    };
    if text.len() > URL_MAX {
        return problem("is longer than 2048 characters", example);
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return problem("has a space in it", example);
    }
    if text.contains(['?', '#']) {
        return problem("has `?` or `#` in it", field.query);
    }
    // The parser ignores a third slash, and takes a backslash for a slash.
    if text.contains('\\') || remaining.starts_with('/') {
        return problem("has a slash where the host should be", example);
    }
    let authority = remaining.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return problem("has a user name in it", field.user);
    }
    let url = match url::Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            let (message, instead) = unreadable(error);
            return problem(message, if instead.is_empty() { example } else { instead });
        }
    };
    if url.port() == Some(0) {
        return problem("has a port that cannot be one", PORT);
    }
    let is_link_local = match url.host() {
        Some(url::Host::Ipv4(address)) => is_link_local_v4(address),
        Some(url::Host::Ipv6(address)) => is_link_local_v6(address),
        Some(url::Host::Domain(_)) => false,
        None => return problem("has no host", example),
    };
    if is_link_local {
        return problem(
            "is an address that is never asked: link-local, where machines keep their secrets",
            "the address of the service",
        );
    }
    Ok(())
}

/// True if a key would be sent unencrypted: no TLS, and neither this machine nor a private network.
pub(crate) fn is_unencrypted(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else {
        return false;
    };
    let is_near = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback() || address.is_private(),
        Some(url::Host::Ipv6(address)) => address.is_loopback() || address.is_unique_local(),
        // A name without a dot is in the same network.
        Some(url::Host::Domain(name)) => !name.contains('.') || name.ends_with(".local"),
        None => true,
    };
    url.scheme() == "http" && !is_near
}

const PORT: &str = "a port from 1 to 65535";

/// Why the parser refuses a url, and what to write; empty for the usual example.
fn unreadable(error: url::ParseError) -> (&'static str, &'static str) {
    use url::ParseError as E;
    match error {
        E::InvalidPort => ("has a port that cannot be one", PORT),
        E::InvalidIpv4Address => (
            "has a host that looks like an IPv4 address and is none",
            "four numbers from 0 to 255, such as `http://127.0.0.1:8422`, or a name",
        ),
        E::InvalidIpv6Address => (
            "has a host in `[…]` that is no IPv6 address",
            "an address without a zone, such as `http://[::1]:8422`",
        ),
        E::EmptyHost => ("has no host", ""),
        E::IdnaError | E::InvalidDomainCharacter => (
            "has a host that no name can be",
            "letters, digits, `-` and `.`, such as `https://ccs.example.com`",
        ),
        _ => ("cannot be read", ""),
    }
}

/// True for 169.254.0.0/16: link-local, with the metadata services of clouds.
fn is_link_local_v4(address: Ipv4Addr) -> bool {
    address.is_link_local()
}

/// True for fe80::/10, the metadata address fd00:ec2::254, and IPv6 forms of link-local IPv4
/// addresses.
fn is_link_local_v6(address: Ipv6Addr) -> bool {
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    /// 64:ff9b::/96 is translated to IPv4 on its way.
    const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];
    let parts = address.segments();
    let inner = address.to_ipv4_mapped().or_else(|| {
        let [a, b, c, d] = [
            parts[6] >> 8,
            parts[6] & 0xff,
            parts[7] >> 8,
            parts[7] & 0xff,
        ];
        (parts[..6] == TRANSLATED).then(|| Ipv4Addr::new(a as u8, b as u8, c as u8, d as u8))
    });
    parts[0] & 0xffc0 == 0xfe80 || address == METADATA || inner.is_some_and(is_link_local_v4)
}
