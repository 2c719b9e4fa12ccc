//! The files of a pack by their role, each read as its shape. A file that cannot be read is `None`:
//! what it defines is then unknown, not absent.

use serde::de::DeserializeOwned;

use crate::files::{FILES_MAX, PackFiles, bytes_max};
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
use crate::text::wording::closest_name;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

/// Files with a fixed path.
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

/// A file and its content; `source` is `None` if the file is broken.
pub(crate) struct ParsedFile<T> {
    pub(crate) file: String,
    /// The variable part of the path: a vertical's or a worker's folder, a language tag; else empty.
    pub(crate) name: String,
    pub(crate) source: Option<T>,
}

/// All files of a pack as their shapes.
pub(crate) struct ParsedPack {
    pub(crate) manifest: Option<ManifestSource>,
    pub(crate) orchestrator: Option<OrchestratorSource>,
    pub(crate) agents: Vec<ParsedFile<AgentSource>>,
    pub(crate) workers: Vec<ParsedFile<WorkerSource>>,
    pub(crate) fragments: Vec<ParsedFile<Vec<Located<EntrySource>>>>,
    pub(crate) connectors: Option<ConnectorsSource>,
    pub(crate) tools: Option<ToolsSource>,
    pub(crate) overrides: Option<OverridesSource>,
    pub(crate) providers: Option<ProvidersSource>,
    pub(crate) routing: Option<RoutingSource>,
    pub(crate) prices: Option<PricesSource>,
    pub(crate) locales: Vec<ParsedFile<LocaleSource>>,
    /// Prompt blocks by name, with their text.
    pub(crate) prompts: Vec<ParsedFile<String>>,
    pub(crate) scripts: Vec<(String, String)>,
    pub(crate) cassettes: Vec<(String, String)>,
}

