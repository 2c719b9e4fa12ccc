//! Checks `tools.yaml`: each tool has what its connector needs and nothing else.

pub(crate) mod connector;
pub(crate) mod server;
pub(crate) mod digest;
mod data;
mod http;
mod process;
mod delegate;
mod field;

use serde_json::Value;

use crate::check::endpoint::expansion::Vars;
use crate::check::json_schema::SchemaFiles;
use crate::check::report::{CALL_MS_MAX, FileReport, is_id, text_of, word};
use crate::check::tool::connector::CheckedConnectors;
use crate::finding::{Findings, KnownNames};
use crate::pack::tool::{ASK_PREFIX, BuiltinFunction, ToolDef, ToolKind};
use crate::source::tool::{Approval, Connector, ToolSource, ToolsSource};
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

use crate::check::tool::data::ConnectorTransport;

pub(crate) use delegate::DelegateTargets;

const FILE: &str = "tools.yaml";
/// The prefix of render tools.
const RENDER: &str = "render_";

/// The property that a model may never set: it comes from the session.
const PRINCIPAL: &str = "principal";

/// The tools of `tools.yaml`.
pub(crate) struct CheckedTools {
    pub(crate) tools: Vec<ToolDef>,
    /// The position of each tool, in the same order.
    pub(crate) positions: Vec<TextPosition>,
    /// The names; incomplete if the file is broken.
    pub(crate) known_names: KnownNames,
}

/// The names that a tool may refer to.
pub(crate) struct ToolContext<'a> {
    pub(crate) connectors: &'a CheckedConnectors,
    pub(crate) statuses: &'a KnownNames,
    pub(crate) schemas: &'a SchemaFiles<'a>,
    pub(crate) servers: &'a KnownNames,
    pub(crate) delegates: &'a DelegateTargets,
    pub(crate) vars: Vars<'a>,
}

pub(crate) fn check(
    source: Option<&ToolsSource>,
    context: &ToolContext<'_>,
    findings: &mut Findings,
) -> CheckedTools {
    let mut report = FileReport {
        file: FILE,
        findings,
    };
    let sources = source.map_or(&[][..], |source| &source.tools);
    report.check_unique(
        sources.iter().filter_map(|tool| tool.value.name.as_ref()),
        "tools",
    );
    let mut tools = Vec::new();
    let mut positions = Vec::new();
    for source in sources {
        tools.push(tool(&mut report, source, context));
        positions.push(
            source
                .value
                .name
                .as_ref()
                .map_or(source.position, |name| name.position),
        );
    }
    let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    // A tool with an invalid name may be the one that an agent means.
    let is_good = |(at, tool): (usize, &ToolDef)| {
        let render = matches!(tool.kind, ToolKind::Render { .. });
        is_id(&tool.name)
            && !tool.name.starts_with(ASK_PREFIX)
            && render == tool.name.starts_with(RENDER)
            && !names[..at].contains(&tool.name)
    };
    let incomplete = source.is_none() || !tools.iter().enumerate().all(is_good);
    CheckedTools {
        known_names: KnownNames { names, incomplete },
        tools,
        positions,
    }
}

fn tool(
    report: &mut FileReport<'_>,
    source: &Located<ToolSource>,
    context: &ToolContext<'_>,
) -> ToolDef {
    let (home, source) = (source.position, &source.value);
    let name = text_of(&source.name);
    if let Some(written) = &source.name
        && name.starts_with(ASK_PREFIX)
    {
        let message = format!(
            "the tool `{name}` begins with `{ASK_PREFIX}`, as only the tools that ask a sub-agent do"
        );
        report
            .error(written.position, message)
            .suggest("another name; sub-agents are listed in `sub_agents` of orchestrator.yaml");
    }
    let connector = word(&source.connector);
    let schema = source.input_schema.as_ref();
    let input_schema = schema.and_then(|schema| input(report, schema, connector, context.schemas));
    let kind = kind(
        report,
        (home, source),
        connector,
        input_schema.as_ref(),
        context,
    );
    if let Some(connector) = connector {
        field::check(report, source, connector);
        described(report, home, source, connector);
    }
    for status in [&source.status, &source.progress_status]
        .into_iter()
        .flatten()
    {
        report.unregistered(status, context.statuses);
    }
    let approval = word(&source.approval) == Some(Approval::Required);
    if let (Some(Connector::Render), true, Some(word)) = (connector, approval, &source.approval) {
        report
            .error(
                word.position,
                "a render tool waits for nobody: it shows what is there",
            )
            .suggest("no `approval`");
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
        timeout_ms: timeout(report, source, connector),
        remember: source.remember.unwrap_or(false),
    }
}

