//! Checks `connectors.yaml`: addresses of data services, and enrichers that name one of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::check::endpoint::key::{self, KeyFields};
use crate::check::endpoint::{header, url};
use crate::check::json_schema::SchemaFiles;
use crate::check::report::{CALL_MS_MAX, FileReport, text_of, value_of, value_or};
use crate::finding::{Findings, KnownNames};
use crate::pack::tool::{ClientCertificate, DataService, Enricher, KeyHeader};
use crate::source::connector::{ConnectorsSource, EnricherSource, ServiceSource};
use crate::text::wording::one_line;
use crate::text::wording::quoted_list;
use crate::yaml::{Located, TextPosition};

const FILE: &str = "connectors.yaml";
/// The default of `max_bytes`.
const MAX_BYTES: u64 = 1 << 20;

/// The content of `connectors.yaml`.
pub(crate) struct CheckedConnectors {
    pub(crate) services: BTreeMap<String, DataService>,
    /// The position of each service: line and column.
    pub(crate) positions: BTreeMap<String, (u64, u64)>,
    pub(crate) enrichers: Vec<Enricher>,
    /// True if the file is broken.
    pub(crate) incomplete: bool,
}

pub(crate) fn check(
    source: Option<&ConnectorsSource>,
    schemas: &SchemaFiles<'_>,
    servers: &KnownNames,
    vars: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) -> CheckedConnectors {
    let mut report = FileReport::new(FILE, findings);
    let mut services = BTreeMap::new();
    let mut positions = BTreeMap::new();
    for (name, service) in source.iter().flat_map(|source| &source.services.0) {
        let service = service_of(&mut report, service, servers, vars);
        services.insert(name.value.clone(), service);
        positions.insert(
            name.value.clone(),
            (name.position.line, name.position.column),
        );
    }
    let known_names = KnownNames {
        names: services.keys().cloned().collect(),
        incomplete: source.is_none(),
    };
    let mut enrichers: Vec<Enricher> = Vec::new();
    for source in source.iter().flat_map(|source| &source.enrichers) {
        let enricher = enricher(&mut report, source, &known_names, schemas);
        let again = enrichers.iter().any(|other| {
            (&other.enricher_id, &other.domain_type)
                == (&enricher.enricher_id, &enricher.domain_type)
        });
        if again && !enricher.enricher_id.is_empty() {
            let message = format!(
                "the enricher `{}` for `{}` is there twice",
                enricher.enricher_id, enricher.domain_type
            );
            let instead = "one entry for each pair of enricher_id and domain_type";
            report.error(source.position, message, instead);
        }
        enrichers.push(enricher);
    }
    CheckedConnectors {
        services,
        positions,
        enrichers,
        incomplete: source.is_none(),
    }
}

fn service_of(
    report: &mut FileReport<'_>,
    source: &Located<ServiceSource>,
    servers: &KnownNames,
    vars: &dyn Fn(&str) -> Option<String>,
) -> DataService {
    let (home, source) = (source.position, &source.value);
    let example = "url: http://127.0.0.1:8422";
    if let Some(mcp) = &source.mcp {
        report.unknown(mcp, "tool server", servers);
        if source.url.is_some() {
            let instead = "one of them: a service is asked over HTTP or through a tool server";
            report.error(mcp.position, "`url` and `mcp` are both there", instead);
        }
    } else {
        report.require(&source.url, "url", home, example);
    }
    let url = source.url.as_ref();
    let url = url.map(|url| url::check(report, url, &url::SERVICE, vars));
    refuse_credentials_behind_server(report, source);
    let headers = header::check(report, &source.headers, &header::SERVICE);
    let service = DataService {
        mcp: value_of(&source.mcp),
        url: url.unwrap_or_default(),
        timeout_ms: value_or(&source.timeout_ms, CALL_MS_MAX),
        max_bytes: value_or(&source.max_bytes, MAX_BYTES),
        key_headers: key_headers(report, source, &headers, vars),
        headers,
        client_certificate: client_certificate(report, source, vars),
    };
    warn_about_clear_text(report, source, &service);
    service
}

/// Headers and a certificate are those of a request over HTTP: a tool server has its own.
fn refuse_credentials_behind_server(report: &mut FileReport<'_>, source: &ServiceSource) {
    if source.mcp.is_none() {
        return;
    }
    let header = source.headers.0.first().map(|(name, _)| name.position);
    let key_header = source.key_headers.0.first();
    let key_header = key_header.map(|(name, _)| name.position);
    let certificate = source.client_certificate.as_ref();
    let certificate = certificate.map(|certificate| certificate.position);
    for position in [header, key_header, certificate].into_iter().flatten() {
        let message =
            "a service behind a tool server gets no headers and no certificate of its own";
        let instead = "the headers of the server in `mcp_servers` of tools.yaml";
        report.error(position, message, instead);
    }
}

