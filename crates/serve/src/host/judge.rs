//! Checks a pack as a whole: its files, the keys of its providers, its scripts and its cassettes.
//!
//! Adds the checks that [`turnwire_pack::check`] cannot make: whether the keys and the programs exist,
//! whether a cassette can be played, and whether a script names agents and tools that exist.

use turnwire_model::cassette::CassettePlayback;
use turnwire_model::models::dialect_by_name;
use turnwire_model::{ModelScript, ReferenceKind, ScriptError, ScriptReference};
use turnwire_pack::{
    AgentDefinition, DialectName, FindingLevel, Pack, PackFiles, PackFinding, PackReport,
    closest_name, one_line, quoted_list,
};

use super::{ServerVariables, keys, programs};

/// The provider that plays scripts.
const SCRIPTED: &str = "scripted";
/// The prefix of an entry for all tools of an MCP server.
const ALL_OF: &str = "mcp:";
/// The prefix of the tool that calls a sub-agent.
const ASK: &str = "ask_";

/// Checks a pack as a whole.
pub fn judge(files: &PackFiles, variables: &ServerVariables) -> PackReport {
    let mut report = examined(files, variables);
    if let Some(pack) = report.readable() {
        let missing = keys::missing(pack, variables);
        report.findings.extend(missing);
    }
    if let Some(pack) = report.readable()
        && pack.scripts.is_empty()
        && let Some(used) = pack.uses.iter().find(|used| used.provider() == SCRIPTED)
    {
        let place = (used.file.clone(), used.line, used.column);
        let message = format!(
            "the model `{}` plays a script, and the pack has none",
            one_line(&used.model)
        );
        let instead = format!("one as `scripts/{}.yaml`", pack.name);
        report.findings.push(error(place, message, Some(instead)));
    }
    settled(report)
}

/// Like [`judge`] for a pack whose models all play one given script: no key is needed.
pub(super) fn spoken_for(files: &PackFiles, variables: &ServerVariables) -> PackReport {
    settled(examined(files, variables))
}

/// The findings that do not depend on who answers for the models.
fn examined(files: &PackFiles, variables: &ServerVariables) -> PackReport {
    let mut report = turnwire_pack::check(files, &|name| variables.get(name));
    let missing = report.readable().map(programs::missing);
    report.findings.extend(missing.unwrap_or_default());
    // Services are called whatever answers for the models.
    let readable = report.readable();
    let missing = readable.map(|pack| keys::missing_of_services(pack, variables));
    report.findings.extend(missing.unwrap_or_default());
    for (path, text) in files.iter().filter(|(path, _)| is_cassette(path)) {
        report.findings.extend(unplayable(path, text));
    }
    let scripts = files
        .iter()
        .filter(|(path, _)| path.starts_with("scripts/"));
    for (path, text) in scripts {
        match ModelScript::parse_all(path, text) {
            Ok(script) => {
                let pack = report.pack.as_ref();
                let strays = pack.map(|pack| strays(pack, script.names()));
                report.findings.extend(strays.into_iter().flatten());
            }
            Err(mistakes) => report
                .findings
                .extend(mistakes.into_iter().filter_map(script_finding)),
        }
    }
    report
}

/// Sorts the findings by position and removes duplicates; drops the pack if there is an error.
fn settled(mut report: PackReport) -> PackReport {
    let findings = &mut report.findings;
    findings.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    findings.dedup_by(|a, b| a.to_string() == b.to_string());
    if findings.iter().any(|f| f.level == FindingLevel::Error) {
        report.pack = None;
    }
    report.draft = None;
    report
}

fn agents(pack: &Pack) -> impl Iterator<Item = &AgentDefinition> {
    let speaker = std::iter::once(&pack.orchestrator);
    speaker.chain(&pack.agents).chain(&pack.workers)
}

