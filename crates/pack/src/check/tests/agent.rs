//! Mistakes in definitions.

use super::*;

#[test]
fn orchestrator_fields_are_required() {
    table(&[
        (
            Swap("orchestrator.yaml", "id: orchestrator\n", ""),
            &[
                "orchestrator.yaml:1:1: error: `id` is missing; write: `id: …` (the agent's id: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
        (
            Swap("orchestrator.yaml", "version: \"1\"\n", ""),
            &[
                "orchestrator.yaml:1:1: error: `version` is missing; write: `version: …` (the agent's version, in quotes: `\"1\"`)",
            ],
        ),
        (
            Swap("orchestrator.yaml", "kind: orchestrator\n", ""),
            &["orchestrator.yaml:1:1: error: `kind` is missing; write: `kind: orchestrator`"],
        ),
        (
            Swap("orchestrator.yaml", "kind: orchestrator", "kind: sub_agent"),
            &[
                "orchestrator.yaml:3:7: error: unknown kind `sub_agent`; write: `kind: orchestrator`",
            ],
        ),
        (
            Swap(
                "orchestrator.yaml",
                "kind: orchestrator",
                "kind: orchestratr",
            ),
            &[
                "orchestrator.yaml:3:7: error: unknown kind `orchestratr`, did you mean `orchestrator`?",
            ],
        ),
        (
            Swap("orchestrator.yaml", "kind: orchestrator", "kind: boss"),
            &["orchestrator.yaml:3:7: error: unknown kind `boss`; write: `kind: orchestrator`"],
        ),
        (
            Swap(
                "orchestrator.yaml",
                "prompt_blocks: [persona, format]\n",
                "",
            ),
            &[
                "orchestrator.yaml:1:1: error: `prompt_blocks` is missing; write: `prompt_blocks: …` (the prompt: names of files in `prompts/`, without `.md`, or `{id, flag}`), or a `relay` block for an agent that runs elsewhere",
            ],
        ),
        (
            Swap("orchestrator.yaml", "[persona, format]", "[]"),
            &[
                "orchestrator.yaml:6:16: error: `prompt_blocks` is empty; write: `prompt_blocks: …` (the prompt: names of files in `prompts/`, without `.md`, or `{id, flag}`)",
            ],
        ),
        (
            Swap("orchestrator.yaml", "max_messages: 60", "max_messages: 0"),
            &["orchestrator.yaml:9:25: error: `max_messages` is 0; write: a number from 1 to 1000"],
        ),
        (
            Swap(
                "orchestrator.yaml",
                "history:",
                "deny_words: [\"\"]\nhistory:",
            ),
            &[
                "orchestrator.yaml:9:14: error: an entry of `deny_words` is empty; write: a text, or no entry",
            ],
        ),
    ]);
}

// S2-008
#[test]
fn agent_without_description_is_refused() {
    table(&[
        (
            Swap(
                "orchestrator.yaml",
                "description: Speaks with the person.\n",
                "",
            ),
            &[
                "orchestrator.yaml:1:1: error: `description` is missing; write: `description: …` (what the agent is for and when to ask it. The orchestrator knows no more than this of a sub-agent)",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "description: Finds offers.\n",
                "",
            ),
            &[
                "verticals/shop/agent.yaml:1:1: error: `description` is missing; write: `description: …` (what the agent is for and when to ask it. The orchestrator knows no more than this of a sub-agent)",
            ],
        ),
        (
            Swap("verticals/shop/agent.yaml", "Finds offers.", "\" \""),
            &[
                "verticals/shop/agent.yaml:6:14: error: `description` is empty; write: `description: …` (what the agent is for and when to ask it. The orchestrator knows no more than this of a sub-agent)",
            ],
        ),
    ]);
}

// S2-006
#[test]
fn invalid_id_is_reported_with_a_repair() {
    table(&[
        (
            Swap("verticals/points/agent.yaml", "id: points", "id: \"\""),
            &[
                "verticals/points/agent.yaml:1:5: error: `` is not a valid id; write: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters",
            ],
        ),
        (
            Swap(
                "verticals/points/agent.yaml",
                "version: \"1\"",
                "version: \"1\"\naliases: [bonus-points]",
            ),
            &[
                "verticals/points/agent.yaml:3:11: error: `bonus-points` is not a valid entry of `aliases`; write: `bonus_points` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
            ],
        ),
    ]);
}

//
#[test]
fn unknown_names_are_reported_with_the_closest() {
    table(&[
        (
            Swap("orchestrator.yaml", "[persona,", "[persna,"),
            &[
                "orchestrator.yaml:6:17: error: unknown prompt block `persna`, did you mean `persona`?",
            ],
        ),
        (
            Swap("orchestrator.yaml", "[persona,", "[safety,"),
            &[
                "orchestrator.yaml:6:17: error: unknown prompt block `safety`; write: one of `format`, `persona`, `shop`, or its text in prompts/safety.md",
            ],
        ),
        (
            Swap("orchestrator.yaml", "tools: [note]", "tools: [note, clok]"),
            &["orchestrator.yaml:8:15: error: unknown tool `clok`, did you mean `clock`?"],
        ),
        (
            Swap(
                "orchestrator.yaml",
                "tools: [note]",
                "tools: [note, teleport]",
            ),
            &[
                "orchestrator.yaml:8:15: error: unknown tool `teleport`; write: one of `search_offers`, `render_offer_list`, `clock`, `note`",
            ],
        ),
        (
            Swap("orchestrator.yaml", "[shop, {id", "[shopp, {id"),
            &["orchestrator.yaml:7:14: error: unknown sub-agent `shopp`, did you mean `shop`?"],
        ),
        (
            Swap("orchestrator.yaml", "[shop, {id", "[shopping, {id"),
            &["orchestrator.yaml:7:14: error: `shopping` is an alias; write: `shop`"],
        ),
        (
            Swap("orchestrator.yaml", "id: points, flag", "id: pionts, flag"),
            &["orchestrator.yaml:7:25: error: unknown sub-agent `pionts`, did you mean `points`?"],
        ),
        (
            Swap(
                "orchestrator.yaml",
                "ai_assistant_some",
                "ai_assistant_sone",
            ),
            &[
                "orchestrator.yaml:7:39: error: unknown flag `ai_assistant_sone`, did you mean `ai_assistant_some`?",
            ],
        ),
        (
            Swap("orchestrator.yaml", "model: default", "model: defualt"),
            &["orchestrator.yaml:5:8: error: unknown model `defualt`, did you mean `default`?"],
        ),
        (
            Swap("verticals/shop/agent.yaml", "model: big", "model: enormous"),
            &[
                "verticals/shop/agent.yaml:7:8: error: unknown model `enormous`; write: one of `big`, `default`",
            ],
        ),
    ]);
}

// S2-019
#[test]
fn sub_agent_that_calls_agents_is_refused() {
    table(&[
        (
            Swap(
                "verticals/points/agent.yaml",
                "tools: [clock]",
                "tools: [clock, ask_shop]",
            ),
            &[
                "verticals/points/agent.yaml:6:16: error: a sub-agent cannot ask other agents; write: no `ask_shop` here",
            ],
        ),
        (
            Swap(
                "verticals/points/agent.yaml",
                "tools: [clock]",
                "tools: [clock]\nsub_agents: [shop]",
            ),
            &[
                "verticals/points/agent.yaml:7:13: error: not allowed: a sub-agent cannot ask other agents; only orchestrator.yaml lists sub-agents; write: no `sub_agents` here",
            ],
        ),
        (
            Swap(
                "orchestrator.yaml",
                "tools: [note]",
                "tools: [note, ask_shop]",
            ),
            &[
                "orchestrator.yaml:8:15: error: `ask_shop` is not a tool of the pack; write: `sub_agents: [shop]`: its tool is made from that",
            ],
        ),
    ]);
}

// S1-113, D-17
#[test]
fn sub_agent_without_on_cancel_is_refused() {
    table(&[
        (
            Swap("verticals/shop/agent.yaml", "on_cancel: discard\n", ""),
            &[
                "verticals/shop/agent.yaml:1:1: error: `on_cancel` is missing; write: `on_cancel: discard`",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "on_cancel: discard",
                "on_cancel: keep",
            ),
            &[
                "verticals/shop/agent.yaml:11:12: error: unknown on_cancel `keep`; write: `on_cancel: discard`",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "on_cancel: discard",
                "on_cancel: dicsard",
            ),
            &[
                "verticals/shop/agent.yaml:11:12: error: unknown on_cancel `dicsard`, did you mean `discard`?",
            ],
        ),
    ]);
}

#[test]
fn sub_agent_must_match_its_folder_and_lists() {
    table(&[
        (
            Swap(
                "verticals/shop/agent.yaml",
                "vertical: shop",
                "vertical: store",
            ),
            &[
                "verticals/shop/agent.yaml:4:11: error: `vertical` is `store`, but the folder is verticals/shop; write: `vertical: shop`, or leave it out",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "kind: sub_agent",
                "kind: orchestrator",
            ),
            &[
                "verticals/shop/agent.yaml:3:7: error: unknown kind `orchestrator`; write: `kind: sub_agent`",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "default_status: searching_offers",
                "default_status: old_search",
            ),
            &[
                "verticals/shop/agent.yaml:13:17: error: `default_status` is `old_search`, which is not in `emits`; write: one of `emits`, or add it there",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "timeout_ms: 15000",
                "timeout_ms: 0",
            ),
            &[
                "verticals/shop/agent.yaml:12:13: error: `timeout_ms` is 0; write: a number from 1 to 600000",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "timeout_ms: 15000",
                "timeout_ms: 700000",
            ),
            &[
                "verticals/shop/agent.yaml:12:13: error: `timeout_ms` is 700000; write: a number from 1 to 600000",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "tools: [search_offers,",
                "tools: [search_offers, search_offers,",
            ),
            &[
                "verticals/shop/agent.yaml:9:24: error: `search_offers` stands twice in `tools`; write: it once",
            ],
        ),
        (
            Swap("orchestrator.yaml", "[shop, {id", "[shop, shop, {id"),
            &["orchestrator.yaml:7:20: error: `shop` stands twice in `sub_agents`; write: it once"],
        ),
    ]);
}

#[test]
fn duplicate_agent_names_are_refused() {
    table(&[
        (
            Swap("verticals/points/agent.yaml", "id: points", "id: shop"),
            &[
                "verticals/shop/agent.yaml:1:5: error: the agent id `shop` is already in verticals/points/agent.yaml; write: another id",
            ],
        ),
        (
            Swap(
                "verticals/points/agent.yaml",
                "id: points",
                "id: points\naliases: [shop]",
            ),
            &[
                "verticals/points/agent.yaml:2:11: error: the alias `shop` is already a name in verticals/shop/agent.yaml; write: another alias, or none",
            ],
        ),
        (
            Swap(
                "verticals/points/agent.yaml",
                "id: points",
                "id: points\naliases: [shopping]",
            ),
            &[
                "verticals/shop/agent.yaml:5:11: error: the alias `shopping` is already a name in verticals/points/agent.yaml; write: another alias, or none",
            ],
        ),
        (
            Swap(
                "verticals/shop/agent.yaml",
                "aliases: [shopping]",
                "aliases: [shop]",
            ),
            &[
                "verticals/shop/agent.yaml:5:11: error: the alias `shop` is already a name in verticals/shop/agent.yaml; write: another alias, or none",
            ],
        ),
    ]);
}

#[test]
fn unlisted_sub_agent_is_a_warning() {
    table(&[(
        Swap(
            "orchestrator.yaml",
            "sub_agents: [shop, {id: points, flag: ai_assistant_some}]",
            "sub_agents: [shop]",
        ),
        &[
            "pack.yaml:9:3: warning: nothing in the pack uses the flag `ai_assistant_some`; write: its name in overrides.yaml, `sub_agents` or `prompt_blocks`, no entry, or a flag of the platform: `ai_assistant_axis2_terminal`, `ai_assistant_wire_v04`",
            "verticals/points/agent.yaml:1:1: warning: nobody asks `points`: orchestrator.yaml does not list it; write: `points` in `sub_agents` of orchestrator.yaml",
        ],
    )]);
}

//
#[test]
fn unsupported_on_cancel_is_refused() {
    table(&[(
        Swap(
            "verticals/shop/agent.yaml",
            "on_cancel: discard",
            "on_cancel: custom",
        ),
        &[
            "verticals/shop/agent.yaml:11:12: error: unknown on_cancel `custom`; write: `on_cancel: discard`",
        ],
    )]);
}

#[test]
fn agent_with_less_time_than_its_tool_is_refused() {
    let shop = "verticals/shop/agent.yaml";
    let words = |level: &str, tool_ms: u64, agent_ms: u64| {
        format!(
            "{shop}:9:9: {level}: `search_offers` may take {tool_ms} ms, and `shop` has {agent_ms} ms for all that it does; write: `timeout_ms: {tool_ms}` or more here, or a `timeout_ms` of the tool of at most {agent_ms}"
        )
    };
    let status = "    status: searching_offers\n";
    let written = format!("{status}    timeout_ms: 8000\n");
    // The tool's own timeout, and that of its service.
    let short = |ms: &'static str| Swap(shop, "timeout_ms: 15000", ms);
    let own = Swap("tools.yaml", status, &written);
    let expected = [words("error", 8_000, 7_999)];
    assert_eq!(reported(&[own, short("timeout_ms: 7999")]), expected);
    let own = Swap("tools.yaml", status, &written);
    assert_eq!(reported(&[own, short("timeout_ms: 8000")]), [""; 0]);
    let expected = [words("warning", 10_000, 7_999)];
    assert_eq!(reported(&[short("timeout_ms: 7999")]), expected);
    // The limit of the pack is the agent's too.
    let limit = "sub_agent_timeout_ms: 7000";
    let limit = Swap("pack.yaml", "sub_agent_timeout_ms: 20000", limit);
    let without = Swap(shop, "timeout_ms: 15000\n", "");
    let expected = [words("warning", 10_000, 7_000)];
    assert_eq!(reported(&[limit, without]), expected);
}
