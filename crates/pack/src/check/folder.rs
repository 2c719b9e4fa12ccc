//! Which file of the folder is what, and their contents as shapes. A file that cannot be read
//! leaves `None` behind: what is made of it is then unknown, not absent.

use serde::de::DeserializeOwned;

use crate::files::{FILES_MAX, Files, bytes_max};
use crate::finding::Findings;
use crate::schema::{self, PackFile};
use crate::source::agent::{AgentSource, OrchestratorSource, WorkerSource};
use crate::source::connector::ConnectorsSource;
use crate::source::manifest::ManifestSource;
use crate::source::provider::{PricesSource, ProvidersSource};
use crate::source::route::RoutingSource;
use crate::source::status::EntrySource;
use crate::source::text::{LocaleSource, OverridesSource};
use crate::source::tool::ToolsSource;
use crate::wording::closest_name;
use crate::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// Files with a fixed position, for advice.
const FIXED: [&str; 9] = [
    "pack.yaml",
    "orchestrator.yaml",
    "platform/status_events.yaml",
    "connectors.yaml",
    "tools.yaml",
    "overrides.yaml",
    "providers.yaml",
    "routing.yaml",
    "prices.yaml",
];

/// A file and what it holds; none if it is broken.
pub(crate) struct Doc<T> {
    pub(crate) file: String,
    /// What the file is named for: a vertical's or a worker's folder, a language's tag; else empty.
    pub(crate) name: String,
    pub(crate) source: Option<T>,
}

/// All files as shapes.
pub(crate) struct Folder {
    pub(crate) manifest: Option<ManifestSource>,
    pub(crate) orchestrator: Option<OrchestratorSource>,
    pub(crate) agents: Vec<Doc<AgentSource>>,
    pub(crate) workers: Vec<Doc<WorkerSource>>,
    pub(crate) fragments: Vec<Doc<Vec<Located<EntrySource>>>>,
    pub(crate) connectors: Option<ConnectorsSource>,
    pub(crate) tools: Option<ToolsSource>,
    pub(crate) overrides: Option<OverridesSource>,
    pub(crate) providers: Option<ProvidersSource>,
    pub(crate) routing: Option<RoutingSource>,
    pub(crate) prices: Option<PricesSource>,
    pub(crate) locales: Vec<Doc<LocaleSource>>,
    /// Blocks by name, with their text.
    pub(crate) prompts: Vec<Doc<String>>,
    pub(crate) scripts: Vec<(String, String)>,
    pub(crate) cassettes: Vec<(String, String)>,
}

