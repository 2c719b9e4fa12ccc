//! Mistakes in `overrides.yaml` and `locales/`.

use super::*;

#[test]
fn override_of_an_unknown_flag_is_refused() {
    table(&[
        (
            Swap("overrides.yaml", "ai_assistant_batch:", "batch:"),
            &[
                "overrides.yaml:1:1: error: unknown flag `batch`, did you mean `ai_assistant_batch`?",
            ],
        ),
        (
            Swap(
                "overrides.yaml",
                "ai_assistant_batch:",
                "ai_assistant_bach:",
            ),
            &[
                "overrides.yaml:1:1: error: unknown flag `ai_assistant_bach`, did you mean `ai_assistant_batch`?",
            ],
        ),
    ]);
}

// S1-051
#[test]
fn override_of_a_sub_agent_is_refused() {
    table(&[(
        Swap("overrides.yaml", "tool_call:", "shop:"),
        &[
            "overrides.yaml:3:3: error: `shop` is a sub-agent, and overrides are for status ids and event types; write: the status ids that it emits",
        ],
    )]);
}

// S1-062
#[test]
fn override_of_a_fixed_event_type_is_refused() {
    table(&[
        (
            Swap("overrides.yaml", "tool_call:", "turn.completed:"),
            &[
                "overrides.yaml:3:3: error: `turn.completed` cannot be overridden; write: a status id, or one of `text`, `tool_call`, `data_loading`, `component`, `mcp_*`",
            ],
        ),
        (
            Swap("overrides.yaml", "tool_call:", "tool_cal:"),
            &[
                "overrides.yaml:3:3: error: unknown status id or event type `tool_cal`, did you mean `tool_call`?",
            ],
        ),
        (
            Swap("overrides.yaml", "tool_call:", "weather:"),
            &[
                "overrides.yaml:3:3: error: unknown status id or event type `weather`; write: a status id, or one of `text`, `tool_call`, `data_loading`, `component`, `mcp_*`",
            ],
        ),
    ]);
}

// S1-062
#[test]
fn override_key_is_the_name_of_a_frame() {
    for (key, words) in [
        ("text.delta", "is the name in the log, did you mean `text`?"),
        (
            "component.rendered",
            "is the name in the log, did you mean `component`?",
        ),
        (
            "tool.completed",
            "is the name in the log, did you mean `tool_call`?",
        ),
        (
            "mcp.session_started",
            "is the name in the log, did you mean `mcp_session_start`?",
        ),
        (
            "tool_completed",
            "cannot be overridden: it is shown or hidden with its `tool_call`; write: `tool_call`, which covers both",
        ),
        (
            "data_loaded",
            "cannot be overridden: it is shown or hidden with its `data_loading`; write: `data_loading`, which covers both",
        ),
    ] {
        let expected = format!("overrides.yaml:3:3: error: `{key}` {words}");
        let key = format!("{key}:");
        table(&[(Swap("overrides.yaml", "tool_call:", &key), &[&expected])]);
    }
    for key in [
        "data_loading",
        "component",
        "mcp_*",
        "mcp_list_tools_start",
        "mcp_list_tools_completed",
        "mcp_session_start",
        "mcp_session_progress",
    ] {
        let key = format!("{key}:");
        table(&[(Swap("overrides.yaml", "tool_call:", &key), &[])]);
    }
}

// S1-050, S1-052
#[test]
fn error_and_parts_of_a_turn_cannot_be_overridden() {
    let keys = "a status id, or one of `text`, `tool_call`, `data_loading`, `component`, `mcp_*`";
    let error = "clients and their telemetry learn of a failure from it";
    let message = "it is part of the message, which every client gets whole";
    for (key, why) in [
        ("error", format!(": {error}")),
        ("error.reported", String::new()),
        ("thinking", format!(": {message}")),
        ("reasoning", format!(": {message}")),
        ("episode", ": it belongs to the start of a turn".to_owned()),
        ("usage", ": it belongs to the end of a turn".to_owned()),
    ] {
        for policy in ["suppress", "forward"] {
            let line = format!("{key}: {{policy: {policy}}}");
            let expected = format!(
                "overrides.yaml:3:3: error: `{key}` cannot be overridden{why}; write: {keys}"
            );
            let written = "tool_call: {policy: suppress}";
            table(&[(Swap("overrides.yaml", written, &line), &[&expected])]);
        }
    }
}

// S1-062
#[test]
fn override_policy_must_suit_the_event_type() {
    table(&[
        (
            Swap(
                "overrides.yaml",
                "tool_call: {policy: suppress}",
                "text: {policy: suppress}",
            ),
            &[
                "overrides.yaml:3:18: error: `text` cannot have the policy `suppress`; write: one of `forward`, `batch`",
            ],
        ),
        (
            Swap(
                "overrides.yaml",
                "tool_call: {policy: suppress}",
                "component: {policy: transform}",
            ),
            &[
                "overrides.yaml:3:23: error: `component` cannot have the policy `transform`; write: one of `forward`, `suppress`",
            ],
        ),
        (
            Swap("overrides.yaml", "{policy: batch}", "{policy: btach}"),
            &["overrides.yaml:2:30: error: unknown policy `btach`, did you mean `batch`?"],
        ),
        (
            Swap("overrides.yaml", "{policy: suppress}", "{}"),
            &[
                "overrides.yaml:3:14: error: the override changes nothing; write: `policy: …` or `render_key: …`",
            ],
        ),
        (
            Swap(
                "overrides.yaml",
                "{policy: suppress}",
                "{render_key: status.looking_back}",
            ),
            &[
                "overrides.yaml:3:27: error: `tool_call` has no text, so no `render_key`; write: `policy: …`; only status ids have a text",
            ],
        ),
        (
            Swap(
                "overrides.yaml",
                "{policy: batch}",
                "{render_key: status.serching}",
            ),
            &[
                "overrides.yaml:2:34: error: `status.serching` has no text in `en`; write: `status.serching: …` in locales/en.yaml",
            ],
        ),
    ]);
}

