//! Checks `tools.yaml`: each tool has what its connector needs and nothing else.

mod data;
mod http;
mod process;
mod hand;
mod fit;

use serde_json::Value;

use super::connector::Connectors;
use super::filled::Vars;
use super::page::{CALL_MS_MAX, Page, is_id, text_of, word};
use super::schema::Schemas;
use crate::finding::{Findings, Known};
use crate::source::tool::{Approval, Connector, ToolSource, ToolsSource};
use crate::tool::{ASK, Function, ToolDef, ToolKind};
use crate::wording::one_line;
use crate::yaml::{Located, TextPosition};

use data::Through;

pub(crate) use hand::Hands;

const FILE: &str = "tools.yaml";
/// What a tool that shows data begins with.
const RENDER: &str = "render_";

/// Who the person is; no model says so.
const PRINCIPAL: &str = "principal";

/// What `tools.yaml` says.
pub(crate) struct Tools {
    pub(crate) tools: Vec<ToolDef>,
    /// Where each stands, in the same order.
    pub(crate) positions: Vec<TextPosition>,
    /// The names; hidden if the file is broken.
    pub(crate) known: Known,
}

/// What a tool may point at.
pub(crate) struct Around<'a> {
    pub(crate) connectors: &'a Connectors,
    pub(crate) statuses: &'a Known,
    pub(crate) schemas: &'a Schemas<'a>,
    /// The tool servers.
    pub(crate) servers: &'a Known,
    /// Who work can be given to.
    pub(crate) hands: &'a Hands,
    pub(crate) vars: Vars<'a>,
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
    let mut positions = Vec::new();
    for source in sources {
        tools.push(tool(&mut page, source, around));
        positions.push(
            source
                .value
                .name
                .as_ref()
                .map_or(source.position, |name| name.position),
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
        positions,
    }
}

fn tool(page: &mut Page<'_>, source: &Located<ToolSource>, around: &Around<'_>) -> ToolDef {
    let (home, source) = (source.position, &source.value);
    let name = text_of(&source.name);
    if let Some(written) = &source.name
        && name.starts_with(ASK)
    {
        let what = format!(
            "the tool `{name}` begins with `{ASK}`, as only the tools that ask a sub-agent do"
        );
        page.error(written.position, what)
            .write("another name; sub-agents are listed in `sub_agents` of orchestrator.yaml");
    }
    let connector = word(&source.connector);
    let schema = source.input_schema.as_ref();
    let input_schema = schema.and_then(|schema| input(page, schema, connector, around.schemas));
    let kind = kind(
        page,
        (home, source),
        connector,
        input_schema.as_ref(),
        around,
    );
    if let Some(connector) = connector {
        fit::check(page, source, connector);
        described(page, home, source, connector);
    }
    for status in [&source.status, &source.progress_status]
        .into_iter()
        .flatten()
    {
        page.unregistered(status, around.statuses);
    }
    let approval = word(&source.approval) == Some(Approval::Required);
    if let (Some(Connector::Render), true, Some(word)) = (connector, approval, &source.approval) {
        page.error(
            word.position,
            "a render tool waits for nobody: it shows what is there",
        )
        .write("no `approval`");
    }
    let text = |field: &Option<Located<String>>| field.as_ref().map(|text| text.value.clone());
    ToolDef {
        approval: approval && connector != Some(Connector::Render),
        progress_status: text(&source.progress_status)
            .filter(|_| connector == Some(Connector::Mcp)),
        name,
        description: text(&source.description).unwrap_or_default(),
        kind,
        input_schema: input_schema.unwrap_or(Value::Null),
        status: text(&source.status),
        timeout_ms: timeout(page, source, connector),
        remember: source.remember.unwrap_or(false),
    }
}

/// What the tool does when it is called.
fn kind(
    page: &mut Page<'_>,
    (home, source): (TextPosition, &ToolSource),
    connector: Option<Connector>,
    schema: Option<&Value>,
    around: &Around<'_>,
) -> ToolKind {
    let name = source.name.as_ref().map_or("", |name| name.value.as_str());
    let (known, vars) = (fields(schema), around.vars);
    let data = around.connectors;
    match connector {
        Some(Connector::CcsRest) => data::ccs(page, home, source, Through::Http, data),
        Some(Connector::CcsMcp) => data::ccs(page, home, source, Through::Server, data),
        Some(Connector::Render) => data::render(page, home, source, name, data),
        Some(Connector::Direct) => direct(page, home, source),
        Some(Connector::Http) => http::check(page, home, source, &known, vars),
        Some(Connector::Process) => process::check(page, home, source, &known, vars),
        Some(Connector::Mcp) => hand::mcp(page, home, source, around.servers),
        Some(Connector::Delegate) => hand::delegate(page, home, source, around.hands),
        // Something, so that the other fields are looked at; the pack is refused anyway.
        None => ToolKind::Direct(Function::Fail),
    }
}