/// The role of a file, by its path.
enum FileRole<'a> {
    Agent(&'a str),
    Worker(&'a str),
    Fragment(&'a str),
    Prompt(&'a str),
    Locale(&'a str),
    Script(&'a str),
    Cassette(&'a str),
    /// A file that is read elsewhere, or never.
    KnownNames,
    Unknown,
}

/// True if the folder has too many files to be a pack, which is reported.
pub(crate) fn is_too_large(files: &PackFiles, findings: &mut Findings) -> bool {
    let is_too_large = files.iter().count() > FILES_MAX;
    if is_too_large {
        let message = format!("the folder has more than {FILES_MAX} files");
        findings
            .error("pack.yaml", TextPosition::TOP, message)
            .suggest("a folder with nothing but the pack in it");
    }
    is_too_large
}

pub(crate) fn read(files: &PackFiles, findings: &mut Findings) -> ParsedPack {
    let mut folder = ParsedPack {
        manifest: required(
            files,
            "pack.yaml",
            "`name: my_pack` and `version: \"1.0.0\"`",
            findings,
        ),
        orchestrator: required(
            files,
            "orchestrator.yaml",
            "`kind: orchestrator` with id, version, description and prompt_blocks",
            findings,
        ),
        agents: Vec::new(),
        workers: Vec::new(),
        fragments: Vec::new(),
        connectors: optional(files, "connectors.yaml", findings),
        tools: optional(files, "tools.yaml", findings),
        overrides: optional(files, "overrides.yaml", findings),
        providers: optional(files, "providers.yaml", findings),
        routing: optional(files, "routing.yaml", findings),
        prices: optional(files, "prices.yaml", findings),
        locales: Vec::new(),
        prompts: Vec::new(),
        scripts: Vec::new(),
        cassettes: Vec::new(),
    };
    for (path, reason) in files.skipped() {
        findings
            .warning(path, TextPosition::TOP, reason)
            .suggest("a file of the pack here, or nothing");
    }
    // The platform's ids come first.
    if files.get("platform/status_events.yaml").is_some() {
        folder.fragments.push(parsed_file(
            files,
            "platform/status_events.yaml",
            "",
            findings,
        ));
    }
    for (path, _) in files.iter() {
        match role(path) {
            FileRole::Agent(vertical) => folder
                .agents
                .push(parsed_file(files, path, vertical, findings)),
            FileRole::Worker(id) => folder.workers.push(parsed_file(files, path, id, findings)),
            FileRole::Fragment(vertical) => folder
                .fragments
                .push(parsed_file(files, path, vertical, findings)),
            FileRole::Locale(tag) => folder.locales.push(parsed_file(files, path, tag, findings)),
            FileRole::Prompt(block) => folder.prompts.push(prompt(files, path, block, findings)),
            FileRole::Script(name) => {
                if let Some(text) = text(files, path, findings) {
                    folder.scripts.push((name.to_owned(), text.to_owned()));
                }
            }
            FileRole::Cassette(name) => {
                if let Some(text) = text(files, path, findings) {
                    folder.cassettes.push((name.to_owned(), text.to_owned()));
                }
            }
            FileRole::KnownNames => {}
            FileRole::Unknown
                if FIXED
                    .iter()
                    .any(|suggestion| is_variant_of(files, path, suggestion)) =>
            {
                report_misnamed(path, findings);
            }
            FileRole::Unknown => report_unread(path, findings),
        }
    }
    folder
}

fn role(path: &str) -> FileRole<'_> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["verticals", vertical, "agent.yaml"] => FileRole::Agent(vertical),
        ["workers", id, "agent.yaml"] => FileRole::Worker(id),
        ["verticals", vertical, "status_events.yaml"] => FileRole::Fragment(vertical),
        ["prompts", file] => file
            .strip_suffix(".md")
            .map_or(FileRole::Unknown, FileRole::Prompt),
        ["locales", file] => file
            .strip_suffix(".yaml")
            .map_or(FileRole::Unknown, FileRole::Locale),
        ["scripts", file] => file
            .strip_suffix(".yaml")
            .map_or(FileRole::Unknown, FileRole::Script),
        ["cassettes", file] => file
            .strip_suffix(".jsonl")
            .map_or(FileRole::Unknown, FileRole::Cassette),
        ["schemas", file] if file.ends_with(".json") => FileRole::KnownNames,
        ["evals", ..] => FileRole::KnownNames,
        [.., file] if file.eq_ignore_ascii_case("readme.md") || file == "LICENSE" => {
            FileRole::KnownNames
        }
        _ if FIXED.contains(&path) => FileRole::KnownNames,
        _ => FileRole::Unknown,
    }
}

fn report_unread(path: &str, findings: &mut Findings) {
    let yaml = path.strip_suffix(".yml").map(|stem| format!("{stem}.yaml"));
    let suggestion = match yaml {
        Some(yaml) if !matches!(role(&yaml), FileRole::Unknown) => Some(yaml),
        _ => closest_path(path),
    };
    match suggestion {
        Some(suggestion) => {
            let message = format!("nothing reads this file, did you mean `{suggestion}`?");
            findings.warning(path, TextPosition::TOP, message);
        }
        None => findings
            .warning(path, TextPosition::TOP, "nothing reads this file")
            .suggest("it outside of the pack, or the name of a file that a pack can have"),
    }
}

/// True if `path` is the missing file `suggestion` but for its extension or its case.
fn is_variant_of(files: &PackFiles, path: &str, suggestion: &str) -> bool {
    let stem = |path: &str| {
        path.rsplit_once('.')
            .map(|(stem, _)| stem.to_ascii_lowercase())
    };
    let lower = path.to_ascii_lowercase();
    files.get(suggestion).is_none()
        && stem(path) == stem(suggestion)
        && (lower.ends_with(".yml") || lower.ends_with(".yaml"))
}

/// Reports a file that would be read under its right name: an error, because the pack changes
/// without it.
fn report_misnamed(path: &str, findings: &mut Findings) {
    let lower = path.to_ascii_lowercase();
    let stem = lower
        .rsplit_once('.')
        .map_or(lower.as_str(), |(stem, _)| stem);
    let message = format!("nothing reads this file, did you mean `{stem}.yaml`?");
    findings.error(path, TextPosition::TOP, message);
}

/// The path that was probably meant.
fn closest_path(path: &str) -> Option<String> {
    if let Some((dir, file)) = path.rsplit_once('/')
        && dir.starts_with("verticals/")
    {
        let suggestion = closest_name(file, ["agent.yaml", "status_events.yaml"])?;
        return Some(format!("{dir}/{suggestion}"));
    }
    if let Some(("workers", rest)) = path.split_once('/')
        && let Some((id, file)) = rest.split_once('/')
    {
        closest_name(file, ["agent.yaml"])?;
        return Some(format!("workers/{id}/agent.yaml"));
    }
    closest_name(path, FIXED).map(str::to_owned)
}

/// The text of a file; `None` if it is too large or not UTF-8, which is reported.
pub(crate) fn text<'a>(
    files: &'a PackFiles,
    path: &str,
    findings: &mut Findings,
) -> Option<&'a str> {
    let text = files.get(path)?;
    let most = bytes_max(path);
    if text.len() > most {
        let message = format!("the file has more than {most} bytes");
        findings
            .error(path, TextPosition::TOP, message)
            .suggest("a shorter file");
        return None;
    }
    if text.contains('\u{fffd}') {
        findings
            .error(path, TextPosition::TOP, "the file is not UTF-8 text")
            .suggest("it again as UTF-8");
        return None;
    }
    Some(text)
}

/// True if the pack has the missing file under a wrong name, which is reported elsewhere.
fn is_misnamed(files: &PackFiles, suggestion: &str) -> bool {
    files
        .iter()
        .any(|(path, _)| is_variant_of(files, path, suggestion))
}

fn required<T: DeserializeOwned + PackFile>(
    files: &PackFiles,
    path: &str,
    example: &str,
    findings: &mut Findings,
) -> Option<T> {
    if files.get(path).is_none() {
        if !is_misnamed(files, path) {
            findings
                .error(path, TextPosition::TOP, "the file is missing")
                .suggest(example);
        }
        return None;
    }
    schema::read(path, text(files, path, findings)?, findings)
}

fn optional<T: DeserializeOwned + PackFile + Default>(
    files: &PackFiles,
    path: &str,
    findings: &mut Findings,
) -> Option<T> {
    if files.get(path).is_none() {
        return (!is_misnamed(files, path)).then(T::default);
    }
    schema::read(path, text(files, path, findings)?, findings)
}

fn parsed_file<T: DeserializeOwned + PackFile>(
    files: &PackFiles,
    path: &str,
    name: &str,
    findings: &mut Findings,
) -> ParsedFile<T> {
    let text = text(files, path, findings);
    ParsedFile {
        file: path.to_owned(),
        name: name.to_owned(),
        source: text.and_then(|text| schema::read(path, text, findings)),
    }
}

fn prompt(
    files: &PackFiles,
    path: &str,
    block: &str,
    findings: &mut Findings,
) -> ParsedFile<String> {
    let text = text(files, path, findings);
    if text.is_some_and(|text| text.trim().is_empty()) {
        findings
            .error(path, TextPosition::TOP, "the prompt is empty")
            .suggest("what the agent is to be told");
    }
    for (position, name) in text.map(unknown_placeholders).unwrap_or_default() {
        let message = format!("nothing fills in `{{{{{}}}}}`", one_line(name));
        match closest_name(name.trim(), PLACEHOLDERS) {
            Some(suggestion) => {
                let message = format!("{message}, did you mean `{{{{{suggestion}}}}}`?");
                findings.error(path, position, message);
            }
            None => findings
                .error(path, position, message)
                .suggest("`{{cap}}`, the one that is filled in, or no `{{`"),
        }
    }
    ParsedFile {
        file: path.to_owned(),
        name: block.to_owned(),
        source: text.map(str::to_owned),
    }
}

/// The placeholders that are filled in in a prompt.
const PLACEHOLDERS: [&str; 1] = ["cap"];

/// The unknown `{{…}}` placeholders of a prompt: position, name.
fn unknown_placeholders(text: &str) -> Vec<(TextPosition, &str)> {
    let mut findings = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        let mut at = 0;
        while let Some(start) = written[at..].find("{{").map(|start| at + start) {
            let Some(end) = written[start..].find("}}").map(|end| start + end) else {
                break;
            };
            let name = &written[start + 2..end];
            if !PLACEHOLDERS.contains(&name) {
                let column = written[..start].chars().count() as u64 + 1;
                findings.push((TextPosition { line, column }, name));
            }
            at = end + 2;
        }
    }
    findings
}
