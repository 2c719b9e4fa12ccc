//! Checks the tools that fetch data from services of connectors.yaml, and those that show it.

use super::super::connector::Connectors;
use super::super::page::{Page, is_id};
use super::RENDER;
use crate::finding::shown;
use crate::nearest::{listed, nearest};
use crate::place::{At, Place};
use crate::source::tool::ToolSource;
use crate::tool::{Shape, ToolKind};

const SHAPES: [(&str, Shape); 2] = [("list", Shape::List), ("single", Shape::Single)];

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
    home: Place,
    source: &ToolSource,
    through: Through,
    known: &Connectors,
) -> ToolKind {
    let enricher_id = page.text(
        &source.enricher_id,
        "enricher_id",
        home,
        "enricher_id: offer_search",
    );
    let domain_type = page.text(
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
fn pair(page: &mut Page<'_>, enricher: &At<String>, domain: &At<String>, known: &Connectors) {
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
            shown(&domain.value)
        );
        page.error(domain.place, what).write(listed(of_id));
        return;
    }
    let ids = || known.enrichers.iter().map(|one| one.enricher_id.as_str());
    let what = format!(
        "connectors.yaml has no enricher `{}`",
        shown(&enricher.value)
    );
    match nearest(&enricher.value, ids()) {
        Some(meant) => {
            page.error(enricher.place, format!("{what}, did you mean `{meant}`?"));
        }
        None => page.error(enricher.place, what).write(format!(
            "an entry in `enrichers` of connectors.yaml with this enricher_id and domain_type `{}`",
            shown(&domain.value)
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
        page.error(word.place, what)
            .write(format!("`connector: {right}`"));
    }
}

/// Checks a tool that shows data.
pub(super) fn render(
    page: &mut Page<'_>,
    home: Place,
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
            shown(name)
        );
        let stem = name.trim_start_matches("show_").trim_start_matches(RENDER);
        let stem = if stem.is_empty() { "offer_list" } else { stem };
        page.error(written.place, what)
            .write(format!("`{RENDER}{}`", shown(stem)));
    }
    let shape = page
        .needed(&source.shape, "shape", home, "shape: list")
        .and_then(|word| page.choice(word, "shape", &SHAPES));
    let data_type = match &source.data_type {
        Some(data_type) => {
            page.id_form(data_type, "data_type");
            data_type.value.clone()
        }
        None => rest.to_owned(),
    };
    if is_id(&data_type) && !known.hidden {
        let written = source.data_type.as_ref().or(source.name.as_ref());
        let place = written.map_or(home, |written| written.place);
        shows(page, place, &data_type, known);
    }
    ToolKind::Render {
        data_type,
        shape: shape.unwrap_or(Shape::List),
    }
}

/// Says so if no enricher gives what a render tool is to show.
fn shows(page: &mut Page<'_>, place: Place, data_type: &str, known: &Connectors) {
    let given = || known.enrichers.iter().map(|one| one.domain_type.as_str());
    if given().any(|domain_type| domain_type == data_type) {
        return;
    }
    let what = format!("no enricher has the domain_type `{data_type}`");
    match nearest(data_type, given()) {
        Some(meant) => {
            page.warning(place, format!("{what}, did you mean `{meant}`?"));
        }
        None => page
            .warning(place, format!("{what}: there is nothing to show by id"))
            .write("`data_type` with a domain_type of connectors.yaml"),
    }
}
