//! Checks where the key of a provider, an upstream or a data service is: in a variable or in a file. Messages never repeat the field: it
//! may be the key itself.

use crate::check::endpoint::url;
use crate::check::report::FileReport;
use crate::pack::provider::ApiKeySource;
use crate::yaml::Located;

/// The two fields of which one says where a key is.
pub(crate) struct KeyFields<'a> {
    pub(crate) key: Option<&'a Located<String>>,
    pub(crate) key_file: Option<&'a Located<String>>,
}

/// Where a key is; [`ApiKeySource::None`] if the fields are invalid.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    source: &KeyFields<'_>,
    vars: &dyn Fn(&str) -> Option<String>,
) -> ApiKeySource {
    match (source.key, source.key_file) {
        (None, None) => ApiKeySource::None,
        (Some(_), Some(file)) => {
            let message = "`key` and `key_file` are both there";
            report.error(file.position, message, "one of them");
            ApiKeySource::None
        }
        (Some(key), None) => variable(report, key),
        (None, Some(file)) => key_file(report, file, vars),
    }
}

/// The variable that `key` names; anything else is reported.
fn variable(report: &mut FileReport<'_>, key: &Located<String>) -> ApiKeySource {
    let inside = key.value.strip_prefix("${").and_then(|rest| {
        let name = rest.strip_suffix('}')?;
        (!name.contains(['{', '}'])).then_some(name)
    });
    let (message, instead) = match inside {
        Some(name) if url::is_name(name) => return ApiKeySource::Variables(vec![name.to_owned()]),
        Some(name) if name.contains(":-") => {
            let name = name.split(":-").next().unwrap_or_default();
            let name = if url::is_name(name) { name } else { "NAME" };
            (
                "a key cannot have a default: it would be in the pack",
                format!("`key: ${{{name}}}`"),
            )
        }
        Some(_) => (
            "this is not the name of a variable",
            "`key: ${NAME}`".to_owned(),
        ),
        None => {
            // Repeats only what looks like the name of a variable: anything else may be a key.
            let name = key.value.trim_start_matches('$');
            let is_name = name.contains('_')
                && name
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            let name = if is_name && url::is_name(name) {
                name
            } else {
                "NAME"
            };
            (
                "a key is never written into a pack, only the variable that has it",
                format!("`key: ${{{name}}}`, or `key_file:` with a path"),
            )
        }
    };
    report.error(key.position, message, instead);
    ApiKeySource::None
}

fn key_file(
    report: &mut FileReport<'_>,
    file: &Located<String>,
    vars: &dyn Fn(&str) -> Option<String>,
) -> ApiKeySource {
    let path = secret_path(report, file, "`key_file: /run/secrets/provider`", vars);
    path.map_or(ApiKeySource::None, ApiKeySource::File)
}

/// The absolute path of a file with a secret; `None` if it is reported.
pub(crate) fn secret_path(
    report: &mut FileReport<'_>,
    file: &Located<String>,
    example: &str,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let path = url::expand(report, file, "/run/secrets", vars)?;
    let message = if !path.starts_with('/') {
        "the path of a key file begins with `/`"
    } else if path.contains(char::is_control) {
        "the path has something in it that no path has"
    } else {
        return Some(path);
    };
    report.error(file.position, message, example);
    None
}
