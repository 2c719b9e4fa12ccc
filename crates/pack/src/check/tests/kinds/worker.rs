//! Workers.

use super::*;

const FILE: &str = "workers/researcher/agent.yaml";

#[test]
fn worker_fields_are_required() {
    table(
        FILE,
        &[
            (
                "kind: worker",
                "kind: sub_agent",
                &["3:7: error: unknown kind `sub_agent`; write: `kind: worker`"],
            ),
            (
                "kind: worker\n",
                "",
                &["1:1: error: `kind` is missing; write: `kind: worker`"],
            ),
            (
                "description: Finds out.\n",
                "",
                &[
                    "1:1: error: `description` is missing; write: `description: …` (what the agent is for and when to ask it. The orchestrator knows no more than this of a sub-agent)",
                ],
            ),
            (
                "model: big",
                "model: bg",
                &["5:8: error: unknown model `bg`, did you mean `big`?"],
            ),
            (
                "model: big",
                "model: nobody:big",
                &[
                    "5:8: error: unknown provider `nobody`; write: one of `anthropic`, `cassette`, `gemini`, `local`, `openai`, `openai_responses`, `scripted`, `thinker`",
                ],
            ),
            (
                "prompt_blocks: [shop]",
                "prompt_blocks: [shp]",
                &["6:17: error: unknown prompt block `shp`, did you mean `shop`?"],
            ),
            (
                "tools: [clock,",
                "tools: [clok,",
                &["7:9: error: unknown tool `clok`, did you mean `clock`?"],
            ),
            (
                "tools: [clock,",
                "tools: [ask_shop,",
                &["7:9: error: a worker cannot ask sub-agents; write: no `ask_shop` here"],
            ),
            (
                "timeout_ms: 600000",
                "timeout_ms: 0",
                &["8:13: error: `timeout_ms` is 0; write: a number from 1 to 600000"],
            ),
            (
                "timeout_ms: 600000",
                "on_cancel: keep",
                &["8:12: error: unknown on_cancel `keep`; write: `on_cancel: discard`"],
            ),
            ("timeout_ms: 600000", "on_cancel: discard", &[]),
        ],
    );
}

#[test]
fn sub_agent_fields_of_a_worker_are_refused() {
    table(
        FILE,
        &[
            (
                "timeout_ms: 600000",
                "vertical: shop",
                &[
                    "8:11: error: not allowed: a worker belongs to no vertical; write: no `vertical` here",
                ],
            ),
            (
                "timeout_ms: 600000",
                "aliases: [finder]",
                &[
                    "8:10: error: not allowed: the model never names a worker, so it needs no other names; write: no `aliases` here",
                ],
            ),
            (
                "timeout_ms: 600000",
                "sub_agents: [shop]",
                &[
                    "8:13: error: not allowed: a worker cannot ask sub-agents; write: no `sub_agents` here",
                ],
            ),
            (
                "timeout_ms: 600000",
                "emits: [looking_back]",
                &["8:8: error: not allowed: a worker emits no status; write: no `emits` here"],
            ),
            (
                "timeout_ms: 600000",
                "default_status: looking_back",
                &[
                    "8:17: error: not allowed: a worker emits no status; write: no `default_status` here",
                ],
            ),
            (
                "tools: [clock,",
                "tools: [search_offers, read_notes, clock,",
                &[
                    "7:9: error: the tool `search_offers` emits `searching_offers`, and only sub-agents emit statuses; write: a tool without `status`, or give it to a sub-agent",
                    "7:24: error: the tool `read_notes` emits `searching_offers`, and only sub-agents emit statuses; write: a tool without `progress_status`, or give it to a sub-agent",
                ],
            ),
        ],
    );
}

#[test]
fn worker_id_must_be_its_folder_and_unique() {
    let shop = WORKER.replace("id: researcher", "id: shop");
    let lines = reported(vec![Write("workers/shop/agent.yaml", &shop)]);
    assert_eq!(
        lines,
        [
            "workers/shop/agent.yaml:1:5: error: the agent id `shop` is already in verticals/shop/agent.yaml; write: another id"
        ]
    );
    let speaker = WORKER.replace("id: researcher", "id: orchestrator");
    let lines = reported(vec![Write("workers/orchestrator/agent.yaml", &speaker)]);
    assert_eq!(
        lines,
        [
            "workers/orchestrator/agent.yaml:1:5: error: the agent id `orchestrator` is already in orchestrator.yaml; write: another id"
        ]
    );
    let lines = reported(vec![Swap(FILE, "id: researcher", "id: finder")]);
    assert_eq!(
        lines,
        [
            "workers/researcher/agent.yaml:1:5: error: `id` is `finder`, but the folder is workers/researcher; write: `id: researcher`, or the folder workers/finder",
        ]
    );
}

#[test]
fn worker_in_sub_agents_is_refused() {
    table(
        "orchestrator.yaml",
        &[(
            "sub_agents: [shop,",
            "sub_agents: [shop, researcher,",
            &[
                "7:20: error: `researcher` is a worker, and nobody asks one; write: no entry here, and a tool with `connector: delegate` and `agent: researcher`",
            ],
        )],
    );
}

#[test]
fn unused_worker_is_a_warning() {
    let spare = WORKER.replace("id: researcher", "id: spare");
    assert_eq!(
        reported(vec![Write("workers/spare/agent.yaml", &spare)]),
        [
            "workers/spare/agent.yaml:1:1: warning: nobody delegates to `spare`; write: a tool with `connector: delegate` and `agent: spare` in tools.yaml"
        ]
    );
    assert_eq!(
        reported(vec![Write("workers/spare/agent.yml", &spare)]),
        [
            "workers/spare/agent.yml:1:1: warning: nothing reads this file, did you mean `workers/spare/agent.yaml`?"
        ]
    );
    assert_eq!(
        reported(vec![Write("workers/spare/agnt.yaml", &spare)]),
        [
            "workers/spare/agnt.yaml:1:1: warning: nothing reads this file, did you mean `workers/spare/agent.yaml`?"
        ]
    );
}

#[test]
fn broken_worker_file_is_reported_once() {
    assert_eq!(reported(vec![Write(FILE, "id: [\n")]).len(), 1,);
}

#[test]
fn workers_max_is_checked() {
    table(
        "pack.yaml",
        &[(
            "workers_max: 64",
            "workers_max: 65",
            &["6:23: error: `workers_max` is 65; write: a number from 1 to 64"],
        )],
    );
}

#[test]
fn routing_and_prices_cover_worker_models() {
    assert_eq!(
        reported(vec![Swap(
            "routing.yaml",
            "agent: [orchestrator, points]",
            "agent: [orchestrator, researcher]"
        )]),
        [""; 0]
    );
    assert_eq!(
        reported(vec![Swap(FILE, "model: big", "model: \"cassette:tape\"")]),
        [
            "workers/researcher/agent.yaml:5:8: error: unknown cassette `tape`: the pack has none; write: it as `cassettes/tape.jsonl`"
        ]
    );
}
