//! Checks `tools.yaml`: each tool has what its connector needs and nothing else.

use serde_json::Value;

use super::connector::Connectors;
use super::page::{CALL_MS_MAX, Page, TIMEOUT_MS_MAX, is_id};
use super::schema::Schemas;
use crate::finding::{Findings, Known, shown};
use crate::nearest::{listed, nearest};
use crate::place::{At, Place};
use crate::source::tool::{Connector, ToolSource, ToolsSource};
use crate::tool::{Function, Shape, ToolDef, ToolKind};

const FILE: &str = "tools.yaml";
/// What the tools that ask a sub-agent begin with; they are made, not written.
pub(crate) const ASK: &str = "ask_";
/// What a tool that shows data begins with.
const RENDER: &str = "render_";

/// Who the person is; no model says so.
const PRINCIPAL: &str = "principal";

const CONNECTORS: [(&str, Connector); 3] = [
    ("ccs_rest", Connector::CcsRest),
    ("render", Connector::Render),
    ("direct", Connector::Direct),
];

/// Connectors that other versions have.
const NOT_YET: [&str; 4] = ["ccs_mcp", "mcp", "http", "process"];

const SHAPES: [(&str, Shape); 2] = [("list", Shape::List), ("single", Shape::Single)];

const FUNCTIONS: [(&str, Function); 7] = [
    ("clock", Function::Clock),
    ("echo", Function::Echo),
    ("sleep", Function::Sleep),
    ("fail", Function::Fail),
    ("burst", Function::Burst),
    ("emit_status", Function::EmitStatus),
    ("llm_feedback", Function::LlmFeedback),
];

/// What `tools.yaml` says.
pub(crate) struct Tools {
    pub(crate) tools: Vec<ToolDef>,
    /// Where each stands, in the same order.
    pub(crate) places: Vec<Place>,
    /// The names; hidden if the file is broken.
    pub(crate) known: Known,
}

/// What a tool may point at.
pub(crate) struct Around<'a> {
    pub(crate) connectors: &'a Connectors,
    pub(crate) statuses: &'a Known,
    pub(crate) schemas: &'a Schemas<'a>,
}

/// Checks it.
pub(crate) fn check(
    source: Option<&ToolsSource>,
    around: &Around<'_>,
    found: &mut Findings,
) -> Tools {
    let mut page = Page { file: FILE, found };
    let sources = source.map_or(&[][..], |source| &source.tools);
    page.once(
        sources.iter().filter_map(|tool| tool.value.name.as_ref()),
        "tools",
    );
    let mut tools = Vec::new();
    let mut places = Vec::new();
    for source in sources {
        tools.push(tool(&mut page, source, around));
        places.push(
            source
                .value
                .name
                .as_ref()
                .map_or(source.place, |name| name.place),
        );
    }
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    // A tool without a good name may be the one that somebody asks for.
    let is_good = |(at, tool): (usize, &ToolDef)| {
        let render = matches!(tool.kind, ToolKind::Render { .. });
        is_id(&tool.name)
            && !tool.name.starts_with(ASK)
            && render == tool.name.starts_with(RENDER)
            && !names[..at].contains(&tool.name)
    };
    let hidden = source.is_none() || !tools.iter().enumerate().all(is_good);
    Tools {
        known: Known { names, hidden },
        tools,
        places,
    }
}

fn tool(page: &mut Page<'_>, source: &At<ToolSource>, around: &Around<'_>) -> ToolDef {
    let (home, source) = (source.place, &source.value);
    let name = page.id(&source.name, "name", home, "name: search_offers");
    if let Some(written) = &source.name
        && name.starts_with(ASK)
    {
        let what = format!(
            "the tool `{name}` begins with `{ASK}`, as only the tools that ask a sub-agent do"
        );
        page.error(written.place, what)
            .write("another name; sub-agents are listed in `sub_agents` of orchestrator.yaml");
    }
    let connector = page
        .needed(&source.connector, "connector", home, "connector: direct")
        .and_then(|word| connector(page, word));
    let kind = match connector {
        Some(Connector::CcsRest) => ccs(page, home, source, around.connectors),
        Some(Connector::Render) => render(page, home, source, &name, around.connectors),
        Some(Connector::Direct) => direct(page, home, source),
        // Something, so that the other fields are looked at; the pack is refused anyway.
        None => ToolKind::Direct(Function::Fail),
    };
    if let Some(connector) = connector {
        fitting(page, source, connector);
        described(page, home, source, connector);
    }
    if let Some(status) = &source.status {
        page.unregistered(status, around.statuses);
    }
    let input_schema = source
        .input_schema
        .as_ref()
        .and_then(|schema| input(page, schema, connector, around.schemas));
    let longest = match connector {
        Some(Connector::CcsRest) => CALL_MS_MAX,
        Some(Connector::Render | Connector::Direct) | None => TIMEOUT_MS_MAX,
    };
    let timeout = source
        .timeout_ms
        .as_ref()
        .map(|_| page.number(&source.timeout_ms, "timeout_ms", (1, longest), 0));
    ToolDef {
        approval: false,
        progress_status: None,
        name,
        description: source
            .description
            .as_ref()
            .map(|text| text.value.clone())
            .unwrap_or_default(),
        kind,
        input_schema: input_schema.unwrap_or(Value::Null),
        status: source.status.as_ref().map(|status| status.value.clone()),
        timeout_ms: timeout,
        remember: source.remember.unwrap_or(false),
    }
}

