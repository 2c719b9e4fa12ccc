//! Checks where a provider's key is: in a variable or in a file. Messages never repeat what stands
//! there: it may be the key.

use super::page::Page;
use super::url;
use crate::provider::KeyRef;
use crate::source::provider::ProviderSource;
use crate::yaml::Located;

/// Where the key of a provider is; nowhere if that cannot be.
pub(crate) fn check(
    page: &mut Page<'_>,
    source: &ProviderSource,
    vars: &dyn Fn(&str) -> Option<String>,
) -> KeyRef {
    match (&source.key, &source.key_file) {
        (None, None) => KeyRef::None,
        (Some(_), Some(file)) => {
            page.error(file.position, "`key` and `key_file` are both there")
                .write("one of them");
            KeyRef::None
        }
        (Some(key), None) => variable(page, key),
        (None, Some(file)) => key_file(page, file, vars),
    }
}

/// A key is the name of a variable and nothing else.
fn variable(page: &mut Page<'_>, key: &Located<String>) -> KeyRef {
    let inside = key.value.strip_prefix("${").and_then(|rest| {
        let name = rest.strip_suffix('}')?;
        (!name.contains(['{', '}'])).then_some(name)
    });
    let (what, instead) = match inside {
        Some(name) if url::is_name(name) => return KeyRef::Variables(vec![name.to_owned()]),
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
            // A name was meant where it looks like one; what does not may be a key.
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
    page.error(key.position, what).write(instead);
    KeyRef::None
}

fn key_file(
    page: &mut Page<'_>,
    file: &Located<String>,
    vars: &dyn Fn(&str) -> Option<String>,
) -> KeyRef {
    let example = "`key_file: /run/secrets/provider`";
    match url::fill(&file.value, "/run/secrets", vars) {
        Err((what, instead)) => page.error(file.position, what).write(instead),
        Ok(path) if !path.starts_with('/') => {
            page.error(file.position, "the path of a key file begins with `/`")
                .write(example);
        }
        Ok(path) if path.contains(char::is_control) => {
            page.error(
                file.position,
                "the path has something in it that no path has",
            )
            .write(example);
        }
        Ok(path) => return KeyRef::File(path),
    }
    KeyRef::None
}
