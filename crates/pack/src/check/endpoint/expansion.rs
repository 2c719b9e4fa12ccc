//! Commands, environments and headers of tools and tool servers, with variables filled in. Messages
//! never repeat a value: a variable may hold a secret.

use crate::check::endpoint::header;
use crate::check::endpoint::url;
use crate::check::report::FileReport;
use crate::finding::KnownNames;
use crate::source::form::Pairs;
use crate::text::template::{TemplatePart, template_parts};
use crate::text::wording::one_line;
use crate::text::wording::{closest_name, quoted_list};
use crate::yaml::{Located, TextPosition};

/// Looks up the variable of `${NAME}`.
pub(crate) type Vars<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The maximum size of one word of a command.
const WORD_BYTES_MAX: usize = 16_384;
/// The maximum size of the value of an environment variable.
const ENV_BYTES_MAX: usize = 16_384;

/// The maximum size of the value of a header: enough for a long token.
const VALUE_MAX: usize = 8_192;

/// Headers that belong to the request itself or to the connection.
const RESERVED: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that the MCP client sets itself.
pub(crate) const MCP_RESERVED: [&str; 5] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// A text with its variables filled in; `None` if a variable is not set, which is reported.
pub(crate) fn expand(
    report: &mut FileReport<'_>,
    text: &Located<String>,
    vars: Vars<'_>,
) -> Option<String> {
    url::expand(report, text, "…", vars)
}

/// The text with a letter in the place of each variable.
pub(crate) fn without_variables(text: &str) -> String {
    url::fill(text, "", &|_| Some("x".to_owned())).unwrap_or_default()
}

/// The fields of a template.
pub(crate) fn fields(text: &str) -> impl Iterator<Item = &str> {
    template_parts(text)
        .into_iter()
        .filter_map(|piece| match piece {
            TemplatePart::Field(name) => Some(name),
            TemplatePart::Text(_) => None,
        })
}

/// Reports a field that the input does not have, and a variable whose value has a field in it.
pub(crate) fn check_fields(
    report: &mut FileReport<'_>,
    written: &Located<String>,
    filled: &str,
    known: &KnownNames,
) {
    let without_variables = without_variables(&written.value);
    if fields(&without_variables).ne(fields(filled)) {
        let message = "a variable has something in braces in it, as only a field of the input has";
        let instead = "the variable without `{` and `}`";
        return report.error(written.position, message, instead);
    }
    for field in fields(&without_variables).filter(|field| known.lacks(field)) {
        let message = format!("`{{{}}}` is no property of `input_schema`", one_line(field));
        let (message, instead) = match closest_name(field, known.iter()) {
            Some(meant) => (
                format!("{message}, did you mean `{{{meant}}}`?"),
                String::new(),
            ),
            None if known.names.is_empty() => (
                format!("{message}, which has none"),
                format!("`properties: {{{field}: …}}` in the schema"),
            ),
            None => (
                message,
                format!("one of {} in braces", quoted_list(known.iter())),
            ),
        };
        report.error(written.position, message, instead);
    }
}

/// A program and its arguments; `known` are the fields that an argument may have, `None` for no
/// fields.
pub(crate) fn command(
    report: &mut FileReport<'_>,
    words: &Located<Vec<Located<String>>>,
    known: Option<&KnownNames>,
    vars: Vars<'_>,
) -> Vec<String> {
    let mut command = Vec::new();
    for (at, word) in words.value.iter().enumerate() {
        let Some(filled) = expand(report, word, vars) else {
            if let Some(known) = known {
                check_fields(report, word, &without_variables(&word.value), known);
            }
            command.push(String::new());
            continue;
        };
        let has_field = fields(&without_variables(&word.value)).next().is_some();
        if filled.contains('\0') || filled.len() > WORD_BYTES_MAX {
            let message = "this cannot be a word of a command";
            let instead = format!("text, at most {WORD_BYTES_MAX} bytes of it");
            report.error(word.position, message, instead);
        } else if at == 0 {
            check_program(report, word, &filled, has_field);
        } else if let Some(known) = known {
            check_fields(report, word, &filled, known);
        }
        command.push(filled);
    }
    command
}

/// Checks the first word of a command.
fn check_program(
    report: &mut FileReport<'_>,
    word: &Located<String>,
    filled: &str,
    has_field: bool,
) {
    if filled.trim().is_empty() {
        let instead = "its name or its path";
        report.error(word.position, "the program of `command` is empty", instead);
    } else if has_field {
        let message = "the program itself cannot be a field of the input";
        let instead = "the program; `{field}` only in its arguments";
        report.error(word.position, message, instead);
    } else if filled.contains('/') && !filled.starts_with('/') {
        let message = "the program is a path that does not begin with `/`";
        let instead = "a name that is found in PATH, or the path from `/` on";
        report.error(word.position, message, instead);
    } else if filled.contains(' ') && !filled.contains('/') {
        let message = "the program has a space in its name: no shell reads it";
        let instead = "each word of its own: `command: [wc, \"-w\"]`";
        report.warning(word.position, message, instead);
    }
}

/// The environment variables of a program.
pub(crate) fn environment(
    report: &mut FileReport<'_>,
    pairs: &Pairs<Located<String>>,
    vars: Vars<'_>,
) -> Vec<(String, String)> {
    let mut env = Vec::new();
    for (name, value) in &pairs.0 {
        let filled = expand(report, value, vars).unwrap_or_default();
        if header::is_key(&value.value) {
            report_written_key(report, value.position);
        } else if filled.contains(char::is_control) || filled.len() > ENV_BYTES_MAX {
            let message = "this cannot be the value of a variable";
            let instead = format!("text on one line, at most {ENV_BYTES_MAX} bytes");
            report.error(value.position, message, instead);
        }
        env.push((name.value.clone(), filled));
    }
    env
}

/// The headers of a request, names in lower case; those of `own` are reserved too.
pub(crate) fn headers(
    report: &mut FileReport<'_>,
    pairs: &Pairs<Located<String>>,
    own: &[&str],
    vars: Vars<'_>,
) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (written, value) in &pairs.0 {
        let name = written.value.to_ascii_lowercase();
        let is_own = RESERVED.iter().chain(own).any(|own| *own == name);
        if is_own {
            header::report_reserved(report, written);
        }
        if headers.iter().any(|(known, _)| *known == name) {
            header::report_duplicate(report, written, &name);
        }
        let filled = expand(report, value, vars);
        let is_written = !value.value.contains("${");
        if is_written && (header::is_key(&value.value) || header::is_secret(&name)) {
            report_written_key(report, value.position);
        } else if filled
            .as_deref()
            .is_some_and(|text| !header::is_value(text, VALUE_MAX))
        {
            header::report_bad_value(report, value.position, VALUE_MAX);
        }
        headers.push((name, filled.unwrap_or_default()));
    }
    headers
}

/// Reports a key that is written in place of a variable.
fn report_written_key(report: &mut FileReport<'_>, position: TextPosition) {
    let message = "this looks like a key, and a key is never written into a pack";
    let instead = "`${NAME}`, with the key in the variable `NAME`";
    report.error(position, message, instead);
}
