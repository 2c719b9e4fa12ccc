//! Digests of tools and tool servers before variables are filled in: the same in every environment,
//! and different after every edit.

use std::collections::BTreeMap;

use crate::pack::tool::SERVER_PREFIX;
use crate::source::form::Pairs;
use crate::source::tool::ToolsSource;
use crate::text::digest::Digest;
use crate::yaml::Located;

type TextPairs = Option<Located<Pairs<Located<String>>>>;
type TextList = Option<Located<Vec<Located<String>>>>;

/// Tool → digest, and `mcp:<server>` → digest, for those whose values may have variables.
pub(crate) fn digests(source: Option<&ToolsSource>) -> BTreeMap<String, String> {
    let tools = source.iter().flat_map(|source| &source.tools);
    let tools = tools.filter_map(|tool| {
        let tool = &tool.value;
        let parts = parts(
            &tool.url,
            [&tool.query, &tool.headers, &tool.env],
            &tool.command,
        );
        let name = tool.name.as_ref().filter(|_| !parts.is_empty())?;
        Some((name.value.clone(), Digest::of(parts).short()))
    });
    let servers = source.iter().flat_map(|source| &source.mcp_servers.0);
    let servers = servers.map(|(name, server)| {
        let server = &server.value;
        let parts = parts(
            &server.url,
            [&None, &server.headers, &server.env],
            &server.command,
        );
        (
            format!("{SERVER_PREFIX}{}", name.value),
            Digest::of(parts).short(),
        )
    });
    tools.chain(servers).collect()
}

/// The values that may have variables, each after the name of its field.
fn parts<'a>(
    url: &'a Option<Located<String>>,
    [query, headers, env]: [&'a TextPairs; 3],
    command: &'a TextList,
) -> Vec<&'a str> {
    let pairs = |name: &'a str, field: &'a TextPairs| {
        let pairs = field.iter().flat_map(|pairs| &pairs.value.0);
        pairs.flat_map(move |(key, value)| [name, key.value.as_str(), value.value.as_str()])
    };
    let words = command.iter().flat_map(|words| &words.value);
    let words = words.flat_map(|word| ["command", word.value.as_str()]);
    let url = url.iter().flat_map(|url| ["url", url.value.as_str()]);
    let request = url
        .chain(pairs("query", query))
        .chain(pairs("headers", headers));
    request.chain(words).chain(pairs("env", env)).collect()
}
