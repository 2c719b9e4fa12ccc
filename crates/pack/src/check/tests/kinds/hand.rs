//! Tools that give work away, and tools that wait for a person.

use super::*;

#[test]
fn delegate_tool_must_name_a_known_agent() {
    let agent = "    agent: researcher\n";
    table(
        "tools.yaml",
        &[
            (
                agent,
                "    agent: reseacher\n",
                &["66:12: error: unknown agent `reseacher`, did you mean `researcher`?"],
            ),
            (
                agent,
                "    agent: nobody\n",
                &[
                    "66:12: error: unknown agent `nobody`; write: one of `researcher`, `points`, `shop`, `orchestrator`, or its definition in workers/nobody/agent.yaml",
                ],
            ),
            (
                agent,
                "",
                &["64:5: error: `agent` is missing; write: `agent: researcher`"],
            ),
            (
                "    description: Looks into it.\n",
                "    description: Looks into it.\n    timeout_ms: 600001\n",
                &["68:17: error: `timeout_ms` is 600001; write: a number from 1 to 600000"],
            ),
            (
                "    description: Looks into it.\n",
                "",
                &[
                    "64:5: error: `description` is missing; write: `description: what it does, for the model`",
                ],
            ),
            (
                "    description: Looks into it.\n",
                "    description: Looks into it.\n    input_schema: {type: object}\n",
                &[
                    "68:19: error: a delegate tool takes no `input_schema`: its own is used; write: no `input_schema`",
                ],
            ),
            (
                "    description: Looks into it.\n",
                "    description: Looks into it.\n    server: files\n",
                &[
                    "68:13: error: `server` does not fit a delegate tool; write: `connector: mcp`, or no `server`",
                ],
            ),
        ],
    );
}

#[test]
fn unlisted_sub_agent_is_no_delegate_target() {
    let lines = reported(vec![Swap("orchestrator.yaml", "[shop, {id", "[{id")]);
    assert_eq!(
        lines,
        [
            "tools.yaml:73:49: error: `shop` is a sub-agent that orchestrator.yaml does not list; write: it as a worker in workers/shop/agent.yaml, or in `sub_agents` there",
            "verticals/shop/agent.yaml:1:1: warning: nobody asks `shop`: orchestrator.yaml does not list it; write: `shop` in `sub_agents` of orchestrator.yaml",
        ]
    );
}

#[test]
fn approval_tool_outside_the_orchestrator_is_refused() {
    let name = "the tool `clock` waits for approval, and only the orchestrator can wait for a person; write: it in `tools` of orchestrator.yaml, or no `approval` in tools.yaml";
    assert_eq!(
        reported(vec![Swap(
            "tools.yaml",
            "function: clock}",
            "function: clock, approval: required}"
        )]),
        [
            format!("verticals/points/agent.yaml:6:9: error: {name}"),
            format!("workers/researcher/agent.yaml:7:9: error: {name}"),
        ]
    );
    table(
        "tools.yaml",
        &[
            (
                "    shape: list\n",
                "    shape: list\n    approval: required\n",
                &[
                    "22:15: error: a render tool waits for nobody: it shows what is there; write: no `approval`",
                ],
            ),
            (
                "    shape: list\n",
                "    shape: list\n    approval: none\n",
                &[],
            ),
            (
                "approval: required",
                "approval: true",
                &["36:15: error: unknown approval `true`; write: one of `required`, `none`"],
            ),
            (
                "approval: required",
                "approval: requird",
                &["36:15: error: unknown approval `requird`, did you mean `required`?"],
            ),
        ],
    );
}
