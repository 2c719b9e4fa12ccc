//! Tool servers, and what stands in front of them.

use super::*;

#[test]
fn tool_server_must_be_a_program_or_a_service() {
    table(
        "tools.yaml",
        &[
            (
                "  facts: {url: \"http://127.0.0.1:8500/mcp\"}",
                "  facts: {url: \"http://127.0.0.1:8500/mcp\", command: [facts]}",
                &[
                    "10:16: error: `command` and `url` are both there; write: one of them: a tool server is a program or a service",
                ],
            ),
            (
                "  facts: {url: \"http://127.0.0.1:8500/mcp\"}",
                "  facts: {start_timeout_ms: 1}",
                &[
                    "10:10: error: a tool server is a program or a service; write: `command: [program, argument]`, or `url: https://…`",
                ],
            ),
            (
                "[mcp-server-filesystem, \"./data\", \"${SECRET}\"]",
                "[]",
                &[
                    "3:14: error: `command` is empty; write: `command: …` (the program and its arguments; `${NAME}` and `${NAME:-default}` are filled in from the environment)",
                ],
            ),
            (
                "    headers: {Auth",
                "    env: {LANG: C}\n    headers: {Auth",
                &[
                    "9:10: error: `env` does not fit a tool server with a `url`; write: `headers`, or no `env`",
                ],
            ),
            (
                "    start_timeout_ms: 5000",
                "    headers: {x-a: b}",
                &[
                    "5:14: error: `headers` does not fit a tool server with a `command`; write: `env`, or no `headers`",
                ],
            ),
            (
                "start_timeout_ms: 5000",
                "start_timeout_ms: 60001",
                &["5:23: error: `start_timeout_ms` is 60001; write: a number from 1 to 60000"],
            ),
            (
                "call_timeout_ms: 60000",
                "call_timeout_ms: 0",
                &["6:22: error: `call_timeout_ms` is 0; write: a number from 1 to 600000"],
            ),
            (
                "http://127.0.0.1:8500/mcp",
                "stdio://facts",
                &[
                    "10:16: error: the url does not begin with http:// or https://; write: `http://host:port` or `https://host`, with a path if there is one",
                ],
            ),
            (
                "http://127.0.0.1:8500/mcp",
                "http://127.0.0.1:8500/{tenant}",
                &[
                    "10:16: error: the url has `{` or `}` in it, and takes no fields; write: it without, or `%7B` and `%7D`",
                ],
            ),
            (
                "Authorization: ",
                "Mcp-Session-Id: ",
                &[
                    "9:15: error: the header `Mcp-Session-Id` is not the pack's to write; write: nothing",
                ],
            ),
            (
                "mcp_servers:\n",
                "mcp_servers:\n  ask: {command: [x]}\n",
                &[
                    "2:3: error: the tools of the tool server `ask` would begin with `ask_`, as only the tools that ask a sub-agent do; write: another name",
                    "2:3: warning: nobody uses the tool server `ask`; write: `mcp:ask` in `tools` of an agent, a tool with `server: ask`, or no entry",
                ],
            ),
            (
                "mcp_servers:\n",
                "mcp_servers:\n  ask_us: {command: [x]}\n",
                &[
                    "2:3: error: the tools of the tool server `ask_us` would begin with `ask_`, as only the tools that ask a sub-agent do; write: another name",
                    "2:3: warning: nobody uses the tool server `ask_us`; write: `mcp:ask_us` in `tools` of an agent, a tool with `server: ask_us`, or no entry",
                ],
            ),
            (
                "mcp_servers:\n",
                "mcp_servers:\n  My-Files: {command: [x]}\n",
                &[
                    "2:3: error: `My-Files` is not a valid name in `mcp_servers`; write: `my_files` (a to z, 0 to 9 and _, beginning with a letter, at most 48 characters)",
                    "2:3: warning: nobody uses the tool server `My-Files`; write: `mcp:My-Files` in `tools` of an agent, a tool with `server: My-Files`, or no entry",
                ],
            ),
        ],
    );
}

#[test]
fn unknown_tool_server_is_reported() {
    table(
        "tools.yaml",
        &[
            (
                "server: files\n    tool: read.file",
                "server: fils\n    tool: read.file",
                &["60:13: error: unknown tool server `fils`, did you mean `files`?"],
            ),
            (
                "    server: files\n    tool: read.file\n",
                "    tool: read.file\n",
                &["58:5: error: `server` is missing; write: `server: files`"],
            ),
            (
                "tool: read.file",
                "tool: \"\"",
                &[
                    "61:11: error: `` is not a valid tool name; write: `mcp`: the server's name for the tool, 1 to 128 characters. The default is the tool's name",
                ],
            ),
            (
                "timeout_ms: 1000, description: Lists.",
                "input_schema: {type: object}",
                &[
                    "63:69: error: an mcp tool takes no `input_schema`: the server's is used; write: no `input_schema`",
                ],
            ),
            (
                "progress_status: searching_offers",
                "progress_status: serching_offers",
                &[
                    "62:22: error: unknown status id `serching_offers`, did you mean `searching_offers`?",
                ],
            ),
            (
                "    agent: researcher\n",
                "    agent: researcher\n    progress_status: searching_offers\n",
                &[
                    "67:22: error: `progress_status` does not fit a delegate tool; write: `connector: mcp`, or no `progress_status`",
                ],
            ),
        ],
    );
    table(
        "workers/researcher/agent.yaml",
        &[(
            "mcp:search",
            "mcp:serch",
            &["7:39: error: unknown tool server `serch`, did you mean `search`?"],
        )],
    );
    assert_eq!(
        reported(vec![Swap(
            "verticals/points/agent.yaml",
            "tools: [clock]",
            "tools: [clock, \"mcp:weather\"]"
        )]),
        [
            "verticals/points/agent.yaml:6:16: error: unknown tool server `weather`; write: one of `facts`, `files`, `search`"
        ]
    );
}

#[test]
fn service_must_have_either_url_or_mcp() {
    let facts = "facts: {mcp: facts, timeout_ms: 5000}";
    table(
        "connectors.yaml",
        &[
            (
                facts,
                "facts: {mcp: fcts}",
                &["3:16: error: unknown tool server `fcts`, did you mean `facts`?"],
            ),
            (
                facts,
                "facts: {mcp: facts, url: \"http://127.0.0.1:1\"}",
                &[
                    "3:16: error: `url` and `mcp` are both there; write: one of them: a service is asked over HTTP or through a tool server",
                ],
            ),
            (
                facts,
                "facts: {mcp: facts, timeout_ms: 20000}",
                &["3:35: error: `timeout_ms` is 20000; write: a number from 1 to 10000"],
            ),
        ],
    );
    table(
        "tools.yaml",
        &[
            (
                "connector: ccs_mcp",
                "connector: ccs_rest",
                &[
                    "75:16: error: the enricher `facts` is asked at the service `facts`, which has `mcp`; write: `connector: ccs_mcp`",
                ],
            ),
            (
                "connector: ccs_rest",
                "connector: ccs_mcp",
                &[
                    "13:16: error: the enricher `offer_search` is asked at the service `market`, which has `url`; write: `connector: ccs_rest`",
                ],
            ),
        ],
    );
}

#[test]
fn unused_tool_server_is_a_warning() {
    table(
        "tools.yaml",
        &[(
            "tools:\n",
            "  spare: {command: [spare]}\ntools:\n",
            &[
                "11:3: warning: nobody uses the tool server `spare`; write: `mcp:spare` in `tools` of an agent, a tool with `server: spare`, or no entry",
            ],
        )],
    );
}