/// The headers with a key, names in lower case. Messages do not repeat a value: it may be the key.
fn key_headers(
    report: &mut FileReport<'_>,
    source: &ServiceSource,
    plain: &[(String, String)],
    vars: &dyn Fn(&str) -> Option<String>,
) -> Vec<KeyHeader> {
    let mut headers: Vec<KeyHeader> = Vec::new();
    for (written, header) in &source.key_headers.0 {
        let name = written.value.to_ascii_lowercase();
        header::check_reserved(report, written, &name, &header::SERVICE);
        let is_plain = plain.iter().any(|(known, _)| *known == name);
        if is_plain || headers.iter().any(|known| known.name == name) {
            header::report_duplicate(report, written, &name);
        }
        let fields = KeyFields {
            key: header.value.key.as_ref(),
            key_file: header.value.key_file.as_ref(),
        };
        if fields.key.is_none() && fields.key_file.is_none() {
            let message = format!("the header `{}` has no key", one_line(&written.value));
            let instead = "`key: ${NAME}`, or `key_file:` with a path";
            report.error(header.position, message, instead);
        }
        let key = key::check(report, &fields, vars);
        headers.push(KeyHeader {
            prefix: prefix(report, &header.value.prefix),
            name,
            key,
            position: (header.position.line, header.position.column),
        });
    }
    headers
}

/// What stands before a key: a scheme and a space.
fn prefix(report: &mut FileReport<'_>, prefix: &Option<Located<String>>) -> String {
    let Some(prefix) = prefix else {
        return String::new();
    };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || " =:_-".contains(c);
    let scheme = prefix.value.trim_end();
    if scheme.is_empty() || scheme.contains(' ') || !prefix.value.chars().all(is_scheme) {
        let message = "`prefix` is what stands before the key, such as the name of a scheme";
        report.error(prefix.position, message, "`prefix: \"Bearer \"`");
    }
    prefix.value.clone()
}

fn client_certificate(
    report: &mut FileReport<'_>,
    source: &ServiceSource,
    vars: &dyn Fn(&str) -> Option<String>,
) -> Option<ClientCertificate> {
    let block = source.client_certificate.as_ref()?;
    let mut path = |file: &Option<Located<String>>, example: &str| {
        let file = file.as_ref()?;
        key::secret_path(report, file, example, vars)
    };
    let cert_file = path(
        &block.value.cert_file,
        "`cert_file: /run/secrets/client.pem`",
    );
    let key_file = path(&block.value.key_file, "`key_file: /run/secrets/client.key`");
    Some(ClientCertificate {
        cert_file: cert_file?,
        key_file: key_file?,
        position: (block.position.line, block.position.column),
    })
}

/// Reports a key that everyone between the server and the service can read.
fn warn_about_clear_text(
    report: &mut FileReport<'_>,
    source: &ServiceSource,
    service: &DataService,
) {
    let Some(url) = &source.url else {
        return;
    };
    if let Some(block) = &source.client_certificate
        && service.url.starts_with("http://")
    {
        let message = "a certificate has no effect over http";
        report.error(block.position, message, "a `url` that begins with https://");
    }
    if !service.key_headers.is_empty() && url::is_unencrypted(&service.url) {
        let message = "the keys are sent unencrypted to another machine";
        report.warning(url.position, message, "a `url` that begins with https://");
    }
}

fn enricher(
    report: &mut FileReport<'_>,
    source: &Located<EnricherSource>,
    services: &KnownNames,
    schemas: &SchemaFiles<'_>,
) -> Enricher {
    let source = &source.value;
    if let Some(service) = &source.service {
        report.unknown(service, "service", services);
    }
    let payload_schema = source
        .payload_schema
        .as_ref()
        .and_then(|schema| schemas.value(report, schema, "payload_schema"));
    let written = source.payload_schema.as_ref();
    let position = written.map_or(TextPosition::TOP, |schema| schema.position);
    let field = |field: &Option<Located<String>>, default: &str| {
        field.clone().unwrap_or_else(|| Located {
            value: default.to_owned(),
            position,
        })
    };
    let (items, item_id) = (field(&source.items, "items"), field(&source.item_id, "id"));
    if let Some(schema) = &payload_schema {
        check_item_fields(report, schema, &items, &item_id);
    }
    Enricher {
        enricher_id: text_of(&source.enricher_id),
        domain_type: text_of(&source.domain_type),
        service: text_of(&source.service),
        version: text_of(&source.version),
        items: items.value,
        item_id: item_id.value,
        payload_schema,
    }
}

/// Reports `items` or `item_id` if the payload's schema lists fields and not this one.
fn check_item_fields(
    report: &mut FileReport<'_>,
    schema: &Value,
    items: &Located<String>,
    item_id: &Located<String>,
) {
    let Some(fields) = schema["properties"].as_object() else {
        return;
    };
    let Some(list) = fields.get(&items.value) else {
        report_missing_field(report, "items", items, "payload", fields);
        return;
    };
    if let Some(fields) = list["items"]["properties"].as_object()
        && !fields.contains_key(&item_id.value)
    {
        report_missing_field(report, "item_id", item_id, "item", fields);
    }
}

fn report_missing_field(
    report: &mut FileReport<'_>,
    field: &str,
    name: &Located<String>,
    of: &str,
    fields: &Map<String, Value>,
) {
    let message = format!(
        "`{field}` is `{}`, and the {of} has no such field in its schema",
        one_line(&name.value)
    );
    let names = quoted_list(fields.keys().map(String::as_str));
    let instead = match fields.is_empty() {
        true => format!(
            "`properties: {{{}: …}}` in the schema",
            one_line(&name.value)
        ),
        false => format!("`{field}: …` with one of {names}"),
    };
    report.error(name.position, message, instead);
}
