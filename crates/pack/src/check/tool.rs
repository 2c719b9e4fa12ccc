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
use crate::check::report::{CALL_MS_MAX, FileReport, is_id, text_of, value_of, word};
use crate::check::tool::connector::CheckedConnectors;
use crate::finding::{Findings, KnownNames};
use crate::pack::tool::{ASK_PREFIX, BuiltinFunction, ToolDef, ToolKind};
use crate::source::tool::{Approval, Connector, ToolSource, ToolsSource};
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

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
    /// Whether each tool has a `timeout_ms` of its own, in the same order.
    pub(crate) timeout_is_written: Vec<bool>,
    /// The names; incomplete if the file is broken.
    pub(crate) known_names: KnownNames,
}

impl CheckedTools {
    pub(crate) fn get(&self, name: &str) -> Option<&ToolDef> {
        self.tools.iter().find(|tool| tool.name == name)
    }
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
    let sources = source.map_or(&[][..], |source| &source.tools);
    let names = sources.iter().filter_map(|tool| tool.value.name.as_ref());
    FileReport::new(FILE, findings).check_unique(names, "tools");
    let mut tools = Vec::new();
    let mut positions = Vec::new();
    for Located { value, position } in sources {
        let check = ToolCheck {
            report: FileReport::new(FILE, findings),
            position: *position,
            source: value,
            connector: word(&value.connector),
            fields: KnownNames::default(),
            context,
        };
        tools.push(check.tool());
        positions.push(value.name.as_ref().map_or(*position, |name| name.position));
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
        timeout_is_written: sources
            .iter()
            .map(|tool| tool.value.timeout_ms.is_some())
            .collect(),
        tools,
        positions,
    }
}

/// The check of one tool. Each kind of tool adds its own part.
struct ToolCheck<'a> {
    report: FileReport<'a>,
    position: TextPosition,
    source: &'a ToolSource,
    /// `None` if the schema of the file refused the word.
    connector: Option<Connector>,
    /// The fields of the tool's input; incomplete without a schema.
    fields: KnownNames,
    context: &'a ToolContext<'a>,
}

