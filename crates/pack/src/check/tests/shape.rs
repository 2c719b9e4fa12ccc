//! Files whose YAML has the wrong shape: one finding each, and nothing on top of it.

use super::*;

#[test]
fn invalid_yaml_is_reported_with_its_position() {
    table(&[
        (
            Swap("pack.yaml", "name: corner", "name: \"corner"),
            &[
                "pack.yaml:2:1: error: a quotation mark before this is not closed; write: one at the end of the text too",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "    connector: render\n",
                "\tconnector: render\n",
            ),
            &["tools.yaml:10:1: error: a tab is in the way; write: spaces"],
        ),
        (
            Swap("overrides.yaml", "{policy: batch}", "{policy: batch"),
            &["overrides.yaml:3:12: error: a `{` before this is not closed; write: `,` or `}`"],
        ),
    ]);
}

#[test]
fn unknown_field_suggests_the_closest_or_all() {
    table(&[
        (
            Swap("pack.yaml", "fan_out: {cap: 3}", "fanout: {cap: 3}"),
            &["pack.yaml:5:1: error: unknown field `fanout`, did you mean `fan_out`?"],
        ),
        (
            Swap("pack.yaml", "calls_max: 8", "colour: 8"),
            &[
                "pack.yaml:6:39: error: unknown field `colour`; write: one of `sub_agent_timeout_ms`, `calls_max`, `tool_calls_max`, `turn_tokens_max`, `turn_cost_max_usd`, `workers_max`, `status_window_ms`, `watchdog_ms`, `prior_context_chars`, `component_bytes`",
            ],
        ),
        (
            Swap("orchestrator.yaml", "tools: [note]", "emits: [note]"),
            &[
                "orchestrator.yaml:8:1: error: unknown field `emits`; write: one of `id`, `version`, `kind`, `description`, `model`, `prompt_blocks`, `tools`, `history`, `relay`, `sub_agents`, `deny_words`",
            ],
        ),
        (
            Swap("verticals/shop/agent.yaml", "emits: [", "emit: ["),
            &["verticals/shop/agent.yaml:10:1: error: unknown field `emit`, did you mean `emits`?"],
        ),
        (
            Swap(
                "verticals/shop/status_events.yaml",
                "default_policy: suppress",
                "policy: suppress",
            ),
            &[
                "verticals/shop/status_events.yaml:10:3: error: unknown field `policy`, did you mean `default_policy`?",
            ],
        ),
        (
            Swap("connectors.yaml", "timeout_ms: 10000", "timeout: 10000"),
            &["connectors.yaml:2:27: error: unknown field `timeout`, did you mean `timeout_ms`?"],
        ),
        (
            Swap("tools.yaml", "    shape: list", "    form: list"),
            &[
                "tools.yaml:9:5: error: `shape` is missing; write: `shape: list`",
                "tools.yaml:11:5: error: unknown field `form`; write: one of `name`, `connector`, `description`, `input_schema`, `enricher_id`, `domain_type`, `data_type`, `shape`, `model_items`, `function`, `method`, `url`, `query`, `headers`, `max_bytes`, `redirects_max`, …",
            ],
        ),
        (
            Swap("locales/en.yaml", "phrase:", "phrases:"),
            &["locales/en.yaml:1:63: error: unknown field `phrases`, did you mean `phrase`?"],
        ),
        (
            Swap("overrides.yaml", "{policy: suppress}", "{polic: suppress}"),
            &["overrides.yaml:3:15: error: unknown field `polic`, did you mean `policy`?"],
        ),
    ]);
}

