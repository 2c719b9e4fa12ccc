//! Checks that the fields of a tool suit its connector.

use crate::check::report::{FileReport, word_of};
use crate::source::tool::{Connector, ToolSource};

use Connector as C;

/// The noun for a tool of this connector, with its article.
pub(super) fn noun(connector: Connector) -> String {
    let article = match connector {
        C::Http | C::Mcp => "an",
        C::CcsRest | C::CcsMcp | C::Render | C::Direct | C::Process | C::Delegate => "a",
    };
    format!("{article} {} tool", word_of(connector))
}

/// Lists fields of a [`ToolSource`] with their positions, if they are written, and the connectors
/// that they are for.
macro_rules! fields {
    ($source:ident; $($field:ident: $($connector:ident),+;)*) => {[$((
        stringify!($field),
        $source.$field.as_ref().map(|field| field.position),
        &[$(C::$connector),+][..],
    )),*]};
}

/// Reports fields that belong to another connector.
pub(super) fn check(report: &mut FileReport<'_>, source: &ToolSource, connector: Connector) {
    let fields = fields! {
        source;
        enricher_id: CcsRest, CcsMcp;
        domain_type: CcsRest, CcsMcp;
        data_type: Render;
        shape: Render;
        model_items: Render;
        function: Direct;
        method: Http;
        url: Http;
        query: Http;
        headers: Http;
        max_bytes: Http;
        redirects_max: Http;
        command: Process;
        env: Process;
        stdin: Process;
        output: Process;
        output_bytes_max: Process;
        limits: Process;
        server: Mcp;
        tool: Mcp;
        progress_status: Mcp;
        agent: Delegate;
    };
    for (field, position, connectors) in fields {
        if let Some(position) = position
            && !connectors.contains(&connector)
        {
            let message = format!("`{field}` does not fit {}", noun(connector));
            let right: Vec<String> = connectors.iter().map(word_of).collect();
            let right = right.join("` or `connector: ");
            report.error(
                position,
                message,
                format!("`connector: {right}`, or no `{field}`"),
            );
        }
    }
}