/// Why a cassette cannot be played: a mistake in it, or an unknown dialect.
fn unplayable(path: &str, text: &str) -> Option<PackFinding> {
    let tape = match CassettePlayback::parse(path, text, 1.0) {
        Ok(tape) => tape,
        Err(bad) => return Some(error((bad.file, bad.line, 1), bad.message, None)),
    };
    let mut calls = tape.calls().iter();
    let foreign = calls.find(|call| dialect_by_name(&call.dialect).is_none())?;
    let written = format!("\"dialect\":{}", serde_json::Value::from(&*foreign.dialect));
    let line = text.lines().position(|line| line.contains(&written));
    let message = format!("unknown dialect `{}`", one_line(&foreign.dialect));
    let dialects = DialectName::ALL.into_iter().map(DialectName::as_str);
    let instead = format!("one of {}", quoted_list(dialects));
    let place = (path.to_owned(), line.map_or(1, |at| at as u64 + 1), 1);
    Some(error(place, message, Some(instead)))
}

fn is_cassette(path: &str) -> bool {
    path.starts_with("cassettes/") && path.ends_with(".jsonl")
}

/// A file, a line and a column.
type Place = (String, u64, u64);

fn error((file, line, column): Place, message: String, instead: Option<String>) -> PackFinding {
    PackFinding {
        instead,
        ..PackFinding::error(file, line, column, message)
    }
}

/// A mistake of a script.
fn script_finding(mistake: ScriptError) -> Option<PackFinding> {
    match mistake {
        ScriptError::Invalid {
            file,
            line,
            column,
            message: what,
            suggestion: instead,
        } => Some(error((file, line, column), what, instead)),
        // Only the reader of a file says this, and these texts are read already.
        ScriptError::Unreadable { .. } => None,
    }
}

/// Warnings about names in a script that the pack does not have: a script may exist before its
/// agent, and a test may use an unknown name on purpose.
fn strays(pack: &Pack, names: &[ScriptReference]) -> Vec<PackFinding> {
    let mut out = Vec::new();
    for named in names {
        let (noun, known): (_, Vec<String>) = match named.kind {
            ReferenceKind::Agent => ("agent", agents(pack).map(|a| a.id.clone()).collect()),
            ReferenceKind::Tool | ReferenceKind::Result => {
                ("tool", callable(pack, named.agent.as_deref()))
            }
        };
        if known.contains(&named.name) || is_served(&named.name, &known) {
            continue;
        }
        let candidates = || known.iter().map(String::as_str);
        let written = one_line(&named.name);
        let whose = match (&named.agent, named.kind) {
            (Some(agent), ReferenceKind::Tool | ReferenceKind::Result) => {
                format!(" of `{}`", one_line(agent))
            }
            _ => String::new(),
        };
        let (what, instead) = match closest_name(&named.name, candidates()) {
            Some(meant) => (
                format!("unknown {noun} `{written}`{whose}, did you mean `{meant}`?"),
                None,
            ),
            None => (
                format!("unknown {noun} `{written}`{whose}"),
                candidates()
                    .next()
                    .map(|_| format!("one of {}", quoted_list(candidates()))),
            ),
        };
        let place = (named.file.clone(), named.line, named.column);
        out.push(PackFinding {
            level: FindingLevel::Warning,
            ..error(place, what, instead)
        });
    }
    out
}

/// True if `name` may be a tool of an MCP server, which only the server knows.
fn is_served(name: &str, known: &[String]) -> bool {
    let mut servers = known.iter().filter_map(|name| name.strip_prefix(ALL_OF));
    servers.any(|server| {
        let tool_name = name.strip_prefix(server);
        tool_name.is_some_and(|rest| rest.starts_with('_'))
    })
}

/// The tools that `agent` can call; those of all agents if none is named or the name is unknown.
fn callable(pack: &Pack, agent: Option<&str>) -> Vec<String> {
    let one = agent.filter(|id| agents(pack).any(|agent| agent.id == *id));
    let speaking = agents(pack).filter(|agent| one.is_none_or(|id| agent.id == id));
    let own = |agent: &AgentDefinition| {
        let asks = agent.sub_agents.iter();
        let asks = asks.map(|sub| format!("{ASK}{}", sub.id));
        asks.chain(agent.tools.clone()).collect::<Vec<_>>()
    };
    speaking.flat_map(own).collect()
}
