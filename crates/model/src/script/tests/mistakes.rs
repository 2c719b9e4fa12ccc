//! Mistakes in a script are reported with their location. Each case is a script and the text of its
//! first mistake.

use super::*;

fn first_mistake(yaml: &str) -> String {
    let script = ModelScript::parse("s.yaml", yaml);
    script.expect_err("the script is wrong").to_string()
}

#[test]
fn mistake_is_reported_with_file_line_and_column() {
    let long = format!(
        "- steps:\n  - text: {}\n",
        "a".repeat(check::TEXT_BYTES_MAX + 1)
    );
    let many = format!("- steps:\n{}", "  - text: a\n".repeat(check::STEPS_MAX + 1));
    let cases: &[(&str, &str)] = &[
        (
            "",
            "1:1: the script has no rules: write a list of `when` and `steps`",
        ),
        (
            "a: b",
            "1:1: this should be a list; write: `[a, b]`, or a line `- a` for each",
        ),
        (
            "- hello",
            "1:3: this should be `key: value` pairs; write: `key: value`, a line for each",
        ),
        (
            "- when: {user: 'a\n",
            "1:16: a quotation mark before this is not closed; write: one at the end of the text too",
        ),
        (
            "- when: {user: a}\n",
            "1:3: the rule has no `steps`: write a list of steps",
        ),
        (
            "- when: {usr: a}\n  steps: []",
            "1:10: unknown field `usr`, did you mean `user`?",
        ),
        (
            "- when: {user: a}\n  step: []",
            "2:3: unknown field `step`, did you mean `steps`?",
        ),
        (
            "- steps:\n  - txet: hi\n",
            "2:5: unknown field `txet`, did you mean `text`?",
        ),
        (
            "- steps:\n  - {text: a, text: b}\n",
            "2:15: the key `text` is there twice; write: each key once",
        ),
        (
            "- steps:\n  - text: a\n- when:\n    user: 'a(b'\n  steps: [{text: b}]\n",
            "4:11: the pattern is invalid: unclosed group",
        ),
        (
            "- when: {call: 0}\n  steps: [{text: a}]",
            "1:16: calls are counted from 1",
        ),
        (
            "- when: {attempt: 0}\n  steps: [{text: a}]",
            "1:19: attempts are counted from 1",
        ),
        (
            "- steps:\n  - {error: timeout, when: {attempt: 0}}\n",
            "2:38: attempts are counted from 1",
        ),
        (
            "- when: {turn: 0}\n  steps: [{text: a}]",
            "1:16: turns are counted from 1",
        ),
        (
            "- steps:\n  - {said: a}\n",
            "2:12: this should be a list; write: `[a, b]`, or a line `- a` for each",
        ),
        (
            "- steps:\n  - {said: [a], chunk: 2}\n",
            "2:24: `chunk` is not an option of this step",
        ),
        (
            "- when: {call: -1}\n  steps: [{text: a}]",
            "1:16: this should be a whole number; write: 0 or more",
        ),
        (
            "- steps: []",
            "1:10: the rule has no steps: write at least one",
        ),
        (
            "- steps: {}",
            "1:10: this should be a list; write: `[a, b]`, or a line `- a` for each",
        ),
        (&many, "2:5: 1001 steps; at most 1000"),
        (&long, "2:11: 1048577 bytes; at most 1048576"),
        (
            "- when: {call: 1}\n  steps: [{stop: end_turn}, {text: a}]",
            "2:29: a rule with `call` covers one call: no step may follow its `stop`",
        ),
        (
            "- steps:\n  - text: a\n    stall: true\n",
            "2:5: a step is exactly one of text, texts, thinking, said, thought, tool, pause_ms, stall, \
             error, stop",
        ),
        (
            "- steps:\n  - delay_ms: 4\n",
            "2:5: a step is exactly one of text, texts, thinking, said, thought, tool, pause_ms, stall, \
             error, stop",
        ),
        (
            "- steps:\n  - {text: a, colour: red}\n",
            "2:15: unknown field `colour`; write: one of `when`, `text`, `texts`, `thinking`, \
             `said`, `thought`, `tool`, `pause_ms`, `stall`, `error`, `retry`, `retry_after_ms`, \
             `stop`, `signature`, `chunk`, `delay_ms`, …",
        ),
        (
            "- steps:\n  - {text: a, signature: s}\n",
            "2:26: `signature` is not an option of this step",
        ),
        (
            "- steps:\n  - {stop: end_turn, chunk: 2}\n",
            "2:29: `chunk` is not an option of this step",
        ),
        (
            "- steps:\n  - {thinking: a, repeat: 2}\n",
            "2:27: `repeat` is not an option of this step",
        ),
        (
            "- steps:\n  - {text: a, usage: {}}\n",
            "2:22: `usage` is not an option of this step",
        ),
        (
            "- steps:\n  - {text: a, delay_ms: 60001}\n",
            "2:25: `delay_ms` is 60001; 0 to 60000 is allowed",
        ),
        (
            "- steps:\n  - {text: a, delay_ms: soon}\n",
            "2:25: this should be a whole number; write: 0 or more",
        ),
        (
            "- steps:\n  - {text: a, chunk: 0}\n",
            "2:22: `chunk` is 0; 1 to 1048576 is allowed",
        ),
        (
            "- steps:\n  - {text: aaaa, repeat: 9000000}\n",
            "2:26: `repeat` is 9000000; 1 to 1000000 is allowed",
        ),
        (
            "- steps:\n  - {text: \"{{user}}\", repeat: 2}\n",
            "2:32: `repeat` cannot be combined with placeholders: write the text out",
        ),
        (
            "- steps:\n  - pause_ms: 600001\n",
            "2:15: `pause_ms` is 600001; 0 to 600000 is allowed",
        ),
        (
            "- steps:\n  - stall: false\n",
            "2:12: `stall` is `true`, or leave the step out",
        ),
        (
            "- steps:\n  - error: tired\n",
            "2:12: `tired` is not an error class; write one of rate_limited, timeout, transport, \
             provider, internal",
        ),
        (
            "- steps:\n  - {text: a, retry: true}\n",
            "2:22: `retry` is not an option of this step",
        ),
        (
            "- steps:\n  - {stall: true, retry_after_ms: 5}\n",
            "2:35: `retry_after_ms` is not an option of this step",
        ),
        (
            "- steps:\n  - {error: timeout, retry: false, retry_after_ms: 5}\n",
            "2:29: `retry: false` cannot be combined with `retry_after_ms`: leave one of them out",
        ),
        (
            "- steps:\n  - {error: timeout, retry_after_ms: 600001}\n",
            "2:38: `retry_after_ms` is 600001; 0 to 600000 is allowed",
        ),
        (
            "- steps:\n  - stop: cancelled\n",
            "2:11: `cancelled` is not a reason to stop; write one of end_turn, max_tokens, \
             stop_sequence, tool_use",
        ),
        (
            "- steps:\n  - {stop: end_turn, usage: {cost_usd: -1}}\n",
            "2:29: `cost_usd` must be a number of at least 0",
        ),
        (
            "- steps:\n  - tool: clock\n",
            "2:11: this should be `key: value` pairs; write: `key: value`, a line for each",
        ),
        (
            "- steps:\n  - tool: {name: ''}\n",
            "2:18: a tool's name has 1 to 128 characters",
        ),
        (
            "- steps:\n  - tool: {nam: a}\n",
            "2:12: unknown field `nam`, did you mean `name`?",
        ),
        (
            "- steps:\n  - tool: {name: a, input: 5}\n",
            "2:28: `input` is `key: value` pairs, or raw text",
        ),
        (
            "- steps:\n  - tool: {name: a, fragments: 0}\n",
            "2:32: `fragments` is 0; 1 to 1000 is allowed",
        ),
        (
            "- when: {locale: german!}\n  steps: [{text: a}]",
            "1:18: `german!` is not a language tag: write one such as `de` or `pt-BR`",
        ),
        (
            "- define: {a: x, b: '('}\n- steps: [{text: a}]",
            "1:21: the pattern is invalid: unclosed group",
        ),
        (
            "- define: {a: x}\n  steps: [{text: a}]",
            "1:3: an item with `define` has no other keys: write the rule as another item of the list",
        ),
        (
            "- when: {not: [a, '(']}\n  steps: [{text: a}]",
            "1:19: the pattern is invalid: unclosed group",
        ),
        (
            "- when: {user: {a: b}}\n  steps: [{text: a}]",
            "1:16: this should be a pattern or a list of patterns",
        ),
        (
            "- when: {result: '('}\n  steps: [{text: a}]",
            "1:18: the pattern is invalid: unclosed group",
        ),
        (
            "- when:\n    results: {a: x, b: '['}\n  steps: [{text: a}]",
            "2:24: the pattern is invalid: unclosed character class",
        ),
        (
            "- steps:\n  - {text: a, when: {call: 2}}\n",
            "2:28: `call` belongs to the rule's `when`, not to a step's",
        ),
        (
            "- steps:\n  - {text: a, when: {usr: x}}\n",
            "2:22: unknown field `usr`, did you mean `user`?",
        ),
        (
            "- steps:\n  - texts: {}\n",
            "2:12: `texts` has `language: text` pairs: write at least one",
        ),
        (
            "- steps:\n  - texts: hi\n",
            "2:12: this should be `language: text` pairs",
        ),
        (
            "- steps:\n  - texts: {en: hi, 1de: hallo}\n",
            "2:26: `1de` is not a language tag: write one such as `de` or `pt-BR`",
        ),
        (
            "- steps:\n  - texts: {en: hi, en: ho}\n",
            "2:21: the key `en` is there twice; write: each key once",
        ),
        (
            "- steps:\n  - text: 'a {{result}}'\n",
            "2:11: a result placeholder is `{{result.tool}}` or `{{result.tool.field}}`: a tool's \
             name, then field names, list indices or `*`, separated by dots",
        ),
        (
            "- steps:\n  - tool: {name: a, input: {q: ['{{result..x}}']}}\n",
            "2:28: a result placeholder is `{{result.tool}}` or `{{result.tool.field}}`: a tool's \
             name, then field names, list indices or `*`, separated by dots",
        ),
    ];
    let difference = |(yaml, expected): &(&str, &str)| {
        let mistake = first_mistake(yaml);
        (mistake != format!("s.yaml:{expected}")).then_some(mistake)
    };
    let unexpected: Vec<String> = cases.iter().filter_map(difference).collect();
    assert_eq!(unexpected, [""; 0]);
}

