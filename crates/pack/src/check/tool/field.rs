//! Which field belongs to which connector.

use crate::check::report::{FileReport, word_of};
use crate::source::tool::{Connector, ToolSource};
use crate::yaml::{Located, TextPosition};

use Connector as C;

/// Says so if a field belongs to another connector.
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

/// A field, where it is written, and whose it is.
type Field = (&'static str, Option<TextPosition>, &'static [Connector]);

fn at<T>(field: &Option<Located<T>>) -> Option<TextPosition> {
    field.as_ref().map(|field| field.position)
}

fn fields(source: &ToolSource) -> [Field; 21] {
    [
        (
            "enricher_id",
            at(&source.enricher_id),
            &[C::CcsRest, C::CcsMcp],
        ),
        (
            "domain_type",
            at(&source.domain_type),
            &[C::CcsRest, C::CcsMcp],
        ),
        ("data_type", at(&source.data_type), &[C::Render]),
        ("shape", at(&source.shape), &[C::Render]),
        ("function", at(&source.function), &[C::Direct]),
        ("method", at(&source.method), &[C::Http]),
        ("url", at(&source.url), &[C::Http]),
        ("query", at(&source.query), &[C::Http]),
        ("headers", at(&source.headers), &[C::Http]),
        ("max_bytes", at(&source.max_bytes), &[C::Http]),
        ("redirects_max", at(&source.redirects_max), &[C::Http]),
        ("command", at(&source.command), &[C::Process]),
        ("env", at(&source.env), &[C::Process]),
        ("stdin", at(&source.stdin), &[C::Process]),
        ("output", at(&source.output), &[C::Process]),
        (
            "output_bytes_max",
            at(&source.output_bytes_max),
            &[C::Process],
        ),
        ("limits", at(&source.limits), &[C::Process]),
        ("server", at(&source.server), &[C::Mcp]),
        ("tool", at(&source.tool), &[C::Mcp]),
        ("progress_status", at(&source.progress_status), &[C::Mcp]),
        ("agent", at(&source.agent), &[C::Delegate]),
    ]
}