/// What a call of the tool does.
fn kind(
    report: &mut FileReport<'_>,
    (home, source): (TextPosition, &ToolSource),
    connector: Option<Connector>,
    schema: Option<&Value>,
    context: &ToolContext<'_>,
) -> ToolKind {
    let name = source.name.as_ref().map_or("", |name| name.value.as_str());
    let (known_names, vars) = (fields(schema), context.vars);
    let data = context.connectors;
    match connector {
        Some(Connector::CcsRest) => data::ccs(report, home, source, ConnectorTransport::Http, data),
        Some(Connector::CcsMcp) => {
            data::ccs(report, home, source, ConnectorTransport::Server, data)
        }
        Some(Connector::Render) => data::render(report, home, source, name, data),
        Some(Connector::Direct) => direct(report, home, source),
        Some(Connector::Http) => http::check(report, home, source, &known_names, vars),
        Some(Connector::Process) => process::check(report, home, source, &known_names, vars),
        Some(Connector::Mcp) => delegate::mcp(report, home, source, context.servers),
        Some(Connector::Delegate) => delegate::delegate(report, home, source, context.delegates),
        // A placeholder, so that the other fields are checked; the pack is refused.
        None => ToolKind::Direct(BuiltinFunction::Fail),
    }
}

/// The fields of a tool's input; incomplete without a schema.
fn fields(schema: Option<&Value>) -> KnownNames {
    let properties = schema.and_then(|schema| schema["properties"].as_object());
    let names = properties.map(|properties| properties.keys().cloned().collect());
    KnownNames {
        names: names.unwrap_or_default(),
        incomplete: schema.is_none(),
    }
}

/// The timeout of a call: the written one, else the default of the connector.
fn timeout(
    report: &mut FileReport<'_>,
    source: &ToolSource,
    connector: Option<Connector>,
) -> Option<u64> {
    let (longest, default) = match connector {
        Some(Connector::CcsRest | Connector::CcsMcp) => (Some(CALL_MS_MAX), None),
        Some(Connector::Http) => (Some(http::TIMEOUT_MS_MAX), Some(http::TIMEOUT_MS)),
        Some(Connector::Process) => (None, Some(process::TIMEOUT_MS)),
        Some(Connector::Delegate) => (None, Some(delegate::TIMEOUT_MS)),
        Some(Connector::Render | Connector::Direct | Connector::Mcp) | None => (None, None),
    };
    let Some(timeout) = &source.timeout_ms else {
        return default;
    };
    if let Some(longest) = longest.filter(|longest| timeout.value > *longest)
        && !report.findings.has(report.file, timeout.position)
    {
        report
            .error(
                timeout.position,
                format!("`timeout_ms` is {}", timeout.value),
            )
            .suggest(format!("a number from 1 to {longest}"));
    }
    Some(timeout.value)
}

fn direct(report: &mut FileReport<'_>, home: TextPosition, source: &ToolSource) -> ToolKind {
    report.require(&source.function, "function", home, "function: clock");
    ToolKind::Direct(word(&source.function).unwrap_or(BuiltinFunction::Fail))
}

/// The schema of a tool's input, if its connector takes one.
fn input(
    report: &mut FileReport<'_>,
    field: &Located<Value>,
    connector: Option<Connector>,
    schemas: &SchemaFiles<'_>,
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
    if let Some(message) = own {
        report
            .error(field.position, message)
            .suggest("no `input_schema`");
        return None;
    }
    let schema = schemas.value(report, field, "input_schema")?;
    if schema["type"] != "object" {
        let message = match schema.get("type") {
            Some(kind) => format!(
                "the input of a tool is an object, not {}",
                one_line(&kind.to_string())
            ),
            None => "`input_schema` has no `type`, and the input of a tool is an object".to_owned(),
        };
        report
            .error(field.position, message)
            .suggest("`type: object`");
    }
    let is_asked = schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == PRINCIPAL));
    if is_asked || schema["properties"].get(PRINCIPAL).is_some() {
        let message = format!("`{PRINCIPAL}` is no input: it is taken from the session");
        report
            .error(field.position, message)
            .suggest(format!("the schema without `{PRINCIPAL}`"));
    }
    Some(schema)
}

/// Checks description and input schema of a tool that has none of its own.
fn described(
    report: &mut FileReport<'_>,
    home: TextPosition,
    source: &ToolSource,
    connector: Connector,
) {
    let (says, takes) = match connector {
        Connector::CcsRest | Connector::CcsMcp | Connector::Http | Connector::Process => {
            (false, true)
        }
        Connector::Render | Connector::Delegate => (false, false),
        Connector::Direct | Connector::Mcp => (true, false),
    };
    if !says || source.description.is_some() {
        let example = "description: what it does, for the model";
        report.require_text(&source.description, "description", home, example);
    }
    if takes {
        report.require(
            &source.input_schema,
            "input_schema",
            home,
            "input_schema: {type: object, properties: {…}}",
        );
    }
}
