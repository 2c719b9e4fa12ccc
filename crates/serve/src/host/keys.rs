//! Keys of providers: found where the pack says they are, and what is said where there is none. No
//! message shows one.

use std::path::{Path, PathBuf};

use turnwire_model::{ApiKey, ApiKeyError};
use turnwire_pack::{ApiKeySource, ModelUse, Pack, PackFiles, PackFinding, ProviderDef};

use super::ServerVariables;
use super::look::FileFingerprint;

/// The key of a provider; none for one that wants none.
pub(super) fn key(
    provider: &ProviderDef,
    variables: &ServerVariables,
) -> Result<Option<ApiKey>, ApiKeyError> {
    match &provider.key {
        ApiKeySource::None => Ok(None),
        ApiKeySource::File(path) => ApiKey::from_file(Path::new(path)).map(Some),
        ApiKeySource::Variables(names) => {
            let set = names.iter().find(|name| variables.get(name).is_some());
            // The first is the one that is told where none is set.
            let name = set.or(names.first()).map_or("", String::as_str);
            ApiKey::from_variable(name, variables.get(name)).map(Some)
        }
    }
}

/// An error for every provider that is used and has no key: where its key is written, or where it
/// is used if it is a built-in one.
pub(super) fn missing(pack: &Pack, variables: &ServerVariables) -> Vec<PackFinding> {
    let mut findings = Vec::new();
    for (name, provider) in pack.used_providers() {
        let Err(none) = key(provider, variables) else {
            continue;
        };
        let mut uses = pack.uses.iter();
        let first = uses.find(|used| used.provider() == name);
        let (file, line, column) = match (pack.key_positions.get(name), first) {
            (Some((line, column)), _) => ("providers.yaml", *line, *column),
            (
                None,
                Some(ModelUse {
                    file, line, column, ..
                }),
            ) => (file.as_str(), *line, *column),
            (None, None) => ("providers.yaml", 1, 1),
        };
        let mut finding = PackFinding::error(file, line, column, format!("`{name}`: {none}"));
        finding.instead = cure(&provider.key, &none);
        findings.push(finding);
    }
    findings
}

fn cure(key: &ApiKeySource, none: &ApiKeyError) -> Option<String> {
    match (key, none) {
        (ApiKeySource::Variables(names), ApiKeyError::Missing(_)) => {
            let names = names.join(" or ");
            Some(format!("{names} into the environment before the start"))
        }
        (ApiKeySource::File(_), ApiKeyError::Unreadable(..)) => {
            Some("the path of a file with the key and nothing else".to_owned())
        }
        _ => Some("the key there, and nothing else".to_owned()),
    }
}

/// The files that keys of used providers are in.
pub(super) fn files(pack: &Pack) -> Vec<PathBuf> {
    let used = pack.used_providers().into_values();
    let files = used.filter_map(|provider| match &provider.key {
        ApiKeySource::File(path) => Some(PathBuf::from(path)),
        ApiKeySource::None | ApiKeySource::Variables(_) => None,
    });
    files.collect()
}

/// The same for a pack that was refused, as far as it can be read: where a key is all that is
/// missing, it is when a file comes to be there that the pack is as it should be.
pub(super) fn wanted(files_of: &PackFiles, variables: &ServerVariables) -> Vec<PathBuf> {
    let report = turnwire_pack::check(files_of, &|name| variables.get(name));
    report.pack.as_ref().map(files).unwrap_or_default()
}

/// How key files look.
pub(super) fn stamps(files: Vec<PathBuf>) -> Vec<(PathBuf, Option<FileFingerprint>)> {
    let look = |path: PathBuf| {
        let look = FileFingerprint::at(&path);
        (path, look)
    };
    files.into_iter().map(look).collect()
}