/// What a path is.
enum Role<'a> {
    Agent(&'a str),
    Worker(&'a str),
    Fragment(&'a str),
    Prompt(&'a str),
    Locale(&'a str),
    Script(&'a str),
    Cassette(&'a str),
    /// Read elsewhere, or known and not read.
    Known,
    Unknown,
}

/// Says so if this cannot be a pack because of how many files it has.
pub(crate) fn is_too_much(files: &Files, found: &mut Findings) -> bool {
    let too_much = files.iter().count() > FILES_MAX;
    if too_much {
        let what = format!("the folder has more than {FILES_MAX} files");
        found
            .error("pack.yaml", TextPosition::TOP, what)
            .write("a folder with nothing but the pack in it");
    }
    too_much
}

/// Reads every file.
pub(crate) fn read(files: &Files, found: &mut Findings) -> Folder {
    let mut folder = Folder {
        manifest: required(
            files,
            "pack.yaml",
            "`name: my_pack` and `version: \"1.0.0\"`",
            found,
        ),
        orchestrator: required(
            files,
            "orchestrator.yaml",
            "`kind: orchestrator` with id, version, description and prompt_blocks",
            found,
        ),
        agents: Vec::new(),
        workers: Vec::new(),
        fragments: Vec::new(),
        connectors: optional(files, "connectors.yaml", found),
        tools: optional(files, "tools.yaml", found),
        overrides: optional(files, "overrides.yaml", found),
        providers: optional(files, "providers.yaml", found),
        routing: optional(files, "routing.yaml", found),
        prices: optional(files, "prices.yaml", found),
        locales: Vec::new(),
        prompts: Vec::new(),
        scripts: Vec::new(),
        cassettes: Vec::new(),
    };
    for (path, why) in files.odd() {
        found
            .warning(path, TextPosition::TOP, why)
            .write("a file of the pack here, or nothing");
    }
    // The platform's ids come first.
    if files.get("platform/status_events.yaml").is_some() {
        folder
            .fragments
            .push(doc(files, "platform/status_events.yaml", "", found));
    }
    for (path, _) in files.iter() {
        match role(path) {
            Role::Agent(vertical) => folder.agents.push(doc(files, path, vertical, found)),
            Role::Worker(id) => folder.workers.push(doc(files, path, id, found)),
            Role::Fragment(vertical) => folder.fragments.push(doc(files, path, vertical, found)),
            Role::Locale(tag) => folder.locales.push(doc(files, path, tag, found)),
            Role::Prompt(block) => folder.prompts.push(prompt(files, path, block, found)),
            Role::Script(name) => {
                if let Some(text) = text(files, path, found) {
                    folder.scripts.push((name.to_owned(), text.to_owned()));
                }
            }
            Role::Cassette(name) => {
                if let Some(text) = text(files, path, found) {
                    folder.cassettes.push((name.to_owned(), text.to_owned()));
                }
            }
            Role::Known => {}
            Role::Unknown if FIXED.iter().any(|meant| stands_for(files, path, meant)) => {
                misnamed(path, found);
            }
            Role::Unknown => unknown(path, found),
        }
    }
    folder
}

fn role(path: &str) -> Role<'_> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["verticals", vertical, "agent.yaml"] => Role::Agent(vertical),
        ["workers", id, "agent.yaml"] => Role::Worker(id),
        ["verticals", vertical, "status_events.yaml"] => Role::Fragment(vertical),
        ["prompts", file] => file.strip_suffix(".md").map_or(Role::Unknown, Role::Prompt),
        ["locales", file] => file
            .strip_suffix(".yaml")
            .map_or(Role::Unknown, Role::Locale),
        ["scripts", file] => file
            .strip_suffix(".yaml")
            .map_or(Role::Unknown, Role::Script),
        ["cassettes", file] => file
            .strip_suffix(".jsonl")
            .map_or(Role::Unknown, Role::Cassette),
        ["schemas", file] if file.ends_with(".json") => Role::Known,
        ["evals", ..] => Role::Known,
        [.., file] if file.eq_ignore_ascii_case("readme.md") || file == "LICENSE" => Role::Known,
        _ if FIXED.contains(&path) => Role::Known,
        _ => Role::Unknown,
    }
}

fn unknown(path: &str, found: &mut Findings) {
    let yaml = path.strip_suffix(".yml").map(|stem| format!("{stem}.yaml"));
    let meant = match yaml {
        Some(yaml) if !matches!(role(&yaml), Role::Unknown) => Some(yaml),
        _ => near(path),
    };
    match meant {
        Some(meant) => {
            let what = format!("nothing reads this file, did you mean `{meant}`?");
            found.warning(path, TextPosition::TOP, what);
        }
        None => found
            .warning(path, TextPosition::TOP, "nothing reads this file")
            .write("it outside of the pack, or the name of a file that a pack can have"),
    }
}

/// Whether a file is another that is missing, but for its ending or its capitals.
fn stands_for(files: &Files, path: &str, meant: &str) -> bool {
    let stem = |path: &str| {
        path.rsplit_once('.')
            .map(|(stem, _)| stem.to_ascii_lowercase())
    };
    let lower = path.to_ascii_lowercase();
    files.get(meant).is_none()
        && stem(path) == stem(meant)
        && (lower.ends_with(".yml") || lower.ends_with(".yaml"))
}

/// A file that would be read under its right name. It is an error: the pack is another without it.
fn misnamed(path: &str, found: &mut Findings) {
    let lower = path.to_ascii_lowercase();
    let stem = lower
        .rsplit_once('.')
        .map_or(lower.as_str(), |(stem, _)| stem);
    let what = format!("nothing reads this file, did you mean `{stem}.yaml`?");
    found.error(path, TextPosition::TOP, what);
}

/// The path that was probably meant.
fn near(path: &str) -> Option<String> {
    if let Some((dir, file)) = path.rsplit_once('/')
        && dir.starts_with("verticals/")
    {
        let meant = closest_name(file, ["agent.yaml", "status_events.yaml"])?;
        return Some(format!("{dir}/{meant}"));
    }
    if let Some(("workers", rest)) = path.split_once('/')
        && let Some((id, file)) = rest.split_once('/')
    {
        closest_name(file, ["agent.yaml"])?;
        return Some(format!("workers/{id}/agent.yaml"));
    }
    closest_name(path, FIXED).map(str::to_owned)
}

/// The text of a file, if it is text and not too much of it.
pub(crate) fn text<'a>(files: &'a Files, path: &str, found: &mut Findings) -> Option<&'a str> {
    let text = files.get(path)?;
    let most = bytes_max(path);
    if text.len() > most {
        let what = format!("the file has more than {most} bytes");
        found
            .error(path, TextPosition::TOP, what)
            .write("a shorter file");
        return None;
    }
    if text.contains('\u{fffd}') {
        found
            .error(path, TextPosition::TOP, "the file is not UTF-8 text")
            .write("it again as UTF-8");
        return None;
    }
    Some(text)
}

/// Whether a file is there under a name that is almost its own, which is told.
fn is_misnamed(files: &Files, meant: &str) -> bool {
    files.iter().any(|(path, _)| stands_for(files, path, meant))
}

fn required<T: DeserializeOwned + PackFile>(
    files: &Files,
    path: &str,
    example: &str,
    found: &mut Findings,
) -> Option<T> {
    if files.get(path).is_none() {
        if !is_misnamed(files, path) {
            found
                .error(path, TextPosition::TOP, "the file is missing")
                .write(example);
        }
        return None;
    }
    schema::read(path, text(files, path, found)?, found)
}

fn optional<T: DeserializeOwned + PackFile + Default>(
    files: &Files,
    path: &str,
    found: &mut Findings,
) -> Option<T> {
    if files.get(path).is_none() {
        return (!is_misnamed(files, path)).then(T::default);
    }
    schema::read(path, text(files, path, found)?, found)
}

fn doc<T: DeserializeOwned + PackFile>(
    files: &Files,
    path: &str,
    name: &str,
    found: &mut Findings,
) -> Doc<T> {
    let text = text(files, path, found);
    Doc {
        file: path.to_owned(),
        name: name.to_owned(),
        source: text.and_then(|text| schema::read(path, text, found)),
    }
}

fn prompt(files: &Files, path: &str, block: &str, found: &mut Findings) -> Doc<String> {
    let text = text(files, path, found);
    if text.is_some_and(|text| text.trim().is_empty()) {
        found
            .error(path, TextPosition::TOP, "the prompt is empty")
            .write("what the agent is to be told");
    }
    for (position, name) in text.map(blanks).unwrap_or_default() {
        let what = format!("nothing fills in `{{{{{}}}}}`", one_line(name));
        match closest_name(name.trim(), BLANKS) {
            Some(meant) => {
                let what = format!("{what}, did you mean `{{{{{meant}}}}}`?");
                found.error(path, position, what);
            }
            None => found
                .error(path, position, what)
                .write("`{{cap}}`, the one that is filled in, or no `{{`"),
        }
    }
    Doc {
        file: path.to_owned(),
        name: block.to_owned(),
        source: text.map(str::to_owned),
    }
}

/// What is filled in in a prompt.
const BLANKS: [&str; 1] = ["cap"];

/// The `{{…}}` of a prompt that nothing fills in: position, name.
fn blanks(text: &str) -> Vec<(TextPosition, &str)> {
    let mut found = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        let mut at = 0;
        while let Some(start) = written[at..].find("{{").map(|start| at + start) {
            let Some(end) = written[start..].find("}}").map(|end| start + end) else {
                break;
            };
            let name = &written[start + 2..end];
            if !BLANKS.contains(&name) {
                let column = written[..start].chars().count() as u64 + 1;
                found.push((TextPosition { line, column }, name));
            }
            at = end + 2;
        }
    }
    found
}