#[test]
fn yaml_syntax_error_is_explained() {
    for (yaml, expected) in [
        (
            "- steps: [{text: a}\n- steps: []\n",
            "is not closed; write: its `]` or `}`",
        ),
        (
            "- when: {user: a\n  steps: [{text: a}]\n",
            "is not closed; write: `,` or `}`",
        ),
        ("- steps:\n\t- text: a\n", ""),
    ] {
        let mistake = first_mistake(yaml);
        assert!(mistake.contains(expected), "{mistake}");
        assert!(!mistake.contains('\\'), "{mistake}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_by_location() {
    let yaml = "\
- when: {usr: a}
  steps: [{text: a}]
- when: {user: '('}
  steps:
    - {text: a, delay_ms: 60001}
    - {pause_ms: 600001}
- steps: [{text: fine}]
- steps:
    - {txet: a}
- steps: []
";
    let mistakes = ModelScript::parse_all("s.yaml", yaml).expect_err("mistakes");
    let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        mistakes,
        [
            "s.yaml:1:10: unknown field `usr`, did you mean `user`?",
            "s.yaml:3:16: the pattern is invalid: unclosed group",
            "s.yaml:5:27: `delay_ms` is 60001; 0 to 60000 is allowed",
            "s.yaml:6:18: `pause_ms` is 600001; 0 to 600000 is allowed",
            "s.yaml:9:8: unknown field `txet`, did you mean `text`?",
            "s.yaml:10:10: the rule has no steps: write at least one",
        ]
    );
    let many = "- {usr: a}\n".repeat(100);
    let mistakes = ModelScript::parse_all("s.yaml", &many).expect_err("mistakes");
    assert_eq!(mistakes.len(), MISTAKES_MAX);
}

#[test]
fn skipped_rule_causes_no_further_mistakes() {
    let yaml = "- define: {a: &a x}\n  stpes: []\n- {when: {user: *a}, steps: [{text: a}]}\n";
    let mistakes = ModelScript::parse_all("s.yaml", yaml).expect_err("mistakes");
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
}

#[test]
fn missing_file_is_named_in_the_error() {
    let error = ModelScript::read(Path::new("/nowhere/s.yaml")).expect_err("no such file");
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/s.yaml: cannot be read: "),
        "{error}"
    );
}
