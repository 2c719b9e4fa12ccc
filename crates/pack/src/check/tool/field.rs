//! Checks that the fields of a tool suit its connector.

use crate::check::report::{FileReport, word_of};
use crate::source::tool::{Connector, ToolSource};
use crate::yaml::{Located, TextPosition};

use Connector as C;

/// Reports fields that belong to another connector.
pub(super) fn check(report: &mut FileReport<'_>, source: &ToolSource, connector: Connector) {
    for (field, written, of) in fields(source) {
        if let Some(position) = written
            && !of.contains(&connector)
        {
            let article = match connector {
                C::Http | C::Mcp => "an",
                C::CcsRest | C::CcsMcp | C::Render | C::Direct | C::Process | C::Delegate => "a",
            };
            let message = format!(
                "`{field}` does not fit {article} {} tool",
                word_of(connector)
            );
            let right: Vec<String> = of.iter().map(word_of).collect();
            report.error(position, message).suggest(format!(
                "`connector: {}`, or no `{field}`",
                right.join("` or `connector: ")
            ));
        }
    }
}

/// A field: its name, its position if it is written, and its connectors.
type ConnectorField = (&'static str, Option<TextPosition>, &'static [Connector]);

fn position_of<T>(field: &Option<Located<T>>) -> Option<TextPosition> {
    field.as_ref().map(|field| field.position)
}

fn fields(source: &ToolSource) -> [ConnectorField; 21] {
    [
        (
            "enricher_id",
            position_of(&source.enricher_id),
            &[C::CcsRest, C::CcsMcp],
        ),
        (
            "domain_type",
            position_of(&source.domain_type),
            &[C::CcsRest, C::CcsMcp],
        ),
        ("data_type", position_of(&source.data_type), &[C::Render]),
        ("shape", position_of(&source.shape), &[C::Render]),
        ("function", position_of(&source.function), &[C::Direct]),
        ("method", position_of(&source.method), &[C::Http]),
        ("url", position_of(&source.url), &[C::Http]),
        ("query", position_of(&source.query), &[C::Http]),
        ("headers", position_of(&source.headers), &[C::Http]),
        ("max_bytes", position_of(&source.max_bytes), &[C::Http]),
        (
            "redirects_max",
            position_of(&source.redirects_max),
            &[C::Http],
        ),
        ("command", position_of(&source.command), &[C::Process]),
        ("env", position_of(&source.env), &[C::Process]),
        ("stdin", position_of(&source.stdin), &[C::Process]),
        ("output", position_of(&source.output), &[C::Process]),
        (
            "output_bytes_max",
            position_of(&source.output_bytes_max),
            &[C::Process],
        ),
        ("limits", position_of(&source.limits), &[C::Process]),
        ("server", position_of(&source.server), &[C::Mcp]),
        ("tool", position_of(&source.tool), &[C::Mcp]),
        (
            "progress_status",
            position_of(&source.progress_status),
            &[C::Mcp],
        ),
        ("agent", position_of(&source.agent), &[C::Delegate]),
    ]
}