#[test]
fn unknown_field_hides_no_other_mistake() {
    let changes = [
        Swap(
            "tools.yaml",
            "    connector: ccs_rest\n",
            "    connector: ccs_rst\n    colour: red\n",
        ),
        Swap("tools.yaml", "shape: list", "shap: grid"),
        Swap(
            "tools.yaml",
            "function: clock",
            "function: clok, timeout_ms: 0",
        ),
        Swap(
            "orchestrator.yaml",
            "tools: [note]",
            "tools: [note, teleport]\nmood: good",
        ),
    ];
    let all = "`name`, `connector`, `description`, `input_schema`, `enricher_id`, `domain_type`, `data_type`, `shape`, `model_items`, `function`, `method`, `url`, `query`, `headers`, `max_bytes`, `redirects_max`, …";
    assert_eq!(
        reported(&changes),
        [
            "orchestrator.yaml:8:15: error: unknown tool `teleport`; write: one of `search_offers`, `render_offer_list`, `clock`, `note`",
            "orchestrator.yaml:9:1: error: unknown field `mood`; write: one of `id`, `version`, `kind`, `description`, `model`, `prompt_blocks`, `tools`, `history`, `relay`, `sub_agents`, `deny_words`",
            "tools.yaml:3:16: error: unknown connector `ccs_rst`, did you mean `ccs_rest`?",
            &format!("tools.yaml:4:5: error: unknown field `colour`; write: one of {all}"),
            "tools.yaml:12:5: error: unknown field `shap`, did you mean `shape`?",
            "tools.yaml:12:11: error: unknown shape `grid`; write: one of `list`, `single`",
            "tools.yaml:14:48: error: unknown function `clok`, did you mean `clock`?",
            "tools.yaml:14:66: error: `timeout_ms` is 0; write: a number from 1 to 600000",
        ]
    );
}

#[test]
fn invalid_number_or_flag_is_reported() {
    table(&[
        (
            Swap("pack.yaml", "calls_max: 8", "calls_max: many"),
            &[
                "pack.yaml:6:50: error: this should be a whole number; write: a number from 1 to 100",
            ],
        ),
        (
            Swap("pack.yaml", "share: 0.25", "share: a quarter"),
            &["pack.yaml:9:30: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap(
                "pack.yaml",
                "ai_assistant_batch: true",
                "ai_assistant_batch: sometimes",
            ),
            &["pack.yaml:8:23: error: this should be true, false or `key: value` pairs"],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "timeout_ms: 15000",
                "timeout_ms: -1",
            ),
            &[
                "verticals/shop/agent.yaml:12:13: error: this should be a whole number; write: a number from 1 to 600000",
            ],
        ),
    ]);
}

#[test]
fn wrong_kind_of_value_says_what_is_expected() {
    table(&[
        (
            Swap("pack.yaml", "fan_out: {cap: 3}", "fan_out: 3"),
            &[
                "pack.yaml:5:10: error: this should be `key: value` pairs; write: `key: value`, a line for each",
            ],
        ),
        (
            Swap("orchestrator.yaml", "tools: [note]", "tools: note"),
            &[
                "orchestrator.yaml:8:8: error: this should be a list; write: `[a, b]`, or a line `- a` for each",
            ],
        ),
        (
            Swap("orchestrator.yaml", "[shop, {id", "[7, {id"),
            &["orchestrator.yaml:7:14: error: this should be text or `key: value` pairs"],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "description: Finds offers.",
                "description: [Finds, offers]",
            ),
            &[
                "verticals/shop/agent.yaml:6:14: error: this should be text; write: it in quotes if need be",
            ],
        ),
        (
            Write(
                "verticals/shop/status_events.yaml",
                "searching_offers: {}\n",
            ),
            &[
                "verticals/shop/status_events.yaml:1:1: error: this should be a list; write: `[a, b]`, or a line `- a` for each",
            ],
        ),
        (
            Write("locales/de.yaml", "- status.looking_back\n"),
            &[
                "locales/de.yaml:1:1: error: this should be `key: value` pairs; write: `key: value`, a line for each",
            ],
        ),
        (
            Swap("locales/de.yaml", "Blick zurück...", "[a, b]"),
            &["locales/de.yaml:2:22: error: this should be text or `key: value` pairs"],
        ),
        (
            Swap("locales/de.yaml", "Blick zurück...", ".nan"),
            &["locales/de.yaml:2:22: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap("prices.yaml", "output: 15", "output: 0x10"),
            &["prices.yaml:3:44: error: this should be a number; write: for example 0.25"],
        ),
        (
            Swap("overrides.yaml", "{policy: batch}", "batch"),
            &[
                "overrides.yaml:2:21: error: this should be `key: value` pairs; write: `key: value`, a line for each",
            ],
        ),
    ]);
}

#[test]
fn duplicate_keys_are_refused() {
    table(&[
        (
            Swap(
                "pack.yaml",
                "version: \"1.0.0\"",
                "version: \"1.0.0\"\nname: again",
            ),
            &["pack.yaml:3:1: error: the key `name` is there twice; write: each key once"],
        ),
        (
            Swap(
                "pack.yaml",
                "big: \"scripted:big\"",
                "default: \"scripted:big\"",
            ),
            &["pack.yaml:4:38: error: the key `default` is there twice; write: each key once"],
        ),
        (
            Swap(
                "locales/en.yaml",
                "status.looking_back:",
                "status.searching_offers:",
            ),
            &[
                "locales/en.yaml:2:1: error: the key `status.searching_offers` is there twice; write: each key once",
            ],
        ),
    ]);
}

