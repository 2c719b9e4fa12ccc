//! Checks the `relay` block of an agent, and that the file has nothing beside it that only an agent
//! of this process has. Messages never repeat a key or a url with variables filled in.

use std::collections::BTreeMap;

use turnwire_event::code::InnerType;

use crate::check::endpoint::header;
use crate::check::endpoint::key::{self, KeyFields};
use crate::check::endpoint::url::{self, UrlField};
use crate::check::report::{FileReport, value_of, word};
use crate::pack::relay::{RelayDef, RelayDialect};
use crate::source::agent::CommonFields;
use crate::source::form::ShortOrLong;
use crate::source::relay::RelaySource;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// The word for a request without earlier messages.
const NO_HISTORY: &str = "none";

/// The address of an upstream.
const UPSTREAM: UrlField = UrlField {
    field: "url",
    example: "http://127.0.0.1:9000/turns",
    query: "it without a query",
    user: "it without: a key is written as `key: ${NAME}`",
};

/// The address that stops are posted to.
const CANCEL: UrlField = UrlField {
    field: "cancel_url",
    example: "http://127.0.0.1:9000/cancel",
    ..UPSTREAM
};

/// The `relay` block, with placeholders for what is reported.
pub(crate) fn check(
    report: &mut FileReport<'_>,
    relay: &Located<RelaySource>,
    fields: &CommonFields<'_>,
    vars: &dyn Fn(&str) -> Option<String>,
) -> RelayDef {
    refuse_native_fields(report, fields);
    let source = &relay.value;
    let dialect = word(&source.dialect).unwrap_or_default();
    check_model(report, relay, dialect);
    let key = KeyFields {
        key: source.key.as_ref(),
        key_file: source.key_file.as_ref(),
    };
    let address = |report: &mut FileReport<'_>, url: &Option<Located<String>>, field| {
        let url = url.as_ref()?;
        Some(url::check(report, url, field, vars))
    };
    RelayDef {
        dialect,
        model: value_of(&source.model),
        types: types(report, source, dialect),
        url: address(report, &source.url, &UPSTREAM).unwrap_or_default(),
        cancel_url: address(report, &source.cancel_url, &CANCEL),
        key: key::check(report, &key, vars),
        headers: header::check(report, &source.headers, &header::PROVIDER),
        idle_ms: value_of(&source.idle_ms),
        connect_ms: value_of(&source.connect_ms),
        history: history(report, source),
        position: (relay.position.line, relay.position.column),
    }
}

/// An agent without a `relay` block has a prompt: a schema cannot say so.
pub(crate) fn require_prompt(report: &mut FileReport<'_>, fields: &CommonFields<'_>) {
    if !fields.has_prompt_blocks {
        let instead = "`prompt_blocks: …` (the prompt: names of files in `prompts/`, without `.md`, \
                       or `{id, flag}`), or a `relay` block for an agent that runs elsewhere";
        report.error(TextPosition::TOP, "`prompt_blocks` is missing", instead);
    }
}

/// Reports a field that only an agent of this process has.
pub(crate) fn report_ineffective(report: &mut FileReport<'_>, position: TextPosition, name: &str) {
    let message = format!("`{name}` has no effect beside `relay`: the agent runs elsewhere");
    report.error(position, message, "one of the two");
}

/// Reports what only an agent has that runs in this process.
fn refuse_native_fields(report: &mut FileReport<'_>, fields: &CommonFields<'_>) {
    let mut refuse = |position: Option<TextPosition>, name: &str| {
        if let Some(position) = position {
            report_ineffective(report, position, name);
        }
    };
    refuse(fields.model.map(|model| model.position), "model");
    let block = fields.prompt_blocks.first();
    refuse(block.map(|block| block.position), "prompt_blocks");
    let tool = fields.tools.first();
    refuse(tool.map(|tool| tool.position), "tools");
    let history = fields.history.map(|history| history.position);
    refuse(history, "history");
}

/// Reports a name that no upstream has.
fn check_name(report: &mut FileReport<'_>, name: &Located<String>, what: &str) {
    let is_name = !name.value.trim().is_empty() && !name.value.contains(char::is_control);
    if !is_name {
        let message = format!("{what} is empty or has a control character");
        report.error(name.position, message, "a name on one line");
    }
}

/// A dialect that names a model needs one, and the other has no place for it.
fn check_model(report: &mut FileReport<'_>, relay: &Located<RelaySource>, dialect: RelayDialect) {
    match (dialect, &relay.value.model) {
        (RelayDialect::OpenaiChat, None) => {
            let message = "`model` is missing: `openai_chat` asks for one by name";
            report.error(relay.position, message, "`model: my-agent`");
        }
        (RelayDialect::Turnwire, Some(model)) => {
            let message = "`model` has no effect in the dialect `turnwire`";
            report.error(
                model.position,
                message,
                "`dialect: openai_chat`, or no model",
            );
        }
        (RelayDialect::OpenaiChat, Some(model)) => check_name(report, model, "`model`"),
        (RelayDialect::Turnwire, None) => {}
    }
}

/// The names of the upstream's own. An unknown type of this server is reported with the schema.
fn types(
    report: &mut FileReport<'_>,
    source: &RelaySource,
    dialect: RelayDialect,
) -> BTreeMap<String, InnerType> {
    if let (RelayDialect::OpenaiChat, Some((name, _))) = (dialect, source.map.0.first()) {
        let message = "`map` has no effect in the dialect `openai_chat`: its events have no types";
        report.error(name.position, message, "one of the two");
    }
    for (name, _) in &source.map.0 {
        check_name(report, name, "a type in `map`");
    }
    let known = source.map.0.iter().filter_map(|(name, meaning)| {
        let meaning = InnerType::of_name(&meaning.value)?;
        Some((name.value.clone(), meaning))
    });
    known.collect()
}

fn history(report: &mut FileReport<'_>, source: &RelaySource) -> u32 {
    let Some(history) = &source.history else {
        return 0;
    };
    match &history.value {
        ShortOrLong::Short(word) if word == NO_HISTORY => 0,
        ShortOrLong::Short(word) => {
            let message = format!("`history` is `{}`", one_line(word));
            report.error(history.position, message, "`none` or `{last: 20}`");
            0
        }
        ShortOrLong::Long(long) => value_of(&long.last).map_or(0, |last| last as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_has_the_same_debug_text_in_every_environment() {
        let relay = |url: &str| RelayDef {
            dialect: RelayDialect::default(),
            model: None,
            types: Default::default(),
            url: url.to_owned(),
            cancel_url: None,
            key: crate::pack::provider::ApiKeySource::None,
            headers: Vec::new(),
            idle_ms: None,
            connect_ms: None,
            history: 0,
            position: (1, 1),
        };
        assert_eq!(
            format!("{:?}", relay("http://a")),
            format!("{:?}", relay("http://b"))
        );
    }
}
