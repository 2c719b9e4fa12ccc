//! Mistakes in `pack.yaml`.

use super::*;

#[test]
fn manifest_name_version_and_locale_are_checked() {
    table(&[
        (
            Swap("pack.yaml", "name: corner\n", ""),
            &[
                "pack.yaml:1:1: error: `name` is missing; write: `name: …` (the pack's name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap("pack.yaml", "name: corner", "name: Corner-Shop"),
            &[
                "pack.yaml:1:7: error: `Corner-Shop` is not a valid name; write: `corner_shop` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap("pack.yaml", "name: corner", "name: 24h"),
            &[
                "pack.yaml:1:7: error: `24h` is not a valid name; write: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters",
            ],
        ),
        (
            Swap("pack.yaml", "version: \"1.0.0\"\n", ""),
            &[
                "pack.yaml:1:1: error: `version` is missing; write: `version: …` (the pack's version, in quotes: `\"1.0.0\"`)",
            ],
        ),
        (
            Swap("pack.yaml", "version: \"1.0.0\"", "version: \"\""),
            &[
                "pack.yaml:2:10: error: `version` is empty; write: `version: …` (the pack's version, in quotes: `\"1.0.0\"`)",
            ],
        ),
        (
            Swap("pack.yaml", "default_locale: en", "default_locale: english"),
            &[
                "pack.yaml:3:17: error: `english` is not a valid language tag; write: the language that every text must exist in, such as `en` or `es-MX`. The default is `en`",
            ],
        ),
        (
            Swap("pack.yaml", "default_locale: en", "default_locale: fr"),
            &["pack.yaml:3:17: error: there are no texts in `fr`; write: them in locales/fr.yaml"],
        ),
    ]);
}

#[test]
fn manifest_limits_are_checked() {
    table(&[
        (
            Swap("pack.yaml", "cap: 3", "cap: 0"),
            &["pack.yaml:5:16: error: `cap` is 0; write: a number from 1 to 10"],
        ),
        (
            Swap("pack.yaml", "cap: 3", "cap: 11"),
            &["pack.yaml:5:16: error: `cap` is 11; write: a number from 1 to 10"],
        ),
        (
            Swap(
                "pack.yaml",
                "sub_agent_timeout_ms: 20000",
                "sub_agent_timeout_ms: 0",
            ),
            &[
                "pack.yaml:6:32: error: `sub_agent_timeout_ms` is 0; write: a number from 1 to 600000",
            ],
        ),
        (
            Swap(
                "pack.yaml",
                "sub_agent_timeout_ms: 20000",
                "watchdog_ms: 600001",
            ),
            &["pack.yaml:6:23: error: `watchdog_ms` is 600001; write: a number from 1 to 600000"],
        ),
        (
            Swap("pack.yaml", "calls_max: 8", "calls_max: 101"),
            &["pack.yaml:6:50: error: `calls_max` is 101; write: a number from 1 to 100"],
        ),
        (
            Swap("pack.yaml", "calls_max: 8", "status_window_ms: 10001"),
            &[
                "pack.yaml:6:57: error: `status_window_ms` is 10001; write: a number from 0 to 10000",
            ],
        ),
        (
            Swap("pack.yaml", "calls_max: 8", "prior_context_chars: 100001"),
            &[
                "pack.yaml:6:60: error: `prior_context_chars` is 100001; write: a number from 0 to 100000",
            ],
        ),
    ]);
}

#[test]
fn malformed_model_is_refused() {
    table(&[
        (
            Swap("pack.yaml", "big: \"scripted:big\"", "big: huge"),
            &[
                "pack.yaml:4:43: error: `huge` is not a valid model; write: `provider:model`, for example `scripted:market`",
            ],
        ),
        (
            Swap(
                "pack.yaml",
                "big: \"scripted:big\"",
                "Big: \"scripted:big\", big: \"scripted:b\"",
            ),
            &[
                "pack.yaml:4:38: error: `Big` is not a valid name in `models`; write: `big` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
    ]);
}

// S1-060, S1-122, R-26
#[test]
fn flag_without_the_prefix_is_refused() {
    table(&[
        (
            Swap("pack.yaml", "ai_assistant_few:", "few:"),
            &[
                "pack.yaml:10:3: error: `few` is not a valid name in `flags`; write: `ai_assistant_few` (`ai_assistant_`, then a to z, 0 to 9 and _, at most 48 characters in all)",
            ],
        ),
        // The path of XML prompts and its flag do not exist.
        (
            Swap(
                "pack.yaml",
                "ai_assistant_few:",
                "consumer_agent_xml_prompt:",
            ),
            &[
                "pack.yaml:10:3: error: `consumer_agent_xml_prompt` is not a valid name in `flags`; write: `ai_assistant_consumer_agent_xml_prompt` (`ai_assistant_`, then a to z, 0 to 9 and _, at most 48 characters in all)",
            ],
        ),
        (
            Swap("pack.yaml", "ai_assistant_few:", "ai_assistant_:"),
            &[
                "pack.yaml:10:3: error: `ai_assistant_` is not a valid name in `flags`; write: `ai_assistant_`, then a to z, 0 to 9 and _, at most 48 characters in all",
            ],
        ),
        (
            Swap("pack.yaml", "ai_assistant_few:", "ai_assistant_Few:"),
            &[
                "pack.yaml:10:3: error: `ai_assistant_Few` is not a valid name in `flags`; write: `ai_assistant_few` (`ai_assistant_`, then a to z, 0 to 9 and _, at most 48 characters in all)",
            ],
        ),
    ]);
}

#[test]
fn flag_rollout_must_be_one_of_its_forms() {
    table(&[
        (
            Swap("pack.yaml", "share: 0.25", "share: 25"),
            &["pack.yaml:9:30: error: `share` is 25; write: a number from 0 to 1"],
        ),
        (
            Swap("pack.yaml", "share: 0.25", "share: -0.1"),
            &["pack.yaml:9:30: error: `share` is -0.1; write: a number from 0 to 1"],
        ),
        (
            Swap(
                "pack.yaml",
                "{share: 0.25}",
                "{share: 0.25, principals: [a]}",
            ),
            &[
                "pack.yaml:9:22: error: a flag says one thing about whom it is active for; write: `true`, `false`, `{share: 0.25}` or `{principals: [user-42]}`",
            ],
        ),
        (
            Swap("pack.yaml", "{share: 0.25}", "{}"),
            &[
                "pack.yaml:9:22: error: a flag says one thing about whom it is active for; write: `true`, `false`, `{share: 0.25}` or `{principals: [user-42]}`",
            ],
        ),
    ]);
}

#[test]
fn misspelt_flag_is_not_suggested_elsewhere() {
    table(&[(
        Swap("pack.yaml", "ai_assistant_batch: true", "batch: true"),
        &[
            "pack.yaml:8:3: error: `batch` is not a valid name in `flags`; write: `ai_assistant_batch` (`ai_assistant_`, then a to z, 0 to 9 and _, at most 48 characters in all)",
        ],
    )]);
}

#[test]
fn misspelt_flag_of_the_platform_is_refused() {
    table(&[
        (
            Swap(
                "pack.yaml",
                "flags:\n",
                "flags:\n  ai_assistant_wire_v4: true\n",
            ),
            &[
                "pack.yaml:8:3: error: nothing in the pack uses the flag `ai_assistant_wire_v4`, did you mean `ai_assistant_wire_v04`?",
            ],
        ),
        (
            Swap(
                "pack.yaml",
                "flags:\n",
                "flags:\n  ai_assistant_axis2_terminate: {share: 0.5}\n",
            ),
            &[
                "pack.yaml:8:3: error: nothing in the pack uses the flag `ai_assistant_axis2_terminate`, did you mean `ai_assistant_axis2_terminal`?",
            ],
        ),
        (
            Swap(
                "pack.yaml",
                "flags:\n",
                "flags:\n  ai_assistant_wire_v04: true\n  ai_assistant_axis2_terminal: false\n",
            ),
            &[],
        ),
        (
            Swap(
                "pack.yaml",
                "flags:\n",
                "flags:\n  ai_assistant_teleport: true\n",
            ),
            &[
                "pack.yaml:8:3: warning: nothing in the pack uses the flag `ai_assistant_teleport`; write: its name in overrides.yaml, `sub_agents` or `prompt_blocks`, no entry, or a flag of the platform: `ai_assistant_axis2_terminal`, `ai_assistant_wire_v04`",
            ],
        ),
    ]);
}

#[test]
fn flag_of_a_prompt_block_is_used() {
    for block in [
        "{id: persona, flag: ai_assistant_wire_v05}",
        "{id: persona, unless: ai_assistant_wire_v05}",
    ] {
        let blocks = format!("prompt_blocks: [{block}, format]");
        let changes = [
            Swap(
                "pack.yaml",
                "flags:\n",
                "flags:\n  ai_assistant_wire_v05: true\n",
            ),
            Swap(
                "orchestrator.yaml",
                "prompt_blocks: [persona, format]",
                &blocks,
            ),
        ];
        assert_eq!(reported(&changes), [""; 0], "{block}");
    }
}

#[test]
fn documents_list_the_flags_of_the_platform() {
    let page = include_str!("../../../../../docs/packs.md");
    let section = page
        .split("## Flags and cohorts")
        .nth(1)
        .expect("a section");
    let section = section.split("\n## ").next().expect("an end");
    for flag in crate::pack::flag::PLATFORM_FLAGS {
        assert!(section.contains(&format!("| `{flag}` |")), "{flag}");
    }
    let listed = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .count();
    assert_eq!(listed, crate::pack::flag::PLATFORM_FLAGS.len());
}
