//! Checks `mcp_servers` of `tools.yaml`: each is a program or a service, and somebody uses it.

use std::collections::BTreeMap;

use super::address;
use super::filled::{self, Vars};
use super::page::{Page, TIMEOUT_MS_MAX};
use crate::finding::{Findings, Known, shown};
use crate::place::{At, Place};
use crate::source::tool::{ServerSource, ToolsSource};
use crate::tool::{ALL_OF, ASK, McpServer, McpTransport};

const FILE: &str = "tools.yaml";
/// Servers of one pack: each is a program that runs, or a connection that is held.
const SERVERS_MAX: usize = 32;
/// The longest start: a pack waits for it when it is loaded.
const START_MS_MAX: u64 = 60_000;
const START_MS: u64 = 10_000;
const CALL_MS: u64 = 30_000;

/// What `mcp_servers` says.
pub(crate) struct Servers {
    pub(crate) servers: BTreeMap<String, McpServer>,
    /// Where the name of each stands.
    pub(crate) places: BTreeMap<String, Place>,
    /// The names; hidden if the file is broken.
    pub(crate) known: Known,
}

/// Checks it.
pub(crate) fn check(source: Option<&ToolsSource>, vars: Vars<'_>, found: &mut Findings) -> Servers {
    let mut page = Page { file: FILE, found };
    let mut servers = BTreeMap::new();
    let mut places = BTreeMap::new();
    let written = source.map_or(&[][..], |source| &source.mcp_servers.0);
    for (name, source) in written {
        page.id_form(name, "name of a tool server");
        if format!("{}_", name.value).starts_with(ASK) {
            let what = format!(
                "the tools of the tool server `{}` would begin with `{ASK}`, as only the tools that ask a sub-agent do",
                shown(&name.value)
            );
            page.error(name.place, what).write("another name");
        }
        servers.insert(name.value.clone(), server(&mut page, source, vars));
        places.insert(name.value.clone(), name.place);
    }
    if let Some((name, _)) = written.get(SERVERS_MAX) {
        let what = format!("the file has more than {SERVERS_MAX} tool servers");
        page.error(name.place, what).write("fewer");
    }
    Servers {
        known: Known {
            names: servers.keys().cloned().collect(),
            hidden: source.is_none(),
        },
        servers,
        places,
    }
}

fn server(page: &mut Page<'_>, source: &At<ServerSource>, vars: Vars<'_>) -> McpServer {
    let (home, source) = (source.place, &source.value);
    let command = source.command.as_ref();
    let url = source.url.as_ref();
    if let (Some(_), Some(url)) = (command, url) {
        page.error(url.place, "`command` and `url` are both there")
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
        page.error(env.place, "`env` does not fit a tool server with a `url`")
            .write("`headers`, or no `env`");
    }
    if let (Some(headers), None, Some(_)) = (headers, url, command) {
        let what = "`headers` does not fit a tool server with a `command`";
        page.error(headers.place, what)
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
        start_timeout_ms: page.number(
            &source.start_timeout_ms,
            "start_timeout_ms",
            (1, START_MS_MAX),
            START_MS,
        ),
        call_timeout_ms: page.number(
            &source.call_timeout_ms,
            "call_timeout_ms",
            (1, TIMEOUT_MS_MAX),
            CALL_MS,
        ),
    }
}

/// Servers that nobody uses; `used` are the names that somebody does.
pub(crate) fn unused(servers: &Servers, used: &[&str], found: &mut Findings) {
    for (name, place) in &servers.places {
        if !used.contains(&name.as_str()) {
            let what = format!("nobody uses the tool server `{name}`");
            found.warning(FILE, *place, what).write(format!(
                "`{ALL_OF}{name}` in `tools` of an agent, a tool with `server: {name}`, or no entry"
            ));
        }
    }
}
