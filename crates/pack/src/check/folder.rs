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
use crate::text::wording::{closest_name, one_line};
use crate::yaml::{Located, TextPosition};

/// The status ids of the platform.
pub(crate) const PLATFORM: &str = "platform/status_events.yaml";
/// Files with a fixed path.
const FIXED: [&str; 9] = [
    "pack.yaml",
    "orchestrator.yaml",
    PLATFORM,
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

impl<T> ParsedFile<T> {
    /// The file, its name and its content; `None` if it is broken.
    pub(crate) fn parts(&self) -> Option<(&str, &str, &T)> {
        Some((&self.file, &self.name, self.source.as_ref()?))
    }
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

/// The role of a file, by its path: which list of a [`ParsedPack`] it is read into.
#[derive(Clone, Copy)]
enum FileRole {
    Agent,
    Worker,
    Fragment,
    Prompt,
    Locale,
    Script,
    Cassette,
    /// A file that is read elsewhere, or never.
    Elsewhere,
}

/// True if the folder has too many files to be a pack, which is reported.
pub(crate) fn is_too_large(files: &PackFiles, findings: &mut Findings) -> bool {
    let is_too_large = files.iter().count() > FILES_MAX;
    if is_too_large {
        let message = format!("the folder has more than {FILES_MAX} files");
        let instead = "a folder with nothing but the pack in it";
        findings.error("pack.yaml", TextPosition::TOP, message, instead);
    }
    is_too_large
}

/// The role of a file and the variable part of its path; `None` if no file of a pack has this path.
fn role(path: &str) -> Option<(FileRole, &str)> {
    use FileRole as R;
    let parts: Vec<&str> = path.split('/').collect();
    Some(match parts[..] {
        ["verticals", vertical, "agent.yaml"] => (R::Agent, vertical),
        ["verticals", vertical, "status_events.yaml"] => (R::Fragment, vertical),
        ["workers", id, "agent.yaml"] => (R::Worker, id),
        ["prompts", file] => (R::Prompt, file.strip_suffix(".md")?),
        ["locales", file] => (R::Locale, file.strip_suffix(".yaml")?),
        ["scripts", file] => (R::Script, file.strip_suffix(".yaml")?),
        ["cassettes", file] => (R::Cassette, file.strip_suffix(".jsonl")?),
        ["schemas", file] if file.ends_with(".json") => (R::Elsewhere, ""),
        ["evals", ..] | [.., "LICENSE"] => (R::Elsewhere, ""),
        [.., file] if file.eq_ignore_ascii_case("readme.md") => (R::Elsewhere, ""),
        _ if FIXED.contains(&path) => (R::Elsewhere, ""),
        _ => return None,
    })
}

pub(crate) fn read(files: &PackFiles, findings: &mut Findings) -> ParsedPack {
    let mut reader = FolderReader { files, findings };
    let manifest = "`name: my_pack` and `version: \"1.0.0\"`";
    let orchestrator = "`kind: orchestrator` with id, version, description and prompt_blocks";
    let mut folder = ParsedPack {
        manifest: reader.required("pack.yaml", manifest),
        orchestrator: reader.required("orchestrator.yaml", orchestrator),
        agents: Vec::new(),
        workers: Vec::new(),
        fragments: Vec::new(),
        connectors: reader.optional("connectors.yaml"),
        tools: reader.optional("tools.yaml"),
        overrides: reader.optional("overrides.yaml"),
        providers: reader.optional("providers.yaml"),
        routing: reader.optional("routing.yaml"),
        prices: reader.optional("prices.yaml"),
        locales: Vec::new(),
        prompts: Vec::new(),
        scripts: Vec::new(),
        cassettes: Vec::new(),
    };
    for (path, reason) in files.skipped() {
        reader.warning(
            path,
            reason.to_owned(),
            "a file of the pack here, or nothing",
        );
    }
    // The platform's ids come first.
    if files.get(PLATFORM).is_some() {
        folder.fragments.push(reader.file(PLATFORM, ""));
    }
    for (path, _) in files.iter() {
        let Some((role, name)) = role(path) else {
            reader.report_unread(path);
            continue;
        };
        match role {
            FileRole::Agent => folder.agents.push(reader.file(path, name)),
            FileRole::Worker => folder.workers.push(reader.file(path, name)),
            FileRole::Fragment => folder.fragments.push(reader.file(path, name)),
            FileRole::Locale => folder.locales.push(reader.file(path, name)),
            FileRole::Prompt => folder.prompts.push(reader.prompt(path, name)),
            FileRole::Script => folder.scripts.extend(reader.named_text(path, name)),
            FileRole::Cassette => folder.cassettes.extend(reader.named_text(path, name)),
            FileRole::Elsewhere => {}
        }
    }
    folder
}

/// The fragments of the status registry alone, the platform's first.
pub(crate) fn fragments(
    files: &PackFiles,
    findings: &mut Findings,
) -> Vec<ParsedFile<Vec<Located<EntrySource>>>> {
    let mut reader = FolderReader { files, findings };
    let paths = files.iter().filter_map(|(path, _)| match role(path)? {
        (FileRole::Fragment, name) => Some((path, name)),
        _ => None,
    });
    let platform = files.get(PLATFORM).map(|_| (PLATFORM, ""));
    let paths = platform.into_iter().chain(paths);
    paths.map(|(path, name)| reader.file(path, name)).collect()
}

/// Reads [`PackFiles`], and reports those that cannot be read.
struct FolderReader<'a> {
    files: &'a PackFiles,
    findings: &'a mut Findings,
}

impl FolderReader<'_> {
    fn warning(&mut self, path: &str, message: String, instead: &str) {
        let position = TextPosition::TOP;
        self.findings.warning(path, position, message, instead);
    }

    /// The content of a file; `None` if it is broken, which is reported.
    fn source<T: DeserializeOwned + PackFile>(&mut self, path: &str) -> Option<T> {
        schema::read(path, text(self.files, path, self.findings)?, self.findings)
    }

    fn required<T: DeserializeOwned + PackFile>(&mut self, path: &str, example: &str) -> Option<T> {
        if self.files.get(path).is_none() {
            if !self.is_misnamed(path) {
                let position = TextPosition::TOP;
                self.findings
                    .error(path, position, "the file is missing", example);
            }
            return None;
        }
        self.source(path)
    }

    fn optional<T: DeserializeOwned + PackFile + Default>(&mut self, path: &str) -> Option<T> {
        match self.files.get(path) {
            Some(_) => self.source(path),
            None => (!self.is_misnamed(path)).then(T::default),
        }
    }

    fn file<T: DeserializeOwned + PackFile>(&mut self, path: &str, name: &str) -> ParsedFile<T> {
        ParsedFile {
            file: path.to_owned(),
            name: name.to_owned(),
            source: self.source(path),
        }
    }

    fn named_text(&mut self, path: &str, name: &str) -> Option<(String, String)> {
        let text = text(self.files, path, self.findings)?;
        Some((name.to_owned(), text.to_owned()))
    }

    fn prompt(&mut self, path: &str, block: &str) -> ParsedFile<String> {
        let text = text(self.files, path, self.findings);
        if text.is_some_and(|text| text.trim().is_empty()) {
            let instead = "what the agent is to be told";
            let position = TextPosition::TOP;
            self.findings
                .error(path, position, "the prompt is empty", instead);
        }
        for (position, name) in text.map(unknown_placeholders).unwrap_or_default() {
            let message = format!("nothing fills in `{{{{{}}}}}`", one_line(name));
            let (message, instead) = match closest_name(name.trim(), PLACEHOLDERS) {
                Some(meant) => (format!("{message}, did you mean `{{{{{meant}}}}}`?"), ""),
                None => (message, "`{{cap}}`, the one that is filled in, or no `{{`"),
            };
            self.findings.error(path, position, message, instead);
        }
        ParsedFile {
            file: path.to_owned(),
            name: block.to_owned(),
            source: text.map(str::to_owned),
        }
    }

    /// Reports a file that nothing reads. A file that would be read under its right name is an
    /// error, because the pack changes without it.
    fn report_unread(&mut self, path: &str) {
        let unread = "nothing reads this file";
        let mut fixed = FIXED.iter();
        if let Some(meant) = fixed.find(|meant| self.is_variant_of(path, meant)) {
            let message = format!("{unread}, did you mean `{meant}`?");
            return self.findings.error(path, TextPosition::TOP, message, "");
        }
        let yaml = path.strip_suffix(".yml").map(|stem| format!("{stem}.yaml"));
        let yaml = yaml.filter(|yaml| role(yaml).is_some());
        match yaml.or_else(|| closest_path(path)) {
            Some(meant) => self.warning(path, format!("{unread}, did you mean `{meant}`?"), ""),
            None => {
                let instead = "it outside of the pack, or the name of a file that a pack can have";
                self.warning(path, unread.to_owned(), instead);
            }
        }
    }

    /// True if `path` is the missing file `meant` but for its extension or its case.
    fn is_variant_of(&self, path: &str, meant: &str) -> bool {
        let lower = path.to_ascii_lowercase();
        let stem = lower.strip_suffix(".yml").or(lower.strip_suffix(".yaml"));
        self.files.get(meant).is_none() && stem.is_some() && stem == meant.strip_suffix(".yaml")
    }

    /// True if the pack has the missing file `meant` under a wrong name, which is reported
    /// elsewhere.
    fn is_misnamed(&self, meant: &str) -> bool {
        let mut paths = self.files.iter();
        paths.any(|(path, _)| self.is_variant_of(path, meant))
    }
}

/// The path that was probably meant.
fn closest_path(path: &str) -> Option<String> {
    let (dir, file) = path.rsplit_once('/').unwrap_or_default();
    let files: &[&str] = match dir.split('/').collect::<Vec<_>>()[..] {
        ["verticals", _, ..] => &["agent.yaml", "status_events.yaml"],
        ["workers", _] => &["agent.yaml"],
        _ => return closest_name(path, FIXED).map(str::to_owned),
    };
    let meant = closest_name(file, files.iter().copied())?;
    Some(format!("{dir}/{meant}"))
}

/// The text of a file; `None` if it is too large or not UTF-8, which is reported.
pub(crate) fn text<'a>(
    files: &'a PackFiles,
    path: &str,
    findings: &mut Findings,
) -> Option<&'a str> {
    let text = files.get(path)?;
    let most = bytes_max(path);
    let (message, instead) = if text.len() > most {
        (
            format!("the file has more than {most} bytes"),
            "a shorter file",
        )
    } else if text.contains('\u{fffd}') {
        ("the file is not UTF-8 text".to_owned(), "it again as UTF-8")
    } else {
        return Some(text);
    };
    findings.error(path, TextPosition::TOP, message, instead);
    None
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