#[test]
fn malformed_locale_file_is_refused() {
    table(&[
        (
            Swap("locales/en.yaml", "Looking back...", "\"\""),
            &[
                "locales/en.yaml:2:22: error: the text of `status.looking_back` is empty; write: what a person is to read",
            ],
        ),
        (
            Swap(
                "locales/en.yaml",
                "message: \"Searching for offers...\", ",
                "",
            ),
            &[
                "locales/en.yaml:1:26: error: `message` is missing; write: `message: …` (the sentence that users see)",
            ],
        ),
        (
            Swap(
                "locales/en.yaml",
                "phrase: \"searching for offers\"",
                "phrase: \"\"",
            ),
            &[
                "locales/en.yaml:1:71: error: `phrase` is empty; write: `phrase: …` (the same as a part of a sentence, for several statuses shown as one)",
            ],
        ),
        (
            Swap(
                "locales/en.yaml",
                "status.looking_back",
                "combined: Working...\nstatus.looking_back",
            ),
            &[
                "locales/en.yaml:2:11: error: `combined` has no `{phrases}` in it; write: for example `combined: \"{phrases}…\"`",
            ],
        ),
        (
            Write("locales/english.yaml", "a: b\n"),
            &[
                "locales/english.yaml:1:1: error: `english` is not a language tag; write: a name such as locales/en.yaml or locales/es-MX.yaml",
            ],
        ),
        (
            Write("locales/DE.yaml", "status.looking_back: Rückblick\n"),
            &[
                "locales/de.yaml:1:1: error: locales/DE.yaml has the same language; write: one file for each language",
            ],
        ),
    ]);
}

#[test]
fn missing_translation_is_a_warning() {
    table(&[(
        Swap(
            "locales/de.yaml",
            "status.looking_back: Blick zurück...\n",
            "",
        ),
        &[
            "locales/de.yaml:1:1: warning: `status.looking_back` has no text here: that of `en` is shown; write: `status.looking_back: …`",
        ],
    )]);
}

#[test]
fn unused_text_is_a_warning() {
    table(&[
        (
            Swap(
                "locales/en.yaml",
                "status.looking_back",
                "failure.internel: Oh.\nstatus.looking_back",
            ),
            &[
                "locales/en.yaml:2:1: warning: nobody asks for the text of `failure.internel`, did you mean `failure.internal`?",
            ],
        ),
        (
            Swap(
                "locales/de.yaml",
                "status.looking_back",
                "greeting: Hallo\nstatus.looking_back",
            ),
            &[
                "locales/de.yaml:2:1: warning: nobody asks for the text of `greeting`; write: a key that a status or an override names, or no entry",
            ],
        ),
    ]);
}

#[test]
fn batched_text_without_a_phrase_is_a_warning() {
    table(&[
        (
            Swap(
                "locales/en.yaml",
                "{message: \"Searching for offers...\", phrase: \"searching for offers\"}",
                "Searching...",
            ),
            &[
                "locales/en.yaml:1:26: warning: `status.searching_offers` is shown together with others and has no `phrase`; write: `{message: …, phrase: …}`, the phrase as a part of a sentence",
            ],
        ),
        (
            Swap(
                "platform/status_events.yaml",
                "default_policy: transform",
                "default_policy: batch",
            ),
            &[
                "locales/de.yaml:2:22: warning: `status.looking_back` is shown together with others and has no `phrase`; write: `{message: …, phrase: …}`, the phrase as a part of a sentence",
                "locales/en.yaml:2:22: warning: `status.looking_back` is shown together with others and has no `phrase`; write: `{message: …, phrase: …}`, the phrase as a part of a sentence",
            ],
        ),
    ]);
}

#[test]
fn unknown_prompt_placeholder_is_refused() {
    table(&[
        (
            Write(
                "prompts/format.md",
                "Be short.\nAt most {{kap}} of {{cap}}, and {{cap }}.\n",
            ),
            &[
                "prompts/format.md:2:9: error: nothing fills in `{{kap}}`, did you mean `{{cap}}`?",
                "prompts/format.md:2:33: error: nothing fills in `{{cap }}`, did you mean `{{cap}}`?",
            ],
        ),
        (
            Write("prompts/format.md", "Dear {{user_name}}, {{ and so on.\n"),
            &[
                "prompts/format.md:1:6: error: nothing fills in `{{user_name}}`; write: `{{cap}}`, the one that is filled in, or no `{{`",
            ],
        ),
    ]);
}
