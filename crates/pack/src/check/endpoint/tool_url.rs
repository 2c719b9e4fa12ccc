//! Checks the url of an HTTP tool or of a tool server. Unlike the url of a data service it may have a
//! query, and that of a tool may have fields of the input in path and query, never in the host: the
//! pack alone decides where a call goes (G5). Messages never repeat a url with variables filled in.

use crate::check::endpoint::expansion::{self, Vars};
use crate::check::endpoint::url::{self, UrlField, UrlProblem};
use crate::check::report::FileReport;
use crate::finding::KnownNames;
use crate::text::template::{TemplatePart, is_plain_url_char, template_parts};
use crate::text::wording::one_line;
use crate::yaml::Located;

/// The url of a tool or of a tool server.
const TOOL: UrlField = UrlField {
    field: "url",
    example: "https://api.example.com",
    query: "",
    user: "it without: a key is written into `headers`, as `${NAME}`",
};

/// Suffixes of names in private networks.
const PRIVATE: [&str; 6] = [
    ".internal",
    ".intranet",
    ".lan",
    ".local",
    ".home.arpa",
    ".corp",
];

/// The url with variables filled in; `known_names` are the fields that it may have, `None` for no
/// fields.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    url: &Located<String>,
    known_names: Option<&KnownNames>,
    vars: Vars<'_>,
) -> String {
    let Some(filled) = url::expand(report, url, TOOL.example, vars) else {
        return String::new();
    };
    let before = report.findings.count();
    if let Some(known_names) = known_names {
        expansion::check_fields(report, url, &filled, known_names);
    }
    let checked = check_url(&filled, known_names.is_some());
    url::report_problem(report, url, &filled, (TOOL.field, checked));
    if report.findings.count() == before {
        warn_private_name(report, url, &filled);
    }
    filled
}

/// Fails if no request can be sent to the url.
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

/// The part between `//` and the path.
fn host(text: &str) -> &str {
    let remaining = text
        .split_once("://")
        .map_or("", |(_, remaining)| remaining);
    remaining.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The text with a letter for each field.
fn sample(text: &str) -> String {
    let piece = |piece| match piece {
        TemplatePart::Text(text) => text,
        TemplatePart::Field(_) => "x",
    };
    template_parts(text).into_iter().map(piece).collect()
}

/// True if every brace is around a field.
pub(crate) fn is_braced(text: &str) -> bool {
    template_parts(text).into_iter().all(|piece| match piece {
        TemplatePart::Text(text) => !text.contains(['{', '}']),
        TemplatePart::Field(_) => true,
    })
}

/// True if a host is an IP address in an unusual form, which may be a mistake or an attack.
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

/// Warns of a name that looks like one of a private network: such names are only called if the
/// server allows them.
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
        let message = format!("{message}, where no name is called");
        let instead = "it, and the name in the setting `dial.allow` of the server";
        report.warning(url.position, message, instead);
    }
}
