//! Checks the url of an HTTP tool or of a tool server: unlike a service's it may have a query, and
//! a tool's may have fields of the input in path and query. Never in the host: where a call goes
//! is the pack's word alone (G5). Messages never repeat a filled-in url.

use crate::check::endpoint::expansion::{self, Vars};
use crate::check::endpoint::url::{self, UrlField, UrlProblem};
use crate::check::report::FileReport;
use crate::finding::KnownNames;
use crate::text::template::{TemplatePart, is_plain_url_char, template_parts};
use crate::text::wording::one_line;
use crate::yaml::Located;

/// A tool's or a tool server's address, in words.
const TOOL: UrlField = UrlField {
    field: "url",
    example: "https://api.example.com",
    query: "",
    user: "it without: a key is written into `headers`, as `${NAME}`",
};

/// Endings of names that belong to private networks.
const PRIVATE: [&str; 6] = [
    ".internal",
    ".intranet",
    ".lan",
    ".local",
    ".home.arpa",
    ".corp",
];

/// The url with variables filled in; `known_names` are the fields that it may have, none for none.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    url: &Located<String>,
    known_names: Option<&KnownNames>,
    vars: Vars<'_>,
) -> String {
    let filled = match url::fill(&url.value, TOOL.example, vars) {
        Ok(filled) => filled,
        Err((message, instead)) => {
            report.error(url.position, message).suggest(instead);
            return String::new();
        }
    };
    let before = report.findings.count();
    if let Some(known_names) = known_names {
        expansion::check_fields(report, url, &filled, known_names);
    }
    if let Err((message, instead)) = check_url(&filled, known_names.is_some()) {
        let after = if filled == url.value {
            ""
        } else {
            ", once its variables are filled in"
        };
        report
            .error(url.position, format!("the url {message}{after}"))
            .suggest(instead);
    }
    if report.findings.count() == before {
        warn_private_name(report, url, &filled);
    }
    filled
}

/// Whether a call can be made there.
fn check_url(text: &str, takes_fields: bool) -> Result<(), UrlProblem> {
    let problem = |message: &str, instead: &str| Err((message.to_owned(), instead.to_owned()));
    let host = host(text);
    if host.contains(['{', '}']) {
        return problem(
            "has a field of the input in its host",
            "the host itself; `{field}` only in path and query",
        );
    }
    if text.contains('#') {
        return problem("has `#` in it", "it without what follows");
    }
    let (base, query) = text.split_once('?').unwrap_or((text, ""));
    url::check_url(&sample(base), &TOOL)?;
    if !takes_fields && text.contains(['{', '}']) {
        return problem(
            "has `{` or `}` in it, and takes no fields",
            "it without, or `%7B` and `%7D`",
        );
    }
    if !is_braced(text) {
        return problem(
            "has a `{` or `}` that is not around the name of a field",
            "`{field}`, or `%7B` and `%7D`",
        );
    }
    let named = query.split('&').map(|pair| pair.split('=').next());
    if named.flatten().any(|name| name.contains('{')) {
        return problem(
            "has a field in the name of a parameter",
            "it as a value: `name={field}`",
        );
    }
    let path = &base[base.find(host).unwrap_or(0) + host.len()..];
    let is_allowed = |c: char| is_plain_url_char(c) || matches!(c, '{' | '}');
    if !path.chars().chain(query.chars()).all(is_allowed) {
        return problem(
            "has characters that an address cannot carry",
            "them percent-encoded",
        );
    }
    if path.split('/').any(|part| matches!(part, "." | "..")) {
        return problem("has `.` or `..` as a part of its path", "the path without");
    }
    if is_unusual_address(host) {
        return problem(
            "has an address in an unusual form",
            "it like `10.1.2.3` or `[fd12::1]`",
        );
    }
    Ok(())
}

/// What stands between `//` and the path.
fn host(text: &str) -> &str {
    let remaining = text
        .split_once("://")
        .map_or("", |(_, remaining)| remaining);
    remaining.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The text with something plain for each field.
fn sample(text: &str) -> String {
    let piece = |piece| match piece {
        TemplatePart::Text(text) => text,
        TemplatePart::Field(_) => "x",
    };
    template_parts(text).into_iter().map(piece).collect()
}

/// Whether every brace is around a field.
pub(crate) fn is_braced(text: &str) -> bool {
    template_parts(text).into_iter().all(|piece| match piece {
        TemplatePart::Text(text) => !text.contains(['{', '}']),
        TemplatePart::Field(_) => true,
    })
}

/// Whether a host is an address in numbers that is not written as addresses are: a mistake or a
/// trick, whoever wrote it.
fn is_unusual_address(host: &str) -> bool {
    let Ok(url) = ::url::Url::parse(&format!("http://{host}/")) else {
        return false;
    };
    let plain = match url.host() {
        Some(::url::Host::Ipv4(address)) => address.to_string(),
        Some(::url::Host::Ipv6(address)) => format!("[{address}]"),
        Some(::url::Host::Domain(_)) | None => return false,
    };
    let lower = host.to_ascii_lowercase();
    let remaining = lower.strip_prefix(&plain);
    !remaining.is_some_and(|remaining| remaining.is_empty() || remaining.starts_with(':'))
}

/// Says so if a name looks like one of a private network: there an address in numbers is the
/// pack's word, and a name is not.
fn warn_private_name(report: &mut FileReport<'_>, url: &Located<String>, filled: &str) {
    let Ok(parsed) = ::url::Url::parse(&sample(filled)) else {
        return;
    };
    let Some(::url::Host::Domain(name)) = parsed.host() else {
        return;
    };
    let is_local = name == "localhost" || name.ends_with(".localhost");
    let is_near = !name.contains('.') || PRIVATE.iter().any(|end| name.ends_with(end));
    if !is_local && is_near {
        let message = if filled == url.value {
            format!(
                "`{}` looks like a name of a private network",
                one_line(name)
            )
        } else {
            "the host looks like a name of a private network".to_owned()
        };
        report
            .warning(url.position, format!("{message}, where no name is called"))
            .suggest("it, and the name in the setting `dial.allow` of the server");
    }
}