#[test]
fn wrong_kinds_do_not_stop_the_check() {
    assert_eq!(
        reported(&[
            Swap("pack.yaml", "cap: 3", "cap: three"),
            Swap("pack.yaml", "calls_max: 8", "calls_max: \"y\""),
            Swap("pack.yaml", "name: corner", "name: Corner"),
        ]),
        [
            "pack.yaml:1:7: error: `Corner` is not a valid name; write: `corner` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            "pack.yaml:5:16: error: this should be a whole number; write: a number from 1 to 10",
            "pack.yaml:6:50: error: this should be a whole number; write: a number from 1 to 100",
        ]
    );
    assert_eq!(
        reported(&[Swap(
            "tools.yaml",
            "    shape: list",
            "    shape: lists\n    timeout_ms: abc\n    remember: maybe # not sure"
        ),]),
        [
            "tools.yaml:11:12: error: unknown shape `lists`, did you mean `list`?",
            "tools.yaml:12:17: error: this should be a whole number; write: a number from 1 to 600000",
            "tools.yaml:13:15: error: this should be true or false",
        ]
    );
    // What may hide names is told alone: nothing is held against others because of it.
    assert_eq!(
        reported(&[
            Swap(
                "verticals/shop/agent.yaml",
                "emits: [searching_offers, looking_back]",
                "emits: searching_offers"
            ),
            Swap(
                "verticals/shop/agent.yaml",
                "timeout_ms: 15000",
                "timeout_ms: soon"
            ),
            Swap("verticals/shop/agent.yaml", "model: big", "modell: big"),
        ]),
        [
            "verticals/shop/agent.yaml:7:1: error: unknown field `modell`, did you mean `model`?",
            "verticals/shop/agent.yaml:10:8: error: this should be a list; write: `[a, b]`, or a line `- a` for each",
            "verticals/shop/agent.yaml:12:13: error: this should be a whole number; write: a number from 1 to 600000",
        ]
    );
}

#[test]
fn syntax_error_comes_with_a_remedy() {
    let tab = "a tab is in the way; write: spaces";
    let colon = "a second `: ` on this line, or a line too far in; write: a text with a colon in quotes: `\"Speaks: loudly\"`";
    let line = "this line does not stand in line with those above; write: as many spaces before it as before its neighbours";
    let anchor = "`*` here names an anchor that is not there; write: `&name` before the value that is meant, further up";
    let agent = "verticals/shop/agent.yaml";
    let cases = [
        (
            Swap("orchestrator.yaml", "history: {", "history:\n\t{"),
            tab,
        ),
        (
            Swap(
                "orchestrator.yaml",
                "description: Speaks",
                "description: Speaks: loudly",
            ),
            colon,
        ),
        (Swap(agent, "kind: sub_agent", " kind: sub_agent"), line),
        (
            Swap("pack.yaml", "  ai_assistant_some", " ai_assistant_some"),
            line,
        ),
        (
            Swap("tools.yaml", "    shape: list", "   shape: list"),
            line,
        ),
        (
            Swap(
                "tools.yaml",
                "input_schema: {type: object, properties: {query: {type: string}}}",
                "input_schema: *qestion",
            ),
            anchor,
        ),
        (
            Swap(
                agent,
                "description: Finds offers.",
                "description: 'Finds offers.",
            ),
            "a quotation mark before this is not closed; write: one at the end of the text too",
        ),
        (
            Swap(
                agent,
                "description: Finds offers.",
                "description: \"Finds \\offers.\"",
            ),
            "a `\\` in this text begins nothing that YAML knows; write: `\\\\`, or the text in single quotes",
        ),
        (
            Swap(agent, "id: shop", "id: [shop"),
            "a `:` cannot stand here: a `[` or `{` before it is not closed; write: `]` or `}` where the list or the pairs end",
        ),
        (
            Swap(
                agent,
                "description: Finds offers.",
                "description: @Finds offers.",
            ),
            "a text cannot begin with this sign; write: the text in quotes",
        ),
    ];
    for (change, expected) in cases {
        let reported = reported(&[change]);
        assert_eq!(reported.len(), 1, "{reported:#?}");
        assert!(reported[0].ends_with(expected), "{reported:#?}\n{expected}");
    }
}
