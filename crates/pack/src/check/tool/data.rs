//! Checks the tools that fetch data from services of connectors.yaml, and those that show data.

use crate::check::report::{FileReport, is_id, word};
use crate::check::tool::RENDER;
use crate::check::tool::connector::CheckedConnectors;
use crate::pack::tool::{RenderShape, ToolKind};
use crate::source::tool::ToolSource;
use crate::text::wording::one_line;
use crate::text::wording::{closest_name, quoted_list};
use crate::yaml::{Located, TextPosition};

/// How an enricher is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectorTransport {
    /// The data service is called over HTTP.
    Http,
    /// The data service is behind a tool server.
    Server,
}

/// Checks a tool that calls an enricher.
pub(super) fn ccs(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    through: ConnectorTransport,
    known_names: &CheckedConnectors,
) -> ToolKind {
    let enricher_id = report.require_text(
        &source.enricher_id,
        "enricher_id",
        home,
        "enricher_id: offer_search",
    );
    let domain_type = report.require_text(
        &source.domain_type,
        "domain_type",
        home,
        "domain_type: offer_list",
    );
    if let (Some(enricher), Some(domain), false) = (
        &source.enricher_id,
        &source.domain_type,
        known_names.incomplete,
    ) {
        check_pair(report, enricher, domain, known_names);
        check_transport(
            report,
            source,
            &(enricher_id.as_str(), domain_type.as_str()),
            through,
            known_names,
        );
    }
    ToolKind::Ccs {
        enricher_id,
        domain_type,
    }
}

/// Reports a pair of enricher and domain type that connectors.yaml does not have.
fn check_pair(
    report: &mut FileReport<'_>,
    enricher: &Located<String>,
    domain: &Located<String>,
    known_names: &CheckedConnectors,
) {
    let of_id: Vec<&str> = known_names
        .enrichers
        .iter()
        .filter(|one| one.enricher_id == enricher.value)
        .map(|one| one.domain_type.as_str())
        .collect();
    if of_id.contains(&domain.value.as_str()) {
        return;
    }
    if !of_id.is_empty() {
        let message = format!(
            "the enricher `{}` has no domain_type `{}` in connectors.yaml",
            enricher.value,
            one_line(&domain.value)
        );
        report
            .error(domain.position, message)
            .suggest(quoted_list(of_id));
        return;
    }
    let ids = || {
        known_names
            .enrichers
            .iter()
            .map(|one| one.enricher_id.as_str())
    };
    let message = format!(
        "connectors.yaml has no enricher `{}`",
        one_line(&enricher.value)
    );
    match closest_name(&enricher.value, ids()) {
        Some(suggestion) => {
            report.error(
                enricher.position,
                format!("{message}, did you mean `{suggestion}`?"),
            );
        }
        None => report.error(enricher.position, message).suggest(format!(
            "an entry in `enrichers` of connectors.yaml with this enricher_id and domain_type `{}`",
            one_line(&domain.value)
        )),
    }
}

/// Reports a connector that does not suit the service of the enricher.
fn check_transport(
    report: &mut FileReport<'_>,
    source: &ToolSource,
    (enricher_id, domain_type): &(&str, &str),
    through: ConnectorTransport,
    known_names: &CheckedConnectors,
) {
    let enricher = known_names.enrichers.iter().find(|one| {
        (one.enricher_id.as_str(), one.domain_type.as_str()) == (*enricher_id, *domain_type)
    });
    let service =
        enricher.and_then(|one| Some((&one.service, known_names.services.get(&one.service)?)));
    let (Some((name, service)), Some(word)) = (service, &source.connector) else {
        return;
    };
    let (behind, right) = match service.mcp {
        Some(_) => (ConnectorTransport::Server, "ccs_mcp"),
        None => (ConnectorTransport::Http, "ccs_rest"),
    };
    if through != behind {
        let has = if behind == ConnectorTransport::Server {
            "mcp"
        } else {
            "url"
        };
        let message = format!(
            "the enricher `{enricher_id}` is asked at the service `{name}`, which has `{has}`"
        );
        report
            .error(word.position, message)
            .suggest(format!("`connector: {right}`"));
    }
}

/// Checks a tool that shows data.
pub(super) fn render(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    name: &str,
    known_names: &CheckedConnectors,
) -> ToolKind {
    let stem_name = name.strip_prefix(RENDER).unwrap_or_default();
    if let Some(written) = &source.name
        && stem_name.is_empty()
    {
        let message = format!(
            "the render tool `{}` does not begin with `{RENDER}`",
            one_line(name)
        );
        let stem = name.trim_start_matches("show_").trim_start_matches(RENDER);
        let stem = if stem.is_empty() { "offer_list" } else { stem };
        report
            .error(written.position, message)
            .suggest(format!("`{RENDER}{}`", one_line(stem)));
    }
    report.require(&source.shape, "shape", home, "shape: list");
    let data_type = match &source.data_type {
        Some(data_type) => data_type.value.clone(),
        None => stem_name.to_owned(),
    };
    if is_id(&data_type) && !known_names.incomplete {
        let written = source.data_type.as_ref().or(source.name.as_ref());
        let position = written.map_or(home, |written| written.position);
        check_data_type(report, position, &data_type, known_names);
    }
    ToolKind::Render {
        data_type,
        shape: word(&source.shape).unwrap_or(RenderShape::List),
    }
}

/// Warns of a render tool for data that no enricher returns.
fn check_data_type(
    report: &mut FileReport<'_>,
    position: TextPosition,
    data_type: &str,
    known_names: &CheckedConnectors,
) {
    let domain_types = || {
        known_names
            .enrichers
            .iter()
            .map(|one| one.domain_type.as_str())
    };
    if domain_types().any(|domain_type| domain_type == data_type) {
        return;
    }
    let message = format!("no enricher has the domain_type `{data_type}`");
    match closest_name(data_type, domain_types()) {
        Some(suggestion) => {
            report.warning(position, format!("{message}, did you mean `{suggestion}`?"));
        }
        None => report
            .warning(
                position,
                format!("{message}: there is nothing to show by id"),
            )
            .suggest("`data_type` with a domain_type of connectors.yaml"),
    }
}