impl ToolCheck<'_> {
    fn tool(mut self) -> ToolDef {
        let source = self.source;
        let name = text_of(&source.name);
        if let Some(written) = &source.name
            && name.starts_with(ASK_PREFIX)
        {
            let message = format!(
                "the tool `{name}` begins with `{ASK_PREFIX}`, as only the tools that ask a sub-agent do"
            );
            let instead =
                "another name; sub-agents are listed in `sub_agents` of orchestrator.yaml";
            self.report.error(written.position, message, instead);
        }
        let input_schema = self.input_schema();
        let properties = input_schema
            .as_ref()
            .and_then(|schema| schema["properties"].as_object());
        self.fields = KnownNames {
            incomplete: input_schema.is_none(),
            ..KnownNames::complete(properties.into_iter().flat_map(|fields| fields.keys()))
        };
        let kind = self.kind();
        if let Some(connector) = self.connector {
            field::check(&mut self.report, source, connector);
            self.check_description(connector);
        }
        for status in [&source.status, &source.progress_status]
            .into_iter()
            .flatten()
        {
            self.report.unregistered(status, self.context.statuses);
        }
        let is_render = self.connector == Some(Connector::Render);
        let approval = word(&source.approval) == Some(Approval::Required);
        if let (true, true, Some(word)) = (is_render, approval, &source.approval) {
            let message = "a render tool waits for nobody: it shows what is there";
            self.report.error(word.position, message, "no `approval`");
        }
        ToolDef {
            approval: approval && !is_render,
            progress_status: value_of(&source.progress_status)
                .filter(|_| self.connector == Some(Connector::Mcp)),
            name,
            description: text_of(&source.description),
            kind,
            input_schema: input_schema.unwrap_or(Value::Null),
            status: value_of(&source.status),
            timeout_ms: self.timeout(),
            remember: source.remember.unwrap_or(false),
        }
    }

    /// What a call of the tool does.
    fn kind(&mut self) -> ToolKind {
        use Connector as C;
        match self.connector {
            Some(C::CcsRest | C::CcsMcp) => self.ccs(),
            Some(C::Render) => self.render(),
            Some(C::Direct) => {
                let function = &self.source.function;
                self.report
                    .require(function, "function", self.position, "function: clock");
                ToolKind::Direct(word(function).unwrap_or(BuiltinFunction::Fail))
            }
            Some(C::Http) => self.http(),
            Some(C::Process) => self.process(),
            Some(C::Mcp) => self.mcp(),
            Some(C::Delegate) => self.delegate(),
            // A placeholder, so that the other fields are checked; the pack is refused.
            None => ToolKind::Direct(BuiltinFunction::Fail),
        }
    }

    /// The text of a field that the connector needs; `example` is what to write.
    fn require_text(
        &mut self,
        field: &Option<Located<String>>,
        name: &str,
        example: &str,
    ) -> String {
        self.report.require(field, name, self.position, example);
        text_of(field)
    }

    /// The timeout of a call: the written one, else the default of the connector.
    fn timeout(&mut self) -> Option<u64> {
        let (longest, default) = match self.connector {
            Some(Connector::CcsRest | Connector::CcsMcp) => (CALL_MS_MAX, None),
            Some(Connector::Http) => (http::TIMEOUT_MS_MAX, Some(http::TIMEOUT_MS)),
            Some(Connector::Process) => (u64::MAX, Some(process::TIMEOUT_MS)),
            Some(Connector::Delegate) => (u64::MAX, Some(delegate::TIMEOUT_MS)),
            Some(Connector::Render | Connector::Direct | Connector::Mcp) | None => (u64::MAX, None),
        };
        let Some(timeout) = &self.source.timeout_ms else {
            return default;
        };
        if timeout.value > longest {
            let message = format!("`timeout_ms` is {}", timeout.value);
            let instead = format!("a number from 1 to {longest}");
            self.report.error(timeout.position, message, instead);
        }
        Some(timeout.value)
    }

    /// The schema of the tool's input, if its connector takes one.
    fn input_schema(&mut self) -> Option<Value> {
        let field = self.source.input_schema.as_ref()?;
        let owner = match self.connector {
            Some(Connector::Render | Connector::Direct | Connector::Delegate) => "its own",
            Some(Connector::Mcp) => "the server's",
            Some(Connector::CcsRest | Connector::CcsMcp | Connector::Http | Connector::Process)
            | None => "",
        };
        if let Some(connector) = self.connector.filter(|_| !owner.is_empty()) {
            let tool = field::noun(connector);
            let message = format!("{tool} takes no `input_schema`: {owner} is used");
            self.report
                .error(field.position, message, "no `input_schema`");
            return None;
        }
        let schema = self
            .context
            .schemas
            .value(&mut self.report, field, "input_schema")?;
        if schema["type"] != "object" {
            let message = match schema.get("type") {
                Some(kind) => {
                    let kind = one_line(&kind.to_string());
                    format!("the input of a tool is an object, not {kind}")
                }
                None => {
                    "`input_schema` has no `type`, and the input of a tool is an object".to_owned()
                }
            };
            self.report.error(field.position, message, "`type: object`");
        }
        let required = schema["required"].as_array();
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == PRINCIPAL));
        if is_required || schema["properties"].get(PRINCIPAL).is_some() {
            let message = format!("`{PRINCIPAL}` is no input: it is taken from the session");
            let instead = format!("the schema without `{PRINCIPAL}`");
            self.report.error(field.position, message, instead);
        }
        Some(schema)
    }

    /// Checks that a tool without a description or an input schema of its own has one written.
    fn check_description(&mut self, connector: Connector) {
        let (source, position) = (self.source, self.position);
        if !matches!(connector, Connector::Direct | Connector::Mcp) {
            let example = "description: what it does, for the model";
            self.require_text(&source.description, "description", example);
        }
        match connector {
            Connector::CcsRest | Connector::CcsMcp | Connector::Http | Connector::Process => {
                let example = "input_schema: {type: object, properties: {…}}";
                let schema = &source.input_schema;
                self.report
                    .require(schema, "input_schema", position, example);
            }
            Connector::Render | Connector::Direct | Connector::Mcp | Connector::Delegate => {}
        }
    }
}
