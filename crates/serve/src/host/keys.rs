//! Keys of providers, upstreams and data services: reading them where the pack says, and the findings
//! about missing ones. No message contains a key.

pub(super) mod certificate;

use std::path::{Path, PathBuf};

use turnwire_model::{ApiKey, ApiKeyError};
use turnwire_pack::{ApiKeySource, Pack, PackFiles, PackFinding};
use turnwire_tool::{SecretCollector, Secrets};

use super::ServerVariables;
use super::agent_file::agent_file;
use super::look::FileFingerprint;

/// The [`ApiKey`] of a provider, an upstream or a header; `None` if there is none.
pub(super) fn key(
    source: &ApiKeySource,
    variables: &ServerVariables,
) -> Result<Option<ApiKey>, ApiKeyError> {
    match source {
        ApiKeySource::None => Ok(None),
        ApiKeySource::File(path) => ApiKey::from_file(Path::new(path)).map(Some),
        ApiKeySource::Variables(names) => {
            let set = names.iter().find(|name| variables.get(name).is_some());
            // Without any, the error names the first.
            let name = set.or(names.first()).map_or("", String::as_str);
            ApiKey::from_variable(name, variables.get(name)).map(Some)
        }
    }
}

/// All keys that the server knows: those that `pack` gives to tools, services and providers, those of
/// its providers, and the variables of the environment whose names are those of keys.
pub(super) fn known(pack: &Pack, variables: &ServerVariables) -> Secrets {
    let mut keys = SecretCollector::default();
    keys.add_pack(pack);
    for (name, value) in variables.iter() {
        keys.add_variable(name, value);
    }
    for source in sources(pack) {
        // A key that cannot be read is reported where its provider or upstream is created.
        if let Ok(Some(key)) = key(source, variables) {
            keys.add_value(key.expose());
        }
    }
    keys.build()
}

/// An error for every used provider and every upstream without its key, at the position of the key in
/// the pack, or of the first use of a provider that is built in.
pub(super) fn missing(pack: &Pack, variables: &ServerVariables) -> Vec<PackFinding> {
    let mut findings = Vec::new();
    for (name, provider) in pack.used_providers() {
        let Err(none) = key(&provider.key, variables) else {
            continue;
        };
        let position = pack.key_positions.get(name);
        let position = position.map(|&(line, column)| ("providers.yaml", line, column));
        let mut uses = pack.uses.iter();
        let first = uses.find(|used| used.provider() == name);
        let first = first.map(|used| (used.file.as_str(), used.line, used.column));
        let (file, line, column) = position.or(first).unwrap_or(("providers.yaml", 1, 1));
        let mut finding = PackFinding::error(file, line, column, format!("`{name}`: {none}"));
        finding.instead = cure(&provider.key, &none);
        findings.push(finding);
    }
    for (agent, relay) in pack.relays() {
        if let Err(none) = key(&relay.key, variables) {
            let (line, column) = relay.position;
            let message = format!("the upstream of `{}`: {none}", agent.id);
            let mut finding = PackFinding::error(agent_file(agent), line, column, message);
            finding.instead = cure(&relay.key, &none);
            findings.push(finding);
        }
    }
    findings
}

/// An error for every key and every certificate of a data service that cannot be read, at its position.
pub(super) fn missing_of_services(pack: &Pack, variables: &ServerVariables) -> Vec<PackFinding> {
    let mut findings = Vec::new();
    let mut report = |(line, column), message: String, instead: Option<String>| {
        let mut finding = PackFinding::error("connectors.yaml", line, column, message);
        finding.instead = instead;
        findings.push(finding);
    };
    for (name, service) in &pack.services {
        for header in &service.key_headers {
            if let Err(none) = key(&header.key, variables) {
                let message = format!("the header `{}` of `{name}`: {none}", header.name);
                report(header.position, message, cure(&header.key, &none));
            }
        }
        if let Some(certificate) = &service.client_certificate
            && let Err(none) = certificate::check(certificate)
        {
            let message = format!("the certificate of `{name}`: {none}");
            let instead = "files with a certificate and its private key in PEM".to_owned();
            report(certificate.position, message, Some(instead));
        }
    }
    findings
}

/// Where the keys of the used providers, of all upstreams and of all data services are.
fn sources(pack: &Pack) -> impl Iterator<Item = &ApiKeySource> {
    let providers = pack.used_providers().into_values();
    let providers = providers.map(|provider| &provider.key);
    let headers = pack.services.values();
    let headers = headers.flat_map(|service| &service.key_headers);
    providers
        .chain(pack.relays().map(|(_, relay)| &relay.key))
        .chain(headers.map(|header| &header.key))
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

/// The files with keys of the used providers, of the upstreams and of the data services.
pub(super) fn files(pack: &Pack) -> Vec<PathBuf> {
    let files = sources(pack).filter_map(|source| match source {
        ApiKeySource::File(path) => Some(PathBuf::from(path)),
        ApiKeySource::None | ApiKeySource::Variables(_) => None,
    });
    let services = pack.services.values();
    let certificates = services.filter_map(|service| service.client_certificate.as_ref());
    let certificates = certificates.flat_map(|files| [&files.cert_file, &files.key_file]);
    files.chain(certificates.map(PathBuf::from)).collect()
}

/// The [`files`] of a pack with mistakes, if it can be read: the missing key may be the only
/// mistake, and then a new file corrects the pack.
pub(super) fn wanted(files_of: &PackFiles, variables: &ServerVariables) -> Vec<PathBuf> {
    let report = turnwire_pack::check(files_of, &|name| variables.get(name));
    report.pack.as_ref().map(files).unwrap_or_default()
}

/// The fingerprints of key files.
pub(super) fn stamps(files: Vec<PathBuf>) -> Vec<(PathBuf, Option<FileFingerprint>)> {
    let look = |path: PathBuf| {
        let look = FileFingerprint::at(&path);
        (path, look)
    };
    files.into_iter().map(look).collect()
}
