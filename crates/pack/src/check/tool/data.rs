//! Checks the tools that fetch data from services of connectors.yaml, and those that show it.

use super::super::connector::Connectors;
use super::super::page::{Page, is_id, word};
use super::RENDER;
use crate::source::tool::ToolSource;
use crate::tool::{Shape, ToolKind};
use crate::wording::one_line;
use crate::wording::{closest_name, quoted_list};
use crate::yaml::{Located, TextPosition};

/// How an enricher is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Through {
    /// Over HTTP.
    Http,
    /// Through a tool server.
    Server,
}

/// Checks a tool that asks an enricher, over HTTP or `through` a tool server.
pub(super) fn ccs(
    page: &mut Page<'_>,
    home: TextPosition,
    source: &ToolSource,
    through: Through,
    known: &Connectors,
) -> ToolKind {
    let enricher_id = page.needed_text(
        &source.enricher_id,
        "enricher_id",
        home,
        "enricher_id: offer_search",
    );
    let domain_type = page.needed_text(
        &source.domain_type,
        "domain_type",
        home,
        "domain_type: offer_list",
    );
    if let (Some(enricher), Some(domain), false) =
        (&source.enricher_id, &source.domain_type, known.hidden)
    {
        pair(page, enricher, domain, known);
        way(
            page,
            source,
            &(enricher_id.as_str(), domain_type.as_str()),
            through,
            known,
        );
    }
    ToolKind::Ccs {
        enricher_id,
        domain_type,
    }
}

/// Says so if connectors.yaml has no such pair.
fn pair(
    page: &mut Page<'_>,
    enricher: &Located<String>,
    domain: &Located<String>,
    known: &Connectors,
) {
    let of_id: Vec<&str> = known
        .enrichers
        .iter()
        .filter(|one| one.enricher_id == enricher.value)
        .map(|one| one.domain_type.as_str())
        .collect();
    if of_id.contains(&domain.value.as_str()) {
        return;
    }
    if !of_id.is_empty() {
        let what = format!(
            "the enricher `{}` has no domain_type `{}` in connectors.yaml",
            enricher.value,
            one_line(&domain.value)
        );
        page.error(domain.position, what).write(quoted_list(of_id));
        return;
    }
    let ids = || known.enrichers.iter().map(|one| one.enricher_id.as_str());
    let what = format!(
        "connectors.yaml has no enricher `{}`",
        one_line(&enricher.value)
    );
    match closest_name(&enricher.value, ids()) {
        Some(meant) => {
            page.error(
                enricher.position,
                format!("{what}, did you mean `{meant}`?"),
            );
        }
        None => page.error(enricher.position, what).write(format!(
            "an entry in `enrichers` of connectors.yaml with this enricher_id and domain_type `{}`",
            one_line(&domain.value)
        )),
    }
}

/// Says so if the service of an enricher is reached in another way.
fn way(
    page: &mut Page<'_>,
    source: &ToolSource,
    (enricher_id, domain_type): &(&str, &str),
    through: Through,
    known: &Connectors,
) {
    let enricher = known.enrichers.iter().find(|one| {
        (one.enricher_id.as_str(), one.domain_type.as_str()) == (*enricher_id, *domain_type)
    });
    let service = enricher.and_then(|one| Some((&one.service, known.services.get(&one.service)?)));
    let (Some((name, service)), Some(word)) = (service, &source.connector) else {
        return;
    };
    let (behind, right) = match service.mcp {
        Some(_) => (Through::Server, "ccs_mcp"),
        None => (Through::Http, "ccs_rest"),
    };
    if through != behind {
        let has = if behind == Through::Server {
            "mcp"
        } else {
            "url"
        };
        let what = format!(
            "the enricher `{enricher_id}` is asked at the service `{name}`, which has `{has}`"
        );
        page.error(word.position, what)
            .write(format!("`connector: {right}`"));
    }
}

/// Checks a tool that shows data.
pub(super) fn render(
    page: &mut Page<'_>,
    home: TextPosition,
    source: &ToolSource,
    name: &str,
    known: &Connectors,
) -> ToolKind {
    let rest = name.strip_prefix(RENDER).unwrap_or_default();
    if let Some(written) = &source.name
        && rest.is_empty()
    {
        let what = format!(
            "the render tool `{}` does not begin with `{RENDER}`",
            one_line(name)
        );
        let stem = name.trim_start_matches("show_").trim_start_matches(RENDER);
        let stem = if stem.is_empty() { "offer_list" } else { stem };
        page.error(written.position, what)
            .write(format!("`{RENDER}{}`", one_line(stem)));
    }
    page.needed(&source.shape, "shape", home, "shape: list");
    let data_type = match &source.data_type {
        Some(data_type) => data_type.value.clone(),
        None => rest.to_owned(),
    };
    if is_id(&data_type) && !known.hidden {
        let written = source.data_type.as_ref().or(source.name.as_ref());
        let position = written.map_or(home, |written| written.position);
        shows(page, position, &data_type, known);
    }
    ToolKind::Render {
        data_type,
        shape: word(&source.shape).unwrap_or(Shape::List),
    }
}

/// Says so if no enricher gives what a render tool is to show.
fn shows(page: &mut Page<'_>, position: TextPosition, data_type: &str, known: &Connectors) {
    let given = || known.enrichers.iter().map(|one| one.domain_type.as_str());
    if given().any(|domain_type| domain_type == data_type) {
        return;
    }
    let what = format!("no enricher has the domain_type `{data_type}`");
    match closest_name(data_type, given()) {
        Some(meant) => {
            page.warning(position, format!("{what}, did you mean `{meant}`?"));
        }
        None => page
            .warning(position, format!("{what}: there is nothing to show by id"))
            .write("`data_type` with a domain_type of connectors.yaml"),
    }
}
