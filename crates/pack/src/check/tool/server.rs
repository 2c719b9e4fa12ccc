//! Checks `mcp_servers` of `tools.yaml`: each is a program or a service.

use std::collections::BTreeMap;

use crate::check::endpoint::expansion::{self, Vars};
use crate::check::endpoint::tool_url;
use crate::check::report::{FileReport, value_or};
use crate::finding::{Findings, KnownNames};
use crate::pack::tool::{ASK_PREFIX, McpServer, McpTransport, SERVER_PREFIX};
use crate::source::tool::{ServerSource, ToolsSource};
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

const FILE: &str = "tools.yaml";
const START_MS: u64 = 10_000;
const CALL_MS: u64 = 30_000;

/// Each [`McpServer`] of `mcp_servers`.
pub(crate) struct CheckedServers {
    pub(crate) servers: BTreeMap<String, McpServer>,
    /// The position of each server.
    pub(crate) positions: BTreeMap<String, TextPosition>,
    /// The names; incomplete if the file is broken.
    pub(crate) known_names: KnownNames,
}

pub(crate) fn check(
    source: Option<&ToolsSource>,
    vars: Vars<'_>,
    findings: &mut Findings,
) -> CheckedServers {
    let mut report = FileReport::new(FILE, findings);
    let mut servers = BTreeMap::new();
    let mut positions = BTreeMap::new();
    let written = source.map_or(&[][..], |source| &source.mcp_servers.0);
    for (name, source) in written {
        if format!("{}_", name.value).starts_with(ASK_PREFIX) {
            let message = format!(
                "the tools of the tool server `{}` would begin with `{ASK_PREFIX}`, as only the tools that ask a sub-agent do",
                one_line(&name.value)
            );
            report.error(name.position, message, "another name");
        }
        servers.insert(name.value.clone(), server(&mut report, source, vars));
        positions.insert(name.value.clone(), name.position);
    }
    CheckedServers {
        known_names: KnownNames {
            names: servers.keys().cloned().collect(),
            incomplete: source.is_none(),
        },
        servers,
        positions,
    }
}

fn server(
    report: &mut FileReport<'_>,
    source: &Located<ServerSource>,
    vars: Vars<'_>,
) -> McpServer {
    let (home, source) = (source.position, &source.value);
    let command = source.command.as_ref();
    let url = source.url.as_ref();
    if let (Some(_), Some(url)) = (command, url) {
        let instead = "one of them: a tool server is a program or a service";
        report.error(url.position, "`command` and `url` are both there", instead);
    }
    if command.is_none() && url.is_none() {
        let instead = "`command: [program, argument]`, or `url: https://…`";
        report.error(home, "a tool server is a program or a service", instead);
    }
    // Both are checked, so that all mistakes are reported.
    let words = command.map(|words| expansion::command(report, words, None, vars));
    let address = url.map(|url| tool_url::check(report, url, None, vars));
    let env = source.env.as_ref();
    let env_filled = env.map(|env| expansion::environment(report, &env.value, vars));
    let headers = source.headers.as_ref();
    let headers_filled = headers
        .map(|headers| expansion::headers(report, &headers.value, &expansion::MCP_RESERVED, vars));
    if let (Some(env), None, Some(_)) = (env, command, url) {
        let message = "`env` does not fit a tool server with a `url`";
        let instead = "`headers`, or no `env`";
        report.error(env.position, message, instead);
    }
    if let (Some(headers), None, Some(_)) = (headers, url, command) {
        let message = "`headers` does not fit a tool server with a `command`";
        report.error(headers.position, message, "`env`, or no `headers`");
    }
    let transport = match (words, address) {
        (None, Some(url)) => McpTransport::Http {
            url,
            headers: headers_filled.unwrap_or_default(),
        },
        (words, _) => McpTransport::Stdio {
            command: words.unwrap_or_default(),
            env: env_filled.unwrap_or_default(),
        },
    };
    McpServer {
        transport,
        start_timeout_ms: value_or(&source.start_timeout_ms, START_MS),
        call_timeout_ms: value_or(&source.call_timeout_ms, CALL_MS),
    }
}

/// Warns of servers that are not among the `used` names.
pub(crate) fn warn_unused(servers: &CheckedServers, used: &[&str], findings: &mut Findings) {
    for (name, position) in &servers.positions {
        if !used.contains(&name.as_str()) {
            let message = format!("nobody uses the tool server `{name}`");
            let instead = format!(
                "`{SERVER_PREFIX}{name}` in `tools` of an agent, a tool with `server: {name}`, or no entry"
            );
            findings.warning(FILE, *position, message, instead);
        }
    }
}