fn connector(page: &mut Page<'_>, word: &At<String>) -> Option<Connector> {
    if NOT_YET.contains(&word.value.as_str()) {
        let what = format!(
            "the connector `{}` is not supported by this version",
            word.value
        );
        page.error(word.place, what).write(format!(
            "one of {}",
            listed(CONNECTORS.map(|(name, _)| name))
        ));
        return None;
    }
    page.choice(word, "connector", &CONNECTORS)
}

fn ccs(page: &mut Page<'_>, home: Place, source: &ToolSource, known: &Connectors) -> ToolKind {
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

fn render(
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

fn direct(page: &mut Page<'_>, home: Place, source: &ToolSource) -> ToolKind {
    let function = page
        .needed(&source.function, "function", home, "function: clock")
        .and_then(|word| page.choice(word, "function", &FUNCTIONS));
    ToolKind::Direct(function.unwrap_or(Function::Fail))
}

/// Says so if a field belongs to another connector.
fn fitting(page: &mut Page<'_>, source: &ToolSource, connector: Connector) {
    let fields = [
        ("enricher_id", &source.enricher_id, Connector::CcsRest),
        ("domain_type", &source.domain_type, Connector::CcsRest),
        ("data_type", &source.data_type, Connector::Render),
        ("shape", &source.shape, Connector::Render),
        ("function", &source.function, Connector::Direct),
    ];
    let name = |wanted: Connector| {
        let found = CONNECTORS
            .iter()
            .find(|(_, connector)| *connector == wanted);
        found.map_or("", |(name, _)| name)
    };
    for (field, written, of) in fields {
        if let Some(written) = written
            && of != connector
        {
            let what = format!("`{field}` does not fit a {} tool", name(connector));
            page.error(written.place, what)
                .write(format!("`connector: {}`, or no `{field}`", name(of)));
        }
    }
}

/// The schema of a tool's input, where its connector takes one, if a call can ever fit it.
fn input(
    page: &mut Page<'_>,
    field: &At<Value>,
    connector: Option<Connector>,
    schemas: &Schemas<'_>,
) -> Option<Value> {
    let built_in = match connector {
        Some(Connector::Render) => Some("render"),
        Some(Connector::Direct) => Some("direct"),
        Some(Connector::CcsRest) | None => None,
    };
    if let Some(name) = built_in {
        let what = format!("a {name} tool takes no `input_schema`: its own is used");
        page.error(field.place, what).write("no `input_schema`");
        return None;
    }
    let schema = schemas.value(page, field, "input_schema")?;
    if schema["type"] != "object" {
        let what = match schema.get("type") {
            Some(kind) => format!(
                "the input of a tool is an object, not {}",
                shown(&kind.to_string())
            ),
            None => "`input_schema` has no `type`, and the input of a tool is an object".to_owned(),
        };
        page.error(field.place, what).write("`type: object`");
    }
    let is_asked = schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == PRINCIPAL));
    if is_asked || schema["properties"].get(PRINCIPAL).is_some() {
        let what = format!("`{PRINCIPAL}` is no input: it is taken from the session");
        page.error(field.place, what)
            .write(format!("the schema without `{PRINCIPAL}`"));
    }
    Some(schema)
}

/// What the model must be told about a tool that is not built in.
fn described(page: &mut Page<'_>, home: Place, source: &ToolSource, connector: Connector) {
    if connector != Connector::Direct || source.description.is_some() {
        page.text(
            &source.description,
            "description",
            home,
            "description: what it does, for the model",
        );
    }
    if connector == Connector::CcsRest {
        page.needed(
            &source.input_schema,
            "input_schema",
            home,
            "input_schema: {type: object, properties: {…}}",
        );
    }
}