/// The fields of a tool's input; hidden if nobody knows them.
fn fields(schema: Option<&Value>) -> Known {
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    let names = properties.map(|properties| properties.keys().cloned().collect());
    Known {
        names: names.unwrap_or_default(),
        hidden: schema.is_none(),
    }
}

/// How long a call may take: what is written, else the default of the connector.
fn timeout(page: &mut Page<'_>, source: &ToolSource, connector: Option<Connector>) -> Option<u64> {
    let (longest, default) = match connector {
        Some(Connector::CcsRest | Connector::CcsMcp) => (Some(CALL_MS_MAX), None),
        Some(Connector::Http) => (Some(http::TIMEOUT_MS_MAX), Some(http::TIMEOUT_MS)),
        Some(Connector::Process) => (None, Some(process::TIMEOUT_MS)),
        Some(Connector::Delegate) => (None, Some(hand::TIMEOUT_MS)),
        Some(Connector::Render | Connector::Direct | Connector::Mcp) | None => (None, None),
    };
    let Some(timeout) = &source.timeout_ms else {
        return default;
    };
    if let Some(longest) = longest.filter(|longest| timeout.value > *longest)
        && !page.found.has(page.file, timeout.position)
    {
        page.error(
            timeout.position,
            format!("`timeout_ms` is {}", timeout.value),
        )
        .write(format!("a number from 1 to {longest}"));
    }
    Some(timeout.value)
}

fn direct(page: &mut Page<'_>, home: TextPosition, source: &ToolSource) -> ToolKind {
    page.needed(&source.function, "function", home, "function: clock");
    ToolKind::Direct(word(&source.function).unwrap_or(Function::Fail))
}

/// The schema of a tool's input, where its connector takes one, if a call can ever fit it.
fn input(
    page: &mut Page<'_>,
    field: &Located<Value>,
    connector: Option<Connector>,
    schemas: &Schemas<'_>,
) -> Option<Value> {
    let own = match connector {
        Some(Connector::Render) => Some("a render tool takes no `input_schema`: its own is used"),
        Some(Connector::Direct) => Some("a direct tool takes no `input_schema`: its own is used"),
        Some(Connector::Delegate) => {
            Some("a delegate tool takes no `input_schema`: its own is used")
        }
        Some(Connector::Mcp) => Some("an mcp tool takes no `input_schema`: the server's is used"),
        Some(Connector::CcsRest | Connector::CcsMcp | Connector::Http | Connector::Process)
        | None => None,
    };
    if let Some(what) = own {
        page.error(field.position, what).write("no `input_schema`");
        return None;
    }
    let schema = schemas.value(page, field, "input_schema")?;
    if schema["type"] != "object" {
        let what = match schema.get("type") {
            Some(kind) => format!(
                "the input of a tool is an object, not {}",
                one_line(&kind.to_string())
            ),
            None => "`input_schema` has no `type`, and the input of a tool is an object".to_owned(),
        };
        page.error(field.position, what).write("`type: object`");
    }
    let is_asked = schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == PRINCIPAL));
    if is_asked || schema["properties"].get(PRINCIPAL).is_some() {
        let what = format!("`{PRINCIPAL}` is no input: it is taken from the session");
        page.error(field.position, what)
            .write(format!("the schema without `{PRINCIPAL}`"));
    }
    Some(schema)
}

/// What the model must be told about a tool that does not say it itself.
fn described(page: &mut Page<'_>, home: TextPosition, source: &ToolSource, connector: Connector) {
    let (says, takes) = match connector {
        Connector::CcsRest | Connector::CcsMcp | Connector::Http | Connector::Process => {
            (false, true)
        }
        Connector::Render | Connector::Delegate => (false, false),
        Connector::Direct | Connector::Mcp => (true, false),
    };
    if !says || source.description.is_some() {
        let example = "description: what it does, for the model";
        page.needed_text(&source.description, "description", home, example);
    }
    if takes {
        page.needed(
            &source.input_schema,
            "input_schema",
            home,
            "input_schema: {type: object, properties: {…}}",
        );
    }
}
