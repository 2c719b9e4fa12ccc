//! A pack judged as a whole: its files, the models that it names, and what its scripts say.
//!
//! What the pack's own check cannot know is looked at here: which providers this version has, and
//! whether a script speaks of agents and tools that are there.

use turnwire_model::{Named, Script, ScriptError, Subject};
use turnwire_pack::{Definition, Files, Finding, Level, Pack, Report, listed, nearest, shown};

use super::Variables;

/// The one provider of this version.
const SCRIPTED: &str = "scripted";
/// What the orchestrator calls a sub-agent by.
const ASK: &str = "ask_";

/// Checks a pack as a whole.
pub fn judge(files: &Files, variables: &Variables) -> Report {
    let mut report = spoken_for(files, variables);
    if let Some(pack) = &report.pack
        && pack.scripts.is_empty()
        && let Some(used) = agents(pack).find(|agent| provider(&agent.model) == SCRIPTED)
    {
        let place = place(files, pack, used);
        let what = format!(
            "the model `{}` plays a script, and the pack has none",
            shown(&used.model)
        );
        let instead = format!("one as `scripts/{}.yaml`", pack.name);
        report.findings.push(error(place, what, Some(instead)));
    }
    settled(report)
}

/// The same for a pack whose models play a script that is not its own.
pub(super) fn spoken_for(files: &Files, variables: &Variables) -> Report {
    let mut report = turnwire_pack::check(files, &|name| variables.get(name));
    if let Some(pack) = &report.pack {
        let unserved = agents(pack).filter(|agent| provider(&agent.model) != SCRIPTED);
        for agent in unserved {
            let what = format!(
                "this version has no provider `{}`",
                shown(provider(&agent.model))
            );
            let instead = Some("`scripted:<name>`".to_owned());
            report
                .findings
                .push(error(place(files, pack, agent), what, instead));
        }
    }
    let scripts = files
        .iter()
        .filter(|(path, _)| path.starts_with("scripts/"));
    for (path, text) in scripts {
        match Script::parse_all(path, text) {
            Ok(script) => {
                let pack = report.pack.as_ref();
                let strays = pack.map(|pack| strays(pack, script.names()));
                report.findings.extend(strays.into_iter().flatten());
            }
            Err(mistakes) => report
                .findings
                .extend(mistakes.into_iter().filter_map(told)),
        }
    }
    settled(report)
}

/// By file and place, each once; no pack if there is an error.
fn settled(mut report: Report) -> Report {
    let findings = &mut report.findings;
    findings.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    findings.dedup_by(|a, b| a.to_string() == b.to_string());
    if findings.iter().any(|f| f.level == Level::Error) {
        report.pack = None;
    }
    report
}

fn agents(pack: &Pack) -> impl Iterator<Item = &Definition> {
    std::iter::once(&pack.orchestrator).chain(&pack.agents)
}

fn provider(model: &str) -> &str {
    model
        .split_once(':')
        .map_or(model, |(provider, _)| provider)
}

/// A file, a line and a column.
type Place = (String, u64, u64);

fn error((file, line, column): Place, what: String, instead: Option<String>) -> Finding {
    Finding {
        level: Level::Error,
        file,
        line,
        column,
        what,
        instead,
        unregistered: false,
    }
}

/// Where an agent's model is written: in `models` of the pack, or in the agent's own file.
fn place(files: &Files, pack: &Pack, agent: &Definition) -> Place {
    if pack.models.values().any(|model| *model == agent.model)
        && let Some(place) = found(files, "pack.yaml", &agent.model)
    {
        return place;
    }
    let own = files.iter().find(|(path, text)| {
        let page = *path == "orchestrator.yaml" || path.ends_with("/agent.yaml");
        page && text.lines().any(|line| says(line, "id:", &agent.id))
    });
    let file = own.map_or("orchestrator.yaml", |(path, _)| path);
    found(files, file, &agent.model)
        .or_else(|| found(files, file, "model:"))
        .unwrap_or_else(|| (file.to_owned(), 1, 1))
}

fn says(line: &str, key: &str, value: &str) -> bool {
    let rest = line.strip_prefix(key).unwrap_or_default();
    let rest = rest.split(" #").next().unwrap_or_default();
    rest.trim().trim_matches(['"', '\'']) == value
}

/// The first place of `text` in a file, comments left out.
fn found(files: &Files, file: &str, text: &str) -> Option<Place> {
    let lines = files.get(file)?.lines().enumerate();
    let mut lines = lines.filter(|(_, line)| !line.trim_start().starts_with('#'));
    lines.find_map(|(at, line)| {
        let column = line[..line.find(text)?].chars().count();
        Some((file.to_owned(), at as u64 + 1, column as u64 + 1))
    })
}

/// A mistake of a script.
fn told(mistake: ScriptError) -> Option<Finding> {
    match mistake {
        ScriptError::Wrong {
            file,
            line,
            column,
            what,
            instead,
        } => Some(error((file, line, column), what, instead)),
        // Only the reader of a file says this, and these texts are read already.
        ScriptError::Unreadable { .. } => None,
    }
}

/// Names in a script that the pack does not have. Warnings: a script may be there before the
/// agent that it is for, and a test may want a name that nobody has.
fn strays(pack: &Pack, names: &[Named]) -> Vec<Finding> {
    let mut out = Vec::new();
    for named in names {
        let (noun, known) = match named.what {
            Subject::Agent => ("agent", agents(pack).map(|a| a.id.clone()).collect()),
            Subject::Tool | Subject::Result => ("tool", callable(pack, named.agent.as_deref())),
        };
        if known.contains(&named.name) {
            continue;
        }
        let known = || known.iter().map(String::as_str);
        let written = shown(&named.name);
        let whose = match (&named.agent, named.what) {
            (Some(agent), Subject::Tool | Subject::Result) => format!(" of `{}`", shown(agent)),
            _ => String::new(),
        };
        let (what, instead) = match nearest(&named.name, known()) {
            Some(meant) => (
                format!("unknown {noun} `{written}`{whose}, did you mean `{meant}`?"),
                None,
            ),
            None => (
                format!("unknown {noun} `{written}`{whose}"),
                known()
                    .next()
                    .map(|_| format!("one of {}", listed(known()))),
            ),
        };
        out.push(Finding {
            level: Level::Warning,
            file: named.file.clone(),
            line: named.line,
            column: named.column,
            what,
            instead,
            unregistered: false,
        });
    }
    out
}

/// What an agent can call; what anyone can if none is named, or one that is not there.
fn callable(pack: &Pack, agent: Option<&str>) -> Vec<String> {
    let one = agent.filter(|id| agents(pack).any(|agent| agent.id == *id));
    let speaking = agents(pack).filter(|agent| one.is_none_or(|id| agent.id == id));
    let own = |agent: &Definition| {
        let asks = agent.sub_agents.iter();
        let asks = asks.map(|sub| format!("{ASK}{}", sub.id));
        asks.chain(agent.tools.clone()).collect::<Vec<_>>()
    };
    speaking.flat_map(own).collect()
}
