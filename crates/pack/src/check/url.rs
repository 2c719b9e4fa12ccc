//! Fills in the variables of a service's url and looks at what comes out. Messages never repeat
//! a filled-in url: a variable may hold what nobody should read in a log.

use super::page::Page;
use crate::finding::shown;
use crate::place::At;

/// Characters of a url.
const URL_MAX: usize = 2_048;

/// The url with variables filled in and without a slash at the end.
pub(crate) fn check(
    page: &mut Page<'_>,
    url: &At<String>,
    vars: &dyn Fn(&str) -> Option<String>,
) -> String {
    let filled = match fill(&url.value, vars) {
        Ok(filled) => filled,
        Err((what, instead)) => {
            page.error(url.place, what).write(instead);
            return String::new();
        }
    };
    if let Err((what, instead)) = look(&filled) {
        let what = if filled == url.value {
            format!("the url {what}")
        } else {
            format!("the url {what}, once its variables are filled in")
        };
        page.error(url.place, what).write(instead);
    }
    filled.trim_end_matches('/').to_owned()
}

type Wrong = (String, String);

/// Fills in `${NAME}` and `${NAME:-default}`.
fn fill(text: &str, vars: &dyn Fn(&str) -> Option<String>) -> Result<String, Wrong> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        filled.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let Some(end) = inside.find('}') else {
            let what = "a variable begins with `${` and does not end".to_owned();
            return Err((what, "`${NAME}` or `${NAME:-default}`".to_owned()));
        };
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        if !is_name(name) {
            let what = format!("`{}` is not the name of a variable", shown(name));
            return Err((what, "`${NAME}` or `${NAME:-default}`".to_owned()));
        }
        let value = vars(name).filter(|value| !value.is_empty());
        match value.as_deref().or(default) {
            Some(value) => filled.push_str(value),
            None => {
                let instead = format!(
                    "`${{{name}:-http://127.0.0.1:8422}}` for a default, or set {name} before the start"
                );
                return Err((format!("the variable `{name}` is not set"), instead));
            }
        }
        rest = &inside[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a request can be sent there.
fn look(url: &str) -> Result<(), Wrong> {
    let wrong = |what: &str, instead: &str| Err((what.to_owned(), instead.to_owned()));
    let example = "`http://host:port` or `https://host`, with a path if there is one";
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return wrong("does not begin with http:// or https://", example);
    };
    if url.len() > URL_MAX {
        return wrong("is longer than 2048 characters", example);
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return wrong("has a space in it", example);
    }
    if url.contains(['?', '#']) {
        return wrong(
            "has `?` or `#` in it",
            "it without a query: /v1/enrich is put after it",
        );
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return wrong(
            "has a user name in it",
            "it without: services are not signed in to",
        );
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(six) => match six.split_once(']') {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => return wrong("has no host", example),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() || host.contains(['$', '{', '}', '\\', '<', '>', '"']) {
        return wrong("has no host", example);
    }
    if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
        return wrong("has a port that cannot be one", "a port from 1 to 65535");
    }
    Ok(())
}
