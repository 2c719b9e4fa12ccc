//! Checks `mcp_servers` of `tools.yaml`: each is a program or a service, and somebody uses it.

use std::collections::BTreeMap;

use super::address;
use super::filled::{self, Vars};
use super::page::{Page, value_or};
use crate::finding::{Findings, Known};
use crate::source::tool::{ServerSource, ToolsSource};
use crate::tool::{ALL_OF, ASK, McpServer, McpTransport};
use crate::wording::one_line;
use crate::yaml::{Located, TextPosition};

const FILE: &str = "tools.yaml";
/// Servers of one pack: each is a program that runs, or a connection that is held.
const SERVERS_MAX: usize = 32;
const START_MS: u64 = 10_000;
const CALL_MS: u64 = 30_000;

/// What `mcp_servers` says.
pub(crate) struct Servers {
    pub(crate) servers: BTreeMap<String, McpServer>,
    /// Where the name of each stands.
    pub(crate) positions: BTreeMap<String, TextPosition>,
    /// The names; hidden if the file is broken.
    pub(crate) known: Known,
}

/// Checks it.
pub(crate) fn check(source: Option<&ToolsSource>, vars: Vars<'_>, found: &mut Findings) -> Servers {
    let mut page = Page { file: FILE, found };
    let mut servers = BTreeMap::new();
    let mut positions = BTreeMap::new();
    let written = source.map_or(&[][..], |source| &source.mcp_servers.0);
    for (name, source) in written {
        if format!("{}_", name.value).starts_with(ASK) {
            let what = format!(
                "the tools of the tool server `{}` would begin with `{ASK}`, as only the tools that ask a sub-agent do",
                one_line(&name.value)
            );
            page.error(name.position, what).write("another name");
        }
        servers.insert(name.value.clone(), server(&mut page, source, vars));
        positions.insert(name.value.clone(), name.position);
    }
    let over = written.get(SERVERS_MAX).map(|(name, _)| name.position);
    page.at_most(over, SERVERS_MAX, "tool servers");
    Servers {
        known: Known {
            names: servers.keys().cloned().collect(),
            hidden: source.is_none(),
        },
        servers,
        positions,
    }
}

fn server(page: &mut Page<'_>, source: &Located<ServerSource>, vars: Vars<'_>) -> McpServer {
    let (home, source) = (source.position, &source.value);
    let command = source.command.as_ref();
    let url = source.url.as_ref();
    if let (Some(_), Some(url)) = (command, url) {
        page.error(url.position, "`command` and `url` are both there")
            .write("one of them: a tool server is a program or a service");
    }
    if command.is_none() && url.is_none() {
        page.error(home, "a tool server is a program or a service")
            .write("`command: [program, argument]`, or `url: https://…`");
    }
    // Each is looked at, so that all mistakes are told.
    let words = command.map(|words| filled::command(page, words, None, vars));
    let address = url.map(|url| address::check(page, url, None, vars));
    let env = source.env.as_ref();
    let env_filled = env.map(|env| filled::environment(page, &env.value, vars));
    let headers = source.headers.as_ref();
    let headers_filled =
        headers.map(|headers| filled::headers(page, &headers.value, &filled::SERVER_OWN, vars));
    if let (Some(env), None, Some(_)) = (env, command, url) {
        page.error(
            env.position,
            "`env` does not fit a tool server with a `url`",
        )
        .write("`headers`, or no `env`");
    }
    if let (Some(headers), None, Some(_)) = (headers, url, command) {
        let what = "`headers` does not fit a tool server with a `command`";
        page.error(headers.position, what)
            .write("`env`, or no `headers`");
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

/// Servers that nobody uses; `used` are the names that somebody does.
pub(crate) fn unused(servers: &Servers, used: &[&str], found: &mut Findings) {
    for (name, position) in &servers.positions {
        if !used.contains(&name.as_str()) {
            let what = format!("nobody uses the tool server `{name}`");
            found.warning(FILE, *position, what).write(format!(
                "`{ALL_OF}{name}` in `tools` of an agent, a tool with `server: {name}`, or no entry"
            ));
        }
    }
}
